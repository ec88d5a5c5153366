// Launches whose buffers are as large as the kernel needs them.
#pragma once

#include <optional>

#include "runtime/launch/generated_launch.hpp"

namespace ptxkit {

// A new size for a buffer of a launch, which is given by the index of its parameter and the offset there.
struct Growth {
  size_t parameter = 0;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
};

// The growth of a buffer that makes room for an access past its end: the next power of two. Empty if no buffer precedes
// the access, if the facts fix its size, or if it would exceed `most_bytes`. `facts` may be null.
std::optional<Growth> growth_for(const emulator::Fault& fault, const EmulatedLaunch& run, const GeneratedLaunch& launch,
                                 const flow::LaunchFacts* facts, uint64_t most_bytes);
void grow(GeneratedLaunch& launch, const Growth& growth);

// generate_launch, with buffers of generated size grown, up to `most_bytes` each, until a run stays within them. If
// growing does not help they keep their generated size.
Result<GeneratedLaunch> generate_sized_launch(const ptx::Module& module, const ptx::Function& kernel,
                                              const flow::LaunchFacts* facts, unsigned variant, uint64_t most_bytes);

}  // namespace ptxkit
