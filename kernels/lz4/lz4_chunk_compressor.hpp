// Match finding of a CTA in a chunk, for lz4_compress_chunk and lz4_batch_compress_chunk: the parse of
// lz4_compress_reference.cpp.
//
// All positions of a tile are looked up in the table, then inserted, then looked up again. The second lookup finds the
// candidates within the tile. Insertion is an atomic maximum, which keeps the first position of the last tile in any
// order, so the warps synchronise only by the barriers between these steps. A tile needs two barriers, since it is
// looked up and inserted while the previous tile is parsed and written (lz4_segments.hpp).
#pragma once

#include <deque>

#include "kernels/lz4/lz4_segments.hpp"

namespace ptxkit::kernels {

template <class Block, uint32_t MaxOffset = kMaxOffset>
class ChunkCompressor {
 public:
  static constexpr uint32_t kTableWords = 1u << kChunkHashBits;  // see chunk_entry

  ChunkCompressor(dsl::Kernel& k, const ItemSource& src, const BlockU32&, Block& block, const ChunkWorkspace& workspace)
      : k_(k), src_(src), start_end_(block.start_end()), block_(block), workspace_(workspace) {}

  // Writes the block. It contains barriers, so all warps call it, even if `needless` says that there is nothing to do.
  void compress(const WarpBool& needless) {
    block_.begin();
    Looked looked(k_);
    const auto busy = [&](const WarpU32& begin) { return (begin < start_end_) & !needless; };
    const WarpU32 first = k_.warp() * kChunkSegment;
    k_.if_(busy(first), [&] { look_up(first, looked); });
    k_.barrier();
    k_.if_(busy(first), [&] { enter(first, looked); });
    k_.barrier();
    k_.range(0, start_end_, kChunkTile, [&](const auto& tile) {
      const WarpU32 begin = tile + first, next = begin + kChunkTile;
      WarpVar listed(k_, 0);
      k_.if_(busy(begin), [&] {
        choose_candidates(begin, looked);
        k_.sync_warp();
        listed = block_.parse_segment(begin);
      });
      block_.publish(*listed);
      k_.if_(busy(next), [&] { look_up(next, looked); });
      k_.barrier();  // the records are complete, and the next tile has been looked up
      k_.if_(busy(next), [&] { enter(next, looked); });
      block_.write_tile(tile);  // contains a barrier, after which the next tile has been inserted
    });
    block_.finish(needless);
  }

  static constexpr uint32_t kMinBlocks = 4;  // three CTAs an SM without spills are slower

 private:
  static constexpr uint32_t kGroup = 8, kGroups = 2;
  static constexpr uint32_t kLineBytes = 128;  // of an L2 line
  static_assert(kGroup * dsl::kWarpLanes == kChunkGroup && kGroup * kGroups == kLanePositions);

  using Parser = typename Block::Parser;

  // What a lane keeps of its positions between the steps: their hashes, and the entries found before the tile was
  // inserted (the high halves of two in each word).
  struct Looked {
    std::deque<LaneVar> hashes, earlier;

    explicit Looked(dsl::Kernel& k) {
      for (uint32_t i = 0; i < kLanePositions; ++i) hashes.emplace_back(k, k.constant<uint32_t>(0));
      for (uint32_t i = 0; i < kLanePositions / 2; ++i) earlier.emplace_back(k, k.constant<uint32_t>(0));
    }
  };

  // The lane's first position in a group of the segment.
  LaneU32 first_of(const WarpU32& begin, uint32_t group) {
    return begin + k_.constant(group * kGroup * dsl::kWarpLanes) + times<kGroup>(k_.lane());
  }

  // The four bytes at each of the eight positions of a group, at the position before it and at four after it. At
  // positions where no match may start, the bytes belong to other positions.
  std::array<LaneU32, kGroup + 5> words_at(const LaneU32& first) {
    const auto index = times<kGroup / 4>(min(first, start_end_ - 1) / kGroup);
    const auto words = src_.as<uint32_t>().at(index);
    const LaneU32 before = src_.as<uint32_t>().at(max(index, 1) - 1).load();
    const auto [a, b] = words.template load_vector<2>();
    const auto [c, d] = words.template at<2>().template load_vector<2>();
    const auto word = [&](const LaneU32& from, const LaneU32& to, uint32_t byte) {
      return funnel_right(from, to, k_.constant<uint32_t>(8 * byte));
    };
    return {word(before, a, 3), a, word(a, b, 1), word(a, b, 2), word(a, b, 3), b, word(b, c, 1), word(b, c, 2),
            word(b, c, 3),      c, word(c, d, 1), word(c, d, 2), word(c, d, 3)};
  }

  auto slot(const LaneU32& hash) { return workspace_.table.at(hash >> (32 - kChunkHashBits)); }

  static LaneBool agrees(const LaneU32& entry, const LaneU32& hash) { return ((entry ^ hash) & 0x7FFF) == 0; }

  // The high halves of two words, packed into one.
  LaneU32 high_halves(const LaneU32& first, const LaneU32& second) {
    return prmt(first, second, k_.constant<uint32_t>(0x7632));
  }

  void look_up(const WarpU32& begin, Looked& looked) {
    for (uint32_t group = 0; group < kGroups; ++group) {
      const LaneU32 first = first_of(begin, group);
      const auto words = words_at(first);
      const LaneU32 place = (first ^ (kChunkTile - 1)) << 16;
      std::vector<LaneU32> found;
      for (uint32_t i = 0; i < kGroup; ++i) {
        const LaneU32 hash = words[i + 1] * kHashMultiplier;
        const LaneU32 entry = slot(hash).load();
        looked.hashes[group * kGroup + i] = hash;
        found.push_back(select(agrees(entry, hash), entry, place - k_.constant(i << 16)));
      }
      for (uint32_t i = 0; i < kGroup; i += 2)
        looked.earlier[(group * kGroup + i) / 2] = high_halves(found[i], found[i + 1]);
    }
  }

  void enter(const WarpU32& begin, const Looked& looked) {
    const LaneU32 ahead = begin + kChunkTile + k_.lane() * kLineBytes;
    k_.if_((ahead < start_end_) & (k_.lane() < kChunkSegment / kLineBytes), [&] { src_.at(ahead).prefetch_l2(); });
    for (uint32_t group = 0; group < kGroups; ++group) {
      const LaneU32 first = first_of(begin, group);
      const LaneU32 place = (first ^ (kChunkTile - 1)) << 16;
      for (uint32_t i = 0; i < kGroup; ++i) {
        const LaneU32 hash = *looked.hashes[group * kGroup + i];
        const LaneU32 entry = prmt(hash, place - k_.constant(i << 16), k_.constant<uint32_t>(0x7610));
        if (i == 0) {
          atomic_max(slot(hash), entry, dsl::Order::relaxed, dsl::Scope::cta);
        } else {
          // Of equal hashes the first position is kept, so the second position of a repeated byte skips its atomic
          // operation.
          atomic_max_if(hash != *looked.hashes[group * kGroup + i - 1], slot(hash), entry, dsl::Order::relaxed,
                        dsl::Scope::cta);
        }
      }
    }
  }

  // Stores a candidate for each position of the segment: the previous position if its byte is repeated, otherwise the
  // first position of the tile that has the hash and is earlier, otherwise one from before the tile; the position
  // itself if there is none.
  void choose_candidates(const WarpU32& begin, const Looked& looked) {
    const WarpU32 parse_end = min(start_end_, begin + (kChunkSegment - (kMinMatch - 1)));
    for (uint32_t group = 0; group < kGroups; ++group) {
      const LaneU32 first = first_of(begin, group);
      // the largest entry that the group's first position can have
      const LaneU32 own_and_later = (first ^ (kChunkTile - 1)) << 16 | 0xFFFF;
      const auto words = words_at(first);
      std::vector<LaneU32> candidates, scores;
      for (uint32_t i = 0; i < kGroup; ++i) {
        const LaneU32 hash = words[i + 1] * kHashMultiplier, pair = *looked.earlier[(group * kGroup + i) / 2];
        const LaneU32 entry = slot(hash).load();
        const LaneBool in_tile = agrees(entry, hash) & (entry > own_and_later - k_.constant(i << 16));
        const LaneU32 latest = chunk_position(LaneU32(select(in_tile, entry, i % 2 == 0 ? pair << 16 : pair)));
        const LaneU32 position = first + k_.constant(i);
        // position 0 gets one that is not before it
        const LaneU32 candidate = select(words[i + 1] == words[i], position - 1, latest);
        candidates.push_back(candidate);
        // Lanes without a candidate read one common address: reads of different lines in one bank are serialised in L1.
        const LaneBool valid = is_in_window<MaxOffset>(candidate, position) & (position < parse_end);
        scores.push_back(Parser::score(src_, words[i + 1], words[i + 5], select(valid, candidate, begin), valid));
      }
      const auto pair = [&](uint32_t i) {
        return prmt(candidates[i], candidates[i + 1], k_.constant<uint32_t>(0x5410));
      };
      const auto four = [&](uint32_t i) {
        const auto two = [&](uint32_t at) { return prmt(scores[at], scores[at + 1], k_.constant<uint32_t>(0x0040)); };
        return prmt(two(i), two(i + 2), k_.constant<uint32_t>(0x5410));
      };
      const LaneU32 low = four(0), high = four(4);
      // The last lane's next positions belong to another group.
      const LaneU32 beyond = select(k_.lane() == dsl::kWarpLanes - 1, 0, shuffle_down(low, 1));
      const auto index = times<kGroup>((first - begin) / kGroup);
      workspace_.candidates(k_.warp()).at(index).template as<uint32_t>().store_vector(
          std::array{pair(0), pair(2), pair(4), pair(6)});
      workspace_.scores.at(times<kChunkSegment>(k_.warp()))
          .at(index)
          .template as<uint32_t>()
          .store_vector(std::array{starts_of(low, high), starts_of(high, beyond)});
    }
  }

  // Of four scores, one in each byte, keeps those at which a match is to start and clears the others. `next` has the
  // following four scores. It computes Parser::stays for all bytes at once: a difference keeps its byte's high bit if
  // nothing is borrowed.
  LaneU32 starts_of(const LaneU32& scores, const LaneU32& next) {
    const LaneU32 by_1 = funnel_right(scores, next, k_.constant<uint32_t>(8));
    const LaneU32 by_2 = funnel_right(scores, next, k_.constant<uint32_t>(16));
    const LaneU32 stays = (scores + 0x80808080u - by_1) & (scores + 0x81818181u - by_2) & 0x80808080u;
    return scores & ((stays >> 7) * 0xFF);
  }

  dsl::Kernel& k_;
  ItemSource src_;
  BlockU32 start_end_;  // no match starts at or after this position
  Block& block_;
  ChunkWorkspace workspace_;
};

}  // namespace ptxkit::kernels
