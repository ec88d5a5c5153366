// What requests are answered with: a value, or an error of JSON-RPC; and the readers of their parameters.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>
#include <tl/expected.hpp>

#include "tools/ptx-debug/lsp/places.hpp"

namespace ptxkit::lsp {

using Json = nlohmann::ordered_json;

// Codes of JSON-RPC 2.0 and of LSP.
inline constexpr int kParseError = -32700, kInvalidRequest = -32600, kUnknownMethod = -32601, kInvalidParams = -32602,
                     kNotInitialized = -32002;

struct Fault {
  int code = 0;
  std::string message;
};
using Answer = tl::expected<Json, Fault>;

// A member of an object; null where there is none or `json` is no object.
const Json* member(const Json& json, std::string_view name);
// Members by their path, separated by '/': "textDocument/uri". Nothing where they are missing or of another type.
const Json* at_path(const Json& json, std::string_view path);
std::optional<std::string> text_at(const Json& json, std::string_view path);
std::optional<Place> place_at(const Json& json, std::string_view path);

struct Range {
  Place start, end;
};
std::optional<Range> range_at(const Json& json, std::string_view path);

Json range_json(const Places& places, size_t begin, size_t end);

}  // namespace ptxkit::lsp
