// Batches of LZ4 items, or of typed rANS, in memory of their own, each ending where its allocation ends, through the
// launches of the library on the emulator with every check.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/library/batch_launches.hpp"
#include "runtime/library/device_batches.hpp"

namespace ptxkit::testing {

// An item, and what is wrong with it.
struct BatchCase {
  Bytes bytes;
  uint64_t capacity = 0;                       // of decompress()
  std::optional<uint64_t> claimed_bytes = {};  // input_bytes[i], if it is not bytes.size()
  uint32_t misalignment = 0;                   // of the item, above a multiple of 16
  bool is_null = false, is_room_null = false;
};

struct BatchRan {
  std::vector<Bytes> outputs;      // as long as output_bytes says; empty after a fault
  std::vector<uint64_t> sizes;     // output_bytes
  std::vector<uint32_t> statuses;  // empty without
  bool claims_too_much = false;    // an output is longer than its room
  std::string report;              // rendered faults; empty if there are none
};

struct BatchOptions {
  library::Framing framing = library::Framing::raw;
  library::Coding coding = library::Coding::lz4;
  std::string_view build = "release";
  bool with_statuses = true, with_sizes = true;
  std::optional<uint64_t> max_input_bytes = {};
  uint64_t few_pages = 0;                   // of compress_batch: below that many pages, a CTA for each
  uint64_t typed_blocks = 1;                // of decompress_batch: CTAs that share the members
  std::optional<uint64_t> temp_bytes = {};  // of decompress_batch; as the requirements say for the largest capacity
  emulator::LaunchOptions emulation = {.checks = emulator::kCheckAll};
  // PTX in place of the embedded kernel of that name.
  std::string_view replaced_kernel = {}, replacement = {};
};

// Items up to the largest size of them, or to `max_input_bytes`.
BatchRan compress_batch(const std::vector<BatchCase>& items, const BatchOptions& options = {});
BatchRan decompress_batch(const std::vector<BatchCase>& items, const BatchOptions& options = {});

// The sizes that decompressed_sizes() finds; there are no outputs.
BatchRan sizes_of_batch(const std::vector<BatchCase>& items, const BatchOptions& options = {});

}  // namespace ptxkit::testing
