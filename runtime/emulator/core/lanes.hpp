// The loop that runs elementwise instructions over the lanes of a warp. A captureless lambda and its operand types make
// a handler. With all lanes active it is a plain loop, which the compiler vectorises.
#pragma once

#include <tuple>
#include <utility>

#include "runtime/emulator/core/state.hpp"

// The loop after it has no turn that reads what another turn writes, so that the compiler may vectorise it.
#ifdef __clang__
#define PTXKIT_INDEPENDENT_TURNS _Pragma("clang loop vectorize(assume_safety)")
#else
#define PTXKIT_INDEPENDENT_TURNS _Pragma("GCC ivdep")
#endif

namespace ptxkit::emulator {

template <auto F, class D, class... S, size_t... I>
inline void apply_lanes(Warp& warp, const Code& code, uint32_t mask, std::index_sequence<I...>) {
  const Ref refs[] = {code.a, code.b, code.c, code.d};
  D* d = at<D>(warp, code.dst);
  std::tuple<const S*...> s{at<const S>(warp, refs[I])...};
  if (mask == kAllLanes) {
    PTXKIT_INDEPENDENT_TURNS
    for (unsigned i = 0; i < kLanes; ++i) d[i] = static_cast<D>(F(std::get<I>(s)[i]...));
  } else {
    for_lanes(mask, [&](unsigned i) { d[i] = static_cast<D>(F(std::get<I>(s)[i]...)); });
  }
}

// d = F(a, b, ...). D is the lane type of the destination, S... are those of the sources.
template <auto F, class D, class... S>
void lanes(Warp& warp, const Code& code, uint32_t mask) {
  apply_lanes<F, D, S...>(warp, code, mask, std::index_sequence_for<S...>{});
}

// Returns p = F(a, b, ...) for a predicate p: one bit for each lane.
template <auto F, class... S, size_t... I>
inline uint32_t test_lanes(Warp& warp, const Code& code, uint32_t mask, std::index_sequence<I...>) {
  const Ref refs[] = {code.a, code.b, code.c, code.d};
  std::tuple<const S*...> s{at<const S>(warp, refs[I])...};
  uint32_t bits = 0;
  if (mask == kAllLanes) {
    alignas(32) uint8_t each[kLanes];
    PTXKIT_INDEPENDENT_TURNS
    for (unsigned i = 0; i < kLanes; ++i) each[i] = F(std::get<I>(s)[i]...) ? 1 : 0;
    for (unsigned i = 0; i < kLanes; i += 8) {
      uint64_t eight;
      std::memcpy(&eight, each + i, 8);
      bits |= static_cast<uint32_t>((eight * 0x0102040810204080ull) >> 56) << i;  // gathers the low bit of each byte
    }
  } else {
    for_lanes(mask, [&](unsigned i) { bits |= uint32_t{F(std::get<I>(s)[i]...) ? 1u : 0u} << i; });
  }
  return bits;
}

}  // namespace ptxkit::emulator
