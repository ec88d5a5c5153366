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

Result<CodedPlan> plan_coded_batches(const CodedBlocks& blocks, const scheduler::Ledger& memory, unsigned prefetch) {
  const uint64_t depth = std::min(prefetch, kMostPrefetch) + 1, budget = memory.budget_bytes();
  CodedPlan plan{.block_count = blocks.preferred_count};
  if (budget != scheduler::Ledger::kUnlimited) {
    const uint64_t rest = budget - std::min(budget, blocks.fixed_bytes), each = depth * blocks.each_bytes;
    const uint64_t all_work = blocks.coded_at_a_time * blocks.coding_bytes;
    const uint64_t fitting = rest > all_work + blocks.coded_at_a_time * each ? (rest - all_work) / each
                                                                             : rest / (blocks.coding_bytes + each);
    plan.block_count = std::clamp<uint64_t>(fitting, 1, plan.block_count);
  }
  plan.batch_bytes = plan.block_count * blocks.each_bytes;
  plan.fixed_bytes = blocks.fixed_bytes + std::min(plan.block_count, blocks.coded_at_a_time) * blocks.coding_bytes;
  if (plan.fixed_bytes < budget)
    plan.depth = scheduler::max_in_flight(budget - plan.fixed_bytes, plan.batch_bytes, static_cast<unsigned>(depth));
  if (plan.depth != 0) return plan;
  return fail(fmt::format("a block of {} bytes needs {} bytes of memory, the budget is {}", blocks.block_bytes,
                          plan.fixed_bytes + plan.batch_bytes, budget),
              {}, "raise the budget, or take a codec with smaller blocks");
}

tl::unexpected<Error> no_room_for_a_block(uint64_t block_bytes, uint64_t needed_bytes,
                                          const scheduler::Ledger& memory) {
  return fail(fmt::format("a block of {} bytes needs {} bytes of memory, the budget is {}", block_bytes, needed_bytes,
                          memory.budget_bytes()),
              {}, "raise the budget, or use smaller blocks");
}

}  // namespace ptxkit::codec
