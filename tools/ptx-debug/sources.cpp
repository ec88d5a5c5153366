// Each file is read once, whatever names lead to it. Missing files are cached as missing.
#include "tools/ptx-debug/sources.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "support/regular_file.hpp"
#include "tools/ptx-debug/inputs.hpp"

namespace ptxkit::tools {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestSourceBytes = 8 << 20, kMaxBytes = 128 << 20;

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Whether a name below `root` begins with a dot.
bool is_hidden(std::string_view real_path, std::string_view root) {
  return real_path.substr(root.size()).find("/.") != std::string_view::npos;
}

}  // namespace

SourceFiles::SourceFiles(const std::vector<std::string>& source_roots) : working_folder_(real_path(".")) {
  for (const std::string& root : source_roots) roots_.push_back(real_path(root));
}

const std::string& SourceFiles::folder_of(const std::string& ptx_path) {
  const auto [at, is_new] = folders_.try_emplace(ptx_path);
  if (is_new && ptx_path != "-") at->second = real_path(fs::path("." / fs::path(file_of(ptx_path))).parent_path());
  return at->second;
}

SourceFiles::SharedSource SourceFiles::read(const std::string& path, const std::string& folder) {
  const std::string real = real_path(path);
  if (real.empty()) return nullptr;
  std::vector<std::string> allowed;
  for (const std::string& root : roots_) {
    if (is_below(real, root)) allowed.push_back(root);
  }
  for (const std::string* const root : {&folder, &std::as_const(working_folder_)}) {
    if (*root != "/" && is_below(real, *root) && !is_hidden(real, *root)) allowed.push_back(*root);
  }
  if (allowed.empty()) {
    std::error_code ignored;
    if (fs::is_regular_file(real, ignored)) outside_.emplace(real, true);
    return nullptr;
  }
  const auto [at, is_new] = read_.try_emplace(real);
  if (!is_new) return at->second;
  auto file = read_regular_file(real, std::min(kLargestSourceBytes, kMaxBytes - read_bytes_), allowed);
  if (!file || file->content.empty()) return nullptr;
  read_bytes_ += file->content.size();
  Source source{std::move(file->content), {}};
  for (size_t start = 0; start < source.text.size();) {
    source.line_starts.push_back(start);
    const size_t end = source.text.find('\n', start);
    start = end == source.text.npos ? source.text.size() : end + 1;
  }
  at->second = std::make_shared<const Source>(std::move(source));
  return at->second;
}

SourceFiles::SharedSource SourceFiles::look_up(const std::string& folder, const std::string& file) {
  if (file.starts_with('/')) return read(file, folder);
  if (!folder.empty()) {
    if (auto beside = read(folder + "/" + file, folder)) return beside;
  }
  if (auto here = read(file, folder)) return here;
  for (const std::string& root : roots_) {
    if (root.empty()) continue;
    if (auto below = read(fmt::format("{}/{}", root, file), folder)) return below;
  }
  return nullptr;
}

SourceFiles::SharedSource SourceFiles::find(const std::string& ptx_path, const std::string& file) {
  const std::string& folder = folder_of(ptx_path);
  const auto [at, is_new] = found_.try_emplace({folder, file});
  if (is_new) at->second = look_up(folder, file);
  return at->second;
}

std::optional<std::string> SourceFiles::text(const std::string& ptx_path, const std::string& file) {
  const SharedSource found = find(ptx_path, file);
  return found ? std::optional(found->text) : std::nullopt;
}

std::optional<std::string> SourceFiles::line(const std::string& ptx_path, const std::string& file, uint32_t number) {
  const SharedSource found = find(ptx_path, file);
  if (!found || number == 0 || number > found->line_starts.size()) return std::nullopt;
  const size_t at = found->line_starts[number - 1];
  return trimmed(found->text.substr(at, found->text.find('\n', at) - at));
}

}  // namespace ptxkit::tools
