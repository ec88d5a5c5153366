// Generates a launch of any kernel from its launch facts: to compare runs, replay findings and make golden tests.
//
// Buffers, block, grid and scalars come from the facts; missing ones are chosen small. A parameter of the size of an
// address gets a buffer, unless the kernel computes with it and does not use it as an address. Words that become
// offsets are kept small (offset_words.hpp). A member of an aggregate that the kernel loads gets a buffer if it is used
// as an address; other loaded members are scalars, and the rest is zeros. A kernel of a module with unsized shared
// memory gets what remains of 48 KiB. Variants differ in the contents of buffers and in scalars; from
// kFirstSearchVariant on also in the grid and the block, if nothing fixes them.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "analyzer/flow/launch.hpp"
#include "analyzer/ptx/tree.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/emulator/watch.hpp"
#include "runtime/launch/generated_bytes.hpp"
#include "support/result.hpp"

namespace ptxkit {

// Variants below this one have all scalars 64 (or 1, or 2), and counts or noise in the buffers. Variants from here on
// search for decisive values: contents of the types that the kernel computes with, scalars near the constants that it
// compares with.
inline constexpr unsigned kFirstSearchVariant = 5;

// Between buffers of made-up size on the emulator. An index that leaves a buffer shall not get into another: on a GPU
// the two lie elsewhere.
inline constexpr uint64_t kApartBytes = uint64_t{1} << 28;

// A buffer whose address is a parameter or part of one; or the memory behind an object, whose handle or map is.
struct GeneratedBuffer {
  uint64_t offset = 0;  // of the address, handle or map in the parameter
  unsigned seed = 0;    // of generated_bytes
  std::string hex;      // contents given by the facts, repeated; empty: generated from the seed
  std::string object;   // text for parse_object_spec; empty: the parameter is the buffer's address
  // Set if the buffer holds offsets (generated_offsets) instead of generated_bytes.
  std::optional<Offsets> offsets;
  unsigned word_bytes = 0;
  std::vector<std::byte> bytes;
};

struct GeneratedParameter {
  std::string name;
  bool is_aggregate = false;
  std::vector<std::byte> value;  // zeros in place of addresses, handles and maps
  std::vector<GeneratedBuffer> buffers;
};

struct GeneratedLaunch {
  unsigned variant = 0;
  uint32_t address_bytes = 8;
  uint64_t align_bytes = 256;  // of buffers on the emulator; a large one keeps them far apart
  emulator::LaunchShape shape;
  std::vector<GeneratedParameter> parameters;
  std::vector<GeneratedParameter> variables;  // variables of the module with the contents that the facts give
};

// `facts` may be null. Facts about an aggregate beyond its end, and about variables that the module does not have, are
// ignored. Error: the facts ask for a buffer of more than 1 GiB, or spell an object that does not exist.
Result<GeneratedLaunch> generate_launch(const ptx::Module& module, const ptx::Function& kernel,
                                        const flow::LaunchFacts* facts, unsigned variant);

// The dimensions of a special register that the kernel itself reads.
std::array<bool, 3> dimensions_of(const ptx::Function& kernel, ptx::SpecialRegister special);

// Buffers of all parameters, then of all variables.
std::vector<const GeneratedBuffer*> all_buffers(const GeneratedLaunch& launch);

// Changes the size of a buffer and extends its contents in the same pattern.
void resize(GeneratedBuffer& buffer, uint64_t size_bytes);

// The bytes of a parameter. `place` makes each of its buffers and returns the address, handle or map.
using PlaceBuffer = std::function<Result<std::vector<std::byte>>(const GeneratedBuffer& buffer)>;
Result<std::vector<std::byte>> argument_of(const GeneratedParameter& parameter, const PlaceBuffer& place);

// The buffers of a launch on a device, and the arguments that point there. `addresses` are those of all_buffers(), 0
// for a buffer without bytes.
struct PlacedLaunch {
  std::vector<emulator::Address> addresses;
  std::vector<emulator::Argument> arguments;
};
Result<PlacedLaunch> place_launch(emulator::Device& device, const emulator::Program& program,
                                  const GeneratedLaunch& launch);

// One run on the emulator. `addresses` are those of PlacedLaunch.
struct EmulatedLaunch {
  emulator::Program program;
  std::vector<emulator::Address> addresses;
  emulator::Outcome outcome;
  std::vector<emulator::Visit> visits;             // of the watched lines
  std::vector<emulator::InstructionCount> counts;  // if asked for
};

// What emulate() records besides the outcome: visits of lines, or the executions of every instruction.
struct RunRecord {
  std::span<const uint32_t> watched_lines = {};
  bool counts = false;  // then no lines are watched
};

// Runs `kernel` on `device`, which keeps the buffers as the kernel left them.
Result<EmulatedLaunch> emulate(emulator::Device& device, const ptx::Module& module, const ptx::Function& kernel,
                               const GeneratedLaunch& launch, const emulator::LaunchOptions& options,
                               const RunRecord& record = {});

}  // namespace ptxkit
