// A loop that is unrolled at compile time, so that array elements indexed by the loop variable can stay in registers.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace ptxkit::cpu {

// Calls body(i) for i = 0 to N - 1, where i is a std::integral_constant.
template <size_t N, class Body>
[[gnu::always_inline]] inline void unrolled(const Body& body) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    (body(std::integral_constant<size_t, I>{}), ...);
  }(std::make_index_sequence<N>{});
}

}  // namespace ptxkit::cpu
