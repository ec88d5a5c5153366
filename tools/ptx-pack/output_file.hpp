// Output files. An output appears complete or not at all, with the input's mode and times, and no existing file is lost
// without -f.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/codec/format/byte_stream.hpp"
#include "support/place.hpp"
#include "support/result.hpp"
#include "tools/ptx-pack/files.hpp"

namespace ptxkit::pack {

// Installs handlers that remove the unfinished output before a signal ends the process, and then raise the signal
// again. Covers the signals that end a process by default, except those that report a fault of the program (SIGSEGV and
// others).
void install_interrupt_cleanup();
// The same for an unfinished output that another process creates. False if the path is too long.
bool remove_if_interrupted(const std::string& unfinished_path);

// Whether `name`, without a directory, is the name of an unfinished output.
bool is_unfinished_name(std::string_view name);

// A new file gets its name when it is complete. Until then it has no name (O_TMPFILE), so that even SIGKILL leaves
// nothing behind; file systems that do not support this use a temporary file in the same directory. "-", devices, pipes
// and descriptors of this process (/dev/stdout, /dev/fd/3) are written to directly. Symbolic links to files are
// followed only to replace their targets.
//
// Everything is done in the folder that create() has opened, by names that are no longer followed. The output beside an
// input is made in the folder in which the input was opened.
class OutputFile {
 public:
  // With `announce` a new file has a temporary name from the beginning, so that other processes can open it, and
  // `announce` is called with its path before the file is created.
  using Announce = std::function<void(const std::string& unfinished_path)>;
  static Result<OutputFile> create(const std::string& path, const InputFile& input, bool overwrite,
                                   const Announce& announce = {});
  // Of no input.
  static Result<OutputFile> create(const std::string& path, bool overwrite) {
    return create(path, nullptr, overwrite, {});
  }
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  int descriptor() const { return descriptor_; }
  const std::string& name() const { return name_; }
  // Whether the output is a new file, not a device, a pipe or a descriptor.
  bool is_new_file() const { return kind_ == Kind::new_file; }
  // Whether the output is where a link leads.
  bool is_behind_link() const { return is_behind_link_; }
  // Gives the output mode, owner (where permitted) and times of `input`, and puts it in place. `durable`: also waits
  // until the data have reached the disk.
  Result<void> commit(const InputFile& input, bool durable) { return commit(&input, durable); }
  // As a new file of the user's.
  Result<void> commit() { return commit(nullptr, false); }
  // The file that commit() replaces or that is written to, as long as it lies there; nothing where none does.
  std::optional<struct stat> existing() const;
  // Attributes of the input that could not be applied. Not an error.
  const std::vector<std::string>& remarks() const { return remarks_; }
  // After commit(..., true): whether the name still refers to the file that was written.
  bool lies_in_place() const;

 private:
  enum class Kind { standard_output, existing, new_file };

  OutputFile() = default;
  static Result<OutputFile> create(const std::string& path, const InputFile* input, bool overwrite,
                                   const Announce& announce);
  Result<void> commit(const InputFile* input, bool durable);
  Result<void> open_new(const Announce& announce);
  void take_over_attributes(const InputFile* input);
  Result<void> put_in_place();
  tl::unexpected<Error> not_in_place() const;

  Kind kind_ = Kind::new_file;
  int descriptor_ = -1;
  std::string name_;       // for messages
  Place place_;            // of a new file; after links are followed
  std::string temporary_;  // the temporary name in its folder; empty: none
  bool overwrite_ = false, is_committed_ = false, is_behind_link_ = false;
  std::vector<std::string> remarks_;
};

}  // namespace ptxkit::pack
