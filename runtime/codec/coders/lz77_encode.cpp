// The parse of the references lz77_hash or lz77_table, lz77_lazy and demux, without the parts whose results they
// discard. A token needs the matches of at most three positions, and none inside a match. Of the two positions after
// the current one it only matters whether their matches are longer.
//
// Chains: the positions of a hash value are stored next to each other, the last one first, so the 64 nearest candidates
// of a position are the 64 entries after its own. The first eight bytes at each entry's position are spread over
// planes, one byte in each, so that one plane of all 64 candidates is compared at once. This settles most candidates
// without loading the bytes at their positions.
#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <span>
#include <tuple>

#include "kernels/lz4/lz4_format.hpp"
#include "kernels/lz77/abi.hpp"
#include "kernels/transform_abi.hpp"
#include "runtime/codec/coders/coders.hpp"
#include "runtime/codec/coders/features.hpp"
#include "runtime/codec/coders/memory.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ptxkit::cpu {
namespace {

using kernels::kLzMaxLinks;
using kernels::kLzMinMatch;
using kernels::StreamStatus;

constexpr size_t kCompared = 8;  // bytes that the planes represent
static_assert(kLzMaxLinks == 64, "a bit of a u64 for each candidate");

// The first plane has 8 of the 17 bits that remain of the product of the first four bytes after the hash; the others
// have one of the following bytes each.
constexpr size_t kBytePlanes = kCompared - kLzMinMatch, kPlanes = 1 + kBytePlanes;
using Planes = std::array<uint8_t, kPlanes>;

uint32_t product_at(const uint8_t* bytes) { return load<uint32_t>(bytes) * kernels::kHashMultiplier; }
uint32_t hash_of(uint32_t product) { return product >> (32 - kernels::kLzHashBits); }
uint8_t tag_of(uint32_t product) { return static_cast<uint8_t>(product >> (24 - kernels::kLzHashBits)); }

// Bit j stands for candidate j (the nearest is bit 0). Mask i: candidates that agree in the first 4 + i bytes, as far
// as the first plane tells for the first four.
using Agreeing = std::array<uint64_t, kBytePlanes + 1>;

// Compares the entries of each plane from `first` on, whose bits are set in `used`; planes are `stride` bytes apart.
Agreeing compare(const uint8_t* first, size_t stride, const Planes& wanted, uint64_t used) {
  Agreeing agreeing{};
  for (; used != 0; used &= used - 1) {
    const auto j = static_cast<size_t>(std::countr_zero(used));
    size_t plane = 0;
    while (plane < kPlanes && first[plane * stride + j] == wanted[plane]) ++plane;
    for (size_t i = 1; i <= plane; ++i) agreeing[i - 1] |= uint64_t{1} << j;
  }
  return agreeing;
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] inline uint64_t equal_bytes_avx2(const uint8_t* bytes, uint8_t wanted) {
  const __m256i all = _mm256_set1_epi8(static_cast<char>(wanted));
  const auto* const halves = reinterpret_cast<const __m256i*>(bytes);
  const auto low = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256(halves), all)));
  const auto high = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256(halves + 1), all)));
  return low | uint64_t{high} << 32;
}

[[gnu::target("avx2")]] Agreeing compare_avx2(const uint8_t* first, size_t stride, const Planes& wanted,
                                              uint64_t used) {
  Agreeing agreeing;
  agreeing[0] = used & equal_bytes_avx2(first, wanted[0]);
#pragma GCC unroll 4
  for (size_t i = 1; i < kPlanes; ++i) {
    agreeing[i] = agreeing[i - 1] & equal_bytes_avx2(first + i * stride, wanted[i]);
  }
  return agreeing;
}
#endif

struct Match {
  uint32_t offset = 0, length = 0;
};

// The number of equal bytes at `a` and `b` < `a`, up to `limit`.
uint32_t match_length(Bytes src, size_t a, size_t b, uint32_t limit) {
  uint32_t length = 0;
  for (; length + 8 <= limit; length += 8) {
    const uint64_t differing = load<uint64_t>(&src[a + length]) ^ load<uint64_t>(&src[b + length]);
    if (differing != 0) return length + static_cast<uint32_t>(std::countr_zero(differing)) / 8;
  }
  while (length < limit && src[a + length] == src[b + length]) ++length;
  return length;
}

class ChainFinder {
 public:
  static size_t workspace_bytes(size_t raw_bytes) {
    return Workspace::bytes_of<Entry>(raw_bytes) + Workspace::bytes_of<uint32_t>(raw_bytes) +
           Workspace::bytes_of<uint8_t>(kPlanes * (raw_bytes + kLzMaxLinks)) + Workspace::bytes_of<Entry>(kBuckets);
  }

  // `src`: kLzMinMatch bytes or more.
  ChainFinder(Bytes src, Workspace& workspace)
      : src_(src),
        hashed_(src.size() - kLzMinMatch + 1),
        stride_(hashed_ + 1 + kLzMaxLinks),
        entries_(workspace.array<Entry>(hashed_)),
        positions_(workspace.array<uint32_t>(hashed_)),
        planes_(workspace.array<uint8_t>(kPlanes * stride_)) {
    // Each bucket's counter runs from its end to its start.
    auto* const buckets = workspace.array<Entry>(kBuckets);
    std::fill_n(buckets, kBuckets, Entry{0});
    for (size_t i = 0; i < hashed_; ++i) ++buckets[hash_of(product_at(&src_[i]))];
    std::partial_sum(buckets, buckets + kBuckets, buckets);
    for (size_t i = 0; i < hashed_; ++i) {
      const uint32_t hash = hash_of(product_at(&src_[i]));
      const Entry entry = entries_[i] = buckets[hash] - 1;
      buckets[hash] = entry + (candidates_of(entry) < kLzMaxLinks ? 1u << kRankBits : 0);
      positions_[rank_of(entry)] = static_cast<uint32_t>(i);
    }
    for (size_t rank = 0; rank < hashed_; ++rank) {
      const size_t i = positions_[rank];
      planes_[rank] = tag_of(product_at(&src_[i]));
      // The zeros do no harm: only positions with eight bytes look at these planes, and all their candidates have eight
      // bytes, too.
      const uint32_t behind = i + kCompared <= src_.size() ? load<uint32_t>(&src_[i + kLzMinMatch]) : 0;
#pragma GCC unroll 4
      for (size_t plane = 1; plane < kPlanes; ++plane) {
        planes_[plane * stride_ + rank] = static_cast<uint8_t>(behind >> 8 * (plane - 1));
      }
    }
    for (size_t plane = 0; plane < kPlanes; ++plane) {
      std::fill_n(&planes_[plane * stride_ + hashed_], kLzMaxLinks + 1, uint8_t{0});
    }
  }

  // The longest match longer than `floor` (at least kLzMinMatch - 1), the nearest of equally long ones. Length 0: none.
  Match find(size_t at, uint32_t floor) const {
    if (at >= hashed_) return {};
    const auto limit = static_cast<uint32_t>(std::min<size_t>(src_.size() - at, kernels::kLzMaxMatch));
    const Entry entry = entries_[at];
    const uint32_t count = candidates_of(entry), first_rank = rank_of(entry) + 1;
    if (count == 0 || limit <= floor) return {};
    const uint32_t* const candidates = &positions_[first_rank];  // nearest first
    if (limit < kCompared) return find_near_the_end(at, floor, limit, {candidates, count});

    const uint64_t used = ~uint64_t{0} >> (kLzMaxLinks - count);
    const Planes wanted = {tag_of(product_at(&src_[at])), src_[at + 4], src_[at + 5], src_[at + 6], src_[at + 7]};
    const Agreeing agreeing = compare_all(&planes_[first_rank], wanted, used);
    if (agreeing[0] == 0) return {};
    const auto first = load<uint32_t>(&src_[at]);
    Match best{0, floor};
    for (uint64_t left = agreeing.back(); left != 0 && best.length < limit; left &= left - 1) {
      const uint32_t candidate = candidates[std::countr_zero(left)];
      if (at - candidate > kernels::kLzMaxOffset) break;
      // A longer match must also agree in the byte after the best length and in those before it.
      if (best.length >= kCompared && eight_bytes_to(candidate + best.length) != eight_bytes_to(at + best.length))
        continue;
      const uint32_t length = match_length(src_, at, candidate, limit);
      if (length > best.length) best = {static_cast<uint32_t>(at - candidate), length};
    }
    for (uint32_t length = kCompared - 1; best.offset == 0 && length > floor; --length) {
      for (uint64_t left = agreeing[length - kLzMinMatch]; left != 0; left &= left - 1) {
        const uint32_t candidate = candidates[std::countr_zero(left)];
        if (at - candidate > kernels::kLzMaxOffset) break;
        if (load<uint32_t>(&src_[candidate]) == first) return {static_cast<uint32_t>(at - candidate), length};
      }
    }
    return best.offset == 0 ? Match{} : best;
  }

 private:
  // A rank in the low bits, and above it the number of candidates after that rank.
  using Entry = uint32_t;
  static constexpr uint32_t kRankBits = 24;
  static_assert(kernels::kMaxTransformBytes < 1u << kRankBits);
  static uint32_t rank_of(Entry entry) { return entry & ((1u << kRankBits) - 1); }
  static uint32_t candidates_of(Entry entry) { return entry >> kRankBits; }

  static constexpr size_t kBuckets = size_t{1} << kernels::kLzHashBits;

  Agreeing compare_all(const uint8_t* first, const Planes& wanted, uint64_t used) const {
#if defined(__x86_64__)
    if (vectors >= Vectors::avx2) return compare_avx2(first, stride_, wanted, used);
#endif
    return compare(first, stride_, wanted, used);
  }

  uint64_t eight_bytes_to(size_t last) const { return load<uint64_t>(&src_[last - 7]); }

  // For positions with fewer than kCompared bytes left.
  Match find_near_the_end(size_t at, uint32_t floor, uint32_t limit, std::span<const uint32_t> candidates) const {
    Match best{0, floor};
    for (const uint32_t candidate : candidates) {
      if (at - candidate > kernels::kLzMaxOffset) break;
      const uint32_t length = match_length(src_, at, candidate, limit);
      if (length > best.length) best = {static_cast<uint32_t>(at - candidate), length};
    }
    return best.offset == 0 ? Match{} : best;
  }

  Bytes src_;
  size_t hashed_, stride_;  // positions with four bytes; distance between planes
  Entry* entries_;
  uint32_t* positions_;  // in the order of ranks, as the planes
  uint8_t* planes_;
};

// The matches of lz77_table. The tables are not cleared between the parts of a block: entries that a part's own table
// would lack are too far back and are ignored.
class TableFinder {
 public:
  static size_t workspace_bytes(size_t) {
    return Workspace::bytes_of<uint32_t>(kShortSlots) + Workspace::bytes_of<uint32_t>(kLongSlots) +
           2 * Workspace::bytes_of<uint32_t>(kNames) + Workspace::bytes_of<Distances>(kKept);
  }

  TableFinder(Bytes src, Workspace& workspace)
      : src_(src),
        hashed_(src.size() - std::min(src.size(), kCompared - 1)),
        short_{32 - kernels::kLzTableShortBits, workspace.array<uint32_t>(kShortSlots),
               workspace.array<uint32_t>(kNames)},
        long_{32 - kernels::kLzTableLongBits, workspace.array<uint32_t>(kLongSlots), workspace.array<uint32_t>(kNames)},
        found_(workspace.array<Distances>(kKept)) {
    std::fill_n(short_.last, kShortSlots, 0u);
    std::fill_n(long_.last, kLongSlots, 0u);
  }

  // The match at `at`, if it is longer than `floor`. Positions must ascend, except that the next two may be asked for
  // first.
  Match find(size_t at, uint32_t floor) {
    if (at >= hashed_) return {};
    while (looked_up_ <= at) look_up_step();
    const auto wanted = load<uint64_t>(&src_[at]);
    uint32_t best = 0;
    const auto offer = [&](uint32_t distance) {
      const bool is_before = distance - 1 < at;
      const uint64_t differing = wanted ^ load<uint64_t>(&src_[is_before ? at - distance : at]);
      const auto agree = std::min<uint32_t>(static_cast<uint32_t>(std::countr_zero(differing)) / 8, kCompared);
      const uint32_t offered = agree << 16 | (kernels::kLzMaxOffset - distance);
      best = std::max(best, is_before && agree >= kLzMinMatch ? offered : 0);
    };
    offer(1);
    for (const uint32_t distance : found_[at % kKept]) offer(distance);
    if (best == 0) return {};
    Match match{kernels::kLzMaxOffset - (best & kernels::kLzMaxOffset), best >> 16};
    if (match.length == kCompared) {
      const auto limit = static_cast<uint32_t>(std::min<size_t>(src_.size() - at, kernels::kLzMaxMatch));
      match.length = match_length(src_, at, at - match.offset, limit);
    }
    return match.length > floor ? match : Match{};
  }

 private:
  static constexpr size_t kShortSlots = size_t{1} << kernels::kLzTableShortBits,
                          kLongSlots = size_t{1} << kernels::kLzTableLongBits,
                          kNames = size_t{1} << kernels::kLzTableNamesBits, kStep = kernels::kLzTableStep;
  // A step is looked up while positions of the step before are still asked for.
  static constexpr size_t kKept = 2 * kStep;

  // Distances to the first position with the same hash in this step, and to the last one in earlier steps, for either
  // hash. 0: none.
  using Distances = std::array<uint16_t, 4>;

  // The table of one hash: the last position entered in each slot, and the first of the current step.
  struct Table {
    uint32_t shift;
    uint32_t *last, *first;

    uint32_t& last_of(uint32_t hash) const { return last[hash >> shift]; }
    uint32_t& first_of(uint32_t hash) const { return first[hash >> (32 - kernels::kLzTableNamesBits)]; }
  };

  void look_up_step() {
    const auto begin = static_cast<uint32_t>(looked_up_), end = static_cast<uint32_t>(std::min(hashed_, begin + kStep));
    const uint32_t part = begin - begin % kernels::kLzTablePart,
                   oldest = part - std::min(part, kernels::kLzTableBefore);
    uint32_t four[kStep], seven[kStep];
    for (uint32_t i = end; i-- > begin;) {  // descending: the first position remains
      const auto bytes = load<uint64_t>(&src_[i]);
      four[i - begin] = static_cast<uint32_t>(bytes) * kernels::kHashMultiplier;
      seven[i - begin] =
          (four[i - begin] + (static_cast<uint32_t>(bytes >> 32) & 0xFFFFFF)) * kernels::kLongHashMultiplier;
      short_.first_of(four[i - begin]) = long_.first_of(seven[i - begin]) = i;
    }
    // Positions that the part's own table would not have become 0 (none).
    const auto back = [&](uint32_t i, uint32_t last) { return static_cast<uint16_t>(last < oldest ? i : i - last); };
    for (uint32_t i = begin; i < end; ++i) {
      const uint32_t by_four = four[i - begin], by_seven = seven[i - begin];
      found_[i % kKept] = {static_cast<uint16_t>(i - short_.first_of(by_four)),
                           static_cast<uint16_t>(i - long_.first_of(by_seven)), back(i, short_.last_of(by_four)),
                           back(i, long_.last_of(by_seven))};
    }
    for (uint32_t i = begin; i < end; ++i) {
      if (short_.first_of(four[i - begin]) == i) short_.last_of(four[i - begin]) = i;
      if (long_.first_of(seven[i - begin]) == i) long_.last_of(seven[i - begin]) = i;
    }
    looked_up_ = begin + kStep;
  }

  Bytes src_;
  size_t hashed_;  // positions with eight bytes
  Table short_, long_;
  Distances* found_;  // of the last kKept positions looked up
  size_t looked_up_ = 0;
};

// The five streams of an LZ block.
class Streams {
 public:
  Streams(size_t raw_bytes, Workspace& workspace)
      : flags_(workspace.array<uint32_t>(max_words(raw_bytes))),
        literals_(workspace.array<uint8_t>(raw_bytes)),
        lengths_(workspace.array<uint8_t>(raw_bytes / kLzMinMatch)),
        low_(workspace.array<uint8_t>(raw_bytes / kLzMinMatch)),
        high_(workspace.array<uint8_t>(raw_bytes / kLzMinMatch)) {}

  static size_t workspace_bytes(size_t raw_bytes) {
    return Workspace::bytes_of<uint32_t>(max_words(raw_bytes)) + Workspace::bytes_of<uint8_t>(raw_bytes) +
           3 * Workspace::bytes_of<uint8_t>(raw_bytes / kLzMinMatch);
  }

  void begin_segment() { token_ = 32; }
  void literal(uint8_t byte) {
    next_token();
    literals_[literal_count_++] = byte;
  }
  void match(uint32_t offset, uint32_t length) {
    next_token();
    flags_[word_count_ - 1] |= 1u << (token_ - 1);
    lengths_[match_count_] = static_cast<uint8_t>(length - kLzMinMatch);
    low_[match_count_] = static_cast<uint8_t>(offset);
    high_[match_count_++] = static_cast<uint8_t>(offset >> 8);
  }

  TransformOutcome write(size_t raw_bytes, MutableBytes dst) const {
    const size_t size = kernels::kLzBlockHeaderBytes + 4 * word_count_ + literal_count_ + 3 * match_count_;
    if (size > dst.size()) return {StreamStatus::output_overrun, 0};
    uint8_t* to = dst.data();
    for (const size_t field : {raw_bytes, literal_count_, match_count_, word_count_}) {
      store(to, static_cast<uint32_t>(field));
      to += 4;
    }
    const auto append = [&](const void* from, size_t bytes) {
      to = std::copy_n(static_cast<const uint8_t*>(from), bytes, to);
    };
    append(flags_, 4 * word_count_);
    append(literals_, literal_count_);
    for (const uint8_t* stream : {lengths_, low_, high_}) append(stream, match_count_);
    return {StreamStatus::ok, static_cast<uint32_t>(size)};
  }

 private:
  static size_t max_words(size_t raw_bytes) { return raw_bytes / 32 + raw_bytes / kernels::kLzSegmentBytes + 2; }

  void next_token() {
    if (token_ == 32) {
      flags_[word_count_++] = 0;
      token_ = 0;
    }
    ++token_;
  }

  uint32_t* flags_;
  uint8_t *literals_, *lengths_, *low_, *high_;
  size_t word_count_ = 0, literal_count_ = 0, match_count_ = 0;
  uint32_t token_ = 32;  // tokens in the last word
};

// Decides whether the token at a position is a literal or a match (lazy matching).
template <class Finder>
class LazyParser {
 public:
  LazyParser(Bytes src, Workspace& workspace) : finder_(src, workspace) {}

  Match at(size_t position) {
    const Match match = found(position);
    if (match.length == 0) return {};
    if (gives_way(position + 1, match.length) || gives_way(position + 2, match.length + 1)) return {};
    return match;
  }

 private:
  Match found(size_t position) { return position == known_at_ ? known_ : finder_.find(position, kLzMinMatch - 1); }
  // Whether a position has a match longer than `floor`. If so, the match is remembered.
  bool gives_way(size_t position, uint32_t floor) {
    if (position == known_at_) return known_.length > floor;
    const Match match = finder_.find(position, floor);
    if (match.length == 0) return false;
    known_ = match;
    known_at_ = position;
    return true;
  }

  Finder finder_;
  size_t known_at_ = ~size_t{0};
  Match known_;
};

template <class Finder>
TransformOutcome encode(Bytes src, MutableBytes dst) {
  if (std::max(src.size(), dst.size()) > kernels::kMaxTransformBytes) return {StreamStatus::item_too_large, 0};
  Workspace workspace(Streams::workspace_bytes(src.size()) + Finder::workspace_bytes(src.size()));
  Streams streams(src.size(), workspace);
  if (src.size() < kLzMinMatch) {
    streams.begin_segment();
    for (const uint8_t byte : src) streams.literal(byte);
    return streams.write(src.size(), dst);
  }
  LazyParser<Finder> parser(src, workspace);
  for (size_t segment = 0; segment < src.size(); segment += kernels::kLzSegmentBytes) {
    const size_t end = std::min<size_t>(src.size(), segment + kernels::kLzSegmentBytes);
    streams.begin_segment();
    for (size_t i = segment; i < end;) {
      const Match match = end - i < kLzMinMatch ? Match{} : parser.at(i);
      if (match.length == 0) {
        streams.literal(src[i++]);
        continue;
      }
      const auto length = static_cast<uint32_t>(std::min<size_t>(match.length, end - i));
      streams.match(match.offset, length);
      i += length;
    }
  }
  return streams.write(src.size(), dst);
}

}  // namespace

TransformOutcome lz77_encode(Bytes src, MutableBytes dst) { return encode<ChainFinder>(src, dst); }
TransformOutcome lz77_encode_fast(Bytes src, MutableBytes dst) { return encode<TableFinder>(src, dst); }

}  // namespace ptxkit::cpu
