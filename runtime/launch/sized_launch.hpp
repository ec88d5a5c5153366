// Launches whose buffers are as large as the kernel wants them.
#pragma once

#include <optional>

#include "runtime/launch/generated_launch.hpp"

namespace ptxkit {

// A buffer of a launch, by the index of its parameter and the offset there, and a size for it.
struct Growth {
  size_t parameter = 0;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
};

// Room for an access that left the buffer before it: the next power of two. Nothing where no buffer lies before it, the
// facts promise its size, or it would be larger than `most_bytes`. `facts` may be null.
std::optional<Growth> growth_for(const emulator::Fault& fault, const EmulatedLaunch& run, const GeneratedLaunch& launch,
                                 const flow::LaunchFacts* facts, uint64_t most_bytes);
void grow(GeneratedLaunch& launch, const Growth& growth);

// generate_launch, with buffers of made-up size, up to `most_bytes` each, grown until a run does not leave them; or as
// they were made up where that does not help.
Result<GeneratedLaunch> generate_roomy_launch(const ptx::Module& module, const ptx::Function& kernel,
                                              const flow::LaunchFacts* facts, unsigned variant, uint64_t most_bytes);

}  // namespace ptxkit
