// setp and set: comparison, then combination with a predicate. PTX ISA 9.0, 9.7.6.
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
    const bool unordered = x != x || y != y;
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
      if (float_test(compare_by, test) && !ftz) code.run = pick_float<_Float16, false>(test);
      break;
    case Type::bf16:
      if (float_test(compare_by, test)) code.run = pick_float<Bf16, false>(test);
      break;
    default:
      break;
  }
  return code.run != nullptr;
}

}  // namespace ptxkit::emulator
