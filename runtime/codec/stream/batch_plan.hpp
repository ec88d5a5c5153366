// How large the batches of a stream are and how many of them exist, from what the backend prefers and what the memory
// budget holds.
#pragma once

#include <cstdint>

#include "runtime/codec/threads/ledger.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {

// A larger number of batches ahead is nobody's wish.
inline constexpr unsigned kMostPrefetch = 1024;

struct BatchCost {
  uint64_t fixed_bytes;      // of a batch without blocks
  uint64_t bytes_per_block;  // of its buffers
};

struct BatchPlan {
  uint64_t block_count = 0;  // of a batch
  uint64_t batch_bytes = 0;  // of its buffers
  unsigned depth = 0;        // batches at a time; 0: not even one of one block fits
};

// Batches of `preferred_bytes` raw bytes, `prefetch` of them besides the one that is written. Where the budget is too
// small for that, batches shrink first, down to one block: fewer batches would end the overlap of the stages. Then
// their number shrinks.
BatchPlan plan_batches(uint64_t preferred_bytes, uint64_t block_bytes, const BatchCost& cost,
                       const scheduler::Ledger& memory, unsigned prefetch);

// The error of a plan without batches; `needed_bytes` is what one batch of one block takes.
tl::unexpected<Error> no_room_for_a_block(uint64_t block_bytes, uint64_t needed_bytes, const scheduler::Ledger& memory);

}  // namespace ptxkit::codec
