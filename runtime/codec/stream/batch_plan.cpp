#include "runtime/codec/stream/batch_plan.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace ptxkit::codec {

BatchPlan plan_batches(uint64_t preferred_bytes, uint64_t block_bytes, const BatchCost& cost,
                       const scheduler::Ledger& memory, unsigned prefetch) {
  const unsigned depth = std::min(prefetch, kMostPrefetch) + 1;
  const uint64_t share_bytes = memory.budget_bytes() / depth;
  const uint64_t fitting =
      share_bytes <= cost.fixed_bytes ? 0 : (share_bytes - cost.fixed_bytes) / cost.bytes_per_block;
  BatchPlan plan;
  plan.block_count = std::max<uint64_t>(1, std::min(preferred_bytes / block_bytes, fitting));
  plan.batch_bytes = cost.fixed_bytes + plan.block_count * cost.bytes_per_block;
  plan.depth = scheduler::max_in_flight(memory.budget_bytes(), plan.batch_bytes, depth);
  return plan;
}

tl::unexpected<Error> no_room_for_a_block(uint64_t block_bytes, uint64_t needed_bytes,
                                          const scheduler::Ledger& memory) {
  return fail(fmt::format("a block of {} bytes needs {} bytes of memory, the budget is {}", block_bytes, needed_bytes,
                          memory.budget_bytes()),
              {}, "raise the budget, or use smaller blocks");
}

}  // namespace ptxkit::codec
