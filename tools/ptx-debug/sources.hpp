// The text behind `.loc`: lines of the C++ or CUDA file that a PTX was made from, where that file is at hand.
//
// The name comes from the PTX, and may be anything: only regular files of at most 8 MiB are read, 128 MiB of them in
// all, and only below the folder of the PTX, the working folder and the folders that --source-root names, after links
// are followed. Below the first two, files and folders whose names begin with a dot (.git, .ssh) are left out, and
// neither counts where it is the root of the file system.
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

  // Line `number`, from 1, without surrounding blanks; nothing where there is no such file or line.
  std::optional<std::string> line(const std::string& ptx_path, const std::string& file, uint32_t number);

  // The whole file; nothing where there is none.
  std::optional<std::string> text(const std::string& ptx_path, const std::string& file);

  // How many files were there and lie where none is shown from.
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
  std::map<std::pair<std::string, std::string>, SharedSource> found_;  // by that folder and the name in the PTX
  std::map<std::string, SharedSource> read_;                           // by real path
  std::map<std::string, bool> outside_;                                // real paths
  uint64_t read_bytes_ = 0;
};

}  // namespace ptxkit::tools
