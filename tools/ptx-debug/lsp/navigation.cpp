#include "tools/ptx-debug/lsp/navigation.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ptxkit::lsp {
namespace {

// SymbolKind of LSP.
constexpr int kFunctionSymbol = 12, kVariableSymbol = 13, kKeySymbol = 20;

const Occurrence* found_at(Document& document, Place place) {
  return document.names().at(static_cast<ptx::Offset>(document.places().offset(place)));
}

Json location(const Document& document, Span span) {
  return {{"uri", document.uri()}, {"range", range_json(document.places(), span.begin, span.end)}};
}

Json symbol_json(const Document& document, std::string_view name, std::string_view detail, int kind, Span whole,
                 Span own) {
  return {{"name", name},
          {"detail", detail},
          {"kind", kind},
          {"range", range_json(document.places(), whole.begin, whole.end)},
          {"selectionRange", range_json(document.places(), own.begin, own.end)}};
}

}  // namespace

Json definition(Document& document, Place place) {
  Json result = Json::array();
  if (const Occurrence* const found = found_at(document, place)) {
    for (const Span span : declarations_of(document.module(), document.names(), found->symbol))
      result.push_back(location(document, span));
  }
  return result;
}

Json references(Document& document, Place place, bool with_declaration) {
  Json result = Json::array();
  const Occurrence* const found = found_at(document, place);
  if (found == nullptr) return result;
  std::vector<Span> spans;
  for (const Occurrence* each : document.names().of(found->symbol))
    if (!each->is_declaration) spans.push_back({each->at, each->end});
  if (with_declaration) {
    const std::vector<Span> declared = declarations_of(document.module(), document.names(), found->symbol);
    spans.insert(spans.end(), declared.begin(), declared.end());
  }
  std::ranges::sort(spans, {}, &Span::begin);
  for (const Span span : spans) result.push_back(location(document, span));
  return result;
}

Json outline(Document& document) {
  Json result = Json::array();
  const ptx::Module& module = document.module();
  const auto declared = [&](const Symbol& symbol) -> std::optional<Span> {
    const std::vector<Span> all = declarations_of(module, document.names(), symbol);
    return all.empty() ? std::nullopt : std::optional(all.back());
  };
  const auto variable = [&](ptx::VariableId id) -> Json {
    const ptx::Variable& found = module.variables[id];
    const auto own = declared({Symbol::Kind::variable, ptx::kNone, id});
    if (!own) return nullptr;
    return symbol_json(document, found.name, fmt::format(".{} .{}", text(found.space), text(found.type)),
                       kVariableSymbol, *own, *own);
  };
  for (ptx::VariableId id = 0; id < module.variables.size(); ++id) {
    if (module.variables[id].function != ptx::kNone || module.variables[id].name.empty()) continue;
    if (Json json = variable(id); !json.is_null()) result.push_back(std::move(json));
  }
  for (ptx::FunctionId id = 0; id < module.functions.size(); ++id) {
    const ptx::Function& function = module.functions[id];
    const auto own = declared({Symbol::Kind::function, ptx::kNone, id});
    if (!own || function.name.empty()) continue;
    const Span whole{std::min(function.at, own->begin), std::max(function.end, own->end)};
    Json json =
        symbol_json(document, function.name, function.is_entry ? ".entry" : ".func", kFunctionSymbol, whole, *own);
    Json children = Json::array();
    for (const std::vector<ptx::VariableId>* each : {&function.parameters, &function.variables})
      for (const ptx::VariableId child : *each)
        if (Json one = variable(child); !one.is_null() && !module.variables[child].name.empty())
          children.push_back(std::move(one));
    for (uint32_t label = 0; label < function.labels.size(); ++label)
      if (const auto place = declared({Symbol::Kind::label, id, label}))
        children.push_back(symbol_json(document, function.labels[label].name, "label", kKeySymbol, *place, *place));
    json["children"] = std::move(children);
    result.push_back(std::move(json));
  }
  return result;
}

}  // namespace ptxkit::lsp
