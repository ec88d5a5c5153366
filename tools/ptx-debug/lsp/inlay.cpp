#include "tools/ptx-debug/lsp/inlay.hpp"

#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analyzer/analyze/place.hpp"

namespace ptxkit::lsp {

Json inlay_hints(Document& document, const Range& range) {
  Json hints = Json::array();
  const ptx::Module& module = document.module();
  const size_t begin = document.places().offset(range.start), end = document.places().offset(range.end);
  for (ptx::FunctionId id = 0; id < module.functions.size(); ++id) {
    const ptx::Function& function = module.functions[id];
    if (!function.has_body || function.end < begin || function.at > end) continue;
    std::map<ptx::Offset, std::string> labels;  // by the end of the statement
    for (const AccessNote& note : document.values().accesses(id)) {
      if (note.at < begin || note.at > end) continue;
      const auto after = static_cast<ptx::Offset>(note.at + report::statement_at(module, note.at).size() + 1);
      std::string& label = labels[after];
      if (!label.empty()) label += "; ";
      label += note.address.empty() ? note.alignment : fmt::format("{}; {}", note.address, note.alignment);
    }
    for (const auto& [at, label] : labels) {
      Json position = range_json(document.places(), at, at)["start"];
      hints.push_back({{"position", std::move(position)}, {"label", label}, {"paddingLeft", true}});
    }
  }
  return hints;
}

}  // namespace ptxkit::lsp
