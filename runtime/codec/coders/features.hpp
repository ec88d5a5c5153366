// The vector instructions of the CPU.
#pragma once

#include <cstdint>

namespace ptxkit::cpu {

// Each level includes those before it. avx512 means its parts F, BW, VL, VBMI and VBMI2.
enum class Vectors : uint8_t { none, avx2, avx512 };

// The best level that code may use. Tests lower it to run the other code paths.
#if defined(__x86_64__)
inline Vectors vectors = [] {
  if (!__builtin_cpu_supports("avx2")) return Vectors::none;
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                 __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2")
             ? Vectors::avx512
             : Vectors::avx2;
}();
#else
inline constexpr Vectors vectors = Vectors::none;
#endif

}  // namespace ptxkit::cpu
