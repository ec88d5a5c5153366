// Scalar arithmetic of PTX that differs from C++ or the host: canonical NaNs, flush to zero, saturation, narrow
// floating point formats with every rounding.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "support/half.hpp"

namespace ptxkit::emulator::scalar {

inline float to_f32(uint32_t bits) { return std::bit_cast<float>(bits); }
inline double to_f64(uint64_t bits) { return std::bit_cast<double>(bits); }
inline uint32_t to_bits(float value) { return std::bit_cast<uint32_t>(value); }
inline uint64_t to_bits(double value) { return std::bit_cast<uint64_t>(value); }

// NaN results, as an H200 gives them (measured: fkr_tests/device; FKR: falsification kernel regression). Half and
// single precision have one NaN: all bits set but the sign. Double precision propagates an operand, made quiet, with
// its sign and payload: for a sum, product or extremum the second operand before the first; for fma the second, the
// third, the first; for a quotient the first. A NaN without a NaN operand (0 / 0, inf - inf) is 0xfff8000000000000.
inline float canonical(float value) { return value == value ? value : std::bit_cast<float>(0x7fffffffu); }
inline double quiet(double value) { return std::bit_cast<double>(to_bits(value) | 0x0008000000000000u); }
inline constexpr uint64_t kInvalid64 = 0xfff8000000000000u;
inline double invalid() { return std::bit_cast<double>(kInvalid64); }
// The first operand that is NaN, in the order given, made quiet; without one, invalid().
template <class... T>
inline double first_nan(double first, T... rest) {
  if (first != first) return quiet(first);
  if constexpr (sizeof...(T) == 0)
    return invalid();
  else
    return first_nan(rest...);
}

// Conversions of NaN to and from double precision keep the sign and as much of the payload as fits.
inline uint32_t narrow_nan(double value, int exponent_bits, int mantissa_bits) {
  const uint64_t bits = to_bits(value);
  const uint32_t payload = static_cast<uint32_t>((bits & 0x000fffffffffffffu) >> (52 - mantissa_bits));
  return static_cast<uint32_t>(bits >> 63) << (exponent_bits + mantissa_bits) |
         ((1u << exponent_bits) - 1) << mantissa_bits | 1u << (mantissa_bits - 1) | payload;
}
inline double widen_nan(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const uint64_t sign = bits >> (exponent_bits + mantissa_bits) & 1, payload = bits & ((1u << mantissa_bits) - 1);
  return std::bit_cast<double>(sign << 63 | 0x7ff8000000000000u | payload << (52 - mantissa_bits));
}

inline float flush(float value) {
  uint32_t bits = to_bits(value);
  return (bits & 0x7f800000u) ? value : std::bit_cast<float>(bits & 0x80000000u);
}

// .sat: clamps to [0, 1]; NaN gives +0.
inline float saturate(float value) { return value > 0.0f ? (value < 1.0f ? value : 1.0f) : 0.0f; }
inline double saturate(double value) { return value > 0.0 ? (value < 1.0 ? value : 1.0) : 0.0; }

enum class Round : uint8_t { nearest_even, nearest_away, zero, down, up };

// A binary format of sign, exponent and mantissa, with IEEE bias unless stated.
struct Format {
  int exponent_bits, mantissa_bits;
  bool has_infinity = true;  // otherwise the top exponent holds finite values, except all ones (e4m3)
  bool has_nan = true;
  bool ieee = true;
};
inline constexpr Format kF16{5, 10}, kBf16{8, 7}, kTf32{8, 10}, kE5m2{5, 2}, kE4m3{4, 3, false, true, false},
    kE3m2{3, 2, false, false, false}, kE2m3{2, 3, false, false, false}, kE2m1{2, 1, false, false, false};

// Rounds `value`, exactly representable as a double, to `format` and returns its bits. Overflow gives infinity, or the
// largest finite number if `finite` or if the format has no infinity.
uint32_t narrow(double value, const Format& format, Round round, bool finite);
double widen(uint32_t bits, const Format& format);

inline float f16_value(uint16_t bits) { return static_cast<float>(std::bit_cast<Half>(bits)); }
inline float bf16_value(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
// Rounded to nearest even; NaN is 0x7fff.
uint16_t f16_bits(double value);
uint16_t bf16_bits(double value);

}  // namespace ptxkit::emulator::scalar
