// What a verb works on: every PTX text in the files and folders of its command line.
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
  unsigned jobs = 0;               // texts worked on at the same time; 0: as many as there are cores
  SandboxOption sandbox = {};
};

// Adds FILE..., --jobs and --sandbox to a verb.
void add_inputs(Verb& verb, Inputs& inputs);

// What is wrong with them, if anything: standard input named twice.
std::optional<std::string> fault(const Inputs& inputs);

// A text, or a file or folder that none could be had from.
struct Input {
  container::PtxImage image;
  std::string path;            // as on the command line, or found below it: the file that holds the image
  std::optional<Error> error;  // then image is empty
};

// Hands out the texts in order: words as given, files of a folder by name. Below a folder, files named *.ptx count, and
// fat binaries, ELF files and static libraries that hold PTX; cubins and what holds none are passed over. Errors: what
// cannot be read, is damaged, or, named by a word of its own, holds no PTX.
class ImageReader {
 public:
  explicit ImageReader(std::vector<std::string> words);

  // Texts of about kBatchBytes together, so that memory stays bounded; empty at the end.
  std::vector<Input> next();

 private:
  void add_word(const std::string& word);
  void add_file(const std::string& path, bool is_in_folder);

  static constexpr size_t kBatchBytes = 16 << 20;

  std::vector<std::string> words_;
  size_t next_word_ = 0;
  std::vector<std::string> pending_;  // of the folder that is being walked, last first
  std::string folder_;
  size_t found_count_ = 0, passed_over_count_ = 0;
  std::vector<Input> batch_;
  size_t batch_bytes_ = 0;
};

// How a verb that works on one text describes its FILE, and that text: the file's own, the only one that a container
// holds, or, where FILE is a name such as app:fatbin[0].sm_90.ptx, the one of that name. Errors: as above; a folder; a
// container with several texts, whose names the error lists.
inline constexpr std::string_view kOneFile =
    "PTX file, or a fat binary, executable, object or library with one PTX in it; - is standard input";
Result<container::PtxImage> read_one_image(const std::string& word);

// The file that a text of this name lies in: itself, or the container that the name begins with, "app" of
// "app:fatbin[0].sm_90.ptx"; what stands behind may come from the container. Empty where there is neither.
std::string file_of(const std::string& name);

// For each text `take(work(image, path))`, or `refuse(path, error)`, in the order of the command line and on the
// calling thread; `work` itself runs on several threads and must not throw.
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

// What a verb says of one text.
struct Answer {
  rules::Status status = rules::Status::good;
  std::string text;            // for standard output
  std::string complaint = {};  // for standard error
};

// What stands around the answers, where they make one document.
struct Frame {
  std::string head;
  std::function<void(Answer&)> each;  // called in order, before an answer is printed
  std::string tail;
  bool is_ptx = false;  // the answers are printed as they are
};

// Around answers that are JSON values: {"schema": SCHEMA, KEY: [...]}.
Frame json_list(std::string_view schema, std::string_view key);

// Prints the answers in the order of the command line, as they come; returns the strongest exit code.
int answer_each(std::string_view verb, const Inputs& inputs,
                const std::function<Answer(container::PtxImage, const std::string& path)>& work,
                const Frame& frame = {});

// The answer for a text that parses; for another one its mistakes, as a complaint.
Answer answer_parsed(container::PtxImage image, const std::function<Answer(const ptx::Module&)>& work);

}  // namespace ptxkit::tools
