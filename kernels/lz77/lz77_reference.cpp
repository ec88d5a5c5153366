#include "kernels/lz77/lz77_reference.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/entropy/little_endian.hpp"
#include "kernels/lz4/lz4_format.hpp"

namespace ptxkit::kernels {
namespace {

// The number of bytes that agree at `a` and `b` < `a`: at most kLzMaxMatch, and not past the end.
uint32_t match_length(std::span<const uint8_t> src, size_t a, size_t b) {
  const size_t limit = std::min<size_t>(src.size() - a, kLzMaxMatch);
  uint32_t length = 0;
  for (; length + 8 <= limit; length += 8) {
    uint64_t here, there;
    std::memcpy(&here, &src[a + length], 8);
    std::memcpy(&there, &src[b + length], 8);
    if (here != there) break;
  }
  while (length < limit && src[a + length] == src[b + length]) ++length;
  return length;
}

// Calls body(candidate) for the links of `position`, near to far, at most `links` of them and at most `max_offset`
// back, until it returns false.
template <class Body>
void for_candidates(const std::vector<uint32_t>& nexts, size_t position, uint32_t max_offset, uint32_t links,
                    const Body& body) {
  for (uint32_t next = nexts[position]; next != 0 && links != 0; --links) {
    const uint32_t candidate = next - 1;
    if (position - candidate > max_offset || !body(candidate)) return;
    next = nexts[candidate];
  }
}

// The links alone, which is a third of the memory to walk.
std::vector<uint32_t> nexts_of(const LzMatches& matches) {
  std::vector<uint32_t> nexts(matches.size());
  for (size_t i = 0; i < nexts.size(); ++i) nexts[i] = matches[i].next;
  return nexts;
}

// The longest candidate of each position, the nearest of equals.
LzMatches find_longest(std::span<const uint8_t> src, uint32_t max_offset, uint32_t links) {
  LzMatches matches = lz77_link_reference(src);
  const std::vector<uint32_t> nexts = nexts_of(matches);
  for (size_t i = 0; i < src.size(); ++i) {
    uint32_t longest = kLzMinMatch - 1;
    for_candidates(nexts, i, max_offset, links, [&](uint32_t candidate) {
      // A longer match must agree in the byte after the longest so far. That byte exists, or the search would have
      // ended.
      if (src[candidate + longest] != src[i + longest]) return true;
      const uint32_t length = match_length(src, i, candidate);
      if (length > longest) {
        longest = length;
        matches[i].offset = static_cast<uint32_t>(i) - candidate;
        matches[i].length = length;
      }
      return length < std::min<size_t>(src.size() - i, kLzMaxMatch);  // no candidate can be longer
    });
  }
  return matches;
}

constexpr size_t kComparedAtOnce = 8;

// The tables of lz77_table for one hash: the last inserted position of each slot, modulo 65536, and the step's first
// position.
struct HashTable {
  explicit HashTable(uint32_t bits) : hash_bits(bits), last(size_t{1} << bits), firsts(1u << kLzTableNamesBits) {}
  uint16_t& last_of(uint32_t hash) { return last[hash >> (32 - hash_bits)]; }
  size_t& first_of(uint32_t hash) { return firsts[hash >> (32 - kLzTableNamesBits)]; }

  uint32_t hash_bits;
  std::vector<uint16_t> last;
  std::vector<size_t> firsts;
};

// Computes the part of lz77_table that begins at `begin`.
void find_by_tables(std::span<const uint8_t> src, size_t begin, LzMatches& matches) {
  HashTable of_four(kLzTableShortBits), of_seven(kLzTableLongBits);
  const auto hashes_at = [&](size_t i) {
    const uint32_t four = read_u32(&src[i]) * kHashMultiplier;
    return std::array{four, (four + (read_u32(&src[i + 4]) & 0xFFFFFF)) * kLongHashMultiplier};
  };
  const size_t end = std::min(src.size() - std::min(src.size(), kComparedAtOnce - 1), begin + kLzTablePart);
  for (size_t step = begin - std::min<size_t>(begin, kLzTableBefore); step < end; step += kLzTableStep) {
    const size_t step_end = std::min(end, step + kLzTableStep);
    for (size_t i = step_end; i-- > step;) {  // backwards, so that the first position remains
      const auto [four, seven] = hashes_at(i);
      of_four.first_of(four) = of_seven.first_of(seven) = i;
    }
    for (size_t i = std::max(begin, step); i < step_end; ++i) {
      const auto [four, seven] = hashes_at(i);
      const size_t backs[] = {1, i - of_four.first_of(four), i - of_seven.first_of(seven),
                              (i - of_four.last_of(four)) & kLzMaxOffset, (i - of_seven.last_of(seven)) & kLzMaxOffset};
      uint32_t longest = 0;
      for (const size_t back : backs) {
        if (back == 0 || back > i) continue;
        const uint32_t agree = std::min<uint32_t>(kComparedAtOnce, match_length(src, i, i - back));
        if (agree < kLzMinMatch || agree < longest || (agree == longest && back >= matches[i].offset)) continue;
        longest = agree;
        matches[i] = {static_cast<uint32_t>(back), match_length(src, i, i - back), 0};
      }
    }
    for (size_t i = step; i < step_end; ++i) {
      const auto [four, seven] = hashes_at(i);
      if (of_four.first_of(four) == i) of_four.last_of(four) = static_cast<uint16_t>(i);
      if (of_seven.first_of(seven) == i) of_seven.last_of(seven) = static_cast<uint16_t>(i);
    }
  }
}

}  // namespace

LzMatches lz77_link_reference(std::span<const uint8_t> src) {
  LzMatches matches(src.size());
  std::vector<uint32_t> heads(size_t{1} << kLzHashBits);
  for (size_t i = 0; i + kLzMinMatch <= src.size(); ++i) {
    uint32_t& head = heads[(read_u32(src.data() + i) * kHashMultiplier) >> (32 - kLzHashBits)];
    matches[i].next = head;
    head = static_cast<uint32_t>(i) + 1;
  }
  return matches;
}

LzMatches lz77_hash_reference(std::span<const uint8_t> src) { return find_longest(src, kLzMaxOffset, kLzMaxLinks); }

LzMatches lz77_table_reference(std::span<const uint8_t> src) {
  LzMatches matches(src.size());
  for (size_t begin = 0; begin < src.size(); begin += kLzTablePart) find_by_tables(src, begin, matches);
  return matches;
}

LzMatches lz77_batch_reference(std::span<const uint8_t> src) {
  return find_longest(src, kLzBatchMaxOffset, kLzBatchMaxLinks);
}

LzMatches lz77_lazy_reference(const LzMatches& matches) {
  LzMatches resolved = matches;
  const auto length_at = [&](size_t i) { return i < matches.size() ? matches[i].length : 0; };
  for (size_t i = 0; i < matches.size(); ++i) {
    if (length_at(i + 1) > length_at(i) || length_at(i + 2) > length_at(i) + 1) {
      resolved[i].offset = resolved[i].length = 0;
    }
  }
  return resolved;
}

LzMatches lz77_per_position_reference(std::span<const uint8_t> src, uint32_t window) {
  LzMatches matches(src.size());
  if (src.empty()) return matches;
  const size_t widest = std::min<size_t>(std::min(window, kLzMaxWindow), kLzMaxWindowWork / src.size());
  for (size_t i = 0; i < src.size(); ++i) {
    uint32_t longest = kLzMinMatch - 1;
    for (uint32_t offset = 1; offset <= std::min(i, widest); ++offset) {
      const uint32_t length = match_length(src, i, i - offset);
      if (length > longest) {
        longest = length;
        matches[i] = {offset, length, 0};
      }
      if (length == std::min<size_t>(src.size() - i, kLzMaxMatch)) break;  // no candidate can be longer
    }
  }
  return matches;
}

LzMatches lz77_topk_reference(std::span<const uint8_t> src) {
  const std::vector<uint32_t> nexts = nexts_of(lz77_link_reference(src));
  LzMatches candidates(src.size() * kLzTopK);
  for (size_t i = 0; i < src.size(); ++i) {
    const std::span<LzMatch> best(&candidates[i * kLzTopK], kLzTopK);
    for_candidates(nexts, i, kLzMaxOffset, kLzMaxLinks, [&](uint32_t candidate) {
      LzMatch match{static_cast<uint32_t>(i) - candidate, match_length(src, i, candidate), 0};
      if (match.length < kLzMinMatch) return true;
      for (LzMatch& place : best) {
        if (match.length > place.length) std::swap(match, place);
      }
      return true;
    });
  }
  return candidates;
}

std::vector<uint8_t> demux_reference(std::span<const uint8_t> src, const LzMatches& matches) {
  std::vector<uint8_t> literals, lengths, low, high;
  std::vector<uint32_t> flags;
  for (size_t segment = 0; segment < src.size(); segment += kLzSegmentBytes) {
    const size_t end = std::min(src.size(), segment + kLzSegmentBytes);
    uint32_t tokens = 0;
    for (size_t i = segment; i < end; ++tokens) {
      if (tokens % 32 == 0) flags.push_back(0);
      const auto length = static_cast<uint32_t>(std::min<size_t>(matches[i].length, end - i));
      if (length < kLzMinMatch) {
        literals.push_back(src[i++]);
        continue;
      }
      flags.back() |= 1u << tokens % 32;
      lengths.push_back(static_cast<uint8_t>(length - kLzMinMatch));
      low.push_back(static_cast<uint8_t>(matches[i].offset));
      high.push_back(static_cast<uint8_t>(matches[i].offset >> 8));
      i += length;
    }
  }
  std::vector<uint8_t> block(kLzBlockHeaderBytes + 4 * flags.size());
  const size_t header[] = {src.size(), literals.size(), lengths.size(), flags.size()};
  for (size_t i = 0; i < 4; ++i) write_u32(&block[4 * i], static_cast<uint32_t>(header[i]));
  for (size_t i = 0; i < flags.size(); ++i) write_u32(&block[kLzBlockHeaderBytes + 4 * i], flags[i]);
  for (const auto* stream : {&literals, &lengths, &low, &high})
    block.insert(block.end(), stream->begin(), stream->end());
  return block;
}

TransformOutcome lz77_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst) {
  if (std::max(src.size(), dst.size()) > kLzDecodeMaxBytes) return {StreamStatus::item_too_large, 0};
  if (src.size() < kLzBlockHeaderBytes) return {StreamStatus::input_overrun, 0};
  const uint32_t raw_bytes = read_u32(src.data()), literal_count = read_u32(src.data() + 4),
                 match_count = read_u32(src.data() + 8), word_count = read_u32(src.data() + 12);
  if (raw_bytes > dst.size()) return {StreamStatus::output_overrun, 0};
  if (std::max({literal_count, match_count, word_count}) > raw_bytes) return {StreamStatus::bad_table, 0};
  const uint64_t size = kLzBlockHeaderBytes + 4 * uint64_t{word_count} + literal_count + 3 * uint64_t{match_count};
  if (size > src.size()) return {StreamStatus::input_overrun, 0};
  if (size < src.size()) return {StreamStatus::corrupt, 0};

  const uint8_t* const flags = src.data() + kLzBlockHeaderBytes;
  const uint8_t* const literals = flags + 4 * size_t{word_count};
  const uint8_t* const lengths = literals + literal_count;
  const uint8_t* const low = lengths + match_count;
  const uint8_t* const high = low + match_count;
  uint32_t word = 0, literal = 0, match = 0, at = 0;
  for (uint32_t end = 0; at < raw_bytes;) {
    end = std::min(raw_bytes, end + kLzSegmentBytes);
    for (uint32_t token = 0; at < end; ++token) {
      if (token % 32 == 0 && word++ == word_count) return {StreamStatus::corrupt, 0};
      if ((read_u32(flags + 4 * size_t{word - 1}) >> token % 32 & 1) == 0) {
        if (literal == literal_count) return {StreamStatus::corrupt, 0};
        dst[at++] = literals[literal++];
        continue;
      }
      if (match == match_count) return {StreamStatus::corrupt, 0};
      const uint32_t length = lengths[match] + kLzMinMatch, offset = low[match] | high[match] << 8;
      ++match;
      if (offset == 0 || offset > at || length > end - at) return {StreamStatus::corrupt, 0};
      for (const uint32_t last = at + length; at < last; ++at) dst[at] = dst[at - offset];
    }
  }
  const bool all = word == word_count && literal == literal_count && match == match_count;
  return {all ? StreamStatus::ok : StreamStatus::corrupt, all ? raw_bytes : 0};
}

}  // namespace ptxkit::kernels
