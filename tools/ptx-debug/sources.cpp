// Every file is read once; a missing one is remembered as empty.
#include "tools/ptx-debug/sources.hpp"

#include <sys/stat.h>

#include "support/file.hpp"

namespace ptxkit::tools {
namespace {

constexpr off_t kLargestSourceBytes = 8 << 20;

bool is_readable_source(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= kLargestSourceBytes;
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

}  // namespace

const std::string& SourceFiles::content(const std::string& path) {
  const auto known = files_.find(path);
  if (known != files_.end()) return known->second;
  std::string text = is_readable_source(path) ? read_file(path).value_or("") : "";
  return files_.emplace(path, std::move(text)).first->second;
}

const std::string& SourceFiles::find(const std::string& ptx_path, const std::string& file) {
  const size_t slash = ptx_path.rfind('/');
  if (slash != ptx_path.npos && !file.starts_with('/')) {
    const std::string& beside = content(ptx_path.substr(0, slash + 1) + file);
    if (!beside.empty()) return beside;
  }
  return content(file);
}

std::optional<std::string> SourceFiles::text(const std::string& ptx_path, const std::string& file) {
  const std::string& found = find(ptx_path, file);
  return found.empty() ? std::nullopt : std::optional(found);
}

std::optional<std::string> SourceFiles::line(const std::string& ptx_path, const std::string& file, uint32_t number) {
  const std::string& text = find(ptx_path, file);
  size_t at = 0;
  for (uint32_t line = 1; line < number && at < text.size(); ++line) {
    const size_t end = text.find('\n', at);
    at = end == text.npos ? text.size() : end + 1;
  }
  if (number == 0 || at >= text.size()) return std::nullopt;
  return trimmed(text.substr(at, text.find('\n', at) - at));
}

}  // namespace ptxkit::tools
