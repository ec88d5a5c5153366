// Constants of the LZ4 frame format and of the chunks of HDF5 filter 32004. Sources: lz4_Frame_format.md of the LZ4
// project; the README of the HDF5 plugin.
#pragma once

#include <cstdint>

namespace ptxkit::kernels {

inline constexpr uint32_t kFrameMagic = 0x184D2204;
inline constexpr uint32_t kLegacyFrameMagic = 0x184C2102;
inline constexpr uint32_t kSkippableMagic = 0x184D2A50, kSkippableMagicMask = 15;
inline constexpr uint32_t kFrameMagicBytes = 4;
// Behind the magic number: flags, a byte with the block size in its high half, the content's size (u64) and the
// dictionary's number (u32) if the flags say so, a byte of the checksum of all that.
enum class FrameFlag : uint32_t {
  dictionary = 1,
  content_checksum = 4,
  content_bytes = 8,
  block_checksum = 16,
  independent_blocks = 32,
};
inline constexpr uint32_t kFrameVersion = 1u << 6, kFrameReservedFlag = 2, kFrameReservedBlockBits = 0x8F;
inline constexpr uint32_t kSmallestFrameBlockId = 4;  // blocks of 64 KiB; each further id is four times as many
// In the size of a block.
inline constexpr uint32_t kFrameRawBlock = 1u << 31;

}  // namespace ptxkit::kernels
