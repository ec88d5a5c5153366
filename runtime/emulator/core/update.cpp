// See update.hpp.
#include "runtime/emulator/core/update.hpp"

#include <cstring>

#include "runtime/emulator/core/float_math.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Type;

template <class T>
Update integer(Mod operation) {
  using U = std::make_unsigned_t<T>;
  Update out{.element_bytes = sizeof(T)};
  switch (operation) {
    case Mod::add:
      out.apply = [](uint64_t a, uint64_t b, uint64_t) -> uint64_t { return static_cast<U>(a + b); };
      break;
    case Mod::inc:
      out.apply = [](uint64_t a, uint64_t b, uint64_t) -> uint64_t { return a >= b ? 0 : a + 1; };
      break;
    case Mod::dec:
      out.apply = [](uint64_t a, uint64_t b, uint64_t) -> uint64_t { return a == 0 || a > b ? b : a - 1; };
      break;
    case Mod::min:
      out.apply = [](uint64_t a, uint64_t b, uint64_t) -> uint64_t {
        return static_cast<T>(b) < static_cast<T>(a) ? b : a;
      };
      break;
    case Mod::max:
      out.apply = [](uint64_t a, uint64_t b, uint64_t) -> uint64_t {
        return static_cast<T>(b) > static_cast<T>(a) ? b : a;
      };
      break;
    case Mod::and_:
      out.apply = [](uint64_t a, uint64_t b, uint64_t) { return a & b; };
      break;
    case Mod::or_:
      out.apply = [](uint64_t a, uint64_t b, uint64_t) { return a | b; };
      break;
    case Mod::xor_:
      out.apply = [](uint64_t a, uint64_t b, uint64_t) { return a ^ b; };
      break;
    case Mod::exch:
      out.apply = [](uint64_t, uint64_t b, uint64_t) { return b; };
      break;
    case Mod::cas:
      out.apply = [](uint64_t a, uint64_t b, uint64_t c) { return a == b ? c : a; };
      break;
    default:
      break;
  }
  return out;
}

struct Half {
  static double value(uint16_t bits) { return scalar::f16_value(bits); }
  static uint16_t bits(double value) { return scalar::f16_bits(value); }
};
struct Bfloat {
  static double value(uint16_t bits) { return scalar::bf16_value(bits); }
  static uint16_t bits(double value) { return scalar::bf16_bits(value); }
};

template <class F, Mod kOperation>
uint16_t half_one(uint64_t a, uint64_t b) {
  const double x = F::value(static_cast<uint16_t>(a)), y = F::value(static_cast<uint16_t>(b));
  if constexpr (kOperation == Mod::add) return F::bits(x + y);
  return F::bits(extremum < double, kOperation == Mod::max > (x, y, false));
}

template <class F, Mod kOperation, bool kTwo>
uint64_t half(uint64_t a, uint64_t b, uint64_t) {
  uint64_t out = half_one<F, kOperation>(a, b);
  if constexpr (kTwo) out |= uint64_t{half_one<F, kOperation>(a >> 16, b >> 16)} << 16;
  return out;
}

template <class F, bool kTwo>
Update halves(Mod operation) {
  Update out{.element_bytes = kTwo ? 4 : 2};
  if (operation == Mod::add) out.apply = half<F, Mod::add, kTwo>;
  if (operation == Mod::min) out.apply = half<F, Mod::min, kTwo>;
  if (operation == Mod::max) out.apply = half<F, Mod::max, kTwo>;
  return out;
}

template <bool kFlush>
uint64_t add_single(uint64_t a, uint64_t b, uint64_t) {
  float x = scalar::to_f32(static_cast<uint32_t>(a)), y = scalar::to_f32(static_cast<uint32_t>(b));
  if (kFlush) {
    x = scalar::flush(x);
    y = scalar::flush(y);
  }
  const float sum = scalar::canonical(x + y);
  return scalar::to_bits(kFlush ? scalar::flush(sum) : sum);
}

template <class T>
uint64_t host_exchange(uint8_t* bytes, const Update& update, uint64_t b, uint64_t c) {
  T* place = reinterpret_cast<T*>(bytes);
  T old = __atomic_load_n(place, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(place, &old, static_cast<T>(update.apply(old, b, c)), false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST)) {
  }
  return old;
}

}  // namespace

namespace {

template <bool kOfMemory>
uint64_t add_double(uint64_t a, uint64_t b, uint64_t) {
  const double x = scalar::to_f64(a), y = scalar::to_f64(b), sum = x + y;
  if (sum == sum) return scalar::to_bits(sum);
  if (kOfMemory && y != y) return b;
  if (kOfMemory && x != x) return a;
  return scalar::to_bits(nan_of<Math::add>(y, x, 0));
}

Update operation_of(Mod operation, Type type, Adder adder) {
  switch (type) {
    case Type::b16:
      return integer<uint16_t>(operation);
    case Type::u32:
    case Type::b32:
      return integer<uint32_t>(operation);
    case Type::s32:
      return integer<int32_t>(operation);
    case Type::u64:
    case Type::b64:
      return integer<uint64_t>(operation);
    case Type::s64:
      return integer<int64_t>(operation);
    case Type::f16:
      return halves<Half, false>(operation);
    case Type::f16x2:
      return halves<Half, true>(operation);
    case Type::bf16:
      return halves<Bfloat, false>(operation);
    case Type::bf16x2:
      return halves<Bfloat, true>(operation);
    case Type::f32:
      if (operation != Mod::add) return {};
      return {.apply = adder == Adder::of_memory_flushing ? add_single<true> : add_single<false>, .element_bytes = 4};
    case Type::f64:
      if (operation != Mod::add) return {};
      return {.apply = adder == Adder::of_threads ? add_double<false> : add_double<true>, .element_bytes = 8};
    default:
      return {};
  }
}

}  // namespace

Update find_update(Mod operation, Type type, Adder adder) {
  Update out = operation_of(operation, type, adder);
  out.operation = operation;
  out.is_pair = type == Type::f16x2 || type == Type::bf16x2;
  out.is_floating = out.is_pair || ptx::kind(type) == ptx::TypeKind::floating;
  return out;
}

uint64_t apply_update(const Update& update, uint8_t* place, uint64_t b, uint64_t c, bool alone) {
  const unsigned bytes = update.element_bytes;
  if (!alone && (reinterpret_cast<uintptr_t>(place) & (bytes - 1)) == 0) {
    switch (bytes) {
      case 2:
        return host_exchange<uint16_t>(place, update, b, c);
      case 4:
        return host_exchange<uint32_t>(place, update, b, c);
      default:
        return host_exchange<uint64_t>(place, update, b, c);
    }
  }
  uint64_t old = 0;
  std::memcpy(&old, place, bytes);
  const uint64_t next = update.apply(old, b, c);
  std::memcpy(place, &next, bytes);
  return old;
}

Mod update_operation(std::span<const Mod> words) {
  for (Mod each : words) {
    switch (each) {
      case Mod::and_:
      case Mod::or_:
      case Mod::xor_:
      case Mod::cas:
      case Mod::exch:
      case Mod::add:
      case Mod::inc:
      case Mod::dec:
      case Mod::min:
      case Mod::max:
        return each;
      default:
        break;
    }
  }
  return Mod::unknown;
}

}  // namespace ptxkit::emulator
