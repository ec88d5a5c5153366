// What the CPU has.
#pragma once

namespace ptxkit::cpu {

// Whether code for AVX2 is used; tests turn it off to run the other code.
#if defined(__x86_64__)
inline bool use_avx2 = __builtin_cpu_supports("avx2");
#else
inline constexpr bool use_avx2 = false;
#endif

}  // namespace ptxkit::cpu
