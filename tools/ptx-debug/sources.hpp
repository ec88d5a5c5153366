// Source text behind `.loc`: lines of the C++ or CUDA file that a PTX was compiled from, where the file exists.
//
// The file's name comes from the PTX, so it is untrusted. Only regular files of at most 8 MiB are read, 128 MiB in
// total, and after resolving links they must lie below the folder of the PTX, the working folder, or a folder of
// --source-root. Below the first two, names that begin with a dot (.git, .ssh) are excluded, and neither folder counts
// if it is the root of the file system.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ptxkit::tools {

class SourceFiles {
 public:
  explicit SourceFiles(const std::vector<std::string>& source_roots = {});

  // Line `number`, counted from 1, without surrounding blanks; nothing where there is no such file or line.
  std::optional<std::string> line(const std::string& ptx_path, const std::string& file, uint32_t number);

  // The whole file; nothing where there is none.
  std::optional<std::string> text(const std::string& ptx_path, const std::string& file);

  // How many existing files were refused because they lie outside these folders.
  size_t outside_count() const { return outside_.size(); }

 private:
  struct Source {
    std::string text;
    std::vector<size_t> line_starts;
  };
  using SharedSource = std::shared_ptr<const Source>;  // null where there is none

  SharedSource find(const std::string& ptx_path, const std::string& file);
  SharedSource look_up(const std::string& folder, const std::string& file);
  SharedSource read(const std::string& path, const std::string& folder);
  const std::string& folder_of(const std::string& ptx_path);

  std::vector<std::string> roots_;                                     // real paths
  std::string working_folder_;                                         // real path
  std::map<std::string, std::string> folders_;                         // real path of the folder of each PTX
  std::map<std::pair<std::string, std::string>, SharedSource> found_;  // by real folder and the name in the PTX
  std::map<std::string, SharedSource> read_;                           // by real path
  std::map<std::string, bool> outside_;                                // real paths
  uint64_t read_bytes_ = 0;
};

}  // namespace ptxkit::tools
