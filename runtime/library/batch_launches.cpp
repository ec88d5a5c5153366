#include "runtime/library/batch_launches.hpp"

#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "kernels/abi.hpp"
#include "kernels/typed/typed_format.hpp"
#include "runtime/library/coding_launches.hpp"

namespace ptxkit::library {
namespace {

using kernels::BatchFraming;
using kernels::BatchStatus;

static_assert(static_cast<uint32_t>(Framing::numcodecs) == static_cast<uint32_t>(BatchFraming::numcodecs) &&
              static_cast<uint32_t>(Framing::frame) == static_cast<uint32_t>(BatchFraming::frame) &&
              static_cast<uint32_t>(Framing::hdf5) == static_cast<uint32_t>(BatchFraming::hdf5));
static_assert(static_cast<int32_t>(ItemOutcome::unsupported) == static_cast<int32_t>(BatchStatus::unsupported) &&
              static_cast<int32_t>(ItemOutcome::bad_checksum) == static_cast<int32_t>(BatchStatus::bad_checksum));
static_assert(static_cast<int32_t>(ItemOutcome::invalid_value) == static_cast<int32_t>(BatchStatus::invalid_value) &&
              static_cast<int32_t>(ItemOutcome::cannot_decompress) ==
                  static_cast<int32_t>(BatchStatus::cannot_decompress) &&
              static_cast<int32_t>(ItemOutcome::output_too_small) ==
                  static_cast<int32_t>(BatchStatus::output_too_small) &&
              static_cast<int32_t>(ItemOutcome::misaligned) == static_cast<int32_t>(BatchStatus::misaligned) &&
              static_cast<int32_t>(ItemOutcome::too_large) == static_cast<int32_t>(BatchStatus::too_large));

static_assert(static_cast<uint32_t>(Coding::bytes) == static_cast<uint32_t>(kernels::TypedLayout::bytes) &&
              static_cast<uint32_t>(Coding::bfloat16) == static_cast<uint32_t>(kernels::TypedLayout::bfloat16) &&
              static_cast<uint32_t>(Coding::stride8) == static_cast<uint32_t>(kernels::TypedLayout::stride8));

struct Array {
  const char* name;
  DeviceAddress address;
  uint32_t element_bytes;
  bool may_be_null = false;
};

Result<void> check(uint64_t item_count, Framing framing, std::initializer_list<Array> arrays) {
  if (item_count > kMostItems) {
    return fail(fmt::format("item_count: expected at most {}, found {}", kMostItems, item_count), {},
                "cut the batch in several");
  }
  if (static_cast<uint32_t>(framing) > static_cast<uint32_t>(Framing::hdf5)) {
    return fail(fmt::format("framing: expected 0 to 3, found {}", static_cast<uint32_t>(framing)));
  }
  if (item_count == 0) return {};
  for (const Array& array : arrays) {
    if (array.address == 0 && !array.may_be_null) {
      return fail(fmt::format("{}: expected an array in device memory, found null", array.name), {},
                  "pass one element for each item");
    }
    if (array.address % array.element_bytes != 0) {
      return fail(fmt::format("{}: expected an address aligned to {} bytes, found {:#x}", array.name,
                              array.element_bytes, array.address));
    }
  }
  return {};
}

}  // namespace

BatchLaunch launch(std::string_view kernel, const kernels::LaunchShape& shape, uint64_t item_count,
                   std::vector<driver::LaunchArgument> arguments) {
  const auto count = static_cast<uint32_t>(item_count);
  return {kernel, shape, shape.grid_blocks(count), std::move(arguments)};
}

std::vector<driver::LaunchArgument> arguments_of(const BatchCompression& batch,
                                                 std::initializer_list<driver::LaunchArgument> rest) {
  std::vector arguments = {address(batch.inputs), address(batch.input_bytes), address(batch.outputs),
                           address(batch.output_bytes), address(batch.statuses)};
  arguments.insert(arguments.end(), rest);
  return arguments;
}

std::vector<driver::LaunchArgument> arguments_of(const BatchDecompression& batch,
                                                 std::initializer_list<driver::LaunchArgument> rest) {
  std::vector arguments = {address(batch.inputs),       address(batch.input_bytes),
                           address(batch.outputs),      address(batch.output_capacities),
                           address(batch.output_bytes), address(batch.statuses)};
  arguments.insert(arguments.end(), rest);
  return arguments;
}

Result<void> check_temp(DeviceAddress temp, size_t temp_bytes, size_t needed) {
  if (needed == 0) return {};
  if (temp == 0 || temp_bytes < needed) {
    return fail(fmt::format("temp: expected {} bytes, found {} at {:#x}", needed, temp_bytes, temp), {},
                "see DeviceBatches::requirements");
  }
  if (temp % kernels::kStrideUnitBytes != 0) {
    return fail(
        fmt::format("temp: expected an address aligned to {} bytes, found {:#x}", kernels::kStrideUnitBytes, temp));
  }
  return {};
}

Result<void> check_max_input_bytes(uint64_t max_input_bytes) {
  if (max_input_bytes <= kernels::kMaxBatchRawBytes) return {};
  return fail(
      fmt::format("max_input_bytes: expected at most {}, found {}", kernels::kMaxBatchRawBytes, max_input_bytes), {},
      "cut the items in several");
}

Result<BatchRequirements> DeviceBatches::requirements(uint64_t max_input_bytes, uint64_t item_count, Framing framing,
                                                      Coding coding) {
  if (auto good = check(item_count, framing, {}); !good) return tl::unexpected(good.error());
  if (auto good = check_max_input_bytes(max_input_bytes); !good) return tl::unexpected(good.error());
  if (coding == Coding::lz4) return lz4_requirements(max_input_bytes, item_count, framing);
  if (coding == Coding::zstd) return zstd_requirements(max_input_bytes, item_count, framing);
  if (is_deflate(coding)) return deflate_requirements(max_input_bytes, item_count, framing, coding);
  return typed_requirements(max_input_bytes, item_count, framing, coding);
}

Result<std::vector<BatchLaunch>> launches_of(const BatchCompression& batch, uint64_t few_pages) {
  const auto good = check(batch.item_count, batch.framing,
                          {{"inputs", batch.inputs, 8},
                           {"input_bytes", batch.input_bytes, 8},
                           {"outputs", batch.outputs, 8},
                           {"output_bytes", batch.output_bytes, 8},
                           {"statuses", batch.statuses, 4, true}});
  if (!good) return tl::unexpected(good.error());
  // Says what is wrong even with a batch without items.
  const auto needs = DeviceBatches::requirements(batch.max_input_bytes, batch.item_count, batch.framing, batch.coding);
  if (!needs) return tl::unexpected(needs.error());
  if (batch.item_count == 0) return std::vector<BatchLaunch>{};
  if (auto is_there = check_temp(batch.temp, batch.temp_bytes, needs->temp_bytes); !is_there)
    return tl::unexpected(is_there.error());
  if (batch.coding == Coding::lz4) return lz4_launches(batch, few_pages);
  if (batch.coding == Coding::zstd) return zstd_launches(batch);
  if (is_deflate(batch.coding)) return deflate_launches(batch);
  return typed_launches(batch);
}

Result<std::vector<BatchLaunch>> launches_of(const BatchDecompression& batch, uint64_t typed_blocks) {
  const auto good = check(batch.item_count, batch.framing,
                          {{"inputs", batch.inputs, 8},
                           {"input_bytes", batch.input_bytes, 8},
                           {"outputs", batch.outputs, 8},
                           {"output_capacities", batch.output_capacities, 8},
                           {"output_bytes", batch.output_bytes, 8, true},
                           {"statuses", batch.statuses, 4, true}});
  if (!good) return tl::unexpected(good.error());
  if (batch.item_count == 0) return std::vector<BatchLaunch>{};
  if (batch.coding == Coding::lz4) return lz4_launches(batch);
  if (batch.coding == Coding::zstd) return zstd_launches(batch);
  if (is_deflate(batch.coding)) return deflate_launches(batch);
  return typed_launches(batch, typed_blocks);
}

Result<std::vector<BatchLaunch>> launches_of(const BatchSizes& batch) {
  const auto good = check(batch.item_count, batch.framing,
                          {{"inputs", batch.inputs, 8},
                           {"input_bytes", batch.input_bytes, 8},
                           {"output_bytes", batch.output_bytes, 8},
                           {"statuses", batch.statuses, 4, true}});
  if (!good) return tl::unexpected(good.error());
  if (batch.item_count == 0) return std::vector<BatchLaunch>{};
  return lz4_launches(batch);
}

}  // namespace ptxkit::library
