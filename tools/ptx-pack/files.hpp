// Inputs as a compressor treats them: what is known of one, whether it has changed meanwhile, and when it may go.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/stat.h>

#include "runtime/codec/format/byte_stream.hpp"

namespace ptxkit::pack {

class OutputFile;

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
  // Where reading began: standard input may be a file that was partly read.
  uint64_t begin() const { return begin_; }
  // From there to the end, of a regular file. Nothing where the size says nothing, as of files in /proc and /sys.
  std::optional<uint64_t> size_bytes() const { return size_bytes_; }
  // An error where the file is not as long as it was, or does not hold `read_bytes`.
  Result<void> check_size(uint64_t read_bytes) const;
  // Whether `path` is this file and nobody has written to it since it was opened.
  bool is_still(const std::string& path) const;

 private:
  InputFile(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}

  int descriptor_;
  std::string name_;
  struct stat info_{};
  uint64_t begin_ = 0;
  std::optional<uint64_t> size_bytes_;
};

// The one place that removes an input. It does where `output` is known to lie under its name, on the disk, and `path`
// is still what was read; otherwise it is an error and nothing is removed.
Result<void> remove_input(const std::string& path, const InputFile& input, const OutputFile& output);

struct FoundFiles {
  std::vector<std::string> files;  // sorted
  std::vector<Error> errors;       // folders that cannot be read
};
// Every regular file below `path`; `path` itself when it is no directory. A folder that cannot be read does not keep
// the others from being found.
FoundFiles files_below(const std::string& path);

}  // namespace ptxkit::pack
