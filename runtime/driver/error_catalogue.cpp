#include "runtime/driver/error_catalogue.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include <fmt/format.h>

namespace ptxkit::driver {
namespace {

constexpr ErrorEntry kCatalogue[] = {
#define ERROR(code, name, scope, meaning, cause, next_step) {code, name, ErrorScope::scope, meaning, cause, next_step},
#include "runtime/driver/errors.def"
#undef ERROR
};

constexpr int kUnknownCode = 999;

}  // namespace

std::span<const ErrorEntry> error_catalogue() { return kCatalogue; }

const ErrorEntry& explain(int code) {
  const auto by_code = [](const ErrorEntry& entry, int wanted) { return entry.code < wanted; };
  const auto* entry = std::lower_bound(std::begin(kCatalogue), std::end(kCatalogue), code, by_code);
  if (entry != std::end(kCatalogue) && entry->code == code) return *entry;
  return *std::lower_bound(std::begin(kCatalogue), std::end(kCatalogue), kUnknownCode, by_code);
}

Error driver_error(int code, std::string_view call, std::string_view where) {
  const ErrorEntry& entry = explain(code);
  const std::string_view name = entry.code == code ? entry.name : "a code newer than this program";
  return Error{fmt::format("{}: error {}, {}: {} (cause: {})", call, code, name, entry.meaning, entry.cause),
               std::string(where), std::string(entry.next_step), ErrorKind::device};
}

}  // namespace ptxkit::driver
