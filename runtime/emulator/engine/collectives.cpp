// Warp collectives: shfl, vote, match, redux, elect, bar.warp. PTX ISA 9.0, 9.7.9 and 9.7.13. The lanes may belong to
// several fragments (different instructions, even different calls): operands are gathered from each lane's own frame,
// and results go back there.
#include "runtime/emulator/engine/collectives.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "runtime/emulator/core/float_math.hpp"

namespace ptxkit::emulator {

namespace {

uint8_t* slot(Warp& warp, const Fragment& part, Ref ref) {
  return ref >> 30 == 0 ? part.frame->values + size_t{ref & kRefIndex} * kUnitBytes : at<uint8_t>(warp, ref);
}
uint32_t undefined_of(const Fragment& part, Ref ref) {
  if (!part.frame->undefined) return 0;
  return ref >> 30 == 0 ? part.frame->undefined[ref & kRefIndex] : 0;
}

template <class T>
T element(Warp& warp, const Fragment& part, Ref ref, unsigned lane) {
  T value;
  std::memcpy(&value, slot(warp, part, ref) + lane * sizeof(T), sizeof(T));
  return value;
}

// redux.sync of .f32: +0 is greater than -0. A NaN is ignored without .NaN, unless all values are NaN.
template <bool kMax>
uint32_t reduced_float(const uint64_t* values, uint32_t lanes, uint64_t flags) {
  float all = std::numeric_limits<float>::quiet_NaN();
  bool first = true;
  for_lanes(lanes, [&](unsigned i) {
    float value = scalar::to_f32(static_cast<uint32_t>(values[i]));
    if (flags & kReduxAbs) value = std::fabs(value);
    all = first ? value : extremum<float, kMax>(all, value, flags & kReduxNan);
    first = false;
  });
  return scalar::to_bits(scalar::canonical(all));
}

}  // namespace

void run_collective(Warp& warp, const Code& code, std::span<const Fragment> parts, uint32_t members) {
  const auto kind = static_cast<Collective>(code.sub);
  const ProgramImage& image = *warp.cta->launch->image;
  if (kind == Collective::matrix) {
    Frame* const running = warp.frame;
    uint32_t lanes = 0;
    for (const Fragment& part : parts) lanes |= part.mask;
    for (const Fragment& part : parts)
      if (part.frame != parts.front().frame)
        return report(warp, {.kind = FaultKind::warp_mask,
                             .message = "lanes of the warp reach this instruction from different calls",
                             .lane = static_cast<unsigned>(std::countr_zero(part.mask))});
    bind(warp, parts.front().frame);
    (warp.cta->launch->checked ? code.checked : code.run)(warp, code, lanes);
    bind(warp, running);
    return;
  }
  const bool wide = code.element_bytes == 8;
  uint64_t a[kLanes] = {}, out[kLanes] = {};
  uint32_t b[kLanes] = {}, c[kLanes] = {};
  bool flag[kLanes] = {};  // the second result
  uint32_t lanes = 0, undefined_in = 0, predicate = 0, out_of_group = 0;
  for (const Fragment& part : parts) {
    const Code& own = image.codes[part.pc];
    lanes |= part.mask;
    undefined_in |= undefined_of(part, own.a) & part.mask;
    if (kind == Collective::bar_warp) continue;
    if (kind >= Collective::vote_all && kind <= Collective::vote_ballot) {
      uint32_t bits;
      std::memcpy(&bits, slot(warp, part, own.a), 4);
      predicate |= (bits ^ static_cast<uint32_t>(own.immediate)) & part.mask;
      continue;
    }
    for_lanes(part.mask, [&](unsigned i) {
      a[i] = wide ? element<uint64_t>(warp, part, own.a, i) : element<uint32_t>(warp, part, own.a, i);
      b[i] = element<uint32_t>(warp, part, own.b, i);
      c[i] = element<uint32_t>(warp, part, own.c, i);
    });
  }

  uint32_t undefined_out = 0;
  std::array<uint8_t, kLanes> from{};
  switch (kind) {
    case Collective::bar_warp:
      break;
    case Collective::shuffle_up:
    case Collective::shuffle_down:
    case Collective::shuffle_butterfly:
    case Collective::shuffle_index:
      for_lanes(lanes, [&](unsigned i) {
        const uint32_t amount = b[i] & 31, clamp = c[i] & 31, segment = c[i] >> 8 & 31;
        const auto max_lane = static_cast<int>((i & segment) | (clamp & ~segment));
        const auto min_lane = static_cast<int>(i & segment);
        int source = 0;
        bool inside = false;
        switch (kind) {
          case Collective::shuffle_up:
            source = static_cast<int>(i) - static_cast<int>(amount);
            inside = source >= max_lane;
            break;
          case Collective::shuffle_down:
            source = static_cast<int>(i + amount);
            inside = source <= max_lane;
            break;
          case Collective::shuffle_butterfly:
            source = static_cast<int>(i ^ amount);
            inside = source <= max_lane;
            break;
          default:
            source = min_lane | static_cast<int>(amount & ~segment);
            inside = source <= max_lane;
            break;
        }
        if (!inside) source = static_cast<int>(i);
        if (!(lanes >> source & 1)) {
          out_of_group |= 1u << i;
          source = static_cast<int>(i);
        }
        out[i] = a[source];
        flag[i] = inside;
        from[i] = static_cast<uint8_t>(source);
        if (undefined_in >> source & 1) undefined_out |= 1u << i;
      });
      break;
    case Collective::vote_all:
      for_lanes(lanes, [&](unsigned i) { out[i] = (predicate & lanes) == lanes; });
      break;
    case Collective::vote_any:
      for_lanes(lanes, [&](unsigned i) { out[i] = (predicate & lanes) != 0; });
      break;
    case Collective::vote_uni:
      for_lanes(lanes, [&](unsigned i) { out[i] = (predicate & lanes) == 0 || (predicate & lanes) == lanes; });
      break;
    case Collective::vote_ballot:
      for_lanes(lanes, [&](unsigned i) { out[i] = predicate & lanes; });
      break;
    case Collective::match_any:
      for_lanes(lanes, [&](unsigned i) {
        uint32_t same = 0;
        for_lanes(lanes, [&](unsigned j) { same |= uint32_t{a[j] == a[i]} << j; });
        out[i] = same;
      });
      break;
    case Collective::match_all: {
      bool same = true;
      const uint64_t first = lanes ? a[std::countr_zero(lanes)] : 0;
      for_lanes(lanes, [&](unsigned j) { same &= a[j] == first; });
      for_lanes(lanes, [&](unsigned i) {
        out[i] = same ? lanes : 0;
        flag[i] = same;
      });
      break;
    }
    case Collective::elect:
      for_lanes(lanes, [&](unsigned i) {
        out[i] = static_cast<unsigned>(std::countr_zero(lanes));
        flag[i] = out[i] == i;
      });
      break;
    case Collective::redux_min_f32:
    case Collective::redux_max_f32: {
      const uint32_t all = kind == Collective::redux_max_f32 ? reduced_float<true>(a, lanes, code.immediate)
                                                             : reduced_float<false>(a, lanes, code.immediate);
      for_lanes(lanes, [&](unsigned i) { out[i] = all; });
      break;
    }
    default: {
      uint32_t all = 0;
      bool first = true;
      for_lanes(lanes, [&](unsigned i) {
        auto x = static_cast<uint32_t>(a[i]);
        auto signed_x = static_cast<int32_t>(x), signed_all = static_cast<int32_t>(all);
        if (first)
          all = x;
        else
          switch (kind) {
            case Collective::redux_add:
              all += x;
              break;
            case Collective::redux_min:
              all = code.is_signed ? (signed_x < signed_all ? x : all) : (x < all ? x : all);
              break;
            case Collective::redux_max:
              all = code.is_signed ? (signed_x > signed_all ? x : all) : (x > all ? x : all);
              break;
            case Collective::redux_and:
              all &= x;
              break;
            case Collective::redux_or:
              all |= x;
              break;
            default:
              all ^= x;
          }
        first = false;
      });
      for_lanes(lanes, [&](unsigned i) { out[i] = all; });
    }
  }
  const bool shuffles = kind >= Collective::shuffle_up && kind <= Collective::shuffle_index;
  if (!shuffles && undefined_in && kind != Collective::bar_warp && kind != Collective::elect) undefined_out = lanes;
  if (out_of_group && checks(*warp.cta, kCheckBarriers) && !already_reported(warp, FaultKind::shuffle_source)) {
    auto lane = static_cast<unsigned>(std::countr_zero(out_of_group));
    report(warp, {.kind = FaultKind::shuffle_source,
                  .message = fmt::format(
                      "shuffle reads from a lane outside of the member mask {:#010x} or one that has left", members),
                  .lane = lane});
  }

  const bool to_predicate =
      kind == Collective::vote_all || kind == Collective::vote_any || kind == Collective::vote_uni;
  for (const Fragment& part : parts) {
    const Code& own = image.codes[part.pc];
    if (kind == Collective::bar_warp) continue;
    uint32_t flags = 0;
    for_lanes(part.mask, [&](unsigned i) { flags |= uint32_t{flag[i]} << i; });
    if (to_predicate) {
      uint32_t bits, result = 0;
      for_lanes(part.mask, [&](unsigned i) { result |= static_cast<uint32_t>(out[i] & 1) << i; });
      uint8_t* place = slot(warp, part, own.dst);
      std::memcpy(&bits, place, 4);
      bits = (bits & ~part.mask) | result;
      std::memcpy(place, &bits, 4);
    } else {
      auto* place = reinterpret_cast<uint32_t*>(slot(warp, part, own.dst));
      for_lanes(part.mask, [&](unsigned i) { place[i] = static_cast<uint32_t>(out[i]); });
    }
    auto* second = reinterpret_cast<uint32_t*>(slot(warp, part, own.dst2));
    if (own.dst2 != kSinkRef) *second = (*second & ~part.mask) | flags;
    if (part.frame->undefined) {
      uint32_t& marks = part.frame->undefined[own.dst & kRefIndex];
      marks = (marks & ~part.mask) | (undefined_out & part.mask);
      part.frame->undefined[own.dst2 & kRefIndex] &= ~part.mask;
      if (undefined_out & part.mask) {
        // A shuffle propagates the source's undefined bits; other results are undefined as a whole.
        part.frame->origin[own.dst & kRefIndex] = part.frame->origin[own.a & kRefIndex];
        auto* shadow = reinterpret_cast<uint32_t*>(part.frame->shadow + size_t{own.dst & kRefIndex} * kUnitBytes);
        uint32_t bits[kLanes];
        std::fill(std::begin(bits), std::end(bits), kAllLanes);
        if (shuffles)
          for (const Fragment& other : parts) {
            const Code& theirs = image.codes[other.pc];
            if (theirs.a >> 30) continue;
            auto* plane =
                reinterpret_cast<const uint32_t*>(other.frame->shadow + size_t{theirs.a & kRefIndex} * kUnitBytes);
            for_lanes(part.mask, [&](unsigned i) {
              if (other.mask >> from[i] & 1) bits[i] = plane[from[i]];
            });
          }
        if (!to_predicate) for_lanes(undefined_out & part.mask, [&](unsigned i) { shadow[i] = bits[i]; });
      }
    }
  }
  // All collectives make lanes wait for each other, but only bar.warp.sync orders memory (PTX ISA, bar.warp.sync).
  if (warp.cta->order && kind == Collective::bar_warp) warp.cta->order->barrier_lanes(warp.index, lanes, warp.live);
}

}  // namespace ptxkit::emulator
