// The LZ4 block format's numbers, and the three compressors that this project builds from one text.
// Source: lz4_Block_format.md of the LZ4 project, "End of block restrictions" for the last two.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/abi.hpp"

namespace ptxkit::kernels {

inline constexpr uint32_t kMinMatch = 4;  // a token's match nibble counts from here
inline constexpr uint32_t kMaxOffset = 65535;
inline constexpr uint32_t kNibbleMax = 15;       // a nibble of 15 continues in bytes of 255 and one that is less
inline constexpr uint32_t kLastLiterals = 5;     // the last bytes are literals
inline constexpr uint32_t kLastMatchStart = 12;  // no match starts closer to the end than this
inline constexpr uint32_t kHashMultiplier = 2654435761u;      // 2^32 / golden ratio (Knuth, TAOCP 6.4)
inline constexpr uint32_t kLongHashMultiplier = 2246822519u;  // xxHash's second 32-bit prime
inline constexpr uint32_t kWindow = 32;                       // positions examined together, one a lane

// The page compressor's tables.
inline constexpr uint32_t kPageSlots = 1536;    // last positions, two bytes each
inline constexpr uint32_t kPageEntrants = 128;  // slots in which positions of a window contend to enter

// The chunk compressor's: an entry is a position in the high half and bits of its hash in the low half. Positions of a
// later tile are larger than those of an earlier one, but within a tile they count down, so that of all entries of a
// slot the largest is the first position of the last tile. An entry of 0 is no position before the second tile.
inline constexpr uint32_t kChunkHashBits = 13;
inline constexpr uint32_t kChunkTile = 4096;
inline constexpr uint32_t kChunkSegment = kChunkTile / 8;  // of a warp
inline constexpr uint32_t kChunkGroup = 256;               // a position gives way only to one of its own group

// The compressor of high ratio: positions are looked up and entered a step at a time. Tables of u16, by the hash of
// four bytes and of six; which position of a step enters is settled in the smaller ones of names.
inline constexpr uint32_t kHighStep = 256;
inline constexpr uint32_t kHighHashBits = 13;
inline constexpr uint32_t kHighShortNamesBits = 9;
inline constexpr uint32_t kHighLongNamesBits = 8;

template <class U32>
constexpr auto chunk_check(const U32& hash) {
  return hash & 0x7FFF;
}
template <class U32>
constexpr auto chunk_entry(const U32& position, const U32& hash) {
  return (position ^ (kChunkTile - 1)) << 16 | chunk_check(hash);
}
template <class U32>
constexpr auto chunk_position(const U32& entry) {
  return entry >> 16 ^ (kChunkTile - 1);
}

// One instance of the compressor.
struct Lz4CompressVariant {
  std::string_view name;
  uint32_t max_item_bytes;
  LaunchShape shape;
};
inline constexpr Lz4CompressVariant kPageVariant{kLz4CompressPage, kMaxPageBytes, kLz4CompressPageShape};
inline constexpr Lz4CompressVariant kChunkVariant{kLz4CompressChunk, kMaxChunkBytes, kLz4CompressChunkShape};
inline constexpr Lz4CompressVariant kHighVariant{kLz4CompressHigh, kMaxChunkBytes, kLz4CompressChunkShape};

// Bytes that a length takes after its token: none below 15, then one for each full 255 and one more.
constexpr uint32_t extension_bytes(uint32_t length) {
  return length < kNibbleMax ? 0 : (length - kNibbleMax) / 255 + 1;
}

}  // namespace ptxkit::kernels
