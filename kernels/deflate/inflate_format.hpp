// The kernel that decodes batches of Deflate: its launch, its parameters, and what its parts agree on.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/abi.hpp"
#include "kernels/deflate/deflate_format.hpp"

namespace ptxkit::kernels {

inline constexpr std::string_view kInflateBatch = "inflate_batch";
inline constexpr LaunchShape kInflateShape{.block_threads = 32, .items_per_block = 1};

// The most that an item may have coded, so that the number of a bit has 32 bits. Decoded it may have kMaxBatchRawBytes.
inline constexpr uint32_t kInflateMaxCodedBytes = 1u << 28;

// Parameters of `inflate_batch`, in kInflateShape. Item i, input_bytes[i] bytes at inputs[i], is decoded as by
// inflate_reference into at most output_capacities[i] bytes at outputs[i]; of a larger capacity, kMaxBatchRawBytes,
// beyond which it is too large. Neither needs an alignment. No byte outside these two ranges is written, and none
// outside them is read. output_bytes and statuses may be null. If the status is not ok, output_bytes[i] is 0 and the
// output holds unspecified bytes.
struct InflateParameters {
  uint64_t inputs;             // const u64*, addresses
  uint64_t input_bytes;        // const u64*
  uint64_t outputs;            // const u64*, addresses
  uint64_t output_capacities;  // const u64*
  uint64_t output_bytes;       // u64*, or null
  uint64_t statuses;           // u32*, BatchStatus, or null
  uint32_t framing;            // DeflateFraming; bgzf is gzip. Another value is invalid for every item
  uint32_t item_count;
};

// Symbols of a block are decoded in rounds. In a round, a lane has a segment of so many bits: an odd number of words,
// so that the lanes begin in different banks of shared memory.
inline constexpr uint32_t kInflateSegmentBits = 9 * 32;
// The part of an item that a round reads, in words: the segments, from any bit of the first word on, and what begins in
// the last of them. The header of a dynamic block fits.
inline constexpr uint32_t kInflateStagedWords = 320;
// A round has at most so many matches and bytes. A segment alone has fewer.
inline constexpr uint32_t kInflateRoundMatches = 512, kInflateRoundBytes = 65535;

// Codes of up to so many bits are looked up; longer ones are searched.
inline constexpr uint32_t kInflateLiteralBits = 10, kInflateDistanceBits = 8;

// What is known of a symbol with its code, a word. Of literals and lengths: the bits of code and value, from bit 5 on
// those of the value alone, from bit 8 on the byte or the base. Of distances: the same with the base from bit 9 on. Of
// code lengths: the bits, from bit 8 on the symbol. 0: bits that are not looked up.
inline constexpr uint32_t kInflateWidthMask = 31;
inline constexpr uint32_t kInflateExtraShift = 5, kInflateLengthExtraMask = 7, kInflateDistanceExtraMask = 15;
inline constexpr uint32_t kInflateLengthShift = 8, kInflateLengthMask = 511;
inline constexpr uint32_t kInflateDistanceShift = 9, kInflateDistanceMask = 0x7FFF;
inline constexpr uint32_t kInflateIsMatch = 1u << 29, kInflateIsEnd = 1u << 30, kInflateIsBad = 1u << 31;

// A match of a round, a word: its length less kDeflateMinMatch, and from bit 8 on its distance less 1.
inline constexpr uint32_t kInflateMatchShift = 8;

}  // namespace ptxkit::kernels
