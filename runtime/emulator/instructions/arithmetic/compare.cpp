// setp and set: comparison, then combination with a predicate. PTX ISA 9.0, 9.7.6.
#include <algorithm>
#include <cmath>
#include <utility>

#include "analyzer/ptx/facts.hpp"
#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/core/lanes.hpp"
#include "runtime/emulator/core/scalar.hpp"
#include "support/half.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Comparison;
using ptx::Mod;
using ptx::Type;

enum class Test { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

template <class T>
inline T operand(T value) {
  return value;
}
inline float operand(Half value) { return static_cast<float>(value); }

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

// Calls f.operator()<kTest>() for `test`; the only place that turns the value into a template argument.
template <class F>
auto with_test(Test test, F&& f) {
  switch (test) {
    case Test::eq:
      return f.template operator()<Test::eq>();
    case Test::ne:
      return f.template operator()<Test::ne>();
    case Test::lt:
      return f.template operator()<Test::lt>();
    case Test::le:
      return f.template operator()<Test::le>();
    case Test::gt:
      return f.template operator()<Test::gt>();
    case Test::ge:
      return f.template operator()<Test::ge>();
    case Test::equ:
      return f.template operator()<Test::equ>();
    case Test::neu:
      return f.template operator()<Test::neu>();
    case Test::ltu:
      return f.template operator()<Test::ltu>();
    case Test::leu:
      return f.template operator()<Test::leu>();
    case Test::gtu:
      return f.template operator()<Test::gtu>();
    case Test::geu:
      return f.template operator()<Test::geu>();
    case Test::num:
      return f.template operator()<Test::num>();
    default:
      return f.template operator()<Test::nan>();
  }
}

bool holds_for(Test test, double x, double y) {
  return with_test(test, [&]<Test kTest>() { return holds<kTest>(x, y); });
}

// Compares each half of a register separately. `list` holds the Test, `count` the format of the register.
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

template <class T, bool kFlush = false>
Handler pick(Test test) {
  return with_test(test, []<Test kTest>() { return Handler{handler<T, kTest, kFlush>}; });
}

// The first six are the comparisons of integers; the unsigned ones have names of their own.
constexpr std::pair<Comparison, Test> kTests[] = {
    {Comparison::eq, Test::eq},   {Comparison::ne, Test::ne},   {Comparison::lt, Test::lt},
    {Comparison::le, Test::le},   {Comparison::gt, Test::gt},   {Comparison::ge, Test::ge},
    {Comparison::lo, Test::lt},   {Comparison::ls, Test::le},   {Comparison::hi, Test::gt},
    {Comparison::hs, Test::ge},   {Comparison::equ, Test::equ}, {Comparison::neu, Test::neu},
    {Comparison::ltu, Test::ltu}, {Comparison::leu, Test::leu}, {Comparison::gtu, Test::gtu},
    {Comparison::geu, Test::geu}, {Comparison::num, Test::num}, {Comparison::nan, Test::nan}};

}  // namespace

bool select_compare(Code& code, Type type, const Words& words, Comparison compare_by, int flavour) {
  code.source_bytes = static_cast<uint8_t>(flavour);
  code.undefined = flavour ? Undefined::any : Undefined::compare;
  const auto* row = std::ranges::find(kTests, compare_by, &std::pair<Comparison, Test>::first);
  if (row == std::end(kTests)) return false;
  const Test test = row->second;
  const bool ftz = words.has(Mod::ftz);
  if (with_integer(type, [&]<class T>() {
        if (test <= Test::ge) code.run = pick<T>(test);
        return true;
      }))
    return code.run != nullptr;
  switch (type) {
    case Type::f32:
      code.run = ftz ? pick<float, true>(test) : pick<float>(test);
      break;
    case Type::f64:
      code.run = pick<double>(test);
      break;
    case Type::f16:
      if (ftz) return select_halves(code, Halves::one_flushed, test, flavour);
      code.run = pick<Half>(test);
      break;
    case Type::f16x2:
      return select_halves(code, ftz ? Halves::two_flushed : Halves::two, test, flavour);
    case Type::bf16x2:
      return select_halves(code, Halves::two_bfloats, test, flavour);
    case Type::bf16:
      code.run = pick<Bf16>(test);
      break;
    default:
      break;
  }
  return code.run != nullptr;
}

}  // namespace ptxkit::emulator
