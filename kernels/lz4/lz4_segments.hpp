// The common part of the chunk compressors, after each position of a tile has a candidate and a score: a CTA for each
// chunk, a warp for each segment of a tile.
//
// Each lane of a warp selects the matches of sixteen positions. The block is then assembled in two steps. Each warp
// publishes its first and last match. A match that continues at a segment's start the last match of the segment before
// is merged with it, so a warp does not know where its last match ends. It leaves that match to the next warp that has
// a match of its own, and writes the match that was left to it. Sizes are computed first, since they determine where
// each warp writes.
#pragma once

#include "kernels/lz4/lz4_block_writer.hpp"
#include "kernels/lz4/lz4_window.hpp"

namespace ptxkit::kernels {

using LaneVar = dsl::Var<dsl::u32, dsl::Rate::thread>;

inline constexpr uint32_t kChunkThreads = kLz4CompressChunkShape.block_threads;
inline constexpr uint32_t kChunkWarps = kChunkThreads / dsl::kWarpLanes;
static_assert(kChunkWarps * kChunkSegment == kChunkTile);
inline constexpr uint32_t kLanePositions = kChunkSegment / dsl::kWarpLanes;

// The list of a warp: two words before the entries, one entry for the match that was left to it, then room for as many
// matches as fit a segment. The candidates of the segment's positions share this room and are read before matches
// overwrite them.
inline constexpr uint32_t kListWords = 4 + 2 * kChunkSegment / kMinMatch;
static_assert(kChunkSegment * sizeof(uint16_t) == 2 * kChunkSegment / kMinMatch * sizeof(uint32_t));

// The record of a warp: see publish and Left. With twelve words, the records are in different banks.
inline constexpr uint32_t kRecordWords = 12;

// Whether `candidate` is before `position`, at most MaxOffset bytes; in a chunk none is farther than kMaxOffset.
template <uint32_t MaxOffset>
LaneBool is_in_window(const LaneU32& candidate, const LaneU32& position) {
  if constexpr (MaxOffset == kMaxOffset) {
    return candidate < position;
  } else {
    return (candidate < position) & (position - candidate <= MaxOffset);
  }
}

// The shared memory of a CTA.
struct ChunkWorkspace {
  dsl::Ptr<dsl::shared, dsl::u32, 16> table;    // the compressor's hash tables
  dsl::Ptr<dsl::shared, dsl::u32, 16> lists;    // kListWords for each warp
  dsl::Ptr<dsl::shared, dsl::u8, 16> scores;    // of the tile's positions
  dsl::Ptr<dsl::shared, dsl::u32, 16> records;  // kRecordWords for each warp

  // The size in bytes of what a warp writes of a tile, in the first word of its list.
  template <class Index>
  auto size_of(const Index& warp) const {
    return lists.at(dsl::times<4>(warp * (kListWords / 4)));
  }

  // The candidates of the positions of segment `index` of the tile.
  template <class Index>
  auto candidates(const Index& index) const {
    return lists.at(dsl::times<4>(index * (kListWords / 4))).template at<4>().template as<dsl::u16>();
  }
};
inline constexpr uint32_t kChunkWorkspaceBytes =  // without the table
    kChunkWarps * (kListWords + kRecordWords) * sizeof(uint32_t) + kChunkTile;

// The matches go to a `Writer`, a BlockWriter or what has its functions.
template <class Writer>
class SegmentedMatches {
 public:
  using Parser = WindowParser<ItemSource>;

  SegmentedMatches(dsl::Kernel& k, const ItemSource& src, const BlockU32& size, const typename Writer::Room& dst,
                   const ChunkWorkspace& workspace)
      : k_(k),
        src_(src),
        size_(size),
        shared_(workspace),
        candidates_(workspace.candidates(k.warp())),
        matches_(workspace.lists.at(dsl::times<4>(k.warp() * (kListWords / 4))).template at<2>()),
        scores_(workspace.scores.at(dsl::times<kChunkSegment>(k.warp()))),
        start_end_(dsl::select(size < kLastMatchStart, 0, size - (kLastMatchStart - 1))),
        match_end_(size - dsl::min(size, kLastLiterals)),
        writer_(k, src, size, dst),
        written_(k, 0) {}

  BlockU32 start_end() const { return start_end_; }  // no match starts at or after this position

  // To be called before the first tile.
  void begin() {
    const LaneU32 none(k_.constant<uint32_t>(0));
    set_left({none, none, none, none});
  }

  // Lists the matches of the warp's segment, whose candidates and scores are complete, and returns their number. No
  // match starts at a position with score 0. All positions but `begin` are relative to the segment's start.
  //
  // The end of a match determines the match after it. Each lane selects the matches of its own slice, first as if no
  // match extended into it, and again from where the previous lanes ended if they ended elsewhere; a match that extends
  // beyond the next slice affects further lanes. A match of kLongMatch bytes is measured by the whole warp. Only the
  // first such match is measured in each iteration, since those that it covers need not be.
  WarpU32 parse_segment(const WarpU32& begin) {
    using namespace dsl;
    mark_warp(k_, Mark::parse, begin);
    const LaneU32 lane = k_.lane();
    const LaneU32 slice = times<kLanePositions>(lane), slice_end = slice + kLanePositions;
    const auto own_words = scores_.at(times<kLanePositions>(lane)).as<u32>();
    const auto scores = own_words.template load_vector<4>();  // the slice's matches overwrite them
    const LaneU32 starts = starts_of(scores);
    const WarpU32 match_end = min(match_end_ - begin, kChunkSegment);
    LaneVar start(k_, slice);
    Walk walk{LaneVar(k_, 0), LaneVar(k_, 0), LaneVar(k_, kNone), LaneVar(k_, kNone), LaneVar(k_, 0)};
    Var<bool, Rate::thread> astray(k_, k_.constant(true));
    k_.warp_loop([&](auto& turns) {
      k_.if_(*astray, [&] { choose_in_slice(begin, scores, starts, own_words, match_end, *start, walk); });
      const WarpU32 unmeasured = ballot(*walk.pending != kNone);
      k_.if_(unmeasured != 0, [&] {
        const WarpU32 first = ctz(unmeasured), position = shuffle(*walk.pending, first);
        const WarpU32 candidate = broadcast(zext<u32>(candidates_.at(position).load()));
        Parser parser(k_, src_, start_end_, min(match_end_, begin + kChunkSegment), list_from(k_.constant<u32>(1)));
        const WarpU32 end = parser.measure(begin + position, begin + position - candidate) - begin;
        k_.if_(lane == first, [&] {
          own_words.at(*walk.count).store(position | end << 16);
          walk.count += 1;
          walk.arrival = end;
          walk.measured = position;
          walk.measured_end = end;
          walk.pending = kNone;
        });
      });
      LaneVar reached(k_, max(*walk.arrival, slice_end));
      k_.if_(any(*walk.arrival > slice_end + kLanePositions), [&] { reached = inclusive_max(*reached); });
      const LaneU32 from = select(lane == 0, 0, shuffle_up(*reached, 1));
      astray = from != *start;
      start = from;
      turns.break_if(!any(*astray | (*walk.pending != kNone)));
    });

    const LaneU32 sum = inclusive_sum(*walk.count);
    const LaneU32 before = sum - *walk.count;
    std::vector<LaneU32> spans, candidates;
    for (u32 i = 0; i < kLaneMatches; ++i) {
      const LaneU32 entry = own_words.at(k_.constant(i)).load();
      spans.push_back(entry);
      candidates.push_back(zext<u32>(candidates_.at(entry & (kChunkSegment - 1)).load()));
    }
    k_.sync_warp();  // all candidates have been read; matches overwrite them
    for (u32 i = 0; i < kLaneMatches; ++i) {
      k_.if_(k_.constant(i) < *walk.count, [&] {
        matches_.at(times<2>(before + k_.constant(i + 1)))
            .store_vector(std::array{spans[i] + (begin | begin << 16), candidates[i]});
      });
    }
    return shuffle(sum, kWarpLanes - 1);
  }

  // Publishes what the other warps need of this warp's list, one word from each lane: its length in word 0, the last
  // match but one in words 2 and 3, the first match in 4 and 5, the last in 6 and 7.
  void publish(const WarpU32& listed) {
    using namespace dsl;
    k_.sync_warp();
    const LaneU32 lane = k_.lane();
    LaneVar word(k_, listed);
    k_.if_(listed != 0, [&] {
      const LaneU32 match = select(lane < 4, max(listed, 2) - 1, select(lane < 6, 1, listed));
      word = select(lane == 0, listed, matches_.at(times<2>(match) + (lane & 1)).load());
    });
    k_.if_(lane < kLeftWord, [&] { shared_.records.at(k_.warp() * kRecordWords + lane).store(*word); });
  }

  // Writes the tile's part of the block. All records must be complete. It contains a barrier, so all warps call it.
  void write_tile(const BlockU32& tile) {
    using namespace dsl;
    const Share share = share_of(tile);
    write_share(
        share, [&](const WarpU32& at, const WarpU32& count) { writer_.stretch(list_from(at), count); },
        k_.constant<u32>(0));
    k_.once_per_warp([&] { shared_.size_of(k_.warp()).store(writer_.size_bytes()); });
    k_.barrier();
    const LaneU32 warp_size =
        select(k_.lane() < kChunkWarps, shared_.size_of(min(k_.lane(), kChunkWarps - 1)).load(), 0);
    const WarpU32 before = reduce_add(select(k_.lane() < k_.warp(), warp_size, 0));
    write_share(
        share, [&](const WarpU32& at, const WarpU32& count) { writer_.append_stretched(list_from(at), count); },
        *written_ + before);
    written_ += reduce_add(warp_size);
    k_.sync_warp();  // every lane has read the list; the next tile's candidates overwrite it
  }

  // Writes the last match and the last literals after the last tile, unless `needless` says that there is nothing to
  // do. Then fits() says whether the block is shorter than the chunk, and size_bytes() is its length. It contains
  // barriers.
  void finish(const WarpBool& needless) {
    using namespace dsl;
    k_.if_((k_.warp() == 0) & !needless, [&] { write_end(); });
    k_.barrier();
    k_.once_per_block([&] { shared_.size_of(k_.constant<u32>(0)).store(writer_.size_bytes()); });
    k_.barrier();
    written_ = shuffle(shared_.size_of(k_.constant<u32>(0)).load(), 0);
  }

  WarpBool fits() const { return *written_ < size_; }
  WarpU32 size_bytes() const { return *written_; }
  // The number of the last literals; after finish(), in the first warp only.
  WarpU32 last_literal_count() const { return size_ - writer_.anchor(); }

 private:
  static constexpr uint32_t kLaneMatches = kLanePositions / kMinMatch;
  static constexpr uint32_t kLongMatch = 40;  // bytes; a lane alone compares fewer
  static constexpr uint32_t kNone = ~0u;
  static constexpr uint32_t kLeftWord = 8;  // the first word of Left in a record

  // A mask with a bit for each position of the slice whose score is not 0.
  LaneU32 starts_of(const std::array<LaneU32, 4>& scores) {
    using namespace dsl;
    const auto four = [&](const LaneU32& word) {  // packs the bytes' high bits
      return ((word + 0x7F7F7F7Fu) >> 7 & 0x01010101u) * 0x01020408u >> 24;
    };
    return four(scores[0]) | four(scores[1]) << 4 | four(scores[2]) << 8 | four(scores[3]) << 12;
  }

  // The state of a lane in its slice.
  struct Walk {
    LaneVar arrival, count;          // the end of its last match, and the number of matches
    LaneVar pending;                 // the next match, if it is too long for a lane to measure; otherwise kNone
    LaneVar measured, measured_end;  // the last match that was measured, which is often met again; otherwise kNone
  };

  // Selects matches of the lane's slice from `start` on and stores them, position and end, in `chosen`.
  void choose_in_slice(const WarpU32& begin, const std::array<LaneU32, 4>& scores, const LaneU32& starts,
                       const dsl::Ptr<dsl::shared, dsl::u32, 16, dsl::Rate::thread>& chosen, const WarpU32& match_end,
                       const LaneU32& start, Walk& walk) {
    using namespace dsl;
    const LaneU32 slice = times<kLanePositions>(k_.lane());
    // From this position on, comparing eight bytes would leave the segment or the item.
    const WarpU32 compare_end = min(start_end_, min(match_end_, begin + kChunkSegment) - 7);
    walk.arrival = start;
    walk.count = 0;
    walk.pending = kNone;
    k_.thread_loop([&](auto& matches) {
      const LaneU32 rest = starts & shift_left(~0u, *walk.arrival - slice);
      matches.break_if(rest == 0);
      const LaneU32 position = slice + ctz(rest);
      const LaneU32 score = byte_of(scores, position);
      const LaneBool known = position == *walk.measured;
      LaneVar end(k_, select(known, *walk.measured_end, position + score));
      k_.if_((score >= Parser::kMaxScore) & !known, [&] {
        const LaneU32 offset = begin + position - zext<u32>(candidates_.at(position).load());
        k_.thread_loop([&](auto& steps) {
          k_.if_(*end - position >= kLongMatch, [&] { walk.pending = position; });
          const LaneU32 at = begin + *end;
          steps.break_if((*walk.pending != kNone) | (at >= compare_end));
          const auto [first, second] = Parser::load_eight(src_, at);
          const auto [first_before, second_before] = Parser::load_eight(src_, at - offset);
          const LaneU32 low = first ^ first_before, high = second ^ second_before;
          end += select(low != 0, ctz(low), 32 + ctz(high)) / 8;
          steps.break_if((low | high) != 0);
        });
        k_.if_((begin + *end >= compare_end) & (*walk.pending == kNone), [&] {
          k_.thread_loop([&](auto& bytes) {
            bytes.break_if(*end >= match_end);
            bytes.break_if(src_.at(begin + *end).load() != src_.at(begin + *end - offset).load());
            end += 1;
          });
        });
        k_.if_(*walk.pending == kNone, [&] {
          walk.measured = position;
          walk.measured_end = end;
        });
      });
      matches.break_if(*walk.pending != kNone);
      chosen.at(*walk.count).store(position | min(*end, match_end) << 16);
      walk.count += 1;
      walk.arrival = min(*end, match_end);
    });
  }

  // Byte `index` modulo 16.
  LaneU32 byte_of(const std::array<LaneU32, 4>& words, const LaneU32& index) {
    using namespace dsl;
    const LaneU32 low = prmt(words[0], words[1], index & 7), high = prmt(words[2], words[3], index & 7);
    return select((index & 8) == 0, low, high) & 0xFF;
  }

  LaneU32 inclusive_max(const LaneU32& value) {
    using namespace dsl;
    const LaneU32 by_1 = max(value, shuffle_up(value, 1)), by_2 = max(by_1, shuffle_up(by_1, 2));
    const LaneU32 by_4 = max(by_2, shuffle_up(by_2, 4)), by_8 = max(by_4, shuffle_up(by_4, 8));
    return max(by_8, shuffle_up(by_8, 16));
  }

  MatchList list_from(const WarpU32& index) { return matches_.at(dsl::times<2>(index)); }

  dsl::Ptr<dsl::shared, dsl::u32, 16, dsl::Rate::warp> own_left() {
    return shared_.records.at(dsl::times<4>(k_.warp() * (kRecordWords / 4))).at<kLeftWord>();
  }
  // The last match so far, which is not written yet: start, end and candidate's position, and the end of the match
  // before it. End 0: no match. Each warp keeps a copy in its own record, so that it takes no registers while a tile is
  // parsed.
  struct Left {
    LaneU32 start, end, from, anchor;
  };
  Left left() {
    const auto [start, end, from, anchor] = own_left().template load_vector<4>();
    return {start, end, from, anchor};
  }
  void set_left(const Left& left) {
    k_.once_per_warp([&] { own_left().store_vector(std::array{left.start, left.end, left.from, left.anchor}); });
  }

  // The part of a tile that a warp writes.
  struct Share {
    WarpU32 first, count;  // entries of the warp's list
    WarpU32 anchor;        // the end of the match before them
  };

  // Determines the warp's part, adds the match that was left to it to its list, and records the match that the tile
  // leaves to the next one. Lane 0 stands for the match left by the previous tile, lane i + 1 for warp i.
  Share share_of(const BlockU32& tile) {
    using namespace dsl;
    const LaneU32 lane = k_.lane();
    const Left left = this->left();
    const LaneBool is_warp = (lane - 1) < kChunkWarps;
    const auto record = shared_.records.at(times<4>(select(is_warp, lane - 1, 0) * (kRecordWords / 4)));
    const LaneU32 count = select(is_warp, record.load(), select(lane == 0, zext<u32>(left.end != 0), 0));
    const LaneBool from_record = is_warp & (count != 0);
    LaneVar before_last(k_, 0), first_start(k_, 0), first_end(k_, 0), first_offset(k_, 0);
    LaneVar start(k_, left.start), from(k_, left.from), end(k_, select(lane == 0, left.end, 0));
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
    // lane 31's end, which is 0, if there is none
    const LaneU32 end_below = shuffle(*end, 31 - clz(with_any & k_.lanes_below()));
    const LaneU32 anchor = select(lane == 0, left.anchor, select(count >= 2, *before_last, end_below));

    const WarpU32 self = k_.warp() + 1, below = shift_left(1, self) - 1;
    const WarpU32 origin = 31 - clz(with_own & below), ending = 31 - clz(with_any & below);
    const WarpBool is_left = (with_own & below) != 0;
    const WarpU32 left_start = shuffle(*start, origin), left_from = shuffle(*from, origin);
    const WarpU32 left_anchor = shuffle(anchor, origin), self_own = shuffle(own, self);
    const WarpU32 entry = shuffle(zext<u32>(goes_on), self);  // it overwrites the first match if that is merged with it
    const WarpU32 left_end = select(entry != 0, shuffle(*first_end, self), shuffle(*end, ending));
    k_.once_per_warp([&] {
      k_.if_(is_left, [&] {
        list_from(entry).store_vector(std::array{LaneU32(left_start | left_end << 16), LaneU32(left_from)});
      });
    });
    k_.sync_warp();

    const WarpU32 last_origin = 31 - clz(with_own);
    const WarpBool some = with_own != 0;
    set_left({select(some, shuffle(*start, last_origin), 0), select(some, shuffle(*end, 31 - clz(with_any)), 0),
              select(some, shuffle(*from, last_origin), 0), select(some, shuffle(anchor, last_origin), 0)});
    const WarpU32 written = select(self_own != 0, self_own - 1 + zext<u32>(is_left), 0);
    return {select(is_left, entry, 1), written, select(is_left, left_anchor, 0)};
  }

  // Calls batch(first entry, count) for the matches of the part, 32 at a time. The block is written from `at` on.
  template <class Batch>
  void write_share(const Share& share, const Batch& batch, const WarpU32& at) {
    writer_.resume(share.anchor, at);
    k_.range(0, share.count, dsl::kWarpLanes,
             [&](const auto& done) { batch(share.first + done, dsl::min(share.count - done, dsl::kWarpLanes)); });
  }

  // Writes the match that is left and the last literals. One warp calls it.
  void write_end() {
    using namespace dsl;
    const Left left = this->left();
    writer_.resume(broadcast(left.anchor), *written_);
    k_.if_(broadcast(left.end) != 0, [&] {
      k_.once_per_warp(
          [&] { list_from(k_.constant<u32>(0)).store_vector(std::array{left.start | left.end << 16, left.from}); });
      k_.sync_warp();
      writer_.append(list_from(k_.constant<u32>(0)), k_.constant<u32>(1));
    });
    writer_.finish();
  }

  dsl::Kernel& k_;
  ItemSource src_;
  BlockU32 size_;
  ChunkWorkspace shared_;
  dsl::Ptr<dsl::shared, dsl::u16, 16, dsl::Rate::warp> candidates_;  // of the warp's segment
  MatchList matches_;                                                // in the same memory, starting one entry earlier
  dsl::Ptr<dsl::shared, dsl::u8, 16, dsl::Rate::warp> scores_;       // of the candidates
  BlockU32 start_end_;                                               // no match starts at or after this position
  BlockU32 match_end_;                                               // no match extends past this position
  Writer writer_;
  WarpVar written_;  // bytes of the block, by all warps
};

using SegmentedBlock = SegmentedMatches<BlockWriter<ItemSource>>;

// Copies a chunk that does not compress: 16 bytes for each thread and iteration, then the remaining bytes.
template <class Size>
void copy_raw_by_cta(dsl::Kernel& k, const ItemSource& src, const ItemRoom& dst, const Size& size) {
  using namespace dsl;
  const auto for_each_thread = [&](const auto& count, const auto& body) {
    k.range(0, count, kChunkThreads, [&](const auto& first) {
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

// The shared memory of a chunk compressor's CTA. A Compressor(kernel, source, size, block, workspace) has kTableWords,
// the size of its table in words, which is cleared, and compress(needless). All warps call compress, even if `needless`
// says that there is nothing to do.
template <class Compressor>
struct ChunkArrays {
  explicit ChunkArrays(dsl::Kernel& k)
      : table(k.shared<uint32_t, Compressor::kTableWords, 16>("table")),
        lists(k.shared<uint32_t, kChunkWarps * kListWords, 16>("lists")),
        records(k.shared<uint32_t, kChunkWarps * kRecordWords, 16>("records")),
        scores(k.shared<uint8_t, kChunkTile, 16>("scores")) {}

  static constexpr uint32_t kBytes = Compressor::kTableWords * sizeof(uint32_t) + kChunkWorkspaceBytes;

  void clear_table(dsl::Kernel& k) const {
    using namespace dsl;
    k.range(k.constant<u32>(0), Compressor::kTableWords / 4, kChunkThreads, [&](const auto& first) {
      const LaneU32 zero(k.constant<u32>(0)), i = first + k.thread();
      const auto clear = [&] { table.data().at(times<4>(i)).store_vector(std::array{zero, zero, zero, zero}); };
      if (Compressor::kTableWords % (4 * kChunkThreads) == 0) {
        clear();
      } else {
        k.if_(i < Compressor::kTableWords / 4, clear);
      }
    });
  }
  ChunkWorkspace workspace() const { return {table.data(), lists.data(), scores.data(), records.data()}; }

  dsl::Span<dsl::shared, uint32_t, 16> table, lists, records;
  dsl::Span<dsl::shared, uint8_t, 16> scores;
};

// Compresses the chunk `src` into `dst` with a CTA, all of whose threads call it. Calls as_zero() if all bytes are
// zero, else as_block(block) if the block is shorter than the chunk, else as_raw(); all are uniform in the CTA.
template <class Compressor, class Room, class AsZero, class AsBlock, class AsRaw>
void compress_by_cta(dsl::Kernel& k, const ChunkArrays<Compressor>& arrays, const ItemSource& src, const BlockU32& size,
                     const Room& dst, const AsZero& as_zero, const AsBlock& as_block, const AsRaw& as_raw) {
  using namespace dsl;
  const auto seen = arrays.lists.data().template at<1>();  // the first two words of a list are no entry
  arrays.clear_table(k);
  k.once_per_block([&] { seen.store(0); });
  k.barrier();
  constexpr u32 kPart = kMaxChunkBytes / kChunkWarps;
  const auto part = times<kPart>(k.warp());
  const WarpBool part_is_zero = is_all_zero(k, src.at(part), min(size - min(size, part), kPart));
  k.once_per_warp([&] { k.if_(!part_is_zero, [&] { atomic_or(seen, 1, Order::relaxed, Scope::cta); }); });
  k.barrier();
  const WarpBool zero = shuffle(seen.load(), 0) == 0;

  const ChunkWorkspace workspace = arrays.workspace();
  SegmentedBlock block(k, src, size, dst, workspace);
  Compressor(k, src, size, block, workspace).compress(zero);
  k.if_(zero, as_zero).else_([&] { k.if_(block.fits(), [&] { as_block(block); }).else_(as_raw); });
}

// Defines a kernel with the parameters of Lz4CompressParameters and a CTA for each item. It handles zero items and
// items that do not compress. The function computes the budget's shared memory.
template <class Compressor>
dsl::KernelDefinition define_chunk_compressor(std::string_view name, dsl::Budget budget, uint32_t min_blocks) {
  using namespace dsl;
  budget.shared_bytes = ChunkArrays<Compressor>::kBytes;
  return define(
      KernelSpec{.name = std::string(name),
                 .block = kChunkThreads,
                 .min_blocks = min_blocks,
                 .budget = budget,
                 .cost = {.threads_per_element = double{kChunkThreads} / kMaxChunkBytes,
                          .buffers = {{"src", N}, {"dst", N}, {"src_sizes", 4}, {"dst_sizes", 4}, {"flags", 1}},
                          .note = "one CTA an item"}},
      [](Kernel& k, Arg<"src", Ptr<read_only, u8, kStrideUnitBytes>> src,
         Arg<"src_sizes", Ptr<read_only, u32>> src_sizes, Arg<"dst", Ptr<global, u8, kStrideUnitBytes>> dst,
         Arg<"dst_sizes", Ptr<global, u32>> dst_sizes, Arg<"flags", Ptr<global, u8>> flags,
         Arg<"src_stride_16", u32> src_stride_16, Arg<"dst_stride_16", u32> dst_stride_16,
         Arg<"item_count", u32> item_count) {
        const ChunkArrays<Compressor> arrays(k);
        const auto item = k.block();
        k.return_if(item >= item_count);
        const auto size = src_sizes.within(item_count).at(item).load();
        const ItemSource item_src = at_item(src, item, src_stride_16).template within<kStrideUnitBytes>(size);
        const ItemRoom item_dst = at_item(dst, item, dst_stride_16).within(size);
        mark_block(k, Mark::item, size);

        WarpVar flag(k, static_cast<u32>(PageFlag::refused)), length(k, 0);
        k.if_((size <= kMaxChunkBytes) & fits_stride(size, src_stride_16) & fits_stride(size, dst_stride_16), [&] {
          compress_by_cta(
              k, arrays, item_src, size, item_dst, [&] { flag = static_cast<u32>(PageFlag::zero); },
              [&](const SegmentedBlock& block) {
                flag = static_cast<u32>(PageFlag::compressed);
                length = block.size_bytes();
              },
              [&] {
                copy_raw_by_cta(k, item_src, item_dst, size);
                flag = static_cast<u32>(PageFlag::incompressible);
                length = size;
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
