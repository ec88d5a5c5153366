// Which threads the search for races looks at.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/flow/evaluate.hpp"

namespace ptxkit::rules {

struct Context;

// Where the block is not known, code written for one of a certain width would look racy in a wider one. What two
// neighbouring threads do to each other counts; what those of two warps do, only where a barrier of the CTA or a number
// of the warp says that there are several, blocks have one dimension, and as far as they stay within the shared
// objects.
inline constexpr uint32_t kThreadsWithoutShape = 2, kThreadsOfSeveralWarps = 64;

enum class Sample : uint8_t {
  row,       // all threads of a known block, otherwise neighbours in x, or in the dimension that the kernel reads
  column,    // (0, 0, 0) and (0, 1, 0)
  diagonal,  // (1, 0, 0) and (0, 1, 0)
};

struct ThreadSample {
  std::vector<flow::Thread> threads;
  unsigned row = 0;  // of %tid, in which threads of a block without a shape differ
};

ThreadSample sample_threads(Context& context, Sample sample, bool may_be_of_several_warps);

// Whether the kernel reads %tid in this dimension.
bool reads_thread_number(const ptx::Function& function, unsigned dimension);

}  // namespace ptxkit::rules
