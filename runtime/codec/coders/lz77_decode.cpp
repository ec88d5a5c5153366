// Copies literals and matches 16 bytes at a time where that stays within the item. Bytes written past the end of a run
// are overwritten by what follows.
#include <algorithm>
#include <bit>

#include "kernels/lz77/abi.hpp"
#include "runtime/codec/coders/coders.hpp"
#include "runtime/codec/coders/memory.hpp"

namespace ptxkit::cpu {
namespace {

using kernels::kLzBlockHeaderBytes;
using kernels::StreamStatus;

constexpr uint32_t kStep = 16;

void copy_step(uint8_t* to, const uint8_t* from) {
  store(to, load<uint64_t>(from));
  store(to + 8, load<uint64_t>(from + 8));
}

// Copies `length` bytes from `offset` bytes back; may write up to kStep bytes more.
void copy_match(uint8_t* to, uint32_t offset, uint32_t length) {
  const uint8_t* from = to - offset;
  uint8_t* const end = to + length;
  if (offset >= 8) {
    do {  // two steps of eight: the second may read what the first wrote
      store(to, load<uint64_t>(from));
      store(to + 8, load<uint64_t>(from + 8));
      to += kStep;
      from += kStep;
    } while (to < end);
    return;
  }
  // Data with period `offset` also have the period of any multiple of it; take one that is at least 8.
  for (uint32_t i = 0; i < 8; ++i) to[i] = from[i];
  const uint32_t period = (7 / offset + 1) * offset;
  for (to += 8; to < end; to += 8) store(to, load<uint64_t>(to - period));
}

}  // namespace

TransformOutcome lz77_decode(Bytes src, MutableBytes dst) {
  if (std::max(src.size(), dst.size()) > kernels::kLzDecodeMaxBytes) return {StreamStatus::item_too_large, 0};
  if (src.size() < kLzBlockHeaderBytes) return {StreamStatus::input_overrun, 0};
  const auto raw_bytes = load<uint32_t>(src.data()), literal_count = load<uint32_t>(src.data() + 4),
             match_count = load<uint32_t>(src.data() + 8), word_count = load<uint32_t>(src.data() + 12);
  if (raw_bytes > dst.size()) return {StreamStatus::output_overrun, 0};
  if (std::max({literal_count, match_count, word_count}) > raw_bytes) return {StreamStatus::bad_table, 0};
  const uint64_t size = kLzBlockHeaderBytes + 4 * uint64_t{word_count} + literal_count + 3 * uint64_t{match_count};
  if (size > src.size()) return {StreamStatus::input_overrun, 0};
  if (size < src.size()) return {StreamStatus::corrupt, 0};

  const uint8_t* flags = src.data() + kLzBlockHeaderBytes;
  const uint8_t* const flags_end = flags + 4 * size_t{word_count};
  const uint8_t* literal = flags_end;
  const uint8_t* const literals_end = literal + literal_count;
  const uint8_t* const src_end = src.data() + src.size();
  const uint8_t* const low = literals_end + match_count;
  const uint8_t* const high = low + match_count;
  uint8_t* const to = dst.data();
  uint32_t match = 0, at = 0;
  for (uint32_t end = 0; at < raw_bytes;) {
    end = std::min(raw_bytes, end + kernels::kLzSegmentBytes);
    while (at < end) {
      if (flags == flags_end) return {StreamStatus::corrupt, 0};
      uint64_t tokens = load<uint32_t>(flags) | uint64_t{1} << 32;  // a sentinel above the last token ends the last run
      flags += 4;
      while (tokens != 1 && at < end) {
        const uint32_t run = std::min(static_cast<uint32_t>(std::countr_zero(tokens)), end - at);
        if (run != 0) {
          if (run > literals_end - literal) return {StreamStatus::corrupt, 0};
          if (src_end - literal >= 32 && raw_bytes - at >= 32) {
            copy_step(to + at, literal);
            copy_step(to + at + kStep, literal + kStep);
          } else {
            std::memcpy(to + at, literal, run);
          }
          literal += run;
          at += run;
          tokens >>= run;
          continue;
        }
        if (match == match_count) return {StreamStatus::corrupt, 0};
        const uint32_t length = literals_end[match] + kernels::kLzMinMatch;
        const uint32_t offset = low[match] | uint32_t{high[match]} << 8;
        ++match;
        if (offset == 0 || offset > at || length > end - at) return {StreamStatus::corrupt, 0};
        if (raw_bytes - at >= length + kStep) {
          copy_match(to + at, offset, length);
        } else {
          for (uint32_t i = 0; i < length; ++i) to[at + i] = to[at + i - offset];
        }
        at += length;
        tokens >>= 1;
      }
    }
  }
  const bool all = flags == flags_end && literal == literals_end && match == match_count;
  return {all ? StreamStatus::ok : StreamStatus::corrupt, all ? raw_bytes : 0};
}

}  // namespace ptxkit::cpu
