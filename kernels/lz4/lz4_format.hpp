// Constants of the LZ4 block format, and of this project's three compressors. Source: lz4_Block_format.md of the LZ4
// project; kLastLiterals and kLastMatchStart are its "End of block restrictions".
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/abi.hpp"

namespace ptxkit::kernels {

inline constexpr uint32_t kMinMatch = 4;  // subtracted from a match length before it is coded in the token
inline constexpr uint32_t kMaxOffset = 65535;
// a nibble of 15 is followed by bytes of 255 and one smaller byte, which are added to it
inline constexpr uint32_t kNibbleMax = 15;
inline constexpr uint32_t kLastLiterals = 5;              // the last bytes are literals
inline constexpr uint32_t kLastMatchStart = 12;           // the last match starts at least so many bytes before the end
inline constexpr uint32_t kHashMultiplier = 2654435761u;  // 2^32 / golden ratio (Knuth, TAOCP 6.4)
inline constexpr uint32_t kLongHashMultiplier = 2246822519u;  // xxHash's second 32-bit prime
inline constexpr uint32_t kWindow = 32;                       // positions examined together, one for each lane

// Tables of the page compressor.
inline constexpr uint32_t kPageSlots = 1536;    // last positions, two bytes each
inline constexpr uint32_t kPageEntrants = 128;  // slots in which the positions of a window compete to be inserted

// Table of the chunk compressor. An entry has a position in its high half and bits of the position's hash in its low
// half. Positions are stored so that those of a later tile are larger than those of an earlier one, but within a tile
// they count down. The largest entry of a slot is therefore the first position of the last tile. Entry 0 means
// position kChunkTile - 1, which is no candidate before the second tile.
inline constexpr uint32_t kChunkHashBits = 13;
inline constexpr uint32_t kChunkTile = 4096;
inline constexpr uint32_t kChunkSegment = kChunkTile / 8;  // parsed by one warp
inline constexpr uint32_t kChunkGroup = 256;  // a position gives way (lazy matching) only to one of its own group

// The high-ratio compressor looks up and inserts positions a step at a time. It has two tables of u16, by the hash of
// four and of six bytes, and two smaller tables of names that determine which position of a step is inserted
// (step_table.hpp).
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

// One of the compressors.
struct Lz4CompressVariant {
  std::string_view name;
  uint32_t max_item_bytes;
  LaunchShape shape;
};
inline constexpr Lz4CompressVariant kPageVariant{kLz4CompressPage, kMaxPageBytes, kLz4CompressPageShape};
inline constexpr Lz4CompressVariant kChunkVariant{kLz4CompressChunk, kMaxChunkBytes, kLz4CompressChunkShape};
inline constexpr Lz4CompressVariant kHighVariant{kLz4CompressHigh, kMaxChunkBytes, kLz4CompressChunkShape};

// The number of bytes that code a length after its token: none below 15, otherwise one for each full 255 above 15 and
// one more.
constexpr uint32_t extension_bytes(uint32_t length) {
  return length < kNibbleMax ? 0 : (length - kNibbleMax) / 255 + 1;
}

}  // namespace ptxkit::kernels
