#include "runtime/library/batch_launches.hpp"

#include <limits>

#include <fmt/format.h>

namespace ptxkit::library {
namespace {

using driver::LaunchArgument;
using kernels::BatchFraming;
using kernels::BatchStatus;

static_assert(static_cast<uint32_t>(Framing::numcodecs) == static_cast<uint32_t>(BatchFraming::numcodecs));
static_assert(static_cast<int32_t>(ItemOutcome::invalid_value) == static_cast<int32_t>(BatchStatus::invalid_value) &&
              static_cast<int32_t>(ItemOutcome::cannot_decompress) ==
                  static_cast<int32_t>(BatchStatus::cannot_decompress) &&
              static_cast<int32_t>(ItemOutcome::output_too_small) ==
                  static_cast<int32_t>(BatchStatus::output_too_small) &&
              static_cast<int32_t>(ItemOutcome::too_large) == static_cast<int32_t>(BatchStatus::too_large));

struct Array {
  const char* name;
  DeviceAddress address;
  uint32_t element_bytes;
  bool may_be_null = false;
};

constexpr uint64_t kMostItems = std::numeric_limits<int32_t>::max();

Result<void> check(uint64_t item_count, Framing framing, std::initializer_list<Array> arrays) {
  if (item_count > kMostItems) {
    return fail(fmt::format("item_count: expected at most {}, found {}", kMostItems, item_count), {},
                "cut the batch in several");
  }
  if (static_cast<uint32_t>(framing) > static_cast<uint32_t>(Framing::numcodecs)) {
    return fail(fmt::format("framing: expected 0 or 1, found {}", static_cast<uint32_t>(framing)));
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

BatchLaunch launch(std::string_view kernel, const kernels::LaunchShape& shape, uint64_t item_count,
                   std::vector<LaunchArgument> arguments) {
  const auto count = static_cast<uint32_t>(item_count);
  return {kernel, shape, shape.grid_blocks(count), std::move(arguments)};
}

}  // namespace

Result<std::vector<BatchLaunch>> launches_of(const BatchDecompression& batch) {
  const auto good = check(batch.item_count, batch.framing,
                          {{"inputs", batch.inputs, 8},
                           {"input_bytes", batch.input_bytes, 8},
                           {"outputs", batch.outputs, 8},
                           {"output_capacities", batch.output_capacities, 8},
                           {"output_bytes", batch.output_bytes, 8, true},
                           {"statuses", batch.statuses, 4, true}});
  if (!good) return tl::unexpected(good.error());
  if (batch.item_count == 0) return std::vector<BatchLaunch>{};
  return std::vector{
      launch(kernels::kLz4BatchDecompress, kernels::kLz4DecompressShape, batch.item_count,
             {LaunchArgument::of_address(batch.inputs), LaunchArgument::of_address(batch.input_bytes),
              LaunchArgument::of_address(batch.outputs), LaunchArgument::of_address(batch.output_capacities),
              LaunchArgument::of_address(batch.output_bytes), LaunchArgument::of_address(batch.statuses),
              LaunchArgument::of(static_cast<uint32_t>(batch.framing)),
              LaunchArgument::of(static_cast<uint32_t>(batch.item_count))})};
}

}  // namespace ptxkit::library
