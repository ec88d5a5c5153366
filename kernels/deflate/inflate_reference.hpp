// Scalar reference of the Deflate decoder: streams of RFC 1951, and zlib and gzip around them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/abi.hpp"
#include "kernels/deflate/deflate_format.hpp"

namespace ptxkit::kernels {

struct InflateOutcome {
  BatchStatus status;
  uint32_t size_bytes;      // 0 unless ok
  std::string_view reason;  // what is wrong, for people; empty if ok
};

// Decodes `src` into `dst`: one stream or one zlib stream, which fills it, or members of gzip, at least one, behind
// which zeros may stand; bgzf is gzip here. Where zlib and libdeflate disagree on what is valid, it takes what both do.
// The status is that of the first thing that is wrong in the order of the bytes:
//
//   unsupported        a zlib stream needs a dictionary; a method other than Deflate, or a flag of gzip that RFC 1952
//                      reserves
//   output_too_small   a symbol or a stored block has more bytes than `dst` has left, and is otherwise right
//   bad_checksum       of a content or of a member's header
//   cannot_decompress  everything else
InflateOutcome inflate_reference(std::span<const uint8_t> src, std::span<uint8_t> dst, DeflateFraming framing);

}  // namespace ptxkit::kernels
