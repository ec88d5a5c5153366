// Propagation of undefined bits through registers. Every slot has a word of the lanes in which it holds any undefined
// bit, and a shadow plane with the bits themselves (1 = undefined). The engine calls this only if a source of an
// instruction has such a lane, so a program without undefined bits pays one OR per instruction.
//
// Single bits matter because compilers read more than they need: an aligned word at the end of a buffer, then a shift
// and a mask. Only a use that decides something (an address, a branch) is reported, by report_undefined.
#include "runtime/emulator/sanitizer/undefined.hpp"

#include <algorithm>

#include "runtime/emulator/core/logic.hpp"

namespace ptxkit::emulator {

namespace {

uint64_t read(const uint8_t* plane, unsigned lane, unsigned lane_bytes) {
  uint64_t value = 0;
  std::memcpy(&value, plane + size_t{lane} * lane_bytes, lane_bytes);
  return value;
}

struct Tracker {
  Warp& warp;
  const Code& code;
  unsigned lane;

  bool marked(Ref ref) const { return undefined_lanes(warp, ref) >> lane & 1; }
  uint64_t value(Ref ref, unsigned bytes) const { return read(at<uint8_t>(warp, ref), lane, bytes); }
  uint64_t bits(Ref ref, unsigned bytes) const {
    return marked(ref) ? read(shadow_at<uint8_t>(warp, ref), lane, bytes) : 0;
  }
};

uint64_t ones(unsigned bytes) { return bytes >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * bytes) - 1; }

int64_t sign_extend(uint64_t value, unsigned bytes) {
  unsigned up = 64 - 8 * bytes;
  return static_cast<int64_t>(value << up) >> up;
}

// The undefined bits of the result of one lane.
uint64_t result_bits(const Tracker& t) {
  const Code& code = t.code;
  const unsigned n = code.element_bytes;
  const uint64_t all = ones(n);
  auto a = [&] { return t.bits(code.a, n); };
  auto b = [&] { return t.bits(code.b, n); };
  switch (code.undefined) {
    case Undefined::copy:
      return a();
    case Undefined::bit_xor:
      return a() | b();
    case Undefined::bit_and: {
      uint64_t ua = a(), ub = b(), va = t.value(code.a, n) | ua, vb = t.value(code.b, n) | ub;
      return (ua | ub) & va & vb;
    }
    case Undefined::bit_or: {
      uint64_t ua = a(), ub = b(), va = t.value(code.a, n) & ~ua, vb = t.value(code.b, n) & ~ub;
      return (ua | ub) & ~va & ~vb & all;
    }
    case Undefined::carry: {
      uint64_t u = a() | b() | (code.c != kZeroRef ? t.bits(code.c, n) : 0);
      return (u | (uint64_t{0} - u)) & all;
    }
    case Undefined::shift_left:
    case Undefined::shift_right: {
      if (t.marked(code.b)) return all;
      uint64_t count = t.value(code.b, 4);
      if (code.undefined == Undefined::shift_left) return count < 8 * n ? (a() << count) & all : 0;
      if (code.is_signed)
        return static_cast<uint64_t>(sign_extend(a(), n) >> std::min<uint64_t>(count, 8 * n - 1)) & all;
      return count < 8 * n ? a() >> count : 0;
    }
    case Undefined::select: {
      if (t.marked(code.c))
        return t.value(code.a, n) == t.value(code.b, n) && !t.marked(code.a) && !t.marked(code.b) ? 0 : all;
      bool first = ((*at<uint32_t>(t.warp, code.c) ^ static_cast<uint32_t>(code.immediate)) >> t.lane & 1) != 0;
      return first ? a() : b();
    }
    case Undefined::byte_permute:
      if (t.marked(code.c)) return all;
      return permute_value(static_cast<uint32_t>(a()), static_cast<uint32_t>(b()),
                           permute_selector(static_cast<uint32_t>(t.value(code.c, 4)), code.sub), code.sub == 0);
    case Undefined::funnel_left:
    case Undefined::funnel_right: {
      if (t.marked(code.c)) return all;
      auto count = static_cast<uint32_t>(t.value(code.c, 4));
      count = code.sub ? count & 31 : std::min(count, 32u);
      uint64_t both = b() << 32 | a();
      return (code.undefined == Undefined::funnel_left ? (both << count) >> 32 : both >> count) & all;
    }
    case Undefined::extract: {
      if (t.marked(code.b) || t.marked(code.c)) return all;
      const uint64_t counts = n == 8 ? 0xffffffff : 0xff;
      uint64_t position = t.value(code.b, 4) & counts, length = t.value(code.c, 4) & counts;
      if (length == 0) return 0;
      uint64_t u = position < 8 * n ? a() >> position : 0;
      uint64_t field = length >= 64 ? ~uint64_t{0} : (uint64_t{1} << length) - 1;
      uint64_t sign_at = std::min<uint64_t>(position + length - 1, 8 * n - 1);
      u &= field;
      if (code.is_signed && (a() >> sign_at & 1)) u |= ~field | (position < 8 * n ? ~(all >> position) : all);
      return u & all;
    }
    case Undefined::insert: {
      if (t.marked(code.c) || t.marked(code.d)) return all;
      const uint64_t counts = n == 8 ? 0xffffffff : 0xff;
      uint64_t position = t.value(code.c, 4) & counts, length = t.value(code.d, 4) & counts;
      if (position >= 8 * n || length == 0) return b();
      uint64_t field = (length >= 64 ? ~uint64_t{0} : (uint64_t{1} << length) - 1) << position;
      return ((b() & ~field) | ((a() << position) & field)) & all;
    }
    case Undefined::convert: {
      uint64_t u = t.bits(code.a, code.source_bytes);
      unsigned from = ptx::byte_width(static_cast<ptx::Type>(code.target)),
               to = ptx::byte_width(static_cast<ptx::Type>(code.list));
      u &= ones(from);
      if (code.is_signed) u = static_cast<uint64_t>(sign_extend(u, from));
      u &= ones(to);
      if (ptx::kind(static_cast<ptx::Type>(code.list)) == ptx::TypeKind::signed_int)
        u = static_cast<uint64_t>(sign_extend(u, to));
      return u & ones(code.register_bytes);
    }
    default:
      return all;
  }
}

// The lanes whose resulting predicate is undefined.
uint32_t predicate_lanes(Warp& warp, const Code& code) {
  uint32_t ua = undefined_lanes(warp, code.a), ub = undefined_lanes(warp, code.b);
  if (code.undefined == Undefined::compare) {
    uint32_t test = ua | ub, uc = undefined_lanes(warp, code.c);
    uint32_t c = *at<uint32_t>(warp, code.c) ^ static_cast<uint32_t>(code.immediate);
    if (code.sub == 1) return uc | (test & c);
    if (code.sub == 2) return uc | (test & ~c);
    return test | (code.sub ? uc : 0);
  }
  uint32_t a = *at<uint32_t>(warp, code.a) ^ static_cast<uint32_t>(code.immediate);
  uint32_t b = *at<uint32_t>(warp, code.b) ^ (code.register_bytes ? kAllLanes : 0u);
  if (code.sub == 1) return (ua | ub) & (a | ua) & (b | ub);
  if (code.sub == 2) return (ua | ub) & (~a | ua) & (~b | ub);
  return ua | ub;
}

// Whether the result only consists of moved bits of the sources.
bool only_moves(Undefined how) {
  switch (how) {
    case Undefined::any:
    case Undefined::carry:
    case Undefined::compare:
      return false;
    default:
      return true;
  }
}

// Returns the origin of the first undefined source. A register that was never written gets one here, which keeps its
// name.
uint32_t inherit_origin(Warp& warp, const Code& code, uint32_t mask) {
  for (Ref ref : {code.a, code.b, code.c, code.d}) {
    if (!(undefined_lanes(warp, ref) & mask)) continue;
    uint32_t origin = origin_of(warp, ref);
    if (origin == 0) {
      Cta& cta = *warp.cta;
      auto lane = static_cast<uint8_t>(std::countr_zero(undefined_lanes(warp, ref) & mask));
      origin = add_origin(cta, {warp.pc, lane, static_cast<uint16_t>(warp.index), ptx::Space::reg, ref});
      if (origin == 0) return 0;
    }
    const Origin* const from = find_origin(*warp.cta, origin);
    if (from && !only_moves(code.undefined) && !from->computed) {
      Origin computed = *from;
      computed.computed = true;
      origin = add_origin(*warp.cta, computed);
    }
    return origin;
  }
  return 0;
}

}  // namespace

void propagate_undefined(Warp& warp, const Code& code, uint32_t mask) {
  if (code.undefined == Undefined::predicate || code.undefined == Undefined::compare) {
    uint32_t lanes = predicate_lanes(warp, code) & mask;
    uint32_t origin = inherit_origin(warp, code, mask);
    for (Ref dst : {code.dst, code.dst2}) {
      undefined_lanes(warp, dst) = (undefined_lanes(warp, dst) & ~mask) | lanes;
      if (lanes) origin_of(warp, dst) = origin;
    }
    return;
  }
  uint32_t candidates = (undefined_lanes(warp, code.a) | undefined_lanes(warp, code.b) | undefined_lanes(warp, code.c) |
                         undefined_lanes(warp, code.d)) &
                        mask;
  uint32_t lanes = 0;
  uint64_t bits[kLanes];
  for_lanes(candidates, [&](unsigned lane) {
    bits[lane] = result_bits({warp, code, lane});
    if (bits[lane]) lanes |= 1u << lane;
  });
  uint32_t origin = lanes ? inherit_origin(warp, code, mask) : 0;
  undefined_lanes(warp, code.dst) = (undefined_lanes(warp, code.dst) & ~mask) | lanes;
  undefined_lanes(warp, code.dst2) &= ~mask;
  if (!lanes) return;
  origin_of(warp, code.dst) = origin;
  const unsigned width = code.undefined == Undefined::convert ? code.register_bytes : code.element_bytes;
  for_lanes(lanes, [&](unsigned lane) {
    if (width) std::memcpy(shadow_at<uint8_t>(warp, code.dst) + size_t{lane} * width, &bits[lane], std::min(width, 8u));
  });
}

}  // namespace ptxkit::emulator
