// Normalisation works on lines, not on a syntax tree, so that the kept text equals the emitted text byte for byte.
#include "tools/kernelc/golden_text.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "analyzer/inspect/difference.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "support/file.hpp"

namespace ptxkit::kernelc {
namespace {

// Whether the line is a label that marks a source position ("$L__tmp3:") rather than a block.
bool is_position_label(std::string_view line) { return line.starts_with("$L__tmp") && line.ends_with(':'); }

}  // namespace

std::string normalise(std::string_view ptx) {
  std::string kept;
  while (!ptx.empty()) {
    const std::string_view line = ptx.substr(0, ptx.find('\n'));
    ptx.remove_prefix(std::min(line.size() + 1, ptx.size()));
    const std::string_view content = line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
    if (content.starts_with(".loc") || content.starts_with(".file") || is_position_label(content)) continue;
    kept += line;
    kept += '\n';
  }
  return kept;
}

std::string describe_difference(std::string_view before, std::string_view after) {
  const std::string old_text = normalise(before), new_text = normalise(after);
  if (old_text == new_text) return {};
  if (old_text.empty()) return "nothing was accepted before\n";
  const ptx::ParseResult old_parsed = ptx::parse(old_text, "before"), new_parsed = ptx::parse(new_text, "after");
  std::string mistakes;
  for (const ptx::ParseResult* parsed : {&old_parsed, &new_parsed}) {
    for (const ptx::Diagnostic& diagnostic : parsed->diagnostics) mistakes += ptx::render(parsed->module, diagnostic);
  }
  if (!mistakes.empty()) return mistakes;
  const inspect::Difference difference = inspect::difference(old_parsed.module, new_parsed.module);
  return difference.same ? "only names, layout and the declared number of registers differ\n" : difference.text;
}

namespace {

std::filesystem::path path_of(const std::filesystem::path& golden, std::string_view kernel, std::string_view target) {
  return golden / fmt::format("{}.{}.ptx", kernel, target);
}

// The text for kFirstTarget with the header lines that name the target changed to `target`.
std::string retargeted(std::string text, std::string_view target) {
  size_t at = 0;
  for (int line = 0; line < 3 && at < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const size_t found = text.find(kFirstTarget, at);
    if (found < end) text.replace(found, kFirstTarget.size(), target);
    at = text.find('\n', at) + 1;
  }
  return text;
}

}  // namespace

Result<std::string> accepted(const std::filesystem::path& golden, std::string_view kernel, std::string_view target) {
  if (target != kFirstTarget && !std::filesystem::exists(path_of(golden, kernel, target))) {
    auto first = read_file(path_of(golden, kernel, kFirstTarget).string());
    return first ? Result<std::string>(retargeted(std::move(*first), target)) : first;
  }
  return read_file(path_of(golden, kernel, target).string());
}

Result<void> store(const std::filesystem::path& golden, std::string_view kernel, std::string_view target,
                   const std::string& text) {
  const auto path = path_of(golden, kernel, target);
  if (target != kFirstTarget) {
    const auto first = read_file(path_of(golden, kernel, kFirstTarget).string());
    if (first && retargeted(*first, target) == text) {
      std::error_code ignored;
      std::filesystem::remove(path, ignored);
      return {};
    }
  }
  return write_file(path.string(), text);
}

}  // namespace ptxkit::kernelc
