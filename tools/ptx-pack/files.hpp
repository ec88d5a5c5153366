// Input files: opening one, detecting a change while it is read, and removing it after success.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "runtime/codec/format/byte_stream.hpp"
#include "support/place.hpp"
#include "support/result.hpp"

namespace ptxkit::pack {

class OutputFile;

// An input that the command line names, or that was found below a folder which it names.
struct InputName {
  std::string path;  // "-" is standard input
  // Of one that was found: the folder, as the beginning of `path`, and which one it was.
  struct Root {
    size_t path_bytes;
    FileIdentity identity;
  };
  std::optional<Root> root = {};
};
std::vector<std::string> paths_of(const std::vector<InputName>& inputs);

// Its folder is opened, too, and what is made or removed beside the file is made and removed there. An input that was
// found is reached from the folder that was searched without following a link.
class InputFile {
 public:
  // Opens a file; "-" is standard input. Errors name the path.
  static Result<InputFile> open(const InputName& input);
  static Result<InputFile> open(const std::string& path) { return open(InputName{path}); }
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  int descriptor() const { return descriptor_; }
  const std::string& name() const { return name_; }  // the path, or "standard input"
  const struct stat& info() const { return info_; }
  const std::optional<Place>& place() const { return place_; }  // nothing: of standard input
  // The file offset at the start: standard input may be a file that has been partly read.
  uint64_t begin() const { return begin_; }
  // The bytes from begin() to the end of a regular file. Nothing if the file has no reliable size, as in /proc and
  // /sys.
  std::optional<uint64_t> size_bytes() const { return size_bytes_; }
  // Fails if the file has changed its length since it was opened, or if `read_bytes` differs from size_bytes().
  Result<void> check_size(uint64_t read_bytes) const;
  // Whether its name is still that of this file, unmodified since it was opened.
  bool is_unchanged() const;

 private:
  InputFile(int descriptor, std::string name, std::optional<Place> place, bool was_found)
      : descriptor_(descriptor), name_(std::move(name)), place_(std::move(place)), was_found_(was_found) {}

  int descriptor_;
  std::string name_;
  std::optional<Place> place_;
  bool was_found_;  // then it is no link
  struct stat info_{};
  uint64_t begin_ = 0;
  std::optional<uint64_t> size_bytes_;
};

// Removes an input; no other code does. Requires that `output` lies complete under its name on the disk and that the
// input's name is still that of the file that was read. Otherwise fails and removes nothing.
Result<void> remove_input(const InputFile& input, const OutputFile& output);

struct FoundFiles {
  std::vector<InputName> files;  // sorted
  std::vector<Error> errors;     // directories that cannot be read
};
// Every regular file below the directory `path`, or `path` itself if it is not a directory. An unreadable directory
// does not end the search, and no link is followed in it.
FoundFiles files_below(const std::string& path);

}  // namespace ptxkit::pack
