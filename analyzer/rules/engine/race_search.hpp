// Searches for two threads of one CTA that touch the same byte, one of them writing, in one barrier interval.
#pragma once

#include <cstdint>
#include <string_view>

#include "analyzer/ptx/facts.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::rules {

// The pairs of accesses that are examined.
enum class RacePairs : uint8_t {
  shared,    // of shared memory: plain accesses of any two threads
  lockstep,  // of shared memory: two lanes of one warp, one access volatile, as written for warps that run in step
  mixed,     // of shared or global memory: one access atomic, one plain
  global,    // of global memory: plain accesses of any two threads
};

RuleResult search_races(Context& context, RacePairs pairs);

// The same for threads of two blocks, of the pairs in global memory: `global`, or `mixed`.
RuleResult search_block_races(Context& context, RacePairs pairs);

// What a thread does, for a message: reads, writes, or updates atomically.
std::string_view verb_of(const ptx::Access& access);

}  // namespace ptxkit::rules
