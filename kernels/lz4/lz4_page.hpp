// Match finding of a warp in a page, for lz4_compress_page and lz4_match_page.
//
// The page is in shared memory, with a table of the last position for each hash. All positions of a window are looked
// up, then all are inserted, so no lane waits for another. If several lanes share a slot, an atomic maximum in a
// smaller table determines the one to insert: the lane that finds its own position there.
#pragma once

#include "kernels/lz4/lz4_window.hpp"

namespace ptxkit::kernels {

using Page = dsl::Ptr<dsl::shared, dsl::u8, 16, dsl::Rate::warp>;

// The part of shared memory that belongs to one warp.
struct PageWorkspace {
  Page page;                                                   // kMaxPageBytes
  dsl::Ptr<dsl::shared, dsl::u16, 16, dsl::Rate::warp> table;  // kPageSlots: the last position with a hash, or 0
  // kPageEntrants: the last position that competed to be inserted
  dsl::Ptr<dsl::shared, dsl::u32, 16, dsl::Rate::warp> entrants;
  MatchList matches;  // kWarpLanes
};
inline constexpr uint32_t kPageWorkspaceBytes = kMaxPageBytes + kPageSlots * sizeof(uint16_t) +
                                                kPageEntrants * sizeof(uint32_t) +
                                                dsl::kWarpLanes * 2 * sizeof(uint32_t);

// The workspace of this warp, from arrays of the CTA.
template <uint32_t Warps>
PageWorkspace page_workspace(dsl::Kernel& k) {
  using namespace dsl;
  const auto pages = k.shared<u8, Warps * kMaxPageBytes, 16>("pages");
  const auto tables = k.shared<u16, Warps * kPageSlots, 16>("tables");
  const auto entrants = k.shared<u32, Warps * kPageEntrants, 16>("entrants");
  const auto matches = k.shared<u32, Warps * kWarpLanes * 2, 16>("batch");
  const WarpU32 warp = k.warp();
  return {pages.data().at(times<kMaxPageBytes>(warp)).within(kMaxPageBytes),
          tables.data().at(times<16>(warp * (kPageSlots / 16))).within(kPageSlots),
          entrants.data().at(times<kPageEntrants>(warp)).within(kPageEntrants),
          matches.data().at(times<kWarpLanes * 2>(warp)).within(kWarpLanes * 2)};
}

class PageParser {
 public:
  PageParser(dsl::Kernel& k, const WarpU32& size, const PageWorkspace& workspace)
      : k_(k),
        shared_(workspace),
        start_end_(dsl::select(size < kLastMatchStart, 0, size - (kLastMatchStart - 1))),
        parser_(k, workspace.page, start_end_, size - dsl::min(size, kLastLiterals), workspace.matches) {}

  // Calls batch(count) for the page's matches, in order and at most 32 at a time. They are in the workspace's list.
  template <class Batch>
  void for_each_batch(const Batch& batch) {
    clear_tables();
    WarpVar base(k_, 0);
    k_.warp_loop([&](auto& batches) {
      k_.warp_loop([&](auto& windows) {
        windows.break_if((*base >= start_end_) | (parser_.listed() > dsl::kWarpLanes - Parser::kMaxMatches));
        mark_warp(k_, Mark::parse, *base);
        base = parse_window(*base);
      });
      batches.break_if(parser_.listed() == 0);
      k_.sync_warp();  // the list is visible to all lanes
      batch(parser_.listed());
      parser_.forget_listed();
    });
  }

 private:
  using Parser = WindowParser<Page>;

  void clear_tables() {
    using namespace dsl;
    const LaneU32 zero(k_.constant<u32>(0));
    const auto clear = [&](const Ptr<shared, u32, 16, Rate::warp>& words, u32 count) {
      k_.range(k_.constant<u32>(0), count / (4 * kWarpLanes), 1, [&](const auto& i) {
        words.at(times<4>(i * kWarpLanes + k_.lane())).store_vector(std::array{zero, zero, zero, zero});
      });
    };
    clear(shared_.table.as<u32>(), kPageSlots / 2);
    clear(shared_.entrants, kPageEntrants);
    k_.sync_warp();
  }

  // Looks up the positions of the window at `base`, inserts them, and lists matches. Returns the start of the next
  // window.
  WarpU32 parse_window(const WarpU32& base) {
    using namespace dsl;
    const Parser::Place place = parser_.place_at(base);
    const LaneU32 bucket = mul_hi(place.hash, kPageSlots);
    const auto slot = shared_.table.at(bucket);
    const LaneU32 candidate = parser_.repeated_or(place, zext<u32>(slot.load()));
    const LaneU32 score = parser_.score(place, candidate);

    const auto entrant = shared_.entrants.at(bucket & (kPageEntrants - 1));
    atomic_max(entrant, place.position, Order::relaxed, Scope::cta);
    k_.sync_warp();  // every lane has read its slot and entered its position in `entrants` before any lane inserts
    k_.if_(place.active & (entrant.load() == place.position), [&] { slot.store(trunc<u16>(place.position)); });
    k_.sync_warp();  // insertions are visible to the next window

    const LaneBool stays = Parser::stays(score, shuffle_down(score, 1), shuffle_down(score, 2));
    return parser_.list_matches(base, place.position, candidate, score, stays);
  }

  dsl::Kernel& k_;
  PageWorkspace shared_;
  WarpU32 start_end_;  // no match starts here or later
  Parser parser_;
};

// Copies an item into shared memory, 512 bytes in each iteration. Returns whether all its bytes are zero.
inline WarpBool stage(dsl::Kernel& k, const ItemSource& src, const WarpU32& size, const Page& page) {
  using namespace dsl;
  Var<u32, Rate::thread> seen(k, 0);
  for_each_lane(k, (size + (kStrideUnitBytes - 1)) / kStrideUnitBytes, [&](const LaneU32& i) {
    const auto vector = src.as<u32>().at(times<4>(i)).load_vector<4>();
    page.as<u32>().at(times<4>(i)).store_vector(vector);
    // The last vector may extend past the item, so its bytes are checked below.
    const LaneBool whole = i < size / kStrideUnitBytes;
    seen |= select(whole, vector[0] | vector[1] | vector[2] | vector[3], 0);
  });
  k.sync_warp();
  const WarpU32 tail = size % kStrideUnitBytes;
  const LaneBool in_tail = k.lane() < tail;
  const LaneU32 tail_byte = zext<u32>(page.at(select(in_tail, size - tail + k.lane(), 0)).load());
  return ballot((*seen | select(in_tail, tail_byte, 0)) != 0) == 0;
}

// Writes the block of a staged page, whose matches append(writer) appends. Copies the item if the block is not shorter.
// Sets `flag` and `length`.
template <class Append>
void write_page(dsl::Kernel& k, const ItemSource& src, const WarpU32& size, const ItemRoom& dst, const Page& page,
                WarpVar& flag, WarpVar& length, const Append& append) {
  BlockWriter<Page> writer(k, page, size, dst);
  append(writer);
  writer.finish();
  k.if_(writer.fits(), [&] {
     flag = static_cast<uint32_t>(PageFlag::compressed);
     length = writer.size_bytes();
   }).else_([&] {
    k.sync_warp();  // the lanes' writes to the block are complete before it is overwritten
    copy_raw(k, src, dst, size);
    flag = static_cast<uint32_t>(PageFlag::incompressible);
    length = size;
  });
}

}  // namespace ptxkit::kernels
