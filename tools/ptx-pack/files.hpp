// Files as a compressor treats them: an output appears whole or not at all, with the input's mode and times, and
// nothing that exists is lost without -f.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/stat.h>

#include "runtime/format/byte_stream.hpp"

namespace ptxkit::pack {

// Removes the unfinished output when the process is told to end (SIGINT, SIGTERM, SIGHUP), then lets the signal do its
// work.
void install_interrupt_cleanup();

class InputFile {
 public:
  // "-" is standard input. Errors name the path.
  static Result<InputFile> open(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  int descriptor() const { return descriptor_; }
  const std::string& name() const { return name_; }  // the path, or "standard input"
  const struct stat& info() const { return info_; }
  std::optional<std::uint64_t> size_bytes() const;  // of a regular file

 private:
  InputFile(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}

  int descriptor_;
  std::string name_;
  struct stat info_{};
};

// A temporary file beside `path`, renamed to it by commit(); removed if that never happens. Devices, pipes and "-" are
// written directly.
class OutputFile {
 public:
  static Result<OutputFile> create(const std::string& path, const InputFile& input, bool overwrite);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  int descriptor() const { return descriptor_; }
  const std::string& name() const { return name_; }
  // Gives the output the mode, owner (where allowed) and times of `input`, closes it and puts it in place.
  Result<void> commit(const InputFile& input);

 private:
  OutputFile() = default;

  int descriptor_ = -1;
  std::string name_;  // for messages
  std::string path_;
  std::string temporary_;  // empty: written directly
};

// Every regular file below `path`, sorted; `path` itself when it is no directory.
Result<std::vector<std::string>> files_below(const std::string& path);

}  // namespace ptxkit::pack
