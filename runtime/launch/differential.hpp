// Tests whether a kernel gives the same result in every run. The runner behind F084 (`ptx-debug analyze
// --differential`).
//
// The kernel runs on generated inputs: on the emulator in several schedules, on a GPU at every level of its compiler.
// Buffers, block, grid and scalars come from the kernel's launch facts; missing ones are chosen small.
#pragma once

#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit {

// Reports that two schedules differ, that all give the same results, or `not_run` and why: the launch cannot be run,
// the sanitizer has a fault in a schedule, or atomic updates explain the difference. `facts` may be null.
rules::Differential compare_schedules(const ptx::Module& module, ptx::FunctionId kernel,
                                      const flow::LaunchFacts* facts);

// Compares the emulator's result with that of a GPU (device $PTXKIT_DEVICE, default 0), compiled by its driver at
// levels 0 to 4. A kernel with approximate instructions is compared with the GPU's level 0 instead, because their
// results differ between machines. `not_run` if there is no GPU.
rules::Differential compare_with_gpu(const ptx::Module& module, ptx::FunctionId kernel, const flow::LaunchFacts* facts);

}  // namespace ptxkit
