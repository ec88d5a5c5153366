#include "tools/ptx-debug/lsp/answers.hpp"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

namespace ptxkit::lsp {
namespace {

// LSP's uinteger: 0 to 2^31 - 1.
std::optional<uint32_t> number_at(const Json& json, std::string_view name) {
  const Json* const found = member(json, name);
  if (found == nullptr || !found->is_number_integer()) return std::nullopt;
  if (!found->is_number_unsigned() && found->get<int64_t>() < 0) return std::nullopt;
  const auto value = found->get<uint64_t>();
  if (value > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) return std::nullopt;
  return static_cast<uint32_t>(value);
}

Json place_json(Place place) { return {{"line", place.line}, {"character", place.character}}; }

}  // namespace

const Json* member(const Json& json, std::string_view name) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(std::string(name));
  return found == json.end() ? nullptr : &*found;
}

const Json* at_path(const Json& json, std::string_view path) {
  const Json* found = &json;
  while (found != nullptr && !path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    found = member(*found, name);
  }
  return found;
}

std::optional<std::string> text_at(const Json& json, std::string_view path) {
  const Json* const found = at_path(json, path);
  if (found == nullptr || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::optional<Place> place_at(const Json& json, std::string_view path) {
  const Json* const found = at_path(json, path);
  if (found == nullptr) return std::nullopt;
  const auto line = number_at(*found, "line"), character = number_at(*found, "character");
  if (!line || !character) return std::nullopt;
  return Place{*line, *character};
}

std::optional<Range> range_at(const Json& json, std::string_view path) {
  const Json* const found = at_path(json, path);
  if (found == nullptr) return std::nullopt;
  const auto start = place_at(*found, "start"), end = place_at(*found, "end");
  if (!start || !end || *end < *start) return std::nullopt;
  return Range{*start, *end};
}

Json range_json(const Places& places, size_t begin, size_t end) {
  return {{"start", place_json(places.place(begin))}, {"end", place_json(places.place(end))}};
}

}  // namespace ptxkit::lsp
