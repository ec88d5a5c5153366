// setp and set: comparison, then combination with a predicate. PTX ISA 9.0, 9.7.6.
#include <cmath>

#include "runtime/backend/emulator/handlers.hpp"
#include "runtime/backend/emulator/lanes.hpp"
#include "runtime/backend/emulator/scalar.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Type;

enum class Test { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

template <class T>
inline T operand(T value) {
  return value;
}
inline float operand(_Float16 value) { return static_cast<float>(value); }

template <Test kTest, class T>
inline bool holds(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    switch (kTest) {
      case Test::eq:
        return x == y;
      case Test::ne:
        return x != y;
      case Test::lt:
        return x < y;
      case Test::le:
        return x <= y;
      case Test::gt:
        return x > y;
      default:
        return x >= y;
    }
  } else {
    const bool unordered = std::isnan(x) || std::isnan(y);
    switch (kTest) {
      case Test::eq:
        return x == y;
      case Test::ne:
        return !unordered && x != y;
      case Test::lt:
        return x < y;
      case Test::le:
        return x <= y;
      case Test::gt:
        return x > y;
      case Test::ge:
        return x >= y;
      case Test::equ:
        return unordered || x == y;
      case Test::neu:
        return unordered || x != y;
      case Test::ltu:
        return unordered || x < y;
      case Test::leu:
        return unordered || x <= y;
      case Test::gtu:
        return unordered || x > y;
      case Test::geu:
        return unordered || x >= y;
      case Test::num:
        return !unordered;
      default:
        return unordered;
    }
  }
}

struct Bf16 {
  uint16_t bits;
};
inline float operand(Bf16 value) { return scalar::bf16_value(value.bits); }

template <class T, Test kTest, bool kFlush>
inline bool compare(T x, T y) {
  auto a = operand(x), b = operand(y);
  if constexpr (kFlush) {
    a = scalar::flush(a);
    b = scalar::flush(b);
  }
  return holds<kTest>(a, b);
}

// Flavour in `source_bytes`: 0 setp, 1 set with all ones, 2 set with 1.0f, 3 with 1.0 in half, 4 in bfloat.
// Combination in `sub`: 0 none, 1 and, 2 or, 3 xor; `immediate` flips the predicate operand c.
template <class T, Test kTest, bool kFlush>
void handler(Warp& warp, const Code& code, uint32_t mask) {
  uint32_t test = test_lanes<compare<T, kTest, kFlush>, T, T>(warp, code, mask, std::index_sequence<0, 1>{});
  uint32_t p = test, q = ~test;
  if (code.sub) {
    uint32_t other = *at<const uint32_t>(warp, code.c) ^ static_cast<uint32_t>(code.immediate);
    p = code.sub == 1 ? p & other : code.sub == 2 ? p | other : p ^ other;
    q = code.sub == 1 ? q & other : code.sub == 2 ? q | other : q ^ other;
  }
  if (code.source_bytes == 0) {
    uint32_t* d = at<uint32_t>(warp, code.dst);
    *d = (*d & ~mask) | (p & mask);
    uint32_t* d2 = at<uint32_t>(warp, code.dst2);
    *d2 = (*d2 & ~mask) | (q & mask);
  } else if (code.register_bytes == 2) {
    uint16_t one = code.source_bytes == 1 ? 0xffff : code.source_bytes == 3 ? 0x3c00 : 0x3f80;
    for_lanes(mask, [&](unsigned i) { at<uint16_t>(warp, code.dst)[i] = p >> i & 1 ? one : uint16_t{0}; });
  } else {
    uint32_t one = code.source_bytes == 1 ? 0xffffffffu : 0x3f800000u;
    for_lanes(mask, [&](unsigned i) { at<uint32_t>(warp, code.dst)[i] = p >> i & 1 ? one : 0; });
  }
}

bool holds_for(Test test, double x, double y) {
  switch (test) {
    case Test::eq:
      return holds<Test::eq>(x, y);
    case Test::ne:
      return holds<Test::ne>(x, y);
    case Test::lt:
      return holds<Test::lt>(x, y);
    case Test::le:
      return holds<Test::le>(x, y);
    case Test::gt:
      return holds<Test::gt>(x, y);
    case Test::ge:
      return holds<Test::ge>(x, y);
    case Test::equ:
      return holds<Test::equ>(x, y);
    case Test::neu:
      return holds<Test::neu>(x, y);
    case Test::ltu:
      return holds<Test::ltu>(x, y);
    case Test::leu:
      return holds<Test::leu>(x, y);
    case Test::gtu:
      return holds<Test::gtu>(x, y);
    case Test::geu:
      return holds<Test::geu>(x, y);
    case Test::num:
      return holds<Test::num>(x, y);
    case Test::nan:
      return holds<Test::nan>(x, y);
  }
  return false;
}

// The halves of a register, each compared on its own. `list` holds the Test, `count` what the register holds.
enum class Halves : uint8_t { one_flushed, two, two_flushed, two_bfloats };

template <bool kSetp>
void halves(Warp& warp, const Code& code, uint32_t mask) {
  const auto what = static_cast<Halves>(code.count);
  const bool two = what != Halves::one_flushed, bfloat = what == Halves::two_bfloats;
  auto value = [&](uint32_t bits, unsigned half) {
    auto part = static_cast<uint16_t>(bits >> 16 * half);
    if ((what == Halves::one_flushed || what == Halves::two_flushed) && (part & 0x7c00) == 0)
      part = static_cast<uint16_t>(part & 0x8000);
    return double{bfloat ? scalar::bf16_value(part) : scalar::f16_value(part)};
  };
  auto source = [&](Ref ref, unsigned i) {
    return two ? at<const uint32_t>(warp, ref)[i] : uint32_t{at<const uint16_t>(warp, ref)[i]};
  };
  const uint32_t other = *at<const uint32_t>(warp, code.c) ^ static_cast<uint32_t>(code.immediate);
  auto combined = [&](bool test, unsigned i) {
    const bool with = other >> i & 1;
    return code.sub == 0 ? test : code.sub == 1 ? test && with : code.sub == 2 ? test || with : test != with;
  };
  uint32_t p = 0, q = 0;
  for_lanes(mask, [&](unsigned i) {
    const uint32_t a = source(code.a, i), b = source(code.b, i);
    const auto test = static_cast<Test>(code.list);
    const bool low = holds_for(test, value(a, 0), value(b, 0));
    const bool high = two ? holds_for(test, value(a, 1), value(b, 1)) : !low;
    p |= uint32_t{combined(low, i)} << i;
    q |= uint32_t{combined(high, i)} << i;
  });
  if constexpr (kSetp) {
    uint32_t* d = at<uint32_t>(warp, code.dst);
    *d = (*d & ~mask) | p;
    uint32_t* d2 = at<uint32_t>(warp, code.dst2);
    *d2 = (*d2 & ~mask) | q;
    return;
  }
  // Flavour as in handler(); two halves give two results.
  const uint32_t one = code.source_bytes == 1   ? two || code.register_bytes == 2 ? 0xffff : 0xffffffff
                       : code.source_bytes == 2 ? 0x3f800000
                       : code.source_bytes == 3 ? 0x3c00
                                                : 0x3f80;
  for_lanes(mask, [&](unsigned i) {
    uint32_t result = p >> i & 1 ? one : 0;
    if (two) result |= (q >> i & 1 ? one : 0) << 16;
    if (code.register_bytes == 2)
      at<uint16_t>(warp, code.dst)[i] = static_cast<uint16_t>(result);
    else
      at<uint32_t>(warp, code.dst)[i] = result;
  });
}

bool select_halves(Code& code, Halves what, Test test, int flavour) {
  code.count = static_cast<uint8_t>(what);
  code.list = static_cast<uint32_t>(test);
  code.run = flavour ? halves<false> : halves<true>;
  return true;
}

template <class T, bool kFlush>
Handler pick_float(Test test) {
  switch (test) {
    case Test::eq:
      return handler<T, Test::eq, kFlush>;
    case Test::ne:
      return handler<T, Test::ne, kFlush>;
    case Test::lt:
      return handler<T, Test::lt, kFlush>;
    case Test::le:
      return handler<T, Test::le, kFlush>;
    case Test::gt:
      return handler<T, Test::gt, kFlush>;
    case Test::ge:
      return handler<T, Test::ge, kFlush>;
    case Test::equ:
      return handler<T, Test::equ, kFlush>;
    case Test::neu:
      return handler<T, Test::neu, kFlush>;
    case Test::ltu:
      return handler<T, Test::ltu, kFlush>;
    case Test::leu:
      return handler<T, Test::leu, kFlush>;
    case Test::gtu:
      return handler<T, Test::gtu, kFlush>;
    case Test::geu:
      return handler<T, Test::geu, kFlush>;
    case Test::num:
      return handler<T, Test::num, kFlush>;
    case Test::nan:
      return handler<T, Test::nan, kFlush>;
  }
  return nullptr;
}

template <class T>
Handler pick_integer(Mod compare_by) {
  switch (compare_by) {
    case Mod::eq:
      return handler<T, Test::eq, false>;
    case Mod::ne:
      return handler<T, Test::ne, false>;
    default:
      break;
  }
  switch (compare_by) {
    case Mod::lt:
    case Mod::lo:
      return handler<T, Test::lt, false>;
    case Mod::le:
    case Mod::ls:
      return handler<T, Test::le, false>;
    case Mod::gt:
    case Mod::hi:
      return handler<T, Test::gt, false>;
    case Mod::ge:
    case Mod::hs:
      return handler<T, Test::ge, false>;
    default:
      return nullptr;
  }
}

bool float_test(Mod compare_by, Test& test) {
  switch (compare_by) {
    case Mod::eq:
      test = Test::eq;
      return true;
    case Mod::ne:
      test = Test::ne;
      return true;
    case Mod::lt:
      test = Test::lt;
      return true;
    case Mod::le:
      test = Test::le;
      return true;
    case Mod::gt:
      test = Test::gt;
      return true;
    case Mod::ge:
      test = Test::ge;
      return true;
    case Mod::equ:
      test = Test::equ;
      return true;
    case Mod::neu:
      test = Test::neu;
      return true;
    case Mod::ltu:
      test = Test::ltu;
      return true;
    case Mod::leu:
      test = Test::leu;
      return true;
    case Mod::gtu:
      test = Test::gtu;
      return true;
    case Mod::geu:
      test = Test::geu;
      return true;
    case Mod::num:
      test = Test::num;
      return true;
    case Mod::nan:
      test = Test::nan;
      return true;
    default:
      return false;
  }
}

}  // namespace

bool select_compare(Code& code, Type type, const Words& words, Mod compare_by, int flavour) {
  code.source_bytes = static_cast<uint8_t>(flavour);
  code.undefined = flavour ? Undefined::any : Undefined::compare;
  Test test{};
  const bool ftz = words.has(Mod::ftz);
  switch (type) {
    case Type::b16:
    case Type::u16:
      code.run = pick_integer<uint16_t>(compare_by);
      break;
    case Type::s16:
      code.run = pick_integer<int16_t>(compare_by);
      break;
    case Type::b32:
    case Type::u32:
      code.run = pick_integer<uint32_t>(compare_by);
      break;
    case Type::s32:
      code.run = pick_integer<int32_t>(compare_by);
      break;
    case Type::b64:
    case Type::u64:
      code.run = pick_integer<uint64_t>(compare_by);
      break;
    case Type::s64:
      code.run = pick_integer<int64_t>(compare_by);
      break;
    case Type::f32:
      if (float_test(compare_by, test)) code.run = ftz ? pick_float<float, true>(test) : pick_float<float, false>(test);
      break;
    case Type::f64:
      if (float_test(compare_by, test)) code.run = pick_float<double, false>(test);
      break;
    case Type::f16:
      if (!float_test(compare_by, test)) return false;
      if (ftz) return select_halves(code, Halves::one_flushed, test, flavour);
      code.run = pick_float<_Float16, false>(test);
      break;
    case Type::f16x2:
      if (!float_test(compare_by, test)) return false;
      return select_halves(code, ftz ? Halves::two_flushed : Halves::two, test, flavour);
    case Type::bf16x2:
      if (!float_test(compare_by, test)) return false;
      return select_halves(code, Halves::two_bfloats, test, flavour);
    case Type::bf16:
      if (float_test(compare_by, test)) code.run = pick_float<Bf16, false>(test);
      break;
    default:
      break;
  }
  return code.run != nullptr;
}

}  // namespace ptxkit::emulator
