// Match finding at a higher ratio, for lz4_compress_high: the parse of lz4_compress_reference.cpp that tries five
// candidates for each position, with a CTA for each chunk.
//
// A step has one position for each thread. Each position is looked up in two tables, by the hashes of four and of six
// bytes, and enters its name in two smaller tables, where an atomic maximum keeps the first position of the step. After
// a barrier each thread compares eight bytes at the four positions found and at the previous position, and keeps the
// longest match. Positions that are the first of their name slot are inserted into the tables. A tile has sixteen
// steps; then its segments are parsed and written (lz4_segments.hpp).
#pragma once

#include "kernels/lz4/lz4_segments.hpp"
#include "kernels/step_table.hpp"

namespace ptxkit::kernels {

static_assert(kHighStep == kChunkThreads);

template <class Block, uint32_t MaxOffset = kMaxOffset>
class HighCompressor {
 public:
  static constexpr uint32_t kTableWords =
      (2u << kHighHashBits) / 2 + (1u << kHighShortNamesBits) + (1u << kHighLongNamesBits);

  HighCompressor(dsl::Kernel& k, const ItemSource& src, const BlockU32& size, Block& block,
                 const ChunkWorkspace& workspace)
      : k_(k),
        src_(src),
        size_(size),
        start_end_(block.start_end()),
        block_(block),
        workspace_(workspace),
        short_{workspace.table.template as<dsl::u16>(), workspace.table.template at<1u << kHighHashBits>()},
        long_{workspace.table.template at<(1u << kHighHashBits) / 2>().template as<dsl::u16>(),
              short_.names.at<1u << kHighShortNamesBits>()} {}

  // Writes the block. It contains barriers, so all warps call it, even if `needless` says that there is nothing to do.
  void compress(const WarpBool& needless) {
    using namespace dsl;
    block_.begin();
    k_.sync_warp();  // needed if the item has no tile
    k_.range(0, start_end_, kChunkTile, [&](const auto& tile) {
      const WarpU32 begin = tile + k_.warp() * kChunkSegment;
      const auto past_last = (start_end_ + (kChunkSegment - 1)) / kChunkSegment * kChunkSegment;
      k_.range(tile, min(tile + kChunkTile, past_last), kHighStep,
               [&](const auto& step) { find_candidates(tile, step, needless); });
      WarpVar listed(k_, 0);
      k_.if_((begin < start_end_) & !needless, [&] {
        choose_starts();
        listed = block_.parse_segment(begin);
      });
      block_.publish(*listed);
      k_.barrier();             // the records are complete
      block_.write_tile(tile);  // the next step has a barrier before its candidates overwrite the lists
    });
    block_.finish(needless);
  }

 private:
  using Parser = typename Block::Parser;

  // Stores a candidate and a score for each position of the step, and inserts the step. It contains a barrier and ends
  // with one.
  void find_candidates(const BlockU32& tile, const BlockU32& step, const WarpBool& needless) {
    using namespace dsl;
    const LaneU32 position = step + k_.thread(), at = min(position, start_end_ - 1);
    const LaneBool active = position < start_end_;
    const LaneU32 name = short_.name_of(position);
    LaneVar first(k_, 0), second(k_, 0), short_hash(k_, 0), long_hash(k_, 0), short_last(k_, 0), long_last(k_, 0);
    k_.if_(!needless, [&] {
      const auto [low, high] = Parser::load_eight(src_, at);
      first = low;
      second = high;
      short_hash = low * kHashMultiplier;
      long_hash = (*short_hash + (high & 0xFFFF)) * kLongHashMultiplier;
      short_last = short_.last(*short_hash);
      long_last = long_.last(*long_hash);
      k_.if_(active, [&] {
        short_.enter_name(*short_hash, name);
        long_.enter_name(*long_hash, name);
      });
    });
    k_.barrier();  // all positions have been looked up and named
    k_.if_(!needless, [&] {
      const LaneU32 offset = position - tile, segment_place = offset & (kChunkSegment - 1);
      const LaneU32 short_first = short_.first_named(*short_hash);
      const LaneU32 long_first = long_.first_named(*long_hash);
      const LaneBool may_start = active & (segment_place < kChunkSegment - (kMinMatch - 1));
      LaneVar found(k_, 0);
      for (const LaneU32& candidate :
           {LaneU32(max(at, 1) - 1), short_first, long_first, LaneU32(*short_last), LaneU32(*long_last)}) {
        const LaneU32 near = min(candidate, at);
        const LaneBool is_before = may_start & is_in_window<MaxOffset>(candidate, position);
        const LaneU32 score = Parser::score(src_, *first, *second, near, is_before);
        found = max(*found, score << 16 | near);
      }
      const LaneU32 best = *found, candidate = best & 0xFFFF;
      LaneVar score(k_, best >> 16);
      // With twenty more bytes in the item, the loads below do not extend past it.
      k_.if_((*score == Parser::kMaxScore) & (position + 20 <= size_), [&] {
        const auto [third, fourth] = Parser::load_eight(src_, position + 8);
        const auto [candidate_third, candidate_fourth] = Parser::load_eight(src_, candidate + 8);
        const LaneU32 low = third ^ candidate_third, high = fourth ^ candidate_fourth;
        score += select(low != 0, ctz(low), 32 + ctz(high)) / 8;
      });
      workspace_.candidates(offset / kChunkSegment).at(segment_place).store(trunc<u16>(candidate));
      workspace_.scores.at(offset).store(trunc<u8>(*score));
      k_.if_(active & (short_first == position), [&] { short_.enter(*short_hash, position); });
      k_.if_(active & (long_first == position), [&] { long_.enter(*long_hash, position); });
    });
    k_.barrier();  // the step has been inserted
  }

  // Clears the score of each position of the warp's segment that gives way to one of the next three.
  void choose_starts() {
    using namespace dsl;
    const auto words = workspace_.scores.at(times<kChunkSegment>(k_.warp())).at(times<kLanePositions>(k_.lane()));
    const auto own = words.template as<u32>().template load_vector<4>();
    const LaneU32 following = select(k_.lane() == kWarpLanes - 1, 0, shuffle_down(own[0], 1));
    std::vector<LaneU32> scores;
    for (uint32_t i = 0; i < kLanePositions + 3; ++i) {
      const LaneU32& word = i < kLanePositions ? own[i / 4] : following;
      scores.push_back(word >> k_.constant(8 * (i % 4)) & 0xFF);
    }
    const auto start = [&](uint32_t i) {
      const LaneBool stays =
          (scores[i + 1] <= scores[i]) & (scores[i + 2] <= scores[i] + 1) & (scores[i + 3] <= scores[i] + 2);
      return LaneU32(select(stays, scores[i], 0));
    };
    const auto four = [&](uint32_t i) {
      return start(i) | start(i + 1) << 8 | start(i + 2) << 16 | start(i + 3) << 24;
    };
    words.template as<u32>().store_vector(std::array{four(0), four(4), four(8), four(12)});
  }

  dsl::Kernel& k_;
  ItemSource src_;
  BlockU32 size_;
  BlockU32 start_end_;  // no match starts at or after this position
  Block& block_;
  ChunkWorkspace workspace_;
  StepTable<kHighStep, kHighHashBits, kHighShortNamesBits> short_;
  StepTable<kHighStep, kHighHashBits, kHighLongNamesBits> long_;
};

}  // namespace ptxkit::kernels
