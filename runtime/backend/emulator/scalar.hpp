// Scalar arithmetic as PTX defines it where C++ or the host differ: canonical NaNs, flush to zero, saturation, narrow
// floating point formats with every rounding.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace ptxkit::emulator::scalar {

inline float to_f32(uint32_t bits) { return std::bit_cast<float>(bits); }
inline double to_f64(uint64_t bits) { return std::bit_cast<double>(bits); }
inline uint32_t to_bits(float value) { return std::bit_cast<uint32_t>(value); }
inline uint64_t to_bits(double value) { return std::bit_cast<uint64_t>(value); }

// Single precision results that are NaN are 0x7fffffff on every NVIDIA GPU; double precision ones the default quiet
// NaN.
inline float canonical(float value) { return value == value ? value : std::bit_cast<float>(0x7fffffffu); }
inline double canonical(double value) { return value == value ? value : std::bit_cast<double>(0x7ff8000000000000ull); }

inline float flush(float value) {
  uint32_t bits = to_bits(value);
  return (bits & 0x7f800000u) ? value : std::bit_cast<float>(bits & 0x80000000u);
}

// .sat: to [0, 1], NaN to +0.
inline float saturate(float value) { return value > 0.0f ? (value < 1.0f ? value : 1.0f) : 0.0f; }
inline double saturate(double value) { return value > 0.0 ? (value < 1.0 ? value : 1.0) : 0.0; }

enum class Round : uint8_t { nearest_even, nearest_away, zero, down, up };

// A binary format: sign, exponent, mantissa, IEEE bias unless told.
struct Format {
  int exponent_bits, mantissa_bits;
  bool has_infinity = true;  // else the top exponent holds finite values but for all ones (e4m3)
  bool has_nan = true;
  bool ieee = true;
};
inline constexpr Format kF16{5, 10}, kBf16{8, 7}, kTf32{8, 10}, kE5m2{5, 2}, kE4m3{4, 3, false, true, false},
    kE3m2{3, 2, false, false, false}, kE2m3{2, 3, false, false, false}, kE2m1{2, 1, false, false, false};

// `value`, exactly representable as a double, rounded into `format`. Overflow gives infinity, or the largest finite
// number where `finite` or where the format has none.
uint32_t narrow(double value, const Format& format, Round round, bool finite);
double widen(uint32_t bits, const Format& format);

inline float f16_value(uint16_t bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
inline float bf16_value(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
// Rounded to nearest even; NaN is 0x7fff.
uint16_t f16_bits(double value);
uint16_t bf16_bits(double value);

}  // namespace ptxkit::emulator::scalar
