// A launch of any kernel, made up from its launch facts: for comparing runs, replaying findings, golden tests.
//
// Buffers, block, grid and scalars come from the facts; what they leave out is chosen small. What a kernel loads of an
// aggregate and uses as an address gets a buffer; what it loads else is a scalar, and the rest zeros. A kernel of a
// module with shared memory of no size gets what 48 KiB have left. Variants differ in what
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

// A buffer whose address is a parameter or lies in one.
struct GeneratedBuffer {
  uint64_t offset = 0;  // of the address in the parameter
  unsigned seed = 0;    // of its bytes: the variant, and 16 times the number of the buffer
  std::vector<std::byte> bytes;
};

struct GeneratedParameter {
  std::string name;
  bool is_aggregate = false;
  std::vector<std::byte> value;  // zeros where addresses go
  std::vector<GeneratedBuffer> buffers;
};

struct GeneratedLaunch {
  unsigned variant = 0;
  uint32_t address_bytes = 8;
  emulator::LaunchShape shape;
  std::vector<GeneratedParameter> parameters;
};

// `facts` may be null.
GeneratedLaunch generate_launch(const ptx::Module& module, const ptx::Function& kernel, const flow::LaunchFacts* facts,
                                unsigned variant);

// A parameter as the kernel takes it: with the addresses of its buffers, one after the other.
std::vector<std::byte> argument_of(const GeneratedParameter& parameter, std::span<const uint64_t> addresses,
                                   uint32_t address_bytes);

// One run on the emulator. `addresses` are those of all buffers of all parameters, in their order.
struct EmulatedLaunch {
  std::vector<emulator::Address> addresses;
  emulator::Outcome outcome;
};
// `device` keeps the buffers as the kernel left them.
Result<EmulatedLaunch> emulate(emulator::Device& device, const ptx::Module& module, const ptx::Function& kernel,
                               const GeneratedLaunch& launch, const emulator::LaunchOptions& options);

}  // namespace ptxkit
