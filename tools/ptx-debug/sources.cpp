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

const SourceFiles::Source& SourceFiles::content(const std::string& path) {
  const auto known = files_.find(path);
  if (known != files_.end()) return known->second;
  Source source;
  if (is_readable_source(path)) source.text = read_file(path).value_or("");
  for (size_t at = 0; at < source.text.size();) {
    source.line_starts.push_back(at);
    const size_t end = source.text.find('\n', at);
    at = end == source.text.npos ? source.text.size() : end + 1;
  }
  return files_.emplace(path, std::move(source)).first->second;
}

const SourceFiles::Source& SourceFiles::find(const std::string& ptx_path, const std::string& file) {
  const size_t slash = ptx_path.rfind('/');
  if (slash != ptx_path.npos && !file.starts_with('/')) {
    const Source& beside = content(ptx_path.substr(0, slash + 1) + file);
    if (!beside.text.empty()) return beside;
  }
  return content(file);
}

std::optional<std::string> SourceFiles::text(const std::string& ptx_path, const std::string& file) {
  const Source& found = find(ptx_path, file);
  return found.text.empty() ? std::nullopt : std::optional(found.text);
}

std::optional<std::string> SourceFiles::line(const std::string& ptx_path, const std::string& file, uint32_t number) {
  const Source& found = find(ptx_path, file);
  if (number == 0 || number > found.line_starts.size()) return std::nullopt;
  const size_t at = found.line_starts[number - 1];
  return trimmed(found.text.substr(at, found.text.find('\n', at) - at));
}

}  // namespace ptxkit::tools
