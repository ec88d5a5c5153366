// The encoder of Deflate: its limits, its tokens, and the parameters of its kernels.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/abi.hpp"
#include "kernels/deflate/deflate_format.hpp"

namespace ptxkit::kernels {

inline constexpr std::string_view kDeflateMatch = "deflate_match";
inline constexpr std::string_view kDeflateMatchHigh = "deflate_match_high";
inline constexpr std::string_view kDeflateEncode = "deflate_encode";

// The most that an item may have: one block, in framing `bgzf` one member.
constexpr uint32_t deflate_max_item_bytes(DeflateFraming framing) {
  return framing == DeflateFraming::bgzf ? kBgzfMaxRawBytes : kMaxChunkBytes;
}

// A match costs about this many bits beside the extra bits of its distance. One that costs more than its bytes would as
// literals is left out.
inline constexpr uint32_t kDeflateMatchCostBits = 6;
// The least that a literal costs, in 1/256 bit: no Huffman code is shorter than a bit.
inline constexpr uint32_t kDeflateLeastLiteralCost = 256;

// A token: a literal, or with kDeflateMatchToken a match of 3 to 258 bytes. Its low bits are a place in a table of the
// codes of literals and of lengths.
inline constexpr uint32_t kDeflateMatchToken = 256;
inline constexpr uint32_t kDeflateTokenCodes = 512;
inline constexpr uint32_t kDeflateTokenDistanceShift = 9;  // from there on, the distance less one
template <class U32>
constexpr auto deflate_match_token(const U32& length, const U32& distance) {
  return (length - kDeflateMinMatch) | kDeflateMatchToken | (distance - 1) << kDeflateTokenDistanceShift;
}

// How many matches of at most kDeflateMaxMatch bytes make one of `length`, and how long the next of them is if `rest`
// bytes are left: as long as possible, so that none is below kDeflateMinMatch.
template <class U32>
constexpr auto deflate_match_count(const U32& length) {
  return (length + (kDeflateMaxMatch - 1)) / kDeflateMaxMatch;
}
constexpr uint32_t deflate_next_length(uint32_t rest) {
  return rest <= kDeflateMaxMatch                     ? rest
         : rest < kDeflateMaxMatch + kDeflateMinMatch ? rest - kDeflateMinMatch
                                                      : kDeflateMaxMatch;
}

// Launches: `deflate_match` or `deflate_match_high`, which list the matches, then `deflate_encode`; each takes all
// parameters.
inline constexpr LaunchShape kDeflateMatchShape{.block_threads = 256, .items_per_block = 1};
inline constexpr LaunchShape kDeflateEncodeShape{.block_threads = 32, .items_per_block = 1};

// Item i is the input_bytes[i] bytes at inputs[i], a multiple of 16, and becomes one stream in its framing at
// outputs[i], where deflate_batch_bound(input_bytes[i], framing) bytes may be written. Reads are aligned: up to fifteen
// bytes behind an item are read and ignored. A larger item than max_input_bytes, or than deflate_max_item_bytes, is an
// error of that item.
struct DeflateBatchParameters {
  uint64_t inputs;           // const u64*, addresses
  uint64_t input_bytes;      // const u64*
  uint64_t outputs;          // const u64*, addresses
  uint64_t output_bytes;     // u64*
  uint64_t statuses;         // u32*, BatchStatus, or null
  uint64_t matches;          // u32*, 8-byte aligned: deflate_list_words(max_input_bytes) for each item
  uint64_t match_counts;     // u32*
  uint64_t tokens;           // u32*, 16-byte aligned: deflate_token_words(max_input_bytes) for each item
  uint32_t max_input_bytes;  // at most kMaxChunkBytes
  uint32_t framing;          // DeflateFraming
  uint32_t item_count;
};

// Temporary memory of an item of at most `bytes` bytes. A match is two words: the literals before it in the low half of
// the first, its length in the high half, and its distance.
template <class U32>
constexpr auto deflate_list_words(const U32& bytes) {
  return (bytes + 15) / 16 * 8;  // LZ4's matches have at least four bytes
}
template <class U32>
constexpr auto deflate_token_words(const U32& bytes) {
  return (bytes + 15) / 16 * 16;
}

// What stands before a stream and behind it, in bytes.
constexpr uint32_t deflate_header_bytes(DeflateFraming framing) {
  switch (framing) {
    case DeflateFraming::raw:
      return 0;
    case DeflateFraming::zlib:
      return kZlibHeaderBytes;
    case DeflateFraming::gzip:
      return kGzipHeaderBytes;
    case DeflateFraming::bgzf:
      return kBgzfHeaderBytes;
  }
  return 0;
}
constexpr uint32_t deflate_trailer_bytes(DeflateFraming framing) {
  if (framing == DeflateFraming::raw) return 0;
  return framing == DeflateFraming::zlib ? kZlibTrailerBytes : kGzipTrailerBytes;
}

// The bytes of stored blocks with `raw_bytes`, and the most that an item takes.
inline constexpr uint32_t kDeflateStoredBlockBytes = 1 + kDeflateStoredHeaderBytes;
constexpr uint64_t deflate_stored_bytes(uint64_t raw_bytes) {
  const uint64_t blocks = raw_bytes == 0 ? 1 : (raw_bytes + (kDeflateMaxStoredBytes - 1)) / kDeflateMaxStoredBytes;
  return raw_bytes + blocks * kDeflateStoredBlockBytes;
}
constexpr uint64_t deflate_batch_bound(uint64_t raw_bytes, DeflateFraming framing) {
  return deflate_header_bytes(framing) + deflate_stored_bytes(raw_bytes) + deflate_trailer_bytes(framing);
}

// The first two bytes of zlib: a window of 32 KiB, the fastest algorithm.
inline constexpr uint32_t kZlibHeaderByte0 = kDeflateMethod | kZlibMaxWindow << 4;
inline constexpr uint32_t kZlibHeaderByte1 = 1;
static_assert((kZlibHeaderByte0 << 8 | kZlibHeaderByte1) % kZlibHeaderFactor == 0);

}  // namespace ptxkit::kernels
