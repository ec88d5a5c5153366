// Scalar types, rates and state spaces of the DSL: plain values that do not depend on LLVM.
//
// A rate states how far a value is known to be uniform: in the whole CTA (Rate::block), in each warp (Rate::warp), or
// not at all beyond one thread (Rate::thread). The rate is part of a value's type, because many bugs of GPU kernels
// come from a value that was assumed to be uniform and was not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <type_traits>

namespace ptxkit::dsl {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using i8 = int8_t;
using i16 = int16_t;
using i32 = int32_t;
using i64 = int64_t;
using f32 = float;
using f64 = double;

// A position in the author's C++ source. Instructions traced there carry it as their `.loc`.
using Where = std::source_location;

enum class Rate : u8 { block, warp, thread };

// The rate of a result: an operation is as divergent as its most divergent operand.
constexpr Rate widest(Rate a, Rate b) { return a < b ? b : a; }
template <class... Rates>
constexpr Rate widest(Rate a, Rate b, Rates... more) {
  return widest(widest(a, b), more...);
}
constexpr const char* name_of(Rate rate) {
  return rate == Rate::block ? "block-uniform" : rate == Rate::warp ? "warp-uniform" : "lane-varying";
}

// `global` and `read_only` are both PTX's `.global`. With `read_only` the author promises that no thread writes the
// memory while the kernel runs. Loads from it are `ld.global.nc`, they are uniform at uniform addresses, and it has no
// stores. Addresses are 64 bits wide in global, read_only and local, 32 bits in shared.
enum class Space : u8 { global, read_only, shared, local };
using enum Space;

constexpr bool is_wide(Space space) { return space != Space::shared; }

enum class Scalar : u8 { pred, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float32, float64 };

template <class T>
inline constexpr bool kIsScalar = false;
template <class T>
inline constexpr Scalar kScalarOf = Scalar::pred;

#define PTXKIT_SCALAR(type, code)               \
  template <>                                   \
  inline constexpr bool kIsScalar<type> = true; \
  template <>                                   \
  inline constexpr Scalar kScalarOf<type> = Scalar::code
PTXKIT_SCALAR(bool, pred);
PTXKIT_SCALAR(u8, uint8);
PTXKIT_SCALAR(u16, uint16);
PTXKIT_SCALAR(u32, uint32);
PTXKIT_SCALAR(u64, uint64);
PTXKIT_SCALAR(i8, int8);
PTXKIT_SCALAR(i16, int16);
PTXKIT_SCALAR(i32, int32);
PTXKIT_SCALAR(i64, int64);
PTXKIT_SCALAR(f32, float32);
PTXKIT_SCALAR(f64, float64);
#undef PTXKIT_SCALAR

constexpr unsigned bits_of(Scalar scalar) {
  switch (scalar) {
    case Scalar::pred:
      return 1;
    case Scalar::uint8:
    case Scalar::int8:
      return 8;
    case Scalar::uint16:
    case Scalar::int16:
      return 16;
    case Scalar::uint32:
    case Scalar::int32:
    case Scalar::float32:
      return 32;
    case Scalar::uint64:
    case Scalar::int64:
    case Scalar::float64:
      return 64;
  }
  return 0;
}
constexpr bool is_float(Scalar scalar) { return scalar == Scalar::float32 || scalar == Scalar::float64; }
constexpr bool is_signed(Scalar scalar) { return scalar >= Scalar::int8 && scalar <= Scalar::int64; }
const char* name_of(Scalar scalar);  // "u32", "pred", ...

template <class T>
concept DeviceScalar = kIsScalar<T>;
template <class T>
concept DeviceInteger = kIsScalar<T> && std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <class T>
concept DeviceNumber = kIsScalar<T> && !std::is_same_v<T, bool>;

// A string literal as a template argument: Arg<"src", ...>.
template <size_t N>
struct Name {
  char text[N];
  consteval Name(const char (&literal)[N]) {  // NOLINT(google-explicit-constructor): a literal is the name
    for (size_t i = 0; i < N; ++i) text[i] = literal[i];
  }
};

template <class>
inline constexpr bool kNever = false;  // for static_assert in a template that must not be instantiated

constexpr size_t gcd(size_t a, size_t b) { return b == 0 ? a : gcd(b, a % b); }

// The largest alignment that the DSL tracks, in bytes: that of PTX's widest vector access.
inline constexpr size_t kMaxAlign = 16;

}  // namespace ptxkit::dsl
