// Runs the project's kernels as PTX on the emulator with every check, over items given as byte strings.
//
// Rooms for output are larger than the kernel may use and filled with a pattern, so that writes outside of an item are
// noticed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/kernel_argument.hpp"
#include "fkr_tests/cases/kernel_image.hpp"
#include "kernels/images.hpp"
#include "kernels/lz4/lz4_format.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/emulator/watch.hpp"

namespace ptxkit::testing {

// Both variants of every kernel: the debug build must compute the same as the release build, and must not trap.
inline constexpr std::string_view kVariants[] = {"release", "debug"};

// A record in the buffer of a debug build; docs/dsl.md describes the layout.
struct Marked {
  kernels::Mark mark;
  uint32_t thread;  // linear, in the grid
  uint64_t value;
};

struct Ran {
  std::vector<Bytes> outputs;    // of each item, as long as the kernel reports
  std::vector<uint32_t> codes;   // flag or status of each item
  bool claims_too_much = false;  // the kernel reports more bytes for an item than its room has; outputs are then empty
  bool touched_outside = false;  // a byte of output room that belongs to no item has changed
  std::vector<Marked> marks;     // of a debug build, in order, if the buffer was large enough for all
  emulator::Outcome outcome;
  std::string report;  // rendered faults; empty if there are none
};

struct RanBuffers {
  std::vector<Bytes> buffers;
  std::string report;  // rendered faults
};

struct Block {
  Bytes bytes;
  uint32_t capacity;  // of its output
};

Ran emulate_compress(std::string_view ptx, const kernels::Lz4CompressVariant& variant, const std::vector<Bytes>& items,
                     const emulator::LaunchOptions& options = {});
Ran emulate_decompress(std::string_view ptx, const std::vector<Block>& blocks,
                       const emulator::LaunchOptions& options = {});
// Runs a kernel with the parameters of kernels/transform_abi.hpp, followed by `kernel_options`.
Ran emulate_items(std::string_view ptx, std::string_view entry, kernels::LaunchShape shape,
                  const std::vector<uint32_t>& kernel_options, const std::vector<Block>& blocks,
                  const emulator::LaunchOptions& options = {});
Ran emulate_zero_page(std::string_view ptx, const std::vector<Bytes>& items,
                      const emulator::LaunchOptions& options = {});

// Runs any kernel: one launch of `grid` CTAs. Returns the final buffers in order; none after a fault.
RanBuffers emulate_launch(std::string_view ptx, std::string_view entry, uint32_t grid, uint32_t block_threads,
                          const std::vector<KernelArgument>& arguments);

// The same, with how often each instruction was executed.
struct CountedBuffers {
  std::vector<Bytes> buffers;
  std::string report;
  std::vector<emulator::InstructionCount> counts;
};
CountedBuffers count_launch(std::string_view ptx, std::string_view entry, uint32_t grid, uint32_t block_threads,
                            const std::vector<KernelArgument>& arguments);

// The same for an embedded kernel, in the form that tests for several machines use.
Launch emulator_launch(std::string_view variant);

}  // namespace ptxkit::testing
