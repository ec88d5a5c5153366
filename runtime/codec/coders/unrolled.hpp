// A loop that is unrolled before the compiler decides what stays in registers, which it does not for elements of arrays
// that a loop index chooses.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace ptxkit::cpu {

// body(i) for i = 0 to N - 1, a std::integral_constant.
template <size_t N, class Body>
[[gnu::always_inline]] inline void unrolled(const Body& body) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    (body(std::integral_constant<size_t, I>{}), ...);
  }(std::make_index_sequence<N>{});
}

}  // namespace ptxkit::cpu
