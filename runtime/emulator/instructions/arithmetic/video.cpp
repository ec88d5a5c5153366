// Video instructions: arithmetic on bytes, halves or words selected from the sources, with saturation, a second
// operation or a merge; and forms on two halves or four bytes at once. Follows the pseudo-code of PTX ISA 9.0, 9.7.18.
#include <algorithm>

#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

namespace {

int64_t pick(uint32_t word, unsigned part, bool is_signed) {
  const unsigned width = part < 4 ? 8 : part < 6 ? 16 : 32, at = part < 4 ? 8 * part : part < 6 ? 16 * (part - 4) : 0;
  const uint32_t bits = word >> at;
  if (!is_signed) return width == 32 ? bits : bits & ((1u << width) - 1);
  return static_cast<int32_t>(bits << (32 - width)) >> (32 - width);
}

int64_t saturated(int64_t value, unsigned width, bool is_signed) {
  const int64_t top = is_signed ? (int64_t{1} << (width - 1)) - 1 : (int64_t{1} << width) - 1;
  const int64_t bottom = is_signed ? -top - 1 : 0;
  return value > top ? top : value < bottom ? bottom : value;
}

bool compare(VideoCompare by, int64_t a, int64_t b) {
  switch (by) {
    case VideoCompare::eq:
      return a == b;
    case VideoCompare::ne:
      return a != b;
    case VideoCompare::lt:
      return a < b;
    case VideoCompare::le:
      return a <= b;
    case VideoCompare::gt:
      return a > b;
    case VideoCompare::ge:
      return a >= b;
  }
  return false;
}

int64_t act(const VideoForm& form, int64_t a, int64_t b) {
  switch (form.action) {
    case VideoAction::add:
      return a + b;
    case VideoAction::sub:
      return a - b;
    case VideoAction::absolute_difference:
      return a > b ? a - b : b - a;
    case VideoAction::min:
      return std::min(a, b);
    case VideoAction::max:
      return std::max(a, b);
    case VideoAction::shift_left:
    case VideoAction::shift_right: {
      const auto count = form.wrap ? b & 31 : std::min<int64_t>(b, 32);
      return form.action == VideoAction::shift_left ? static_cast<int64_t>(static_cast<uint64_t>(a) << count)
                                                    : a >> count;
    }
    case VideoAction::average:
      return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
    case VideoAction::set:
      return compare(form.compare, a, b);
    case VideoAction::multiply:
      break;
  }
  return 0;
}

}  // namespace

void video_scalar(Warp& warp, const Code& code, uint32_t mask) {
  const VideoForm& form = warp.cta->launch->image->videos[code.target];
  const uint32_t* a = at<const uint32_t>(warp, code.a);
  const uint32_t* b = at<const uint32_t>(warp, code.b);
  const uint32_t* c = at<const uint32_t>(warp, code.c);
  uint32_t* d = at<uint32_t>(warp, code.dst);
  const unsigned part = form.destination;
  const unsigned width = part < 4 ? 8 : part < 6 ? 16 : 32;
  for_lanes(mask, [&](unsigned i) {
    int64_t value = act(form, pick(a[i], form.a[0], form.a_signed), pick(b[i], form.b[0], form.b_signed));
    if (form.saturates) value = saturated(value, width, form.d_signed);
    auto result = static_cast<uint32_t>(value);
    auto less = [&](uint32_t x, uint32_t y) {
      return form.d_signed ? static_cast<int32_t>(x) < static_cast<int32_t>(y) : x < y;
    };
    switch (form.secondary) {
      case SecondaryOperation::add:
        result += c[i];
        break;
      case SecondaryOperation::min:
        result = less(c[i], result) ? c[i] : result;
        break;
      case SecondaryOperation::max:
        result = less(result, c[i]) ? c[i] : result;
        break;
      case SecondaryOperation::none:
        if (part == kWholeWord) break;
        const unsigned at_bit = part < 4 ? 8 * part : 16 * (part - 4);
        const uint32_t field = ((1u << width) - 1) << at_bit;
        result = (c[i] & ~field) | (result << at_bit & field);
    }
    d[i] = result;
  });
}

// vmad: the 32-bit product of parts, plus c, scaled. The intermediate result is exact; it is signed if an operand is
// negated.
void video_multiply_add(Warp& warp, const Code& code, uint32_t mask) {
  const VideoForm& form = warp.cta->launch->image->videos[code.target];
  const uint32_t* a = at<const uint32_t>(warp, code.a);
  const uint32_t* b = at<const uint32_t>(warp, code.b);
  const uint32_t* c = at<const uint32_t>(warp, code.c);
  uint32_t* d = at<uint32_t>(warp, code.dst);
  __extension__ using s128 = __int128;
  const bool is_signed = form.a_signed || form.b_signed || form.product_negated || form.c_negated;
  for_lanes(mask, [&](unsigned i) {
    s128 product = s128{pick(a[i], form.a[0], form.a_signed)} * pick(b[i], form.b[0], form.b_signed);
    if (form.product_negated) product = -product;
    // -c is ~c + 1, where ~c has 32 bits: for the least integer that is itself plus 2^32.
    const uint32_t addend = form.c_negated ? ~c[i] : c[i];
    const s128 sum = product + (is_signed ? s128{static_cast<int32_t>(addend)} : s128{addend}) +
                     (form.plus_one || form.c_negated ? 1 : 0);
    auto result = static_cast<int64_t>(sum >> form.shift);
    if (form.saturates) result = saturated(result, 32, is_signed);
    d[i] = static_cast<uint32_t>(result);
  });
}

// Two halves or four bytes: selector numbers pick parts of a first, then of b.
void video_packed(Warp& warp, const Code& code, uint32_t mask) {
  const VideoForm& form = warp.cta->launch->image->videos[code.target];
  const uint32_t* a = at<const uint32_t>(warp, code.a);
  const uint32_t* b = at<const uint32_t>(warp, code.b);
  const uint32_t* c = at<const uint32_t>(warp, code.c);
  uint32_t* d = at<uint32_t>(warp, code.dst);
  const unsigned width = 32u / form.parts, first = form.parts == 2 ? 4 : 0;
  auto source = [&](unsigned i, unsigned number, bool is_signed) {
    return pick(number < form.parts ? a[i] : b[i], first + number % form.parts, is_signed);
  };
  const bool adds = form.secondary != SecondaryOperation::none;
  for_lanes(mask, [&](unsigned i) {
    uint32_t result = adds ? c[i] : 0;
    for (unsigned k = 0; k < form.parts; ++k) {
      const bool chosen = form.destination >> k & 1;
      const uint32_t field = (width == 16 ? 0xffffu : 0xffu) << (k * width & 31);
      if (!chosen) {
        if (!adds) result |= c[i] & field;
        continue;
      }
      int64_t value = act(form, source(i, form.a[k], form.a_signed), source(i, form.b[k], form.b_signed));
      if (form.saturates) value = saturated(value, width, form.d_signed);
      if (adds)
        result += static_cast<uint32_t>(value);
      else
        result |= static_cast<uint32_t>(value) << k * width & field;
    }
    d[i] = result;
  });
}

}  // namespace ptxkit::emulator
