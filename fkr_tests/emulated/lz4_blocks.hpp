// LZ4 blocks made of sequences that a test specifies, instead of an encoder's.
#pragma once

#include <vector>

#include "fkr_tests/emulated/kernel_harness.hpp"

namespace ptxkit::testing {

struct Lz4Sequence {
  uint32_t literal_count, offset, match_length;  // match_length 0: the last sequence, without a match
};

// A block of those sequences. The literals all differ from their neighbours.
Block block_of_sequences(const std::vector<Lz4Sequence>& sequences);

// After 32 sequences, the next one starts where tokens are still searched and is cut by the end of the staged part. No
// sequence of its batch is decoded before more is staged over the bytes that the lanes have just read.
std::vector<Block> blocks_that_the_staged_part_cuts();

}  // namespace ptxkit::testing
