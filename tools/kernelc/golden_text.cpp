// Normalising works on lines, not on a syntax tree: what is kept is our own compiler's text, byte for byte.
#include "tools/kernelc/golden_text.hpp"

#include <algorithm>

#include "analyzer/inspect/difference.hpp"
#include "analyzer/ptx/diagnostic.hpp"

namespace ptxkit::kernelc {
namespace {

// A label that marks a source position ("$L__tmp3:") rather than a block.
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

}  // namespace ptxkit::kernelc
