// A folder for the temporary files of a verb; the destructor removes it.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include "support/result.hpp"

namespace ptxkit::tools {

class ScratchFolder {
 public:
  // Creates the folder in the system's folder for temporary files, with an unpredictable name and access for this user
  // alone. On failure path() is empty and error() says why.
  explicit ScratchFolder(std::string_view name) {
    std::error_code code;
    folder_ = std::filesystem::temp_directory_path(code);
    if (!code) folder_ = std::filesystem::absolute(folder_, code);
    std::string pattern = (folder_ / (std::string(name) + ".XXXXXX")).string();
    if (!code && ::mkdtemp(pattern.data()) != nullptr)
      path_ = pattern;
    else
      why_ = code ? code.message() : std::strerror(errno);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  Error error() const { return {"cannot make a folder for temporary files: " + why_, folder_.string(), "set TMPDIR"}; }

 private:
  std::filesystem::path folder_, path_;
  std::string why_;
};

}  // namespace ptxkit::tools
