// LZ4 compression of pages, one warp a page: the parse of lz4_compress_reference.cpp with a lane for each position of a
// window.
//
// The page lies in shared memory beside a table with the last position of each hash. A window is looked up whole, then
// entered whole, so no lane waits for another. Which of the lanes that share a slot enters it is settled by an atomic
// maximum in a smaller table: the one that finds its own position there. Chosen matches are listed and written by the
// batch.
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_block_writer.hpp"
#include "kernels/lz4/lz4_window.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

using Page = Ptr<Shared, u8, 16, Rate::Warp>;

// A warp's part of shared memory.
struct Workspace {
  Page page;                                  // kMaxPageBytes
  Ptr<Shared, u16, 16, Rate::Warp> table;     // kPageSlots: the last position with a hash; 0 where there is none
  Ptr<Shared, u32, 16, Rate::Warp> entrants;  // kPageEntrants: the last position that was to enter
  MatchList matches;                          // kWarpLanes
};

class PageCompressor {
 public:
  PageCompressor(Kernel& k, const WarpU32& size, const ItemRoom& dst, const Workspace& workspace)
      : k_(k),
        shared_(workspace),
        start_end_(select(size < kLastMatchStart, 0, size - (kLastMatchStart - 1))),
        parser_(k, workspace.page, start_end_, size - min(size, kLastLiterals), workspace.matches),
        writer_(k, workspace.page, size, dst) {}

  // Writes the block; afterwards fits() says whether it is shorter than the page, and size_bytes() its length.
  void compress() {
    clear_tables();
    WarpVar base(k_, 0);
    k_.warp_loop([&](auto& batches) {
      k_.warp_loop([&](auto& windows) {
        windows.break_if((*base >= start_end_) | (parser_.listed() > kWarpLanes - Parser::kMaxMatches));
        mark_warp(k_, Mark::parse, *base);
        base = parse_window(*base);
      });
      batches.break_if(parser_.listed() == 0);
      k_.sync_warp();  // the list is there
      writer_.append(shared_.matches, parser_.listed());
      parser_.forget_listed();
    });
    writer_.finish();
  }

  WarpBool fits() const { return writer_.fits(); }
  WarpU32 size_bytes() const { return writer_.size_bytes(); }

 private:
  using Parser = WindowParser<Page>;

  void clear_tables() {
    const LaneU32 zero(k_.constant<u32>(0));
    const auto clear = [&](const Ptr<Shared, u32, 16, Rate::Warp>& words, u32 count) {
      k_.range(k_.constant<u32>(0), count / (4 * kWarpLanes), 1, [&](const auto& i) {
        words.at(times<4>(i * kWarpLanes + k_.lane())).store_vector(std::array{zero, zero, zero, zero});
      });
    };
    clear(shared_.table.as<u32>(), kPageSlots / 2);
    clear(shared_.entrants, kPageEntrants);
    k_.sync_warp();
  }

  // Looks every position of the window at `base` up, enters them, and lists matches; where the next window starts.
  WarpU32 parse_window(const WarpU32& base) {
    const Parser::Place place = parser_.place_at(base);
    const LaneU32 bucket = mul_hi(place.hash, kPageSlots);
    const auto slot = shared_.table.at(bucket);
    const LaneU32 candidate = parser_.repeated_or(place, zext<u32>(slot.load()));
    const LaneU32 score = parser_.score(place, candidate);

    const auto entrant = shared_.entrants.at(bucket & (kPageEntrants - 1));
    atomic_max(entrant, place.position, Order::Relaxed, Scope::Cta);
    k_.sync_warp();  // every lane has read its slot and named its position before any lane enters
    k_.if_(place.active & (entrant.load() == place.position), [&] { slot.store(trunc<u16>(place.position)); });
    k_.sync_warp();  // what was entered is there for the next window

    return parser_.list_matches(base, place, candidate, score);
  }

  Kernel& k_;
  Workspace shared_;
  WarpU32 start_end_;  // no match starts here or later
  Parser parser_;
  BlockWriter<Page> writer_;
};

// An item that does not shrink: 16 bytes a lane and turn, then what is left.
void copy_raw(Kernel& k, const ItemSource& src, const ItemRoom& dst, const WarpU32& size) {
  const WarpU32 vector_count = size / kStrideUnitBytes;
  for_each_lane(k, vector_count, [&](const LaneU32& i) {
    dst.as<u32>().at(times<4>(i)).store_vector(src.as<u32>().at(times<4>(i)).load_vector<4>());
  });
  const WarpU32 copied = vector_count * kStrideUnitBytes;
  for_each_lane(k, size - copied, [&](const LaneU32& i) { dst.at(copied + i).store(src.at(copied + i).load()); });
}

// Brings an item into shared memory, 512 bytes a turn; whether all of it is zero.
WarpBool stage(Kernel& k, const ItemSource& src, const WarpU32& size, const Page& page) {
  Var<u32, Rate::Thread> seen(k, 0);
  for_each_lane(k, (size + (kStrideUnitBytes - 1)) / kStrideUnitBytes, [&](const LaneU32& i) {
    const auto vector = src.as<u32>().at(times<4>(i)).load_vector<4>();
    page.as<u32>().at(times<4>(i)).store_vector(vector);
    // What follows the item in its last vector is not its own.
    const LaneBool whole = i < size / kStrideUnitBytes;
    seen |= select(whole, vector[0] | vector[1] | vector[2] | vector[3], 0);
  });
  k.sync_warp();
  const WarpU32 tail = size % kStrideUnitBytes;
  const LaneBool in_tail = k.lane() < tail;
  const LaneU32 tail_byte = zext<u32>(page.at(select(in_tail, size - tail + k.lane(), 0)).load());
  return ballot((*seen | select(in_tail, tail_byte, 0)) != 0) == 0;
}

}  // namespace

KernelDefinition lz4_compress_page() {
  constexpr u32 kWarps = kLz4CompressPageShape.items_per_block;
  constexpr u32 kSharedBytes = kWarps * (kMaxPageBytes + kPageSlots * 2 + kPageEntrants * 4 + kWarpLanes * 8);
  return define(
      KernelSpec{.name = std::string(kLz4CompressPage),
                 .block = kLz4CompressPageShape.block_threads,
                 .budget = {.registers = 64, .shared_bytes = kSharedBytes, .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kWarpLanes} / kMaxPageBytes,
                          .buffers = {{"src", N},
                                      {"dst", N},
                                      {"src_sizes", N / (kMaxPageBytes / 4)},
                                      {"dst_sizes", N / (kMaxPageBytes / 4)},
                                      {"flags", N / kMaxPageBytes}},
                          .note = "one warp an item"}},
      [](Kernel& k, Arg<"src", Ptr<ReadOnly, u8, kStrideUnitBytes>> src, Arg<"src_sizes", Ptr<ReadOnly, u32>> src_sizes,
         Arg<"dst", Ptr<Global, u8, kStrideUnitBytes>> dst, Arg<"dst_sizes", Ptr<Global, u32>> dst_sizes,
         Arg<"flags", Ptr<Global, u8>> flags, Arg<"src_stride_16", u32> src_stride_16,
         Arg<"dst_stride_16", u32> dst_stride_16, Arg<"item_count", u32> item_count) {
        const auto pages = k.shared<u8, kWarps * kMaxPageBytes, 16>("pages");
        const auto tables = k.shared<u16, kWarps * kPageSlots, 16>("tables");
        const auto entrants = k.shared<u32, kWarps * kPageEntrants, 16>("entrants");
        const auto matches = k.shared<u32, kWarps * kWarpLanes * 2, 16>("matches");
        const WarpU32 item = item_of_warp<kLz4CompressPageShape>(k, item_count);
        const WarpU32 warp = k.warp();
        const Workspace workspace{pages.data().at(times<kMaxPageBytes>(warp)).within(kMaxPageBytes),
                                  tables.data().at(times<16>(warp * (kPageSlots / 16))).within(kPageSlots),
                                  entrants.data().at(times<kPageEntrants>(warp)).within(kPageEntrants),
                                  matches.data().at(times<kWarpLanes * 2>(warp)).within(kWarpLanes * 2)};
        const auto src_begin = at_item(src, item, src_stride_16);
        const auto dst_begin = at_item(dst, item, dst_stride_16);
        const WarpU32 size = src_sizes.within(item_count).at(item).load();
        const ItemSource item_src = src_begin.template within<kStrideUnitBytes>(size);
        const ItemRoom item_dst = dst_begin.within(size);
        mark_warp(k, Mark::item, size);

        WarpVar flag(k, static_cast<u32>(PageFlag::refused)), length(k, 0);
        k.if_((size <= kMaxPageBytes) & fits_stride(size, src_stride_16) & fits_stride(size, dst_stride_16), [&] {
          k.if_(stage(k, item_src, size, workspace.page), [&] { flag = static_cast<u32>(PageFlag::zero); }).else_([&] {
            PageCompressor compressor(k, size, item_dst, workspace);
            compressor.compress();
            k.if_(compressor.fits(), [&] {
               flag = static_cast<u32>(PageFlag::compressed);
               length = compressor.size_bytes();
             }).else_([&] {
              k.sync_warp();  // what other lanes wrote of the block is there before it is overwritten
              copy_raw(k, item_src, item_dst, size);
              flag = static_cast<u32>(PageFlag::incompressible);
              length = size;
            });
          });
        });
        mark_warp(k, Mark::status, *flag);
        k.once_per_warp([&] {
          flags.within(item_count).at(item).store(trunc<u8>(*flag));
          dst_sizes.within(item_count).at(item).store(*length);
        });
      });
}

}  // namespace ptxkit::kernels
