#include "analyzer/ptx/diagnostic.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "support/printable.hpp"

namespace ptxkit::ptx {
namespace {

constexpr std::string_view kText[] = {
#define PTX_DIAGNOSTIC(id, rule) #id,
#include "analyzer/ptx/diagnostics.def"
#undef PTX_DIAGNOSTIC
};

constexpr std::string_view kRule[] = {
#define PTX_DIAGNOSTIC(id, rule) rule,
#include "analyzer/ptx/diagnostics.def"
#undef PTX_DIAGNOSTIC
};

}  // namespace

std::string_view text(DiagnosticKind kind) { return kText[static_cast<size_t>(kind)]; }
std::string_view rule(DiagnosticKind kind) { return kRule[static_cast<size_t>(kind)]; }

std::string render(const Module& module, const Diagnostic& diagnostic) {
  const Position position = module.position(diagnostic.at);
  // Of a long line, show only the part around the mistake.
  constexpr size_t kBefore = 100, kShown = 200;
  const std::string_view whole = module.line(position.line);
  const size_t column = std::min<size_t>(position.column - 1, whole.size());
  const size_t first = column > kBefore && whole.size() > kShown ? column - kBefore : 0;
  std::string line(whole.substr(first, kShown));
  // A caret under the mistake. Tabs are kept, so that terminals place it in the right column. Control bytes are shown
  // as '?'.
  std::string marker;
  for (size_t i = 0; first + i < column && i < line.size(); ++i) marker += line[i] == '\t' ? '\t' : ' ';
  line = printable_lines(line);
  const size_t length = diagnostic.end > diagnostic.at ? diagnostic.end - diagnostic.at : 1;
  const size_t visible = std::max<size_t>(1, line.size() - std::min(line.size(), column - first));
  marker += '^';
  marker.append(std::min(length, visible) - 1, '~');
  return fmt::format("{}:{}:{}: error: {} [{}]\n{}\n{}\n", printable_path(module.path), position.line, position.column,
                     printable(diagnostic.message), rule(diagnostic.kind), line, marker);
}

}  // namespace ptxkit::ptx
