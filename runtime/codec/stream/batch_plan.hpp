// Chooses the size and the number of a stream's batches from what the backend prefers and what the memory budget holds.
#pragma once

#include <cstdint>

#include "runtime/codec/threads/ledger.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {

// A larger prefetch is reduced to this.
inline constexpr unsigned kMostPrefetch = 1024;

struct BatchCost {
  uint64_t fixed_bytes;      // of a batch without blocks
  uint64_t bytes_per_block;  // added for each block
};

struct BatchPlan {
  uint64_t block_count = 0;  // blocks in a batch
  uint64_t batch_bytes = 0;  // bytes that a batch's buffers take
  unsigned depth = 0;        // batches at a time; 0: not even one batch of one block fits
};

// Plans batches of `preferred_bytes` raw bytes: one that is written and `prefetch` more. Where the budget is too small,
// batches shrink first, down to one block, because with fewer batches the stages would no longer overlap. Then the
// number of batches shrinks.
BatchPlan plan_batches(uint64_t preferred_bytes, uint64_t block_bytes, const BatchCost& cost,
                       const scheduler::Ledger& memory, unsigned prefetch);

// Blocks that are coded in host memory, each in memory of its own beside its raw and stored bytes.
struct CodedBlocks {
  uint64_t preferred_count = 0;  // in a batch
  uint64_t block_bytes = 0;      // raw
  uint64_t each_bytes = 0;       // of a block in a batch
  uint64_t coding_bytes = 0;     // added while a block is coded
  uint64_t coded_at_a_time = 0;  // most blocks that are coded at the same time
  uint64_t fixed_bytes = 0;      // of the stream, whatever its batches are
};
struct CodedPlan {
  uint64_t block_count = 0;  // in a batch
  uint64_t batch_bytes = 0, fixed_bytes = 0;
  unsigned depth = 0;
};

// Plans as many blocks for a batch as are preferred, or as the budget holds. Where not even one block fits in each
// batch, the number of batches shrinks. Fails if one block does not fit.
Result<CodedPlan> plan_coded_batches(const CodedBlocks& blocks, const scheduler::Ledger& memory, unsigned prefetch);

// The error for a plan with depth 0. `needed_bytes`: what one batch of one block takes.
tl::unexpected<Error> no_room_for_a_block(uint64_t block_bytes, uint64_t needed_bytes, const scheduler::Ledger& memory);

}  // namespace ptxkit::codec
