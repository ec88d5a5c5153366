// Move-to-front coding, with a stretch of the column for each warp of a CTA.
//
// To encode, a warp needs the list at the beginning of its stretch: the bytes that have occurred, ordered by their last
// occurrence, then the others in their initial order. To decode, a warp starts with a list of list positions. Decoding
// then yields its stretch and its final list as positions in its first list; composing the final lists of the warps in
// order yields the first lists. In both cases a warp then walks its stretch with the list in registers, eight bytes in
// each lane.
#include <string_view>

#include "kernels/abi.hpp"
#include "kernels/bwt/abi.hpp"
#include "kernels/bwt/bwt_item.hpp"
#include "kernels/bwt/cta_list.hpp"
#include "kernels/kernels.hpp"
#include "kernels/transform.hpp"
#include "kernels/transform_abi.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;
using Stretches = CtaStretches<kColumnThreads>;

constexpr u32 kWarps = Stretches::kWarps, kBytes = 256, kBytesOfLane = kBytes / kWarpLanes;

// A warp's list.
class FrontList {
 public:
  // Loads the warp's 256 bytes from shared memory.
  FrontList(Kernel& k, const Ptr<shared, u8, 8, Rate::warp>& bytes)
      : k_(k),
        low_(k, words_of(bytes).at(k.lane() * 2).load()),
        high_(k, words_of(bytes).at(k.lane() * 2 + 1).load()) {}

  void store(const Ptr<shared, u8, 8, Rate::warp>& bytes) {
    words_of(bytes).at(k_.lane() * 2).store(*low_);
    words_of(bytes).at(k_.lane() * 2 + 1).store(*high_);
  }

  WarpU32 place_of(const WarpU32& byte) {
    const LaneU32 in_low = zero_bytes(*low_ ^ byte * 0x01010101), in_high = zero_bytes(*high_ ^ byte * 0x01010101);
    const LaneU32 place = k_.lane() * kBytesOfLane + select(in_low != 0, ctz(in_low) / 8, 4 + ctz(in_high) / 8);
    return shuffle(place, ctz(ballot((in_low | in_high) != 0)) & (kWarpLanes - 1));
  }

  WarpU32 byte_at(const WarpU32& place) {
    const LaneU32 word = select((place & 4) == 0, *low_, *high_);
    return shuffle(word >> ((place & 3) * 8), place / kBytesOfLane) & 0xFF;
  }

  // Moves `byte`, which is at `place`, to the front.
  void move(const WarpU32& byte, const WarpU32& place) {
    const LaneU32 begin = k_.lane() * kBytesOfLane;
    const LaneU32 moved = min(max(place + 1, begin) - begin, kBytesOfLane);
    const LaneU32 moved_low = min(moved, 4);
    const LaneU32 before = shuffle_up(*high_, 1) >> 24;
    const LaneU32 first = select(k_.lane() == 0, byte, before);
    const LaneU32 low = *low_ << 8 | first, high = *high_ << 8 | *low_ >> 24;
    low_ = choose(shift_left(1, moved_low * 8) - 1, low, *low_);
    high_ = choose(shift_left(1, (moved - moved_low) * 8) - 1, high, *high_);
  }

 private:
  static Ptr<shared, u32, 8, Rate::warp> words_of(const Ptr<shared, u8, 8, Rate::warp>& bytes) {
    return bytes.as<u32>();
  }
  // The lowest bit that is set marks the first zero byte. Higher bits may be wrong.
  static LaneU32 zero_bytes(const LaneU32& word) { return (word - 0x01010101) & ~word & 0x80808080; }
  static LaneU32 choose(const LaneU32& mask, const LaneU32& a, const LaneU32& b) { return (a & mask) | (b & ~mask); }

  Kernel& k_;
  LaneVar low_, high_;
};

// Calls code(byte of the source) for the bytes of the warp's stretch in order and stores the results. Both bytes are
// warp-uniform.
template <class Code>
void code_stretch(const ColumnItem& item, Stretches& stretches, const Code& code) {
  Kernel& k = item.k;
  stretches.for_stretch(item.src_size, [&](const WarpU32& base, const LaneU32& i, const LaneBool& inside) {
    mark_warp(k, Mark::parse, base);
    const LaneU32 bytes = zext<u32>(item.src.at(i).load());
    LaneVar coded(k, 0);
    k.range(k.constant<u32>(0), popc(ballot(inside)), 1, [&](const WarpU32& lane) {
      const WarpU32 result = code(shuffle(bytes, lane));
      coded = select(k.lane() == lane, result, *coded);
    });
    k.if_(inside, [&] { item.dst.at(i).store(trunc<u8>(*coded)); });
  });
}

// Stores, for every warp and byte, one more than the position of the byte's last occurrence before the warp's stretch;
// 0 if there is none.
void last_places(const ColumnItem& item, Stretches& stretches, const SharedWords& last) {
  Kernel& k = item.k;
  k.range(k.constant<u32>(0), kWarps * kBytes, kColumnThreads,
          [&](const BlockU32& first) { last.at(first + k.thread()).store(k.constant<u32>(0)); });
  k.barrier();
  const auto mine = last.at(k.warp() * kBytes);
  stretches.for_stretch(item.src_size, [&](const WarpU32&, const LaneU32& i, const LaneBool& inside) {
    const LaneU32 byte = zext<u32>(item.src.at(i).load());
    const LaneU32 same = match_any(select(inside, byte, kBytes));
    k.if_(inside & ((same >> k.lane()) == 1), [&] { mine.at(byte).store(i + 1); });
    k.sync_warp();
  });
  k.barrier();
  k.if_(k.thread() < kBytes, [&] {
    LaneVar before(k, 0);
    k.range(k.constant<u32>(0), kWarps, 1, [&](const BlockU32& warp) {
      const auto place = last.at(k.thread() + warp * kBytes);
      const LaneU32 here = place.load();
      place.store(*before);
      before = max(*before, here);
    });
  });
  k.barrier();
}

// Writes a warp's list from the last occurrences: the bytes that have occurred, the latest first, then the others.
void write_list(Kernel& k, const SharedWords& last, const Ptr<shared, u8, 8, Rate::warp>& list) {
  const auto byte_of = [&](auto i) { return k.lane() + k.constant(u32{i} * kWarpLanes); };
  const auto place_of = [&](auto i) { return last.at(k.warp() * kBytes + byte_of(i)); };
  WarpVar occurred(k, 0);
  unrolled<kBytesOfLane>([&](auto i) { occurred += popc(ballot(place_of(i).load() != 0)); });
  WarpVar behind(k, *occurred);
  unrolled<kBytesOfLane>([&](auto i) {
    const LaneBool is_behind = place_of(i).load() == 0;
    const WarpU32 lanes = ballot(is_behind);
    k.if_(is_behind, [&] { list.at(*behind + popc(lanes & k.lanes_below())).store(trunc<u8>(byte_of(i))); });
    behind += popc(lanes);
  });
  k.range(k.constant<u32>(0), *occurred, 1, [&](const WarpU32& front) {
    LaneVar latest(k, 0), byte(k, 0);
    unrolled<kBytesOfLane>([&](auto i) {
      const LaneU32 place = place_of(i).load();
      byte = select(place > *latest, byte_of(i), *byte);
      latest = max(place, *latest);
    });
    k.if_(*latest == reduce_max(*latest), [&] {  // true in one lane, since no two bytes have the same position
      list.at(front).store(trunc<u8>(*byte));
      last.at(k.warp() * kBytes + *byte).store(k.constant<u32>(0));
    });
    k.sync_warp();
  });
}

void encode(const ColumnItem& item) {
  Kernel& k = item.k;
  Stretches stretches(k);
  const SharedWords last = k.shared<u32, kWarps * kBytes, 16>("last").data();
  const auto list = k.shared<u8, kWarps * kBytes, 16>("lists").data().at(times<kBytes>(k.warp()));
  last_places(item, stretches, last);
  write_list(k, last, list);
  k.sync_warp();
  FrontList front(k, list);
  code_stretch(item, stretches, [&](const WarpU32& byte) {
    const WarpU32 place = front.place_of(byte);
    k.if_(place != 0, [&] { front.move(byte, place); });
    return place;
  });
}

void decode(const ColumnItem& item) {
  Kernel& k = item.k;
  Stretches stretches(k);
  const auto lasts = k.shared<u8, kWarps * kBytes, 16>("lasts").data();
  const auto firsts = k.shared<u8, kWarps * kBytes, 16>("firsts").data();
  const auto last = lasts.at(times<kBytes>(k.warp())), first = firsts.at(times<kBytes>(k.warp()));
  unrolled<kBytesOfLane>([&](auto i) {
    const LaneU32 place = k.lane() + k.constant(i * kWarpLanes);
    last.at(place).store(trunc<u8>(place));
    first.at(place).store(trunc<u8>(place));  // the list of the first warp
  });
  k.sync_warp();
  FrontList front(k, last);
  code_stretch(item, stretches, [&](const WarpU32& place) {
    const WarpU32 byte = front.byte_at(place);
    k.if_(place != 0, [&] { front.move(byte, place); });
    return byte;
  });
  front.store(last);
  k.range(k.constant<u32>(1), kWarps, 1, [&](const BlockU32& warp) {
    k.barrier();
    k.if_(k.thread() < kBytes, [&] {
      const auto before = firsts.at((warp - 1) * kBytes), now = firsts.at(warp * kBytes);
      const LaneU32 place = zext<u32>(lasts.at((warp - 1) * kBytes + k.thread()).load());
      now.at(k.thread()).store(before.at(place).load());
    });
  });
  k.barrier();
  stretches.for_stretch(item.src_size, [&](const WarpU32&, const LaneU32& i, const LaneBool& inside) {
    k.if_(inside, [&] { item.dst.at(i).store(first.at(zext<u32>(item.dst.at(i).load())).load()); });
  });
}

KernelDefinition define_mtf(std::string_view name, u32 shared_bytes, void (*code)(const ColumnItem&),
                            Where where = Where::current()) {
  return define_column(
      name, {{"src", N}, {"dst", N}}, shared_bytes,
      [code](const ColumnItem& item) {
        const Expr<bool, Rate::block> too_large = item.src_size > kMaxBwtBytes;
        const Expr<bool, Rate::block> too_long = item.src_size > item.capacity;
        item.k.if_((!too_large) & (!too_long), [&] { code(item); });
        const auto status = [&](StreamStatus value) { return status_value(item.k, value); };
        return CtaOutcome{select(too_large, status(StreamStatus::item_too_large),
                                 select(too_long, status(StreamStatus::output_overrun), status(StreamStatus::ok))),
                          item.src_size};
      },
      where);
}

}  // namespace

KernelDefinition mtf_encode() { return define_mtf(kMtfEncode, 5 * kWarps * kBytes, encode); }
KernelDefinition mtf_decode() { return define_mtf(kMtfDecode, 2 * kWarps * kBytes, decode); }

}  // namespace ptxkit::kernels
