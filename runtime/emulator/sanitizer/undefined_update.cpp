// See undefined_update.hpp.
#include "runtime/emulator/sanitizer/undefined_update.hpp"

#include <bit>

#include <fmt/format.h>

#include "runtime/emulator/core/state.hpp"
#include "runtime/emulator/sanitizer/undefined_output.hpp"

namespace ptxkit::emulator {

namespace {

using ptx::Mod;

uint64_t ones(unsigned bytes) { return bytes >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * bytes) - 1; }

// Sets all bits of each byte in which `bits` has one.
uint64_t whole_bytes(uint64_t bits) {
  uint64_t mask = 0;
  for (unsigned i = 0; i < 64; i += 8) mask |= (bits >> i & 0xff) != 0 ? uint64_t{0xff} << i : 0;
  return mask;
}

// An update of one number. An undefined bit makes all higher bits of an integer sum undefined (carries), and all bits
// of any other result. Adding 0 is no use.
UndefinedUpdate number(const Update& update, uint64_t operand, uint64_t u_old, uint64_t u_operand, uint64_t all) {
  const uint64_t u = u_old | u_operand;
  if (update.operation == Mod::add && !update.is_floating)
    return {(u | (uint64_t{0} - u)) & all, (u_old & (operand | (uint64_t{0} - operand))) != 0};
  const bool adds_nothing = update.operation == Mod::add && !u_operand && (operand & all >> 1) == 0;
  return {u ? all : 0, u_old != 0 && !adds_nothing};
}

}  // namespace

UndefinedUpdate undefined_update(const Update& update, const UpdateBits& values, const UpdateBits& undefined) {
  const uint64_t all = ones(update.element_bytes), u_old = undefined.old & all, u_b = undefined.b & all,
                 u = u_old | u_b;
  switch (update.operation) {
    case Mod::exch:
      return {u_b};
    case Mod::cas: {
      if ((values.old ^ values.b) & all & ~u) return {u_old};
      if (u) return {all, u_old != 0};
      return {undefined.c & all};
    }
    case Mod::and_: {
      const uint64_t bits = u & (values.old | u_old) & (values.b | u_b);
      return {bits, (bits & u_old & whole_bytes(~values.b & all)) != 0};
    }
    case Mod::or_: {
      const uint64_t bits = u & (~values.old | u_old) & (~values.b | u_b);
      return {bits, (bits & u_old & whole_bytes(values.b & all)) != 0};
    }
    case Mod::xor_:
      return {u, (u_old & whole_bytes(values.b & all)) != 0};
    default:
      break;
  }
  if (!update.is_pair) return number(update, values.b & all, u_old, u_b, all);
  const UndefinedUpdate low = number(update, values.b & 0xffff, u_old & 0xffff, u_b & 0xffff, 0xffff),
                        high = number(update, values.b >> 16 & 0xffff, u_old >> 16, u_b >> 16, 0xffff);
  return {low.bits | high.bits << 16, low.decides || high.decides};
}

uint64_t undefined_bits(const uint8_t* shadow, unsigned bytes) {
  uint64_t defined = 0;
  std::memcpy(&defined, shadow, bytes);
  return ~defined & ones(bytes);
}

void report_undefined_update(Warp& warp, const UpdatedElement& where, unsigned bytes) {
  if (!checks(*warp.cta, kCheckUninitialised)) return;
  const FaultKind kind =
      where.space == ptx::Space::shared ? FaultKind::uninitialised_shared : FaultKind::uninitialised_atomic;
  if (already_reported(warp, kind)) return;
  report(warp, {.kind = kind,
                .message = fmt::format("{}-byte update at {:#x}{} of memory that has never been written", bytes,
                                       where.address, where.space == ptx::Space::shared ? " of .shared" : ""),
                .lane = where.lane,
                .has_address = true,
                .space = where.space,
                .address = where.address,
                .access_bytes = bytes});
}

uint64_t note_undefined_update(Warp& warp, const Update& update, const UpdateBits& values, UpdateBits undefined,
                               uint8_t* shadow, const UpdatedElement& where) {
  undefined.old = undefined_bits(shadow, update.element_bytes);
  if (!(undefined.old | undefined.b | undefined.c)) return 0;
  const UndefinedUpdate after = undefined_update(update, values, undefined);
  if (after.decides) report_undefined_update(warp, where, update.element_bytes);
  const uint64_t defined = after.decides ? ~uint64_t{0} : ~after.bits;
  std::memcpy(shadow, &defined, update.element_bytes);
  if (where.space == ptx::Space::global) note_output(warp, where.lane, shadow, update.element_bytes, nullptr);
  return after.decides ? 0 : undefined.old;
}

}  // namespace ptxkit::emulator
