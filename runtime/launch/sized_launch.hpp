// Launches whose buffers are as large as the kernel needs them.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/launch/generated_launch.hpp"

namespace ptxkit {

// Whether the facts say how large the buffers of a parameter are. `facts` may be null.
bool has_given_size(std::string_view parameter, const flow::LaunchFacts* facts);

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

// Grows the buffers of generated size, up to `most_bytes` each, until a run in the schedule and within the steps of
// `options` stays within them or ends for another reason. If growing does not help they keep their size, and the result
// is false.
bool size(const ptx::Module& module, const ptx::Function& kernel, const flow::LaunchFacts* facts,
          GeneratedLaunch& launch, uint64_t most_bytes, emulator::LaunchOptions options);

// generate_launch() with buffers of that size.
Result<GeneratedLaunch> generate_sized_launch(const ptx::Module& module, const ptx::Function& kernel,
                                              const flow::LaunchFacts* facts, unsigned variant, uint64_t most_bytes);

}  // namespace ptxkit
