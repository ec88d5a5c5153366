// Scalar reference of the Zstandard decoder: all of RFC 8878 but dictionaries.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/abi.hpp"

namespace ptxkit::kernels {

struct ZstdDecodeOutcome {
  BatchStatus status;
  uint32_t size_bytes;      // 0 unless ok
  std::string_view reason;  // what is wrong, for people; empty if ok
};

// Decodes the frames of `src`, at least one, Zstandard or skippable, which fill it, into `dst`. The status is that of
// the first thing that is wrong in the order of the bytes:
//
//   unsupported        a frame needs a dictionary, or a window above kZstdMaxWindowLog
//   output_too_small   a frame states more bytes than `dst` has left, or a block has more whose offsets only may be
//   wrong bad_checksum       of a frame's content cannot_decompress  everything else
ZstdDecodeOutcome zstd_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

}  // namespace ptxkit::kernels
