// atom and red. Lanes go one after the other, lowest first, so results are the same on every run; between CTAs on
// several threads each operation is one atomic exchange of the host.
#include "runtime/backend/emulator/access.hpp"
#include "runtime/backend/emulator/handlers.hpp"
#include "runtime/backend/emulator/scalar.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;
using ptx::Type;

template <class T>
T host_exchange(uint8_t* bytes, auto&& update) {
  T* place = reinterpret_cast<T*>(bytes);
  T old = __atomic_load_n(place, __ATOMIC_RELAXED);
  for (;;) {
    T next = update(old);
    if (__atomic_compare_exchange_n(place, &old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return old;
  }
}

// T: bits of the element; F(old, b, c) gives the new bits.
template <class T, auto F, bool kChecked>
void atomic(Warp& warp, const Code& code, uint32_t mask) {
  Places places;
  if constexpr (kChecked) {
    if (!locate_checked(warp, code, mask, sizeof(T), AccessKind::atomic, places)) return;
  } else {
    locate_unchecked(warp, code, mask, sizeof(T), places);
  }
  const T* b = at<const T>(warp, code.b);
  const T* c = at<const T>(warp, code.c);
  T* d = at<T>(warp, code.dst);
  const bool alone = warp.cta->launch->options.threads <= 1;
  uint32_t undefined = 0;
  for_lanes(mask, [&](unsigned i) {
    if constexpr (kChecked) {
      if (uint8_t* shadow = places.shadow[i]) {
        bool operand = (undefined_lanes(warp, code.b) | undefined_lanes(warp, code.c)) >> i & 1;
        for (unsigned byte = 0; byte < sizeof(T); ++byte)
          if (shadow[byte] != 0xff) undefined |= 1u << i;
        std::memset(shadow, operand || (undefined >> i & 1 && code.sub == 0) ? 0 : 0xff, sizeof(T));
      }
      if (warp.cta->races && places.shared_offset[i] != kNotShared) {
        note_shared_read(warp, code, i, places.shared_offset[i], sizeof(T));
        note_shared_write(warp, code, i, places.shared_offset[i], sizeof(T));
      }
    }
    T old;
    if (alone || (reinterpret_cast<uintptr_t>(places.bytes[i]) & (sizeof(T) - 1))) {
      std::memcpy(&old, places.bytes[i], sizeof(T));
      T next = static_cast<T>(F(old, b[i], c[i]));
      std::memcpy(places.bytes[i], &next, sizeof(T));
    } else {
      old = host_exchange<T>(places.bytes[i], [&](T value) { return static_cast<T>(F(value, b[i], c[i])); });
    }
    d[i] = old;
  });
  if constexpr (kChecked) {
    undefined_lanes(warp, code.dst) = (undefined_lanes(warp, code.dst) & ~mask) | undefined;
    if (undefined) {
      for_lanes(undefined, [&](unsigned i) { shadow_at<T>(warp, code.dst)[i] = static_cast<T>(~T{0}); });
      unsigned lane = static_cast<unsigned>(std::countr_zero(undefined));
      warp.cta->origins.push_back(
          {warp.pc, static_cast<uint8_t>(lane), static_cast<uint16_t>(warp.index), code.space, places.address[lane]});
      origin_of(warp, code.dst) = static_cast<uint32_t>(warp.cta->origins.size());
    }
  }
}

template <class T, auto F>
void set(Code& code) {
  code.run = atomic<T, F, false>;
  code.checked = atomic<T, F, true>;
}

template <class T>
bool select_bits(Code& code, Mod operation) {
  switch (operation) {
    case Mod::and_:
      set<T, [](T a, T b, T) { return a & b; }>(code);
      return true;
    case Mod::or_:
      set<T, [](T a, T b, T) { return a | b; }>(code);
      return true;
    case Mod::xor_:
      set<T, [](T a, T b, T) { return a ^ b; }>(code);
      return true;
    case Mod::exch:
      set<T, [](T, T b, T) { return b; }>(code);
      return true;
    case Mod::cas:
      set<T, [](T a, T b, T c) { return a == b ? c : a; }>(code);
      return true;
    default:
      return false;
  }
}

template <class T>
bool select_integer(Code& code, Mod operation) {
  using U = std::make_unsigned_t<T>;
  switch (operation) {
    case Mod::add:
      set<U, [](U a, U b, U) { return static_cast<U>(a + b); }>(code);
      return true;
    case Mod::inc:
      set<U, [](U a, U b, U) { return (a >= b) ? U{0} : static_cast<U>(a + 1); }>(code);
      return true;
    case Mod::dec:
      set<U, [](U a, U b, U) { return (a == 0 || a > b) ? b : static_cast<U>(a - 1); }>(code);
      return true;
    case Mod::min:
      set<U, [](U a, U b, U) { return (static_cast<T>(b) < static_cast<T>(a)) ? b : a; }>(code);
      return true;
    case Mod::max:
      set<U, [](U a, U b, U) { return (static_cast<T>(b) > static_cast<T>(a)) ? b : a; }>(code);
      return true;
    default:
      return select_bits<U>(code, operation);
  }
}

}  // namespace

bool select_atomic(Code& code, Mod operation, Type type) {
  code.sub = operation == Mod::exch;  // exch needs no defined old value
  switch (type) {
    case Type::b16:
      return select_bits<uint16_t>(code, operation);
    case Type::b32:
      return select_bits<uint32_t>(code, operation);
    case Type::b64:
      return select_bits<uint64_t>(code, operation);
    case Type::u32:
      return select_integer<uint32_t>(code, operation);
    case Type::s32:
      return select_integer<int32_t>(code, operation);
    case Type::u64:
      return select_integer<uint64_t>(code, operation);
    case Type::s64:
      return select_integer<int64_t>(code, operation);
    case Type::f32:
      if (operation != Mod::add) return false;
      set<uint32_t, [](uint32_t a, uint32_t b, uint32_t) {
        return scalar::to_bits(scalar::canonical(scalar::to_f32(a) + scalar::to_f32(b)));
      }>(code);
      return true;
    case Type::f64:
      if (operation != Mod::add) return false;
      set<uint64_t, [](uint64_t a, uint64_t b, uint64_t) {
        return scalar::to_bits(scalar::canonical(scalar::to_f64(a) + scalar::to_f64(b)));
      }>(code);
      return true;
    case Type::f16:
      if (operation != Mod::add) return false;
      set<uint16_t, [](uint16_t a, uint16_t b, uint16_t) {
        return scalar::f16_bits(double{scalar::f16_value(a)} + scalar::f16_value(b));
      }>(code);
      return true;
    case Type::bf16:
      if (operation != Mod::add) return false;
      set<uint16_t, [](uint16_t a, uint16_t b, uint16_t) {
        return scalar::bf16_bits(double{scalar::bf16_value(a)} + scalar::bf16_value(b));
      }>(code);
      return true;
    default:
      return false;
  }
}

}  // namespace ptxkit::emulator
