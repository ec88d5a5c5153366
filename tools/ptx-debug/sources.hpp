// The text behind `.loc`: lines of the C++ or CUDA file that a PTX was made from, where that file is at hand.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ptxkit::tools {

// Looks a file up as named, and beside the PTX. Only regular files of at most 8 MiB are opened: the name comes from the
// PTX, and may be anything.
class SourceFiles {
 public:
  // Line `number`, from 1, without surrounding blanks; nothing where there is no such file or line.
  std::optional<std::string> line(const std::string& ptx_path, const std::string& file, uint32_t number);

  // The whole file; nothing where there is none.
  std::optional<std::string> text(const std::string& ptx_path, const std::string& file);

 private:
  struct Source {
    std::string text;  // empty where it cannot be read
    std::vector<size_t> line_starts;
  };
  const Source& content(const std::string& path);
  const Source& find(const std::string& ptx_path, const std::string& file);

  std::map<std::string, Source> files_;
};

}  // namespace ptxkit::tools
