#include "runtime/c_api/json_options.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "runtime/c_api/ptxkit.h"
#include "support/json.hpp"
#include "support/json_depth.hpp"
#include "support/suggest.hpp"

namespace ptxkit::c_api {
namespace {

tl::unexpected<Failure> expected(std::string_view name, std::string_view what, const Json& found) {
  return refuse(PTXKIT_INVALID_VALUE, fmt::format("options: '{}': expected {}, found {}", name, what,
                                                  found.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

}  // namespace

struct JsonOptions::Value {
  Json json = Json::object();
};

JsonOptions::JsonOptions(std::unique_ptr<Value> value) : value_(std::move(value)) {}
JsonOptions::JsonOptions(JsonOptions&&) noexcept = default;
JsonOptions::~JsonOptions() = default;

Answer<JsonOptions> JsonOptions::read(const char* text, std::initializer_list<std::string_view> names) {
  auto value = std::make_unique<Value>();
  if (text == nullptr) return JsonOptions(std::move(value));
  if (json_depth(text) > kMaxJsonDepth)
    return refuse(PTXKIT_INVALID_VALUE, fmt::format("options: nested deeper than {}", kMaxJsonDepth));
  try {
    value->json = Json::parse(text);
  } catch (const Json::exception& error) {
    return refuse(PTXKIT_INVALID_VALUE, fmt::format("options: not JSON: {}", error.what()));
  }
  if (!value->json.is_object())
    return refuse(PTXKIT_INVALID_VALUE, fmt::format("options: expected an object, found {}", value->json.type_name()));
  for (const auto& [name, ignored] : value->json.items()) {
    if (std::ranges::find(names, name) != names.end()) continue;
    const std::vector<std::string> known(names.begin(), names.end());
    return refuse(PTXKIT_INVALID_VALUE, fmt::format("options: unknown name '{}', expected one of {}{}", name,
                                                    fmt::join(known, ", "), did_you_mean(name, known)));
  }
  return JsonOptions(std::move(value));
}

const void* JsonOptions::find(std::string_view name) const {
  const auto found = value_->json.find(name);
  return found == value_->json.end() ? nullptr : &*found;
}

bool JsonOptions::has(std::string_view name) const { return find(name) != nullptr; }

Answer<std::string> JsonOptions::string(std::string_view name, std::string otherwise) const {
  const auto* const found = static_cast<const Json*>(find(name));
  if (found == nullptr) return otherwise;
  if (!found->is_string()) return expected(name, "a string", *found);
  return found->get<std::string>();
}

Answer<bool> JsonOptions::boolean(std::string_view name, bool otherwise) const {
  const auto* const found = static_cast<const Json*>(find(name));
  if (found == nullptr) return otherwise;
  if (!found->is_boolean()) return expected(name, "true or false", *found);
  return found->get<bool>();
}

Answer<uint64_t> JsonOptions::number(std::string_view name, uint64_t otherwise, uint64_t most) const {
  const auto* const found = static_cast<const Json*>(find(name));
  if (found == nullptr) return otherwise;
  if (!found->is_number_unsigned() || found->get<uint64_t>() > most)
    return expected(name, fmt::format("a whole number up to {}", most), *found);
  return found->get<uint64_t>();
}

Answer<double> JsonOptions::real(std::string_view name, double least, double most) const {
  const auto& found = *static_cast<const Json*>(find(name));
  if (!found.is_number() || !(found.get<double>() >= least && found.get<double>() <= most))
    return expected(name, fmt::format("a number from {} to {}", least, most), found);
  return found.get<double>();
}

Answer<std::vector<std::string>> JsonOptions::strings(std::string_view name) const {
  std::vector<std::string> all;
  const auto* const found = static_cast<const Json*>(find(name));
  if (found == nullptr) return all;
  if (!found->is_array()) return expected(name, "an array of strings", *found);
  for (const Json& each : *found) {
    if (!each.is_string()) return expected(name, "an array of strings", *found);
    all.push_back(each.get<std::string>());
  }
  return all;
}

Answer<std::string> JsonOptions::object(std::string_view name) const {
  const auto* const found = static_cast<const Json*>(find(name));
  if (found == nullptr) return std::string();
  if (!found->is_object()) return expected(name, "an object", *found);
  return found->dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ptxkit::c_api
