// Constants of the rANS streams; docs/entropy.md describes the formats. Source: J. Duda, "Asymmetric numeral systems",
// arXiv:1311.2540; renormalisation by whole words follows F. Giesen's "Interleaved entropy coders", arXiv:1402.3392,
// with words of 16 bits.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/transform_abi.hpp"

namespace ptxkit::kernels {

inline constexpr std::string_view kRansChunkedEncode = "rans_chunked_encode";
inline constexpr std::string_view kRansChunkedDecode = "rans_chunked_decode";
inline constexpr std::string_view kRansWarpEncode = "rans_warp_encode";
inline constexpr std::string_view kRansWarpDecode = "rans_warp_decode";

inline constexpr uint32_t kRansLow = 1u << 16;  // the smallest state between symbols, and the encoder's initial state
inline constexpr uint32_t kMinScaleBits = 9;
inline constexpr uint32_t kMaxScaleBits = 14;
inline constexpr uint32_t kMaxRansLanes = 32;
inline constexpr uint32_t kMaxRansChunks = 65535;
inline constexpr uint32_t kMaxRansChunkBytes = 65535;

// `chunked`: scale_bits u8, 256 x frequency u16, chunk count u16; then a length u16 for each chunk; then the chunks.
inline constexpr uint32_t kRansTableAt = 1;
inline constexpr uint32_t kRansChunkCountAt = 513;
inline constexpr uint32_t kRansLengthsAt = 515;

// Options of `rans_chunked_encode`, in order. One outside its range, or more than kMaxRansChunks chunks, is bad_option.
struct RansChunkedOptions {
  uint32_t scale_bits = 12;      // kMinScaleBits..kMaxScaleBits
  uint32_t lanes = 8;            // 1..kMaxRansLanes
  uint32_t chunk_bytes = 16384;  // 1..kMaxRansChunkBytes
};

// `warp`: raw size u32, scale_bits u8, log2 of the chunk size u8; if the raw size is not 0, the table
// (frequencies_reference.hpp) and the number of words of each chunk, u32; then the chunks: 32 states u32, words u16.
inline constexpr uint32_t kRansWarpHeaderBytes = 6;
inline constexpr uint32_t kRansWarpLanes = 32;
inline constexpr uint32_t kRansDecodeWarps = 4;    // of a CTA of either decoder; a stream of 64 KiB has four chunks
inline constexpr uint32_t kMaxWarpScaleBits = 12;  // a slot's symbol, frequency and offset then fit 32 bits
inline constexpr uint32_t kMinChunkBits = 8;
inline constexpr uint32_t kMaxChunkBits = 20;

// Options of `rans_warp_encode`, in order. One outside its range is bad_option.
struct RansWarpOptions {
  uint32_t scale_bits = 12;  // kMinScaleBits..kMaxWarpScaleBits
  uint32_t chunk_bits = 14;  // kMinChunkBits..kMaxChunkBits
};

}  // namespace ptxkit::kernels
