// The parse of lz77_hash, lz77_lazy and demux without what it does not use. A token needs the matches of at most three
// positions, and none inside a match; of the two after a position only whether they are longer than its own.
//
// All positions of a hash value stand one behind the other, so that the 64 nearest candidates of a position are the 64
// entries before its own. Beside each entry are its next eight bytes: most candidates are settled by comparing those,
// eight entries at a time, without a look at where they point to.
#include <algorithm>
#include <bit>

#include "kernels/lz4/lz4_format.hpp"
#include "kernels/lz77/lz77_reference.hpp"
#include "runtime/backend/cpu/coders/coders.hpp"
#include "runtime/backend/cpu/coders/features.hpp"
#include "runtime/backend/cpu/coders/memory.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ptxkit::cpu {
namespace {

using kernels::kLzMaxLinks;
using kernels::kLzMinMatch;
using kernels::StreamStatus;

constexpr size_t kCompared = 8;  // bytes beside an entry
static_assert(kLzMaxLinks == 64, "a bit of a u64 for each candidate");

// Bit j: candidate j, the nearest highest, agrees in the first 4, 5, 6, 7 or 8 bytes.
using Agreeing = std::array<uint64_t, kCompared - kLzMinMatch + 1>;

// The entries of one hash value in front of a position, up to 64 of them, the last the nearest.
struct Candidates {
  const uint32_t* first;  // 64 entries from here on, of which only the last `count` are candidates
  const uint32_t* second;
  uint32_t count;
};

Agreeing compare(const Candidates& candidates, uint32_t first, uint32_t second) {
  Agreeing agreeing{};
  for (uint32_t j = kLzMaxLinks - candidates.count; j < kLzMaxLinks; ++j) {
    if (candidates.first[j] != first) continue;
    const auto bytes = static_cast<size_t>(std::countr_zero(candidates.second[j] ^ second)) / 8;
    for (size_t i = 0; i <= bytes; ++i) agreeing[i] |= uint64_t{1} << j;
  }
  return agreeing;
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] Agreeing compare_avx2(const Candidates& candidates, uint32_t first, uint32_t second) {
  Agreeing agreeing{};
  const uint32_t unused = kLzMaxLinks - candidates.count, begin = unused / 8 * 8;
  const __m256i wanted_first = _mm256_set1_epi32(static_cast<int>(first));
  const __m256i wanted_second = _mm256_set1_epi32(static_cast<int>(second));
  const __m256i zero = _mm256_setzero_si256();
  for (uint32_t j = begin; j < kLzMaxLinks; j += 8) {
    const __m256i entries = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(candidates.first + j));
    const __m256i same = _mm256_cmpeq_epi32(entries, wanted_first);
    agreeing[0] |= static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(same)))) << j;
  }
  const uint64_t used = ~uint64_t{0} << unused;
  agreeing[0] &= used;
  if (agreeing[0] == 0) return agreeing;
  for (uint32_t j = begin; j < kLzMaxLinks; j += 8) {
    const __m256i differing =
        _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(candidates.second + j)), wanted_second);
    const __m256i same[] = {_mm256_cmpeq_epi32(_mm256_slli_epi32(differing, 24), zero),
                            _mm256_cmpeq_epi32(_mm256_slli_epi32(differing, 16), zero),
                            _mm256_cmpeq_epi32(_mm256_slli_epi32(differing, 8), zero),
                            _mm256_cmpeq_epi32(differing, zero)};
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      agreeing[i + 1] |= static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(same[i]))))
                         << j;
    }
  }
  for (size_t i = 1; i < agreeing.size(); ++i) agreeing[i] &= agreeing[0];
  return agreeing;
}
#endif

struct Match {
  uint32_t offset = 0, length = 0;
};

class MatchFinder {
 public:
  // `src` has at least kLzMinMatch bytes.
  explicit MatchFinder(Bytes src)
      : src_(src),
        hashed_(src.size() - kLzMinMatch + 1),
        ranks_(uncleared<uint32_t>(hashed_)),
        positions_(uncleared<uint32_t>(hashed_)),
        first_(uncleared<uint32_t>(kLzMaxLinks + hashed_)),
        second_(uncleared<uint32_t>(kLzMaxLinks + hashed_)),
        starts_(uncleared<uint32_t>(kBuckets + 1)) {
    std::fill_n(starts_.get(), kBuckets + 1, 0u);
    for (size_t i = 0; i < hashed_; ++i) ++starts_[bucket(i) + 1];
    for (size_t b = 0; b < kBuckets; ++b) starts_[b + 1] += starts_[b];
    // Of an entry, the bucket's start moves on; in the end each is where the next bucket's was.
    std::fill_n(first_.get(), kLzMaxLinks, 0u);
    std::fill_n(second_.get(), kLzMaxLinks, 0u);
    for (size_t i = 0; i < hashed_; ++i) {
      const uint32_t rank = ranks_[i] = starts_[bucket(i)]++;
      positions_[rank] = static_cast<uint32_t>(i);
      first_[kLzMaxLinks + rank] = load<uint32_t>(&src_[i]);
      second_[kLzMaxLinks + rank] = i + kCompared <= src_.size() ? load<uint32_t>(&src_[i + kLzMinMatch]) : 0;
    }
  }

  // The longest match that is longer than `floor`, which is at least kLzMinMatch - 1; the nearest of equals. Length 0:
  // there is none.
  Match find(size_t at, uint32_t floor) const {
    if (at >= hashed_) return {};
    const auto limit = static_cast<uint32_t>(std::min<size_t>(src_.size() - at, kernels::kLzMaxMatch));
    const uint32_t rank = ranks_[at], b = bucket(at), start = b == 0 ? 0 : starts_[b - 1];
    const uint32_t count = std::min(kLzMaxLinks, rank - start);
    if (count == 0 || limit <= floor) return {};
    if (limit < kCompared) return find_near_the_end(at, floor, limit, rank, count);

    const Candidates candidates{&first_[rank], &second_[rank], count};
    const auto first = load<uint32_t>(&src_[at]), second = load<uint32_t>(&src_[at + kLzMinMatch]);
    const Agreeing agreeing = compare_all(candidates, first, second);
    Match best{0, floor};
    for (uint64_t left = agreeing.back(); left != 0 && best.length < limit;) {
      const uint32_t candidate = take_nearest(left, rank);
      if (at - candidate > kernels::kLzMaxOffset) break;
      // Only a match that has the byte behind the longest, and those before it, is longer.
      if (best.length >= kCompared && eight_bytes_to(candidate + best.length) != eight_bytes_to(at + best.length))
        continue;
      const uint32_t length = match_length(at, candidate, limit);
      if (length > best.length) best = {static_cast<uint32_t>(at - candidate), length};
    }
    for (uint32_t length = kCompared - 1; best.offset == 0 && length > floor; --length) {
      uint64_t left = agreeing[length - kLzMinMatch];
      if (left == 0) continue;
      const uint32_t candidate = take_nearest(left, rank);
      if (at - candidate <= kernels::kLzMaxOffset) best = {static_cast<uint32_t>(at - candidate), length};
    }
    return best.offset == 0 ? Match{} : best;
  }

 private:
  static constexpr size_t kBuckets = size_t{1} << kernels::kLzHashBits;

  uint32_t bucket(size_t at) const {
    return load<uint32_t>(&src_[at]) * kernels::kHashMultiplier >> (32 - kernels::kLzHashBits);
  }

  static Agreeing compare_all(const Candidates& candidates, uint32_t first, uint32_t second) {
#if defined(__x86_64__)
    if (vectors >= Vectors::avx2) return compare_avx2(candidates, first, second);
#endif
    return compare(candidates, first, second);
  }

  uint32_t take_nearest(uint64_t& left, uint32_t rank) const {
    const auto j = static_cast<uint32_t>(std::bit_width(left) - 1);
    left ^= uint64_t{1} << j;
    return positions_[rank - kLzMaxLinks + j];
  }

  uint64_t eight_bytes_to(size_t last) const { return load<uint64_t>(&src_[last - 7]); }

  uint32_t match_length(size_t a, size_t b, uint32_t limit) const {
    uint32_t length = 0;
    for (; length + 8 <= limit; length += 8) {
      const uint64_t differing = load<uint64_t>(&src_[a + length]) ^ load<uint64_t>(&src_[b + length]);
      if (differing != 0) return length + static_cast<uint32_t>(std::countr_zero(differing)) / 8;
    }
    while (length < limit && src_[a + length] == src_[b + length]) ++length;
    return length;
  }

  // Where eight bytes are not there to compare.
  Match find_near_the_end(size_t at, uint32_t floor, uint32_t limit, uint32_t rank, uint32_t count) const {
    Match best{0, floor};
    for (uint32_t k = 1; k <= count && at - positions_[rank - k] <= kernels::kLzMaxOffset; ++k) {
      const uint32_t length = match_length(at, positions_[rank - k], limit);
      if (length > best.length) best = {static_cast<uint32_t>(at - positions_[rank - k]), length};
    }
    return best.offset == 0 ? Match{} : best;
  }

  Bytes src_;
  size_t hashed_;  // positions with four bytes
  std::unique_ptr<uint32_t[]> ranks_, positions_;
  std::unique_ptr<uint32_t[]> first_, second_;  // by rank, behind kLzMaxLinks that are no entries
  std::unique_ptr<uint32_t[]> starts_;          // of the bucket after
};

// The streams of an LZ block.
class Streams {
 public:
  explicit Streams(size_t raw_bytes)
      : flags_(uncleared<uint32_t>(raw_bytes / 32 + raw_bytes / kernels::kLzSegmentBytes + 2)),
        literals_(uncleared<uint8_t>(raw_bytes)),
        lengths_(uncleared<uint8_t>(raw_bytes / kLzMinMatch)),
        low_(uncleared<uint8_t>(raw_bytes / kLzMinMatch)),
        high_(uncleared<uint8_t>(raw_bytes / kLzMinMatch)) {}

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
    append(flags_.get(), 4 * word_count_);
    append(literals_.get(), literal_count_);
    for (const auto* stream : {&lengths_, &low_, &high_}) append(stream->get(), match_count_);
    return {StreamStatus::ok, static_cast<uint32_t>(size)};
  }

 private:
  void next_token() {
    if (token_ == 32) {
      flags_[word_count_++] = 0;
      token_ = 0;
    }
    ++token_;
  }

  std::unique_ptr<uint32_t[]> flags_;
  std::unique_ptr<uint8_t[]> literals_, lengths_, low_, high_;
  size_t word_count_ = 0, literal_count_ = 0, match_count_ = 0;
  uint32_t token_ = 32;  // of the last word
};

// Whether a token at a position is a match, and which.
class LazyParser {
 public:
  explicit LazyParser(Bytes src) : finder_(src) {}

  Match at(size_t position) {
    const Match match = found(position);
    if (match.length == 0) return {};
    if (gives_way(position + 1, match.length) || gives_way(position + 2, match.length + 1)) return {};
    return match;
  }

 private:
  Match found(size_t position) const {
    return position == known_at_ ? known_ : finder_.find(position, kLzMinMatch - 1);
  }
  // Whether a position has a match longer than `floor`, which is then known in whole.
  bool gives_way(size_t position, uint32_t floor) {
    if (position == known_at_) return known_.length > floor;
    const Match match = finder_.find(position, floor);
    if (match.length == 0) return false;
    known_ = match;
    known_at_ = position;
    return true;
  }

  MatchFinder finder_;
  size_t known_at_ = ~size_t{0};
  Match known_;
};

}  // namespace

TransformOutcome lz77_encode(Bytes src, MutableBytes dst) {
  if (std::max(src.size(), dst.size()) > kernels::kMaxTransformBytes) return {StreamStatus::item_too_large, 0};
  Streams streams(src.size());
  if (src.size() < kLzMinMatch) {
    streams.begin_segment();
    for (const uint8_t byte : src) streams.literal(byte);
    return streams.write(src.size(), dst);
  }
  LazyParser parser(src);
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

}  // namespace ptxkit::cpu
