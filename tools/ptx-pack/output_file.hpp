// Outputs as a compressor treats them: one appears whole or not at all, with the input's mode and times, and nothing
// that exists is lost without -f.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/codec/format/byte_stream.hpp"
#include "tools/ptx-pack/files.hpp"

namespace ptxkit::pack {

// Removes the unfinished output when a signal ends the process, then lets the signal do its work. Of the signals that
// end a process by default, all but those that say the program itself is broken (SIGSEGV and its like).
void install_interrupt_cleanup();

// Whether `name`, without a folder, is what OutputFile calls an output that is not finished.
bool is_unfinished_name(std::string_view name);

// A new file gets its name when it is whole. Until then it has none (O_TMPFILE), so that not even SIGKILL leaves
// anything; where the file system has no such files, it has a temporary one in the same folder. "-", devices, pipes and
// descriptors of this process (/dev/stdout, /dev/fd/3) are written to as they are; of a symbolic link, what it leads to
// is replaced.
class OutputFile {
 public:
  static Result<OutputFile> create(const std::string& path, const InputFile& input, bool overwrite);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  int descriptor() const { return descriptor_; }
  const std::string& name() const { return name_; }
  // A file that is new, and nothing that existed before.
  bool is_new_file() const { return kind_ == Kind::new_file; }
  // Gives the output the mode, owner (where allowed) and times of `input`, and puts it in place. `durable`: what is
  // written has reached the disk by then.
  Result<void> commit(const InputFile& input, bool durable);
  // What of the input's attributes the output could not be given; not an error.
  const std::vector<std::string>& remarks() const { return remarks_; }
  // After commit(..., true): the name still leads to the file that was written.
  bool lies_in_place() const;

 private:
  enum class Kind { standard_output, existing, new_file };

  OutputFile() = default;
  Result<void> open_new();
  void take_over_attributes(const InputFile& input);
  Result<void> put_in_place();
  tl::unexpected<Error> not_in_place() const;

  Kind kind_ = Kind::new_file;
  int descriptor_ = -1;
  std::string name_;       // for messages
  std::string path_;       // where it goes: what links lead to
  std::string temporary_;  // its name for the time being; empty: it has none
  bool overwrite_ = false, is_committed_ = false;
  std::vector<std::string> remarks_;
};

}  // namespace ptxkit::pack
