// What each coding of device batches gives: its requirements and its launches. Arrays and item counts have been
// checked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <vector>

#include "kernels/abi.hpp"
#include "runtime/driver/launch_contract.hpp"
#include "runtime/library/batch_launches.hpp"
#include "runtime/library/device_batches.hpp"
#include "support/result.hpp"

namespace ptxkit::library {

inline constexpr uint64_t kMostItems = std::numeric_limits<int32_t>::max();

using Launches = Result<std::vector<BatchLaunch>>;

BatchLaunch launch(std::string_view kernel, const kernels::LaunchShape& shape, uint64_t item_count,
                   std::vector<driver::LaunchArgument> arguments);

// The arguments of a kernel: the batch's arrays, then `rest`.
std::vector<driver::LaunchArgument> arguments_of(const BatchCompression& batch,
                                                 std::initializer_list<driver::LaunchArgument> rest);
std::vector<driver::LaunchArgument> arguments_of(const BatchDecompression& batch,
                                                 std::initializer_list<driver::LaunchArgument> rest);
inline driver::LaunchArgument address(DeviceAddress value) { return driver::LaunchArgument::of_address(value); }
// Of an integer or an enumerator.
template <class Value>
driver::LaunchArgument number(Value value) {
  return driver::LaunchArgument::of(static_cast<uint32_t>(value));
}

// Error: more than a batch takes.
Result<void> check_max_input_bytes(uint64_t max_input_bytes);
// Error: temporary memory that is not there.
Result<void> check_temp(DeviceAddress temp, size_t temp_bytes, size_t needed);

// Arrays of temporary memory, one after the other, each at a multiple of 16.
struct TempParts {
  explicit TempParts(DeviceAddress begin) : end(begin) {}
  DeviceAddress take(uint64_t bytes) {
    const DeviceAddress at = end;
    end += (bytes + 15) / 16 * 16;
    return at;
  }
  DeviceAddress end;
};

// A batch whose temporary memory is several times its raw bytes is encoded in rounds. This many blocks of 64 KiB keep
// all multiprocessors of an H200 at work.
inline constexpr uint64_t kBlocksOfARound = 4096;
inline uint64_t items_of_a_round(uint64_t item_count, uint64_t blocks_per_item) {
  return std::min(item_count, std::max<uint64_t>(1, kBlocksOfARound / blocks_per_item));
}
// `temp_bytes_of(items)` says what a round takes, add_round(its part of the batch, launches) adds its launches. As many
// items as temp holds are a round.
template <class TempBytesOf, class AddRound>
std::vector<BatchLaunch> launches_in_rounds(const BatchCompression& batch, TempBytesOf temp_bytes_of,
                                            AddRound add_round) {
  uint64_t most = 1, above = batch.item_count + 1;
  while (above - most > 1) {
    const uint64_t middle = most + (above - most) / 2;
    (temp_bytes_of(middle) <= batch.temp_bytes ? most : above) = middle;
  }
  std::vector<BatchLaunch> launches;
  for (uint64_t first = 0; first < batch.item_count; first += most) {
    BatchCompression round = batch;
    round.item_count = std::min(most, batch.item_count - first);
    for (DeviceAddress* const array : {&round.inputs, &round.input_bytes, &round.outputs, &round.output_bytes}) {
      *array += first * sizeof(uint64_t);
    }
    if (round.statuses != 0) round.statuses += first * sizeof(int32_t);
    add_round(round, launches);
  }
  return launches;
}

Result<BatchRequirements> lz4_requirements(uint64_t max_input_bytes, uint64_t item_count, Framing framing);
Launches lz4_launches(const BatchCompression& batch, uint64_t few_pages);
Launches lz4_launches(const BatchDecompression& batch);
Launches lz4_launches(const BatchSizes& batch);

// Typed rANS.
Result<BatchRequirements> typed_requirements(uint64_t max_input_bytes, uint64_t item_count, Framing framing,
                                             Coding coding);
Launches typed_launches(const BatchCompression& batch);
Launches typed_launches(const BatchDecompression& batch, uint64_t typed_blocks);

Result<BatchRequirements> zstd_requirements(uint64_t max_input_bytes, uint64_t item_count, Framing framing);
Launches zstd_launches(const BatchCompression& batch);
Launches zstd_launches(const BatchDecompression& batch);

// Deflate, raw and in its wrappers.
Result<BatchRequirements> deflate_requirements(uint64_t max_input_bytes, uint64_t item_count, Framing framing,
                                               Coding coding);
Launches deflate_launches(const BatchCompression& batch);
Launches deflate_launches(const BatchDecompression& batch);

}  // namespace ptxkit::library
