// Selects the threads that the race search examines.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/flow/evaluate.hpp"

namespace ptxkit::rules {

struct Context;

// If the block's shape is unknown, code written for a block of a certain width would look racy in a wider one.
// Conflicts between two neighbouring threads count. Conflicts between two warps count only if a CTA barrier or a warp
// number shows that there are several warps, if blocks have one dimension, and as far as the accesses stay within the
// shared objects.
inline constexpr uint32_t kThreadsWithoutShape = 2, kThreadsOfSeveralWarps = 64;

enum class Sample : uint8_t {
  row,       // all threads of a known block; otherwise neighbours in x, or in the dimension that the kernel reads
  column,    // (0, 0, 0) and (0, 1, 0)
  diagonal,  // (1, 0, 0) and (0, 1, 0)
};

struct ThreadSample {
  std::vector<flow::Thread> threads;
  unsigned row = 0;  // dimension of %tid in which threads differ if the shape is unknown
};

ThreadSample sample_threads(Context& context, Sample sample, bool may_be_of_several_warps);

// Whether the kernel divides %tid.x by 32: a block of one warp needs no such number.
bool computes_warp_number(Context& context);

// Whether the kernel reads %tid in this dimension.
bool reads_thread_number(const ptx::Function& function, unsigned dimension);

}  // namespace ptxkit::rules
