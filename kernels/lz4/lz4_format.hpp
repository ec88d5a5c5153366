// The LZ4 block format's numbers, and the two shapes of compressor that this project builds from one text.
// Source: lz4_Block_format.md of the LZ4 project, "End of block restrictions" for the last two.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/lz4/abi.hpp"

namespace ptxkit::kernels {

inline constexpr uint32_t kMinMatch = 4;  // a token's match nibble counts from here
inline constexpr uint32_t kMaxOffset = 65535;
inline constexpr uint32_t kNibbleMax = 15;       // a nibble of 15 continues in bytes of 255 and one that is less
inline constexpr uint32_t kLastLiterals = 5;     // the last bytes are literals
inline constexpr uint32_t kLastMatchStart = 12;  // no match starts closer to the end than this
inline constexpr uint32_t kHashMultiplier = 2654435761u;  // 2^32 / golden ratio (Knuth, TAOCP 6.4)
inline constexpr uint32_t kWindow = 32;                   // positions examined together, one a lane
inline constexpr uint16_t kEmptySlot = 0xFFFF;  // 0 is a position; 65535 is none, it is within the last twelve

inline constexpr uint32_t kPageSlots = 1536;    // of the page compressor's table
inline constexpr uint32_t kPageEntrants = 128;  // slots in which positions of a window contend to enter it

// One instance of the compressor.
struct Lz4CompressVariant {
  std::string_view name;
  uint32_t max_item_bytes;
  uint32_t hash_bits;  // 2^hash_bits slots of two bytes a warp
  LaunchShape shape;
};
inline constexpr Lz4CompressVariant kPageVariant{kLz4CompressPage, kMaxPageBytes, 11, kLz4CompressPageShape};
inline constexpr Lz4CompressVariant kChunkVariant{kLz4CompressChunk, kMaxChunkBytes, 13, kLz4CompressChunkShape};

// Bytes that a length takes after its token: none below 15, then one for each full 255 and one more.
constexpr uint32_t extension_bytes(uint32_t length) {
  return length < kNibbleMax ? 0 : (length - kNibbleMax) / 255 + 1;
}

}  // namespace ptxkit::kernels
