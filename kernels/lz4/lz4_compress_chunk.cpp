// LZ4 compression of chunks, one CTA a chunk: the parse of lz4_compress_reference.cpp with a warp for each segment of a
// tile.
//
// All positions of a tile are looked up in the table, then entered, then looked up again: what the tile itself has to
// offer comes from the second look. An atomic maximum keeps the first position of the last tile, whatever the order, so
// the warps need nothing of each other but the barriers between these steps. Then each warp parses its segment.
//
// The block is stitched together in two steps. Each warp tells what its first and last match are; a match that goes on
// where the segment before ended is one with that, so a warp does not know the end of its last match. It leaves that to
// the next warp which has a match of its own, and writes instead the one that was left to it. Sizes come before bytes,
// as they say where each warp writes.
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_block_writer.hpp"
#include "kernels/lz4/lz4_window.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

constexpr u32 kThreads = kLz4CompressChunkShape.block_threads, kWarps = kThreads / kWarpLanes;
constexpr u32 kSlots = 1u << kChunkHashBits;
static_assert(kWarps * kChunkSegment == kChunkTile);

// A warp's list: an entry for the match that was left to it, then room for as many as fit into a segment. What the
// segment's positions found at their first look lies in that room too, and is read before a match takes its place.
constexpr u32 kListWords = 4 + 2 * kChunkSegment / kMinMatch;
static_assert(kChunkSegment * sizeof(u16) == 2 * kChunkSegment / kMinMatch * sizeof(u32));

constexpr u32 kRecordWords = kWarpLanes;

struct Workspace {
  Ptr<Shared, u32, 16> table;                   // kSlots entries, see chunk_entry
  Ptr<Shared, u16, 16, Rate::Warp> candidates;  // of the warp's segment
  MatchList matches;                            // in the same memory, and one before it
  Ptr<Shared, u32, 16> records;                 // kRecordWords a warp
  Ptr<Shared, u32, 16> sizes;                   // one a warp
};

class ChunkCompressor {
 public:
  using BlockU32 = Expr<u32, Rate::Block>;

  ChunkCompressor(Kernel& k, const ItemSource& src, const BlockU32& size, const ItemRoom& dst,
                  const Workspace& workspace)
      : k_(k),
        src_(src),
        size_(size),
        shared_(workspace),
        start_end_(select(size < kLastMatchStart, 0, size - (kLastMatchStart - 1))),
        match_end_(size - min(size, kLastLiterals)),
        writer_(k, src, size, dst),
        written_(k, 0),
        left_{WarpVar(k, 0), WarpVar(k, 0), WarpVar(k, 0), WarpVar(k, 0)} {}

  // Writes the block. Barriers stand in it, so all warps come here, also where `needless` says that there is nothing to
  // do. Afterwards fits() says whether the block is shorter than the chunk, and size_bytes() its length.
  void compress(const WarpBool& needless) {
    k_.range(0, size_, kChunkTile, [&](const auto& tile) {
      const WarpU32 begin = tile + k_.warp() * kChunkSegment;
      const WarpBool busy = (begin < start_end_) & !needless;
      k_.if_(busy, [&] { look_up(begin); });
      k_.barrier();
      k_.if_(busy, [&] { enter(begin); });
      k_.barrier();
      WarpVar listed(k_, 0);
      k_.if_(busy, [&] { listed = parse_segment(begin); });
      publish_record(*listed);
      k_.barrier();
      const Share share = share_of(tile);
      write_share(
          share, [&](const WarpU32& at, const WarpU32& count) { writer_.skip(list_from(at), count); },
          k_.constant<u32>(0));
      k_.once_per_warp([&] { shared_.sizes.at(k_.warp()).store(writer_.size_bytes()); });
      k_.barrier();
      const LaneU32 warp_size = select(k_.lane() < kWarps, shared_.sizes.at(min(k_.lane(), kWarps - 1)).load(), 0);
      const WarpU32 before = reduce_add(select(k_.lane() < k_.warp(), warp_size, 0));
      write_share(
          share, [&](const WarpU32& at, const WarpU32& count) { writer_.append(list_from(at), count); },
          *written_ + before);
      written_ += reduce_add(warp_size);
      k_.sync_warp();  // the list has been read; the next tile's candidates take its place
    });
    k_.if_((k_.warp() == 0) & !needless, [&] { finish(); });
    k_.barrier();
    k_.once_per_block([&] { shared_.sizes.store(writer_.size_bytes()); });
    k_.barrier();
    written_ = shuffle(shared_.sizes.load(), 0);
  }

  WarpBool fits() const { return *written_ < size_; }
  WarpU32 size_bytes() const { return *written_; }

 private:
  using Parser = WindowParser<ItemSource>;

  struct Hashed {
    LaneU32 position, hash;
  };

  // body(index of the first in the segment, four positions), for four a lane and 128 a turn. Where no match may start
  // any more, hashes are of something else.
  template <class Body>
  void for_each_four(const WarpU32& begin, const Body& body) {
    k_.range(k_.constant<u32>(0), kChunkSegment, 4 * kWarpLanes, [&](const auto& first) {
      const auto index = align_down<4>(first + times<4>(k_.lane()));
      const LaneU32 position = begin + index;
      const auto words = src_.as<u32>().at(min(position, start_end_ - 1) / 4);
      const LaneU32 low = words.load(), high = words.template at<1>().load();
      const auto hash_at = [&](u32 bit) { return funnel_right(low, high, k_.constant(bit)) * kHashMultiplier; };
      body(index, std::array<Hashed, 4>{{{position, hash_at(0)},
                                         {position + 1, hash_at(8)},
                                         {position + 2, hash_at(16)},
                                         {position + 3, hash_at(24)}}});
    });
  }

  auto slot(const LaneU32& hash) { return shared_.table.at(hash >> (32 - kChunkHashBits)); }

  // The position of an entry whose check agrees, else `position`.
  static LaneU32 found(const LaneU32& position, const LaneU32& hash, const LaneU32& entry) {
    return select((entry & 0xFFFF) == chunk_check(hash), chunk_position(entry), position);
  }

  void look_up(const WarpU32& begin) {
    for_each_four(begin, [&](const auto& index, const std::array<Hashed, 4>& four) {
      const auto look = [&](const Hashed& at) { return found(at.position, at.hash, slot(at.hash).load()); };
      const std::array pairs{look(four[0]) | look(four[1]) << 16, look(four[2]) | look(four[3]) << 16};
      shared_.candidates.at(index).template as<u32>().store_vector(pairs);
    });
  }

  void enter(const WarpU32& begin) {
    for_each_four(begin, [&](const auto&, const std::array<Hashed, 4>& four) {
      for (const Hashed& at : four) {
        const LaneU32 entry = select(at.position < start_end_, chunk_entry(at.position, at.hash), 0);
        atomic_max(slot(at.hash), entry, Order::Relaxed, Scope::Cta);
      }
    });
  }

  // Lists the segment's matches; how many.
  WarpU32 parse_segment(const WarpU32& begin) {
    const WarpU32 segment_end = begin + kChunkSegment;
    const WarpU32 start_end = min(start_end_, segment_end - (kMinMatch - 1));
    Parser parser(k_, src_, start_end, min(match_end_, segment_end), list_from(k_.constant<u32>(1)));
    WarpVar base(k_, begin);
    k_.warp_loop([&](auto& windows) {
      windows.break_if(*base >= start_end);
      mark_warp(k_, Mark::parse, *base);
      const Parser::Place place = parser.place_at(*base);
      const LaneU32 entry = slot(place.hash).load();
      const LaneU32 in_tile = found(place.position, place.hash, entry);
      const LaneU32 earlier = zext<u32>(shared_.candidates.at(place.position - begin).load());
      const LaneU32 latest = select(in_tile < place.position, in_tile, earlier);
      const LaneU32 candidate = parser.repeated_or(place, min(latest, place.position));
      const LaneU32 score = parser.score(place, candidate);
      k_.sync_warp();  // candidates have been read; matches take their place
      base = parser.list_matches(*base, place, candidate, score);
    });
    return parser.listed();
  }

  MatchList list_from(const WarpU32& index) { return shared_.matches.at(times<2>(index)); }

  // What the others need of the warp's list, a word a lane: its length in word 0, the last match but one in 2 and 3,
  // the first in 4 and 5, the last in 6 and 7.
  void publish_record(const WarpU32& listed) {
    k_.sync_warp();
    const LaneU32 lane = k_.lane();
    Var<u32, Rate::Thread> word(k_, listed);
    k_.if_(listed != 0, [&] {
      const LaneU32 match = select(lane < 4, max(listed, 2) - 1, select(lane < 6, 1, listed));
      word = select(lane == 0, listed, shared_.matches.at(times<2>(match) + (lane & 1)).load());
    });
    shared_.records.at(k_.warp() * kRecordWords + lane).store(*word);
  }

  // What a warp writes of a tile.
  struct Share {
    WarpU32 first, count;  // entries of its list
    WarpU32 anchor;        // where the match before them ends
  };

  // Finds what the warp writes, enters into its list the match that was left to it, and takes over what the tile leaves
  // to the next. Lane 0 stands for what was left by the tile before, lane i + 1 for warp i.
  Share share_of(const BlockU32& tile) {
    const LaneU32 lane = k_.lane();
    const LaneBool is_warp = (lane - 1) < kWarps;
    const auto record = shared_.records.at(times<kRecordWords>(select(is_warp, lane - 1, 0)));
    const LaneU32 count = select(is_warp, record.load(), select(lane == 0, zext<u32>(*left_.end != 0), 0));
    const LaneBool from_record = is_warp & (count != 0);
    Var<u32, Rate::Thread> before_last(k_, 0), first_start(k_, 0), first_end(k_, 0), first_offset(k_, 0);
    Var<u32, Rate::Thread> start(k_, *left_.start), from(k_, *left_.from), end(k_, select(lane == 0, *left_.end, 0));
    k_.if_(from_record, [&] {
      before_last = record.at<2>().load() >> 16;
      const auto [first, first_from, last, last_from] = record.at<4>().load_vector<4>();
      first_start = first & 0xFFFF;
      first_end = first >> 16;
      first_offset = *first_start - first_from;
      start = last & 0xFFFF;
      from = last_from;
      end = last >> 16;
    });

    const LaneU32 segment = tile + (lane - 1) * kChunkSegment;
    const LaneBool goes_on = from_record & (*first_start == segment) & (shuffle_up(*end, 1) == segment) &
                             (shuffle_up(*start - *from, 1) == *first_offset);
    const LaneU32 own = count - zext<u32>(goes_on);
    const WarpU32 with_own = ballot(own != 0), with_any = ballot(count != 0);
    const LaneU32 end_below = shuffle(*end, 31 - clz(with_any & k_.lanes_below()));  // of lane 31, 0, if there is none
    const LaneU32 anchor = select(lane == 0, *left_.anchor, select(count >= 2, *before_last, end_below));

    const WarpU32 self = k_.warp() + 1, below = shift_left(1, self) - 1;
    const WarpU32 origin = 31 - clz(with_own & below), ending = 31 - clz(with_any & below);
    const WarpBool is_left = (with_own & below) != 0;
    const WarpU32 left_start = shuffle(*start, origin), left_from = shuffle(*from, origin);
    const WarpU32 left_anchor = shuffle(anchor, origin), self_own = shuffle(own, self);
    const WarpU32 entry = shuffle(zext<u32>(goes_on), self);  // it takes the place of a match that is one with it
    const WarpU32 left_end = select(entry != 0, shuffle(*first_end, self), shuffle(*end, ending));
    k_.once_per_warp([&] {
      k_.if_(is_left, [&] {
        list_from(entry).store_vector(std::array{LaneU32(left_start | left_end << 16), LaneU32(left_from)});
      });
    });
    k_.sync_warp();

    const WarpU32 last_origin = 31 - clz(with_own);
    const WarpBool some = with_own != 0;
    left_.start = select(some, shuffle(*start, last_origin), 0);
    left_.from = select(some, shuffle(*from, last_origin), 0);
    left_.anchor = select(some, shuffle(anchor, last_origin), 0);
    left_.end = select(some, shuffle(*end, 31 - clz(with_any)), 0);
    const WarpU32 written = select(self_own != 0, self_own - 1 + zext<u32>(is_left), 0);
    return {select(is_left, entry, 1), written, select(is_left, left_anchor, 0)};
  }

  // batch(first entry, count) for the share's matches, 32 at a time, the block being written from `at` on.
  template <class Batch>
  void write_share(const Share& share, const Batch& batch, const WarpU32& at) {
    writer_.resume(share.anchor, at);
    k_.range(0, share.count, kWarpLanes,
             [&](const auto& done) { batch(share.first + done, min(share.count - done, kWarpLanes)); });
  }

  // By one warp: the match that is left, and the literals at the end.
  void finish() {
    writer_.resume(*left_.anchor, *written_);
    k_.if_(*left_.end != 0, [&] {
      k_.once_per_warp([&] {
        list_from(k_.constant<u32>(0))
            .store_vector(std::array{LaneU32(*left_.start | *left_.end << 16), LaneU32(*left_.from)});
      });
      k_.sync_warp();
      writer_.append(list_from(k_.constant<u32>(0)), k_.constant<u32>(1));
    });
    writer_.finish();
  }

  Kernel& k_;
  ItemSource src_;
  BlockU32 size_;
  Workspace shared_;
  BlockU32 start_end_;  // no match starts here or later
  BlockU32 match_end_;  // no match goes beyond
  BlockWriter<ItemSource> writer_;
  WarpVar written_;  // of the block, by all warps
  struct {
    WarpVar start, end, from, anchor;
  } left_;  // the last match so far, and the end of the one before; end 0: there is none
};

// A chunk that does not shrink: 16 bytes a thread and turn, then what is left.
template <class Size>
void copy_raw(Kernel& k, const ItemSource& src, const ItemRoom& dst, const Size& size) {
  const auto for_each_thread = [&](const auto& count, const auto& body) {
    k.range(0, count, kThreads, [&](const auto& first) {
      const LaneU32 i = first + k.thread();
      k.if_(i < count, [&] { body(i); });
    });
  };
  for_each_thread(size / kStrideUnitBytes, [&](const LaneU32& i) {
    dst.as<u32>().at(times<4>(i)).store_vector(src.as<u32>().at(times<4>(i)).load_vector<4>());
  });
  const auto copied = size / kStrideUnitBytes * kStrideUnitBytes;
  for_each_thread(size - copied, [&](const LaneU32& i) { dst.at(copied + i).store(src.at(copied + i).load()); });
}

}  // namespace

KernelDefinition lz4_compress_chunk() {
  constexpr u32 kSharedBytes = (kSlots + kWarps * (kListWords + kRecordWords + 1)) * sizeof(u32) + sizeof(u32);
  return define(
      KernelSpec{.name = std::string(kLz4CompressChunk),
                 .block = kThreads,
                 .budget = {.registers = 80, .shared_bytes = kSharedBytes, .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kThreads} / kMaxChunkBytes,
                          .buffers = {{"src", N},
                                      {"dst", N},
                                      {"src_sizes", N / (kMaxChunkBytes / 4)},
                                      {"dst_sizes", N / (kMaxChunkBytes / 4)},
                                      {"flags", N / kMaxChunkBytes}},
                          .note = "one CTA an item"}},
      [](Kernel& k, Arg<"src", Ptr<ReadOnly, u8, kStrideUnitBytes>> src, Arg<"src_sizes", Ptr<ReadOnly, u32>> src_sizes,
         Arg<"dst", Ptr<Global, u8, kStrideUnitBytes>> dst, Arg<"dst_sizes", Ptr<Global, u32>> dst_sizes,
         Arg<"flags", Ptr<Global, u8>> flags, Arg<"src_stride_16", u32> src_stride_16,
         Arg<"dst_stride_16", u32> dst_stride_16, Arg<"item_count", u32> item_count) {
        const auto table = k.shared<u32, kSlots, 16>("table");
        const auto lists = k.shared<u32, kWarps * kListWords, 16>("lists");
        const auto records = k.shared<u32, kWarps * kRecordWords, 16>("records");
        const auto sizes = k.shared<u32, kWarps, 16>("sizes");
        const auto seen = k.shared<u32, 1, 4>("seen");
        const auto item = k.block();
        k.return_if(item >= item_count);
        const auto size = src_sizes.within(item_count).at(item).load();
        const ItemSource item_src = at_item(src, item, src_stride_16).template within<kStrideUnitBytes>(size);
        const ItemRoom item_dst = at_item(dst, item, dst_stride_16).within(size);
        mark_block(k, Mark::item, size);

        WarpVar flag(k, static_cast<u32>(PageFlag::refused)), length(k, 0);
        k.if_((size <= kMaxChunkBytes) & fits_stride(size, src_stride_16) & fits_stride(size, dst_stride_16), [&] {
          k.range(k.constant<u32>(0), kSlots / (4 * kThreads), 1, [&](const auto& i) {
            const LaneU32 zero(k.constant<u32>(0));
            table.data().at(times<4>(i * kThreads + k.thread())).store_vector(std::array{zero, zero, zero, zero});
          });
          k.once_per_block([&] { seen.store(0, 0); });
          k.barrier();
          constexpr u32 kPart = kMaxChunkBytes / kWarps;
          const auto part = times<kPart>(k.warp());
          const WarpBool part_is_zero = is_all_zero(k, item_src.at(part), min(size - min(size, part), kPart));
          k.once_per_warp(
              [&] { k.if_(!part_is_zero, [&] { atomic_or(seen.data(), 1, Order::Relaxed, Scope::Cta); }); });
          k.barrier();
          const WarpBool zero = shuffle(seen.load(0), 0) == 0;

          const auto list = lists.data().at(times<4>(k.warp() * (kListWords / 4))).within(kListWords);
          ChunkCompressor compressor(
              k, item_src, size, item_dst,
              Workspace{table.data(), list.at<4>().as<u16>(), list.at<2>(), records.data(), sizes.data()});
          compressor.compress(zero);
          k.if_(zero, [&] { flag = static_cast<u32>(PageFlag::zero); }).else_([&] {
            k.if_(compressor.fits(), [&] {
               flag = static_cast<u32>(PageFlag::compressed);
               length = compressor.size_bytes();
             }).else_([&] {
              copy_raw(k, item_src, item_dst, size);
              flag = static_cast<u32>(PageFlag::incompressible);
              length = size;
            });
          });
        });
        mark_block(k, Mark::status, *flag);
        k.once_per_block([&] {
          flags.within(item_count).at(item).store(trunc<u8>(*flag));
          dst_sizes.within(item_count).at(item).store(*length);
        });
      });
}

}  // namespace ptxkit::kernels
