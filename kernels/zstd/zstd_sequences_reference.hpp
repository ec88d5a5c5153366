// Scalar reference of the kernel `zstd_sequences`, for one block: the sequences section (RFC 8878, 3.1.1.3.2).
#pragma once

#include <span>
#include <vector>

#include "kernels/zstd/zstd_format.hpp"

namespace ptxkit::kernels {

// `offset_value` is 1 to 3 for a repeat offset, else the offset and 3.
struct ZstdSequence {
  uint32_t literal_count, match_length, offset_value;

  bool operator==(const ZstdSequence&) const = default;
};

// The sequences as the kernels store them.
std::vector<uint8_t> zstd_pack(std::span<const ZstdSequence> sequences);

// The section of packed sequences, at most kZstdMaxSequences. Each kind of code has the table that zstd_symbol_cost
// finds the smallest: predefined, a single symbol, or its own; of equals the first. A size that is no multiple of
// kZstdSequenceBytes is input_overrun; a match below kZstdMinMatch, an offset value of 0 or above kZstdMaxOffsetValue
// is corrupt.
TransformOutcome zstd_sequences_reference(std::span<const uint8_t> src, std::span<uint8_t> dst);

// The largest section of `packed_bytes`: a sequence has at most 26 bits of states and 48 extra ones, a table at most 64
// bytes.
constexpr uint64_t zstd_sequences_bound(uint64_t packed_bytes) {
  return 4 + 3 * 64 + (packed_bytes / kZstdSequenceBytes * 74 + 26 + 8) / 8;
}

}  // namespace ptxkit::kernels
