// How an instruction accesses memory.
#pragma once

#include <cstdint>
#include <string_view>

namespace ptxkit::ptx {

enum class AccessKind : uint8_t { load, store, atomic };

constexpr std::string_view text(AccessKind kind) {
  return kind == AccessKind::load ? "load" : kind == AccessKind::store ? "store" : "atomic";
}

}  // namespace ptxkit::ptx
