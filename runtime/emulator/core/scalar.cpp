// See scalar.hpp.
#include "runtime/emulator/core/scalar.hpp"

#include <algorithm>

namespace ptxkit::emulator::scalar {

uint32_t narrow(double value, const Format& format, Round round, bool finite) {
  const int mantissa = format.mantissa_bits;
  const uint32_t sign = std::signbit(value) ? 1u << (format.exponent_bits + mantissa) : 0;
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const uint32_t top_exponent = (1u << format.exponent_bits) - 1;
  // Largest finite pattern: below infinity, or below the NaN, or all ones.
  uint32_t largest = format.has_infinity ? (top_exponent << mantissa) - 1
                     : format.has_nan    ? ((top_exponent + 1) << mantissa) - 2
                                         : ((top_exponent + 1) << mantissa) - 1;
  if (value != value) {
    if (!format.has_nan) return largest;
    return format.has_infinity ? (top_exponent << mantissa) | ((1u << mantissa) - 1)
                               : ((top_exponent + 1) << mantissa) - 1;
  }
  uint32_t overflow = format.has_infinity && !finite                      ? top_exponent << mantissa
                      : !format.has_infinity && format.has_nan && !finite ? ((top_exponent + 1) << mantissa) - 1
                                                                          : largest;
  double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return sign | overflow;
  if (magnitude == 0) return sign;
  int exponent = std::ilogb(magnitude);
  int lowest = 1 - bias;  // of a normal number
  int unit = std::max(exponent, lowest) - mantissa;
  double scaled = std::ldexp(magnitude, -unit);  // exact: only the exponent changes
  double below = std::floor(scaled);
  double rest = scaled - below;
  auto steps = static_cast<uint64_t>(below);
  bool away = false;
  switch (round) {
    case Round::nearest_even:
      away = rest > 0.5 || (rest == 0.5 && (steps & 1));
      break;
    case Round::nearest_away:
      away = rest >= 0.5;
      break;
    case Round::zero:
      break;
    case Round::down:
      away = rest > 0 && sign;
      break;
    case Round::up:
      away = rest > 0 && !sign;
      break;
  }
  steps += away;
  // `steps` units of 2^unit as a bit pattern: consecutive patterns are consecutive numbers.
  uint64_t pattern = exponent < lowest ? steps : (static_cast<uint64_t>(exponent + bias - 1) << mantissa) + steps;
  if (pattern > largest) {
    bool stays = round == Round::zero || (round == Round::down && !sign) || (round == Round::up && sign);
    return sign | (stays ? largest : overflow);
  }
  return sign | static_cast<uint32_t>(pattern);
}

double widen(uint32_t bits, const Format& format) {
  const int mantissa = format.mantissa_bits;
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const uint32_t top_exponent = (1u << format.exponent_bits) - 1;
  bool negative = bits >> (format.exponent_bits + mantissa) & 1;
  uint32_t exponent = bits >> mantissa & top_exponent;
  uint32_t fraction = bits & ((1u << mantissa) - 1);
  double magnitude;
  if (exponent == top_exponent && format.has_infinity)
    magnitude = fraction ? std::nan("") : HUGE_VAL;
  else if (exponent == top_exponent && format.has_nan && fraction == (1u << mantissa) - 1)
    magnitude = std::nan("");
  else if (exponent == 0)
    magnitude = std::ldexp(fraction, 1 - bias - mantissa);
  else
    magnitude = std::ldexp((1u << mantissa) + fraction, static_cast<int>(exponent) - bias - mantissa);
  return negative ? -magnitude : magnitude;
}

uint16_t f16_bits(double value) {
  if (value != value) return 0x7fff;
  return static_cast<uint16_t>(narrow(value, kF16, Round::nearest_even, false));
}

uint16_t bf16_bits(double value) {
  if (value != value) return 0x7fff;
  return static_cast<uint16_t>(narrow(value, kBf16, Round::nearest_even, false));
}

}  // namespace ptxkit::emulator::scalar
