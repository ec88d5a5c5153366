// LZ4 blocks made of sequences that a test names, not of what an encoder finds.
#pragma once

#include <vector>

#include "fkr_tests/emulated/kernel_harness.hpp"

namespace ptxkit::testing {

struct Lz4Sequence {
  uint32_t literal_count, offset, match_length;  // match_length 0: the last, without a match
};

// A block of those sequences; the literals are all different from their neighbours.
Block block_of_sequences(const std::vector<Lz4Sequence>& sequences);

// The first sequence behind 32 others stands where tokens are still looked for and is cut by the end of what is staged:
// nothing of its batch is decoded before more is staged over what the lanes have just read.
std::vector<Block> blocks_that_the_staged_part_cuts();

}  // namespace ptxkit::testing
