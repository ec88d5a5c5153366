// A launch of any kernel, made up from its launch facts: for comparing runs, replaying findings, golden tests.
//
// Buffers, block, grid and scalars come from the facts; what they leave out is chosen small. A parameter of the size of
// an address gets a buffer, unless the kernel computes with it and makes no address of it; words that become offsets
// stay near (offset_words.hpp). What a kernel loads of an
// aggregate and uses as an address gets a buffer; what it loads else is a scalar, and the rest zeros. A kernel of a
// module with shared memory of no size gets what 48 KiB have left. Variants differ in what buffers hold and in scalars;
// those from kSearching on also in the grid and the block, where nothing fixes them.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/flow/launch.hpp"
#include "analyzer/ptx/tree.hpp"
#include "runtime/emulator/watch.hpp"
#include "runtime/launch/generated_bytes.hpp"
#include "support/result.hpp"

namespace ptxkit {

// Variants before this one have the same scalars of 64 (or of 1, or 2) all over, and counts or noise in the buffers;
// this one and those behind it look for what decides: contents of the types that the kernel computes with, scalars near
// what it compares with.
inline constexpr unsigned kSearching = 5;

// A buffer whose address is a parameter or lies in one, or the memory behind an object whose handle or map does.
struct GeneratedBuffer {
  uint64_t offset = 0;  // of the address, handle or map in the parameter
  unsigned seed = 0;    // of generated_bytes
  std::string hex;      // what the facts say that it holds, again and again; empty: what the seed makes
  std::string object;   // as parse_object_spec reads it; empty: it is the buffer's address
  // Where it holds offsets (generated_offsets) and no generated_bytes.
  std::optional<Offsets> offsets;
  unsigned word_bytes = 0;
  std::vector<std::byte> bytes;
};

struct GeneratedParameter {
  std::string name;
  bool is_aggregate = false;
  std::vector<std::byte> value;  // zeros where addresses, handles and maps go
  std::vector<GeneratedBuffer> buffers;
};

struct GeneratedLaunch {
  unsigned variant = 0;
  uint32_t address_bytes = 8;
  emulator::LaunchShape shape;
  std::vector<GeneratedParameter> parameters;
  std::vector<GeneratedParameter> variables;  // of the module, and what the facts say that they hold
};

// `facts` may be null. What they say of an aggregate beyond its end, and of variables that the module does not have, is
// left out. Error: they ask for a buffer of more than 1 GiB; an object is spelled as none.
Result<GeneratedLaunch> generate_launch(const ptx::Module& module, const ptx::Function& kernel,
                                        const flow::LaunchFacts* facts, unsigned variant);

// Those of all parameters and then of all variables.
std::vector<const GeneratedBuffer*> all_buffers(const GeneratedLaunch& launch);

// Gives a buffer another size; what it holds goes on as it began.
void resize(GeneratedBuffer& buffer, uint64_t size_bytes);

// A parameter as the kernel takes it. `place` makes each of its buffers and gives its address, handle or map.
using PlaceBuffer = std::function<Result<std::vector<std::byte>>(const GeneratedBuffer& buffer)>;
Result<std::vector<std::byte>> argument_of(const GeneratedParameter& parameter, const PlaceBuffer& place);

// One run on the emulator. `addresses` are those of all_buffers(); 0 where one has no bytes.
struct EmulatedLaunch {
  emulator::Program program;
  std::vector<emulator::Address> addresses;
  emulator::Outcome outcome;
  std::vector<emulator::Visit> visits;  // of the lines asked for
};
// `device` keeps the buffers as the kernel left them.
Result<EmulatedLaunch> emulate(emulator::Device& device, const ptx::Module& module, const ptx::Function& kernel,
                               const GeneratedLaunch& launch, const emulator::LaunchOptions& options,
                               std::span<const uint32_t> watched_lines = {});

}  // namespace ptxkit
