// Inputs of a verb: every PTX text in the files and folders of its command line.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "analyzer/container/images.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/score.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "support/result.hpp"
#include "tools/ptx-debug/sandbox_option.hpp"

namespace ptxkit::tools {

class Verb;

struct Inputs {
  std::vector<std::string> words;  // files, folders, "-"
  unsigned jobs = 0;               // texts processed in parallel; 0: one per core
  SandboxOption sandbox = {};
};

// Adds FILE..., --jobs and --sandbox to a verb.
void add_inputs(Verb& verb, Inputs& inputs);

// Returns an error message where standard input is named twice or --sandbox is wrong; nothing otherwise.
std::optional<std::string> fault(const Inputs& inputs);

// A PTX text, or an error for a file or folder.
struct Input {
  container::PtxImage image;
  std::string path;            // the file that holds the image: as on the command line, or found below a folder of it
  std::optional<Error> error;  // where set, `image` is empty
};

// Returns the texts in order: words as given, files of a folder by name. Below a folder it reads files named *.ptx, and
// fat binaries, ELF files and static libraries that hold PTX; it skips cubins and all other files. Errors are returned
// as Input::error: a file that cannot be read or is damaged, and a file named on the command line that holds no PTX.
class ImageReader {
 public:
  explicit ImageReader(std::vector<std::string> words);

  // Returns texts of about kBatchBytes in total, which bounds memory; empty at the end.
  std::vector<Input> next();

 private:
  void add_word(const std::string& word);
  void add_file(const std::string& path, bool is_in_folder);

  static constexpr size_t kBatchBytes = 16 << 20;

  std::vector<std::string> words_;
  size_t next_word_ = 0;
  std::vector<std::string> pending_;  // files of the current folder, last first
  std::string folder_;
  size_t found_count_ = 0, passed_over_count_ = 0;
  std::vector<Input> batch_;
  size_t batch_bytes_ = 0;
};

// The help text for the FILE of a verb that reads one text, and the function that reads it: the file's own text, the
// only text of a container, or, where FILE is a name such as app:fatbin[0].sm_90.ptx, the text of that name. Errors:
// those of ImageReader; FILE is a folder; a container holds several texts, whose names the error lists.
inline constexpr std::string_view kOneFile =
    "PTX file, or a fat binary, executable, object or library with one PTX in it; - is standard input";
Result<container::PtxImage> read_one_image(const std::string& word);

// The file that holds the text of this name: the name itself, or the container that the name begins with, "app" of
// "app:fatbin[0].sm_90.ptx". The rest of the name may come from the container. Empty where neither file exists.
std::string file_of(const std::string& name);

// Calls take(work(image, path)) for each text, or refuse(path, error). `take` and `refuse` run on the calling thread in
// the order of the command line. `work` runs on several threads and must not throw.
template <class Work, class Take, class Refuse>
void for_each_image(const Inputs& inputs, const Work& work, const Take& take, const Refuse& refuse) {
  using Done = std::invoke_result_t<Work, container::PtxImage, const std::string&>;
  ImageReader reader(inputs.words);
  for (std::vector<Input> batch = reader.next(); !batch.empty(); batch = reader.next()) {
    std::vector<std::optional<Done>> done(batch.size());
    codec::Executor executor(batch.size() == 1 ? 1 : inputs.jobs);
    executor.for_each(batch.size(), [&](size_t i, unsigned) {
      if (!batch[i].error) done[i] = work(std::move(batch[i].image), batch[i].path);
    });
    for (size_t i = 0; i < batch.size(); ++i) {
      if (batch[i].error) {
        refuse(batch[i].path, *batch[i].error);
      } else {
        take(std::move(*done[i]));
      }
    }
  }
}

// A verb's result for one text.
struct ImageResult {
  rules::Status status = rules::Status::good;
  std::string text;             // for standard output
  std::string error_text = {};  // for standard error
};

// The text around the answers, where they form one document.
struct Frame {
  std::string head;
  std::function<void(ImageResult&)> each;  // called in order, before an answer is printed
  std::string tail;
  bool is_ptx = false;  // print the answers byte for byte
};

// Around answers that are JSON values: {"schema": SCHEMA, KEY: [...]}.
Frame json_list(std::string_view schema, std::string_view key);

// Prints the answers in the order of the command line as they arrive. Returns the highest exit code.
int print_each_result(std::string_view verb, const Inputs& inputs,
                      const std::function<ImageResult(container::PtxImage, const std::string& path)>& work,
                      const Frame& frame = {});

// Returns work(module) for a text that parses; otherwise its diagnostics as a complaint.
ImageResult answer_parsed(container::PtxImage image, const std::function<ImageResult(const ptx::Module&)>& work);

}  // namespace ptxkit::tools
