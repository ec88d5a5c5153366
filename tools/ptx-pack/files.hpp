// Input files: opening one, detecting a change while it is read, and removing it after success.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "runtime/codec/format/byte_stream.hpp"
#include "support/result.hpp"

namespace ptxkit::pack {

class OutputFile;

class InputFile {
 public:
  // Opens a file; "-" is standard input. Errors name the path.
  static Result<InputFile> open(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  int descriptor() const { return descriptor_; }
  const std::string& name() const { return name_; }  // the path, or "standard input"
  const struct stat& info() const { return info_; }
  // The file offset at the start: standard input may be a file that has been partly read.
  uint64_t begin() const { return begin_; }
  // The bytes from begin() to the end of a regular file. Nothing if the file has no reliable size, as in /proc and
  // /sys.
  std::optional<uint64_t> size_bytes() const { return size_bytes_; }
  // Fails if the file has changed its length since it was opened, or if `read_bytes` differs from size_bytes().
  Result<void> check_size(uint64_t read_bytes) const;
  // Whether `path` still names this file, unmodified since it was opened.
  bool is_still(const std::string& path) const;

 private:
  InputFile(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}

  int descriptor_;
  std::string name_;
  struct stat info_{};
  uint64_t begin_ = 0;
  std::optional<uint64_t> size_bytes_;
};

// Removes an input; no other code does. Requires that `output` lies complete under its name on the disk and that `path`
// is still the file that was read. Otherwise fails and removes nothing.
Result<void> remove_input(const std::string& path, const InputFile& input, const OutputFile& output);

struct FoundFiles {
  std::vector<std::string> files;  // sorted
  std::vector<Error> errors;       // directories that cannot be read
};
// Every regular file below the directory `path`, or `path` itself if it is not a directory. An unreadable directory
// does not end the search.
FoundFiles files_below(const std::string& path);

}  // namespace ptxkit::pack
