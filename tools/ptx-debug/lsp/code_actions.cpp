#include "tools/ptx-debug/lsp/code_actions.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/ptx-debug/lsp/diagnostics.hpp"

namespace ptxkit::lsp {
namespace {

// Inserts the comment above the line of the finding, indented like it.
Json allow_action(const Document& document, const Trouble& trouble) {
  const Places& places = document.places();
  const uint32_t line = places.line_of(trouble.begin);
  const size_t begin = places.line_begin(line);
  const std::string_view text = std::string_view(document.text()).substr(begin, places.line_end(line) - begin);
  const std::string_view indent = text.substr(0, std::min(text.find_first_not_of(" \t"), text.size()));
  Json edit = {{"range", range_json(places, begin, begin)},
               {"newText", fmt::format("{}// ptx-debug: allow {} -- give the reason here\n", indent, trouble.rule)}};
  return {{"title", fmt::format("accept {} here, with a comment that gives the reason", trouble.rule)},
          {"kind", "quickfix"},
          {"edit", {{"changes", {{document.uri(), Json::array({std::move(edit)})}}}}}};
}

}  // namespace

Json code_actions(Document& document, const Range& range) {
  Json actions = Json::array();
  if (document.analysis() == nullptr) return actions;
  const size_t begin = document.places().offset(range.start), end = document.places().offset(range.end);
  std::string_view accepted;  // one comment for several findings of a rule on a line
  for (const Trouble& trouble : troubles_of(*document.analysis())) {
    if (trouble.end < begin || trouble.begin > end || trouble.finding == nullptr || trouble.rule == accepted) continue;
    actions.push_back(allow_action(document, trouble));
    accepted = trouble.rule;
  }
  return actions;
}

}  // namespace ptxkit::lsp
