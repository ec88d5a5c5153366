// Does a kernel give one result however it is run? The runner behind F084 (`ptx-debug analyze --differential`).
//
// The kernel runs on generated inputs: on the emulator in several schedules, on a GPU at every level of its compiler.
// Buffers, block, grid and scalars come from the kernel's launch facts; what they leave out is chosen small.
#pragma once

#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit {

// Different results of two schedules; the same results of all; or why it could not be run. `facts` may be null.
rules::Differential run_schedules(const ptx::Module& module, ptx::FunctionId kernel, const flow::LaunchFacts* facts);

// The emulator's result against those of a GPU (device $PTXKIT_DEVICE, default 0), compiled by its driver at the levels
// 0 to 4. A kernel with approximate instructions is held to level 0 instead: no two machines agree on those. `not_run`
// where there is no GPU.
rules::Differential run_levels(const ptx::Module& module, ptx::FunctionId kernel, const flow::LaunchFacts* facts);

}  // namespace ptxkit
