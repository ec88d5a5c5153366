// Integer arithmetic. PTX ISA 9.0, 9.7.1 (integer) and 9.7.2 (extended precision).
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/core/lanes.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Op;
using ptx::Type;

__extension__ using u128 = unsigned __int128;
__extension__ using s128 = __int128;

template <class T>
struct Widened;
template <>
struct Widened<uint16_t> {
  using type = uint32_t;
};
template <>
struct Widened<int16_t> {
  using type = int32_t;
};
template <>
struct Widened<uint32_t> {
  using type = uint64_t;
};
template <>
struct Widened<int32_t> {
  using type = int64_t;
};
template <>
struct Widened<uint64_t> {
  using type = u128;
};
template <>
struct Widened<int64_t> {
  using type = s128;
};
template <class T>
using widened = typename Widened<T>::type;

template <class T>
inline T high_product(T a, T b) {
  return static_cast<T>((widened<T>{a} * b) >> (8 * sizeof(T)));
}

inline int32_t clamp32(int64_t value) {
  return static_cast<int32_t>(value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value);
}

// The ISA does not specify division by zero and the quotient that overflows; these are the GPU's results.
template <class T>
inline T divide(T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return static_cast<T>(-static_cast<std::make_unsigned_t<T>>(a));
  return static_cast<T>(a / b);
}
template <class T>
inline T remainder(T a, T b) {
  if (b == 0) return sizeof(T) < 8 ? static_cast<T>(~T{0}) : a;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return static_cast<T>(a % b);
}

// kRun, with a fault for lanes whose divisor is 0.
template <class T, Handler kRun>
void divide_checked(Warp& warp, const Code& code, uint32_t mask) {
  if (checks(*warp.cta, kCheckDivision)) {
    const T* const divisors = at<const T>(warp, code.b);
    uint32_t zeros = 0;
    for_lanes(mask, [&](unsigned i) { zeros |= uint32_t{divisors[i] == 0} << i; });
    if (zeros != 0 && !already_reported(warp, FaultKind::division_by_zero)) {
      report(warp, {.kind = FaultKind::division_by_zero,
                    .message = fmt::format("the divisor {} is 0, for which the PTX ISA specifies no result",
                                           register_name(warp, code.b)),
                    .lane = static_cast<unsigned>(std::countr_zero(zeros))});
    }
  }
  kRun(warp, code, mask);
}

template <class T>
inline uint32_t find_high(T value) {
  using U = std::make_unsigned_t<T>;
  U bits = static_cast<U>(value);
  if constexpr (std::is_signed_v<T>)
    if (value < 0) bits = static_cast<U>(~bits);
  return bits ? static_cast<uint32_t>(8 * sizeof(T) - 1 - std::countl_zero(bits)) : 0xffffffffu;
}

// fns: the n-th set bit from `base`, upwards for n > 0, downwards for n < 0, `base` itself for 0.
inline uint32_t find_nth(uint32_t mask, uint32_t base, int32_t n) {
  if (n == 0) return base < 32 && (mask >> base & 1) ? base : 0xffffffffu;
  int step = n > 0 ? 1 : -1;
  int64_t left = n > 0 ? n : -static_cast<int64_t>(n);
  for (int64_t at = base; at >= 0 && at < 32; at += step)
    if ((mask >> at & 1) && --left == 0) return static_cast<uint32_t>(at);
  return 0xffffffffu;
}

template <bool kSignedA, bool kSignedB>
inline uint32_t dot4(uint32_t a, uint32_t b, uint32_t c) {
  for (unsigned i = 0; i < 4; ++i) {
    auto x = static_cast<uint8_t>(a >> 8 * i), y = static_cast<uint8_t>(b >> 8 * i);
    int32_t p = kSignedA ? static_cast<int8_t>(x) : int32_t{x};
    int32_t q = kSignedB ? static_cast<int8_t>(y) : int32_t{y};
    c += static_cast<uint32_t>(p * q);
  }
  return c;
}
template <bool kSignedA, bool kSignedB, bool kHigh>
inline uint32_t dot2(uint32_t a, uint32_t b, uint32_t c) {
  for (unsigned i = 0; i < 2; ++i) {
    auto x = static_cast<uint16_t>(a >> 16 * i);
    auto y = static_cast<uint8_t>(b >> 8 * (i + (kHigh ? 2 : 0)));
    int32_t p = kSignedA ? static_cast<int16_t>(x) : int32_t{x};
    int32_t q = kSignedB ? static_cast<int8_t>(y) : int32_t{y};
    c += static_cast<uint32_t>(p * q);
  }
  return c;
}

// mul24.hi: bits 16 to 47 of the 48-bit product.
inline int32_t low24(int32_t value) { return static_cast<int32_t>(static_cast<uint32_t>(value) << 8) >> 8; }

inline uint32_t product24(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(uint64_t{a & 0xffffffu} * (b & 0xffffffu) >> 16);
}
inline int32_t product24(int32_t a, int32_t b) { return static_cast<int32_t>(int64_t{low24(a)} * low24(b) >> 16); }

// Applies F to both halves of a 32-bit word separately.
template <class T, auto F>
inline uint32_t halves(uint32_t a, uint32_t b) {
  auto low = static_cast<uint16_t>(F(static_cast<T>(a), static_cast<T>(b)));
  auto high = static_cast<uint16_t>(F(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
  return uint32_t{low} | uint32_t{high} << 16;
}

// add.cc, addc, sub.cc, subc, mad.cc, madc: the carry is one bit for each lane.
template <class T, bool kSubtract, bool kIn, bool kOut>
void add_carry(Warp& warp, const Code& code, uint32_t mask) {
  const T* a = at<const T>(warp, code.a);
  const T* b = at<const T>(warp, code.b);
  T* d = at<T>(warp, code.dst);
  for_lanes(mask, [&](unsigned i) {
    bool out;
    if constexpr (kSubtract) {
      // a - b is a + ~b + 1: the carry is that of this sum, the inverse of a borrow.
      const T borrow = kIn ? static_cast<T>(~warp.carry >> i & 1) : T{0};
      out = !(a[i] < b[i] || (borrow && a[i] == b[i]));
      d[i] = static_cast<T>(a[i] - b[i] - borrow);
    } else {
      const T carry = kIn ? static_cast<T>(warp.carry >> i & 1) : T{0};
      T sum = static_cast<T>(a[i] + b[i]);
      T all = static_cast<T>(sum + carry);
      out = sum < a[i] || all < sum;
      d[i] = all;
    }
    if (kOut) warp.carry = (warp.carry & ~(1u << i)) | uint32_t{out} << i;
  });
}
template <class T, bool kHigh, bool kIn, bool kOut>
void mad_carry(Warp& warp, const Code& code, uint32_t mask) {
  using U = std::make_unsigned_t<T>;
  const T* a = at<const T>(warp, code.a);
  const T* b = at<const T>(warp, code.b);
  const U* c = at<const U>(warp, code.c);
  U* d = at<U>(warp, code.dst);
  for_lanes(mask, [&](unsigned i) {
    U product = kHigh ? static_cast<U>(high_product<T>(a[i], b[i]))
                      : static_cast<U>(static_cast<U>(a[i]) * static_cast<U>(b[i]));
    U carry = kIn ? static_cast<U>(warp.carry >> i & 1) : U{0};
    U sum = static_cast<U>(product + c[i]);
    U all = static_cast<U>(sum + carry);
    bool out = sum < product || all < sum;
    d[i] = all;
    if (kOut) warp.carry = (warp.carry & ~(1u << i)) | uint32_t{out} << i;
  });
}

template <class T>
Handler pick_add_carry(bool subtract, bool in, bool out) {
  using U = std::make_unsigned_t<T>;
  if (subtract)
    return in ? (out ? add_carry<U, true, true, true> : add_carry<U, true, true, false>)
              : add_carry<U, true, false, true>;
  return in ? (out ? add_carry<U, false, true, true> : add_carry<U, false, true, false>)
            : add_carry<U, false, false, true>;
}
template <class T, bool kHigh>
Handler pick_mad_carry(bool in, bool out) {
  return in ? (out ? mad_carry<T, kHigh, true, true> : mad_carry<T, kHigh, true, false>)
            : mad_carry<T, kHigh, false, true>;
}

template <class T>
bool select_for(Code& code, Op op, const Words& words) {
  using U = std::make_unsigned_t<T>;
  const bool in = op == Op::addc || op == Op::subc || op == Op::madc, out = words.has(Mod::cc);
  const bool sat = words.has(Mod::sat), high = words.has(Mod::hi), wide = words.has(Mod::wide);
  if (sat && !(std::is_same_v<T, int32_t> && (op == Op::add || op == Op::sub || op == Op::mad || op == Op::mad24)))
    return false;
  if (in || out) code.undefined = Undefined::any;
  switch (op) {
    case Op::add:
      code.undefined = Undefined::carry;
      if (out) {
        code.run = pick_add_carry<T>(false, false, true);
      } else if constexpr (std::is_same_v<T, int32_t>) {
        code.run = sat ? Handler{lanes<[](int32_t a, int32_t b) { return clamp32(int64_t{a} + b); }, int32_t, int32_t,
                                       int32_t>}
                       : Handler{lanes<[](U a, U b) { return static_cast<U>(a + b); }, U, U, U>};
      } else {
        code.run = lanes<[](U a, U b) { return static_cast<U>(a + b); }, U, U, U>;
      }
      return true;
    case Op::sub:
      code.undefined = Undefined::carry;
      if (out) {
        code.run = pick_add_carry<T>(true, false, true);
      } else if constexpr (std::is_same_v<T, int32_t>) {
        code.run = sat ? Handler{lanes<[](int32_t a, int32_t b) { return clamp32(int64_t{a} - b); }, int32_t, int32_t,
                                       int32_t>}
                       : Handler{lanes<[](U a, U b) { return static_cast<U>(a - b); }, U, U, U>};
      } else {
        code.run = lanes<[](U a, U b) { return static_cast<U>(a - b); }, U, U, U>;
      }
      return true;
    case Op::addc:
      code.run = pick_add_carry<T>(false, true, out);
      return true;
    case Op::subc:
      code.run = pick_add_carry<T>(true, true, out);
      return true;
    case Op::mul:
      if (wide) {
        if constexpr (sizeof(T) == 8)
          return false;
        else
          code.run =
              lanes<[](T a, T b) { return static_cast<widened<T>>(widened<T>{a} * widened<T>{b}); }, widened<T>, T, T>;
      } else if (high) {
        code.run = lanes<[](T a, T b) { return high_product<T>(a, b); }, T, T, T>;
      } else {
        code.undefined = Undefined::carry;
        code.run = lanes<[](U a, U b) { return static_cast<U>(uint64_t{a} * b); }, U, U, U>;
      }
      return true;
    case Op::mad:
    case Op::madc:
      if (in || out) {
        if (wide || sizeof(T) == 2) return false;
        code.run = high ? pick_mad_carry<T, true>(in, out) : pick_mad_carry<T, false>(in, out);
      } else if (wide) {
        if constexpr (sizeof(T) == 8) {
          return false;
        } else {
          using W = std::make_unsigned_t<widened<T>>;
          code.run =
              lanes<[](T a, T b, W c) { return static_cast<W>(static_cast<W>(widened<T>{a} * widened<T>{b}) + c); }, W,
                    T, T, W>;
        }
      } else if (high) {
        if constexpr (std::is_same_v<T, int32_t>) {
          if (sat) {
            code.run =
                lanes<[](int32_t a, int32_t b, int32_t c) { return clamp32(int64_t{high_product<int32_t>(a, b)} + c); },
                      int32_t, int32_t, int32_t, int32_t>;
            return true;
          }
        }
        code.run =
            lanes<[](T a, T b, U c) { return static_cast<U>(static_cast<U>(high_product<T>(a, b)) + c); }, U, T, T, U>;
      } else {
        if (sat) return false;
        code.undefined = Undefined::carry;
        code.run = lanes<[](U a, U b, U c) { return static_cast<U>(uint64_t{a} * b + c); }, U, U, U, U>;
      }
      return true;
    case Op::div:
      code.run = lanes<[](T a, T b) { return divide<T>(a, b); }, T, T, T>;
      code.checked = divide_checked<T, lanes<[](T a, T b) { return divide<T>(a, b); }, T, T, T>>;
      return true;
    case Op::rem:
      code.run = lanes<[](T a, T b) { return remainder<T>(a, b); }, T, T, T>;
      code.checked = divide_checked<T, lanes<[](T a, T b) { return remainder<T>(a, b); }, T, T, T>>;
      return true;
    case Op::neg:
      code.run = lanes<[](U a) { return static_cast<U>(-a); }, U, U>;
      return true;
    case Op::abs:
      code.run = lanes<[](T a) { return a < 0 ? static_cast<U>(-static_cast<U>(a)) : static_cast<U>(a); }, U, T>;
      return true;
    case Op::min:
      if (words.has(Mod::relu)) {
        if constexpr (std::is_same_v<T, int32_t>)
          code.run = lanes<[](int32_t a, int32_t b) {
            int32_t m = (a < b) ? a : b;
            return (m > 0) ? m : 0;
          },
                           int32_t, int32_t, int32_t>;
        else
          return false;
        return true;
      }
      code.run = lanes<[](T a, T b) { return a < b ? a : b; }, T, T, T>;
      return true;
    case Op::max:
      if (words.has(Mod::relu)) {
        if constexpr (std::is_same_v<T, int32_t>)
          code.run = lanes<[](int32_t a, int32_t b) {
            int32_t m = (a > b) ? a : b;
            return (m > 0) ? m : 0;
          },
                           int32_t, int32_t, int32_t>;
        else
          return false;
        return true;
      }
      code.run = lanes<[](T a, T b) { return (a > b) ? a : b; }, T, T, T>;
      return true;
    case Op::sad:
      code.run = lanes<[](T a, T b, U c) {
        return static_cast<U>(c + ((a > b) ? static_cast<U>(static_cast<U>(a) - static_cast<U>(b))
                                           : static_cast<U>(static_cast<U>(b) - static_cast<U>(a))));
      },
                       U, T, T, U>;
      return true;
    default:
      break;
  }
  if constexpr (sizeof(T) >= 4) {
    if (op == Op::bfind) {
      if (words.has(Mod::shiftamt))
        code.run = lanes<[](T a) {
          uint32_t at = find_high<T>(a);
          return at == 0xffffffffu ? at : static_cast<uint32_t>(8 * sizeof(T) - 1) - at;
        },
                         uint32_t, T>;
      else
        code.run = lanes<[](T a) { return find_high<T>(a); }, uint32_t, T>;
      return true;
    }
  }
  if constexpr (std::is_same_v<T, uint32_t>) {
    if (op == Op::mul24)
      code.run =
          high ? Handler{lanes<[](uint32_t a, uint32_t b) { return product24(a, b); }, uint32_t, uint32_t, uint32_t>}
               : Handler{lanes<[](uint32_t a, uint32_t b) { return (a & 0xffffffu) * (b & 0xffffffu); }, uint32_t,
                               uint32_t, uint32_t>};
    else if (op == Op::mad24 && !sat)
      code.run =
          high ? Handler{lanes<[](uint32_t a, uint32_t b, uint32_t c) { return product24(a, b) + c; }, uint32_t,
                               uint32_t, uint32_t, uint32_t>}
               : Handler{lanes<[](uint32_t a, uint32_t b, uint32_t c) { return (a & 0xffffffu) * (b & 0xffffffu) + c; },
                               uint32_t, uint32_t, uint32_t, uint32_t>};
    return code.run != nullptr;
  }
  if constexpr (std::is_same_v<T, int32_t>) {
    if (op == Op::mul24)
      code.run =
          high ? Handler{lanes<[](int32_t a, int32_t b) { return product24(a, b); }, int32_t, int32_t, int32_t>}
               : Handler{lanes<[](int32_t a, int32_t b) { return static_cast<int32_t>(int64_t{low24(a)} * low24(b)); },
                               int32_t, int32_t, int32_t>};
    else if (op == Op::mad24 && sat)
      code.run = lanes<[](int32_t a, int32_t b, int32_t c) { return clamp32(int64_t{product24(a, b)} + c); }, int32_t,
                       int32_t, int32_t, int32_t>;
    else if (op == Op::mad24)
      code.run = high ? Handler{lanes<[](int32_t a, int32_t b, uint32_t c) {
        return static_cast<uint32_t>(product24(a, b)) + c;
      },
                                      uint32_t, int32_t, int32_t, uint32_t>}
                      : Handler{lanes<[](int32_t a, int32_t b, uint32_t c) {
                          return static_cast<uint32_t>(int64_t{low24(a)} * low24(b)) + c;
                        },
                                      uint32_t, int32_t, int32_t, uint32_t>};
    return code.run != nullptr;
  }
  return false;
}

template <class T>
bool select_halves(Code& code, Op op, const Words& words) {
  if (words.has(Mod::relu)) {
    if constexpr (std::is_signed_v<T>) {
      auto min = [](uint32_t a, uint32_t b) {
        return halves<T, [](T x, T y) { return std::max<T>(0, x < y ? x : y); }>(a, b);
      };
      auto max = [](uint32_t a, uint32_t b) {
        return halves<T, [](T x, T y) { return std::max<T>(0, (x > y) ? x : y); }>(a, b);
      };
      if (op == Op::min) code.run = lanes<min, uint32_t, uint32_t, uint32_t>;
      if (op == Op::max) code.run = lanes<max, uint32_t, uint32_t, uint32_t>;
    }
    return code.run != nullptr;
  }
  switch (op) {
    case Op::add:
      code.run = lanes<[](uint32_t a, uint32_t b) {
        return halves<uint16_t, [](uint16_t x, uint16_t y) { return x + y; }>(a, b);
      },
                       uint32_t, uint32_t, uint32_t>;
      return true;
    case Op::min:
      code.run = lanes<[](uint32_t a, uint32_t b) { return halves<T, [](T x, T y) { return x < y ? x : y; }>(a, b); },
                       uint32_t, uint32_t, uint32_t>;
      return true;
    case Op::max:
      code.run = lanes<[](uint32_t a, uint32_t b) { return halves<T, [](T x, T y) { return (x > y) ? x : y; }>(a, b); },
                       uint32_t, uint32_t, uint32_t>;
      return true;
    default:
      return false;
  }
}

}  // namespace

bool select_integer(Code& code, Op op, Type type, const Words& words) {
  switch (op) {
    case Op::popc:
      if (type == Type::b32)
        code.run = lanes<[](uint32_t a) { return static_cast<uint32_t>(std::popcount(a)); }, uint32_t, uint32_t>;
      else if (type == Type::b64)
        code.run = lanes<[](uint64_t a) { return static_cast<uint32_t>(std::popcount(a)); }, uint32_t, uint64_t>;
      return code.run != nullptr;
    case Op::clz:
      if (type == Type::b32)
        code.run = lanes<[](uint32_t a) { return static_cast<uint32_t>(std::countl_zero(a)); }, uint32_t, uint32_t>;
      else if (type == Type::b64)
        code.run = lanes<[](uint64_t a) { return static_cast<uint32_t>(std::countl_zero(a)); }, uint32_t, uint64_t>;
      return code.run != nullptr;
    case Op::fns:
      code.run = lanes<[](uint32_t mask, uint32_t base, int32_t n) { return find_nth(mask, base, n); }, uint32_t,
                       uint32_t, uint32_t, int32_t>;
      return type == Type::b32;
    default:
      break;
  }
  if (type == Type::u16x2) return select_halves<uint16_t>(code, op, words);
  if (type == Type::s16x2) return select_halves<int16_t>(code, op, words);
  return with_integer(type, [&]<class T>() { return select_for<T>(code, op, words); });
}

bool select_dot(Code& code, Op op, Type a, Type b, const Words& words) {
  bool sa = a == Type::s32, sb = b == Type::s32;
  using H = uint32_t;
  if (op == Op::dp4a) {
    code.run = sa ? (sb ? lanes<dot4<true, true>, H, H, H, H> : lanes<dot4<true, false>, H, H, H, H>)
                  : (sb ? lanes<dot4<false, true>, H, H, H, H> : lanes<dot4<false, false>, H, H, H, H>);
    return true;
  }
  if (words.has(Mod::hi))
    code.run = sa ? (sb ? lanes<dot2<true, true, true>, H, H, H, H> : lanes<dot2<true, false, true>, H, H, H, H>)
                  : (sb ? lanes<dot2<false, true, true>, H, H, H, H> : lanes<dot2<false, false, true>, H, H, H, H>);
  else
    code.run = sa ? (sb ? lanes<dot2<true, true, false>, H, H, H, H> : lanes<dot2<true, false, false>, H, H, H, H>)
                  : (sb ? lanes<dot2<false, true, false>, H, H, H, H> : lanes<dot2<false, false, false>, H, H, H, H>);
  return true;
}

}  // namespace ptxkit::emulator
