// A folder for what a verb needs while it runs; it goes away with the object.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace ptxkit::tools {

class ScratchFolder {
 public:
  // In the system's folder for temporary files; path() is empty where none can be made.
  explicit ScratchFolder(std::string_view name) {
    std::string pattern = (std::filesystem::temp_directory_path() / (std::string(name) + ".XXXXXX")).string();
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ptxkit::tools
