// The vocabulary of the DSL: scalar types, rates, state spaces. Everything here is a plain value; nothing depends on
// LLVM.
//
// A rate says how far a value is known to be the same: in the whole CTA (Block), in each warp (Warp), or in no more
// than one thread (Thread). It is part of a value's type, because most bugs of GPU kernels are a value that was thought
// to be uniform and was not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <type_traits>

namespace ptxkit::dsl {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using f32 = float;
using f64 = double;

// A place in the author's C++; it becomes the `.loc` of what is traced there.
using Where = std::source_location;

enum class Rate : u8 { Block, Warp, Thread };

// The rate of a result: an operation is as divergent as its most divergent operand.
constexpr Rate widest(Rate a, Rate b) { return a < b ? b : a; }
template <class... Rates>
constexpr Rate widest(Rate a, Rate b, Rates... more) {
  return widest(widest(a, b), more...);
}
constexpr const char* name_of(Rate rate) {
  return rate == Rate::Block ? "block-uniform" : rate == Rate::Warp ? "warp-uniform" : "lane-varying";
}

// Global and ReadOnly are both PTX's `.global`; ReadOnly promises that nobody writes the memory while the kernel runs,
// so its loads are `ld.global.nc`, they are uniform at uniform addresses, and it has no stores. Addresses are 64 bits
// wide in Global, ReadOnly and Local, 32 bits in Shared.
enum class Space : u8 { Global, ReadOnly, Shared, Local };
using enum Space;

constexpr bool is_wide(Space space) { return space != Space::Shared; }

enum class Scalar : u8 { Pred, U8, U16, U32, U64, I8, I16, I32, I64, F32, F64 };

template <class T>
inline constexpr bool kIsScalar = false;
template <class T>
inline constexpr Scalar kScalarOf = Scalar::Pred;

#define PTXKIT_SCALAR(type, code)               \
  template <>                                   \
  inline constexpr bool kIsScalar<type> = true; \
  template <>                                   \
  inline constexpr Scalar kScalarOf<type> = Scalar::code
PTXKIT_SCALAR(bool, Pred);
PTXKIT_SCALAR(u8, U8);
PTXKIT_SCALAR(u16, U16);
PTXKIT_SCALAR(u32, U32);
PTXKIT_SCALAR(u64, U64);
PTXKIT_SCALAR(i8, I8);
PTXKIT_SCALAR(i16, I16);
PTXKIT_SCALAR(i32, I32);
PTXKIT_SCALAR(i64, I64);
PTXKIT_SCALAR(f32, F32);
PTXKIT_SCALAR(f64, F64);
#undef PTXKIT_SCALAR

constexpr unsigned bits_of(Scalar scalar) {
  switch (scalar) {
    case Scalar::Pred:
      return 1;
    case Scalar::U8:
    case Scalar::I8:
      return 8;
    case Scalar::U16:
    case Scalar::I16:
      return 16;
    case Scalar::U32:
    case Scalar::I32:
    case Scalar::F32:
      return 32;
    case Scalar::U64:
    case Scalar::I64:
    case Scalar::F64:
      return 64;
  }
  return 0;
}
constexpr bool is_float(Scalar scalar) { return scalar == Scalar::F32 || scalar == Scalar::F64; }
constexpr bool is_signed(Scalar scalar) { return scalar >= Scalar::I8 && scalar <= Scalar::I64; }
const char* name_of(Scalar scalar);  // "u32", "pred", ...

template <class T>
concept DeviceScalar = kIsScalar<T>;
template <class T>
concept DeviceInteger = kIsScalar<T> && std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <class T>
concept DeviceNumber = kIsScalar<T> && !std::is_same_v<T, bool>;

// A name as a template argument: Arg<"src", ...>.
template <std::size_t N>
struct Name {
  char text[N];
  consteval Name(const char (&literal)[N]) {  // NOLINT(google-explicit-constructor): a literal is the name
    for (std::size_t i = 0; i < N; ++i) text[i] = literal[i];
  }
};

template <class>
inline constexpr bool kNever = false;  // for static_assert in a template that must not be chosen

constexpr std::size_t gcd(std::size_t a, std::size_t b) { return b == 0 ? a : gcd(b, a % b); }

// The largest alignment that the project's memory can have and that PTX can use: a 16-byte vector access.
inline constexpr std::size_t kMaxAlign = 16;

}  // namespace ptxkit::dsl
