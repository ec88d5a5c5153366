// A launch of any kernel, made up from its launch facts: for comparing runs, replaying findings, golden tests.
//
// Buffers, block, grid and scalars come from the facts; what they leave out is chosen small. Variants differ in what
// the buffers hold and in scalars that have a range. The same arguments give the same launch in every version: golden
// outputs rest on it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analyzer/flow/launch.hpp"
#include "analyzer/ptx/tree.hpp"
#include "runtime/backend/emulator/emulator.hpp"
#include "support/result.hpp"

namespace ptxkit {

// Bytes of a generated buffer. Multiples of 16: little-endian words that count up to 60 again and again, from seed /
// 16; other seeds: pseudo-random bytes.
std::vector<std::byte> generated_bytes(size_t size_bytes, unsigned seed);

struct GeneratedParameter {
  std::string name;
  bool is_buffer = false;
  unsigned seed = 0;             // of a buffer's bytes: the variant, and 16 times the number of the parameter
  std::vector<std::byte> bytes;  // what the buffer holds, or the scalar
};

struct GeneratedLaunch {
  unsigned variant = 0;
  uint32_t address_bytes = 8;
  emulator::LaunchShape shape;
  std::vector<GeneratedParameter> parameters;
};

// `facts` may be null. Error: a parameter that is an aggregate.
Result<GeneratedLaunch> generate_launch(const ptx::Module& module, const ptx::Function& kernel,
                                        const flow::LaunchFacts* facts, unsigned variant);

// One run on the emulator. addresses[i] is where parameter i's buffer lies on the device, 0 for scalars.
struct EmulatedLaunch {
  std::vector<emulator::Address> addresses;
  emulator::Outcome outcome;
};
// `device` keeps the buffers as the kernel left them.
Result<EmulatedLaunch> emulate(emulator::Device& device, const ptx::Module& module, const ptx::Function& kernel,
                               const GeneratedLaunch& launch, const emulator::LaunchOptions& options);

}  // namespace ptxkit
