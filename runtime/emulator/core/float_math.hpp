// Shared by the floating point handlers: the host's rounding mode, and PTX operations on host numbers.
//
// The four roundings are the host's: its control register is set around a loop, and the loads and stores of the loop
// stay inside.
#pragma once

#include <cmath>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#elif !defined(__aarch64__)
#error "HostRounding knows the rounding modes of x86-64 and AArch64"
#endif

#include "analyzer/ptx/names.hpp"
#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/core/scalar.hpp"

namespace ptxkit::emulator {

class HostRounding {
 public:
  explicit HostRounding(Rounding rounding) : saved_(get()) {
    set((saved_ & ~kModeMask) | kModes[static_cast<unsigned>(rounding)]);
    asm volatile("" ::: "memory");
  }
  ~HostRounding() {
    asm volatile("" ::: "memory");
    set(saved_);
  }
  HostRounding(const HostRounding&) = delete;
  HostRounding& operator=(const HostRounding&) = delete;

 private:
  // To nearest even, toward zero, down, up: the order of Rounding.
#if defined(__x86_64__)
  using Register = unsigned;  // MXCSR
  static constexpr Register kModeMask = _MM_ROUND_MASK;
  static constexpr Register kModes[] = {_MM_ROUND_NEAREST, _MM_ROUND_TOWARD_ZERO, _MM_ROUND_DOWN, _MM_ROUND_UP};
  static Register get() { return _mm_getcsr(); }
  static void set(Register value) { _mm_setcsr(value); }
#else
  using Register = uint64_t;  // FPCR, whose field RMode is bits 22 and 23
  static constexpr Register kModeMask = Register{3} << 22;
  static constexpr Register kModes[] = {0, Register{3} << 22, Register{2} << 22, Register{1} << 22};
  static Register get() {
    Register value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void set(Register value) { asm volatile("msr fpcr, %0" : : "r"(value)); }
#endif

  Register saved_;
};

inline float fma(float a, float b, float c) { return std::fma(a, b, c); }
inline double fma(double a, double b, double c) { return std::fma(a, b, c); }

enum class Math { add, sub, mul, fma, div, sqrt, rcp, neg, abs, min, max, rsqrt, sin, cos, lg2, ex2, tanh, copysign };

// min and max of PTX: -0 < +0. With `nan` a NaN operand gives NaN, otherwise the other operand.
template <class T, bool kMax>
inline T extremum(T a, T b, bool nan) {
  if (std::isnan(a) || std::isnan(b)) {
    if (nan || (std::isnan(a) && std::isnan(b))) {
      if constexpr (std::is_same_v<T, double>) return scalar::first_nan(b, a);
      return scalar::canonical(static_cast<T>(NAN));
    }
    return std::isnan(a) ? b : a;
  }
  if (a == b) return std::signbit(a) == kMax ? b : a;
  return (a < b) != kMax ? a : b;
}

template <class T, Math kMath>
inline T compute(T a, T b, T c, bool nan) {
  switch (kMath) {
    case Math::add:
      return a + b;
    case Math::sub:
      return a - b;
    case Math::mul:
      return a * b;
    case Math::fma:
      return fma(a, b, c);
    case Math::div:
      return a / b;
    case Math::sqrt:
      return std::sqrt(a);
    case Math::rcp:
      return T{1} / a;
    case Math::min:
      return extremum<T, false>(a, b, nan);
    case Math::max:
      return extremum<T, true>(a, b, nan);
    case Math::rsqrt:
      return static_cast<T>(1.0 / std::sqrt(static_cast<double>(a)));
    case Math::sin:
      return static_cast<T>(std::sin(static_cast<double>(a)));
    case Math::cos:
      return static_cast<T>(std::cos(static_cast<double>(a)));
    case Math::lg2:
      return static_cast<T>(std::log2(static_cast<double>(a)));
    case Math::ex2:
      return static_cast<T>(std::exp2(static_cast<double>(a)));
    case Math::tanh:
      return static_cast<T>(std::tanh(static_cast<double>(a)));
    case Math::neg:
      return -a;
    case Math::abs:
      return std::fabs(a);
    default:
      return a;
  }
}

// The NaN that `compute` gives; see scalar.hpp.
template <Math kMath>
inline float nan_of(float, float, float) {
  return scalar::canonical(NAN);
}
template <Math kMath>
inline double nan_of(double a, double b, double c) {
  switch (kMath) {
    case Math::fma:
      return scalar::first_nan(b, c, a);
    case Math::add:
    case Math::sub:
    case Math::mul:
    case Math::min:
    case Math::max:
      return scalar::first_nan(b, a);
    case Math::div:
      return scalar::first_nan(a, b);
    default:
      return scalar::first_nan(a);
  }
}

inline Rounding rounding_of(const Words& words) {
  return words.has(ptx::Mod::rz)   ? Rounding::zero
         : words.has(ptx::Mod::rm) ? Rounding::down
         : words.has(ptx::Mod::rp) ? Rounding::up
                                   : Rounding::nearest;
}

}  // namespace ptxkit::emulator
