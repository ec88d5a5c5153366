// The launches that a call of DeviceBatches is made of, and its checks of the arguments that the host can see.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/abi.hpp"
#include "runtime/driver/launch_contract.hpp"
#include "runtime/library/device_batches.hpp"
#include "support/result.hpp"

namespace ptxkit::library {

// A multiprocessor runs eight CTAs of typed_decode at once. Several times as many even out the end of a launch.
inline constexpr uint64_t kTypedBlocksAMultiprocessor = 4 * 8;

struct BatchLaunch {
  std::string_view kernel;
  kernels::LaunchShape shape;
  uint32_t grid_blocks;
  std::vector<driver::LaunchArgument> arguments;
};

// The launches of a batch in order; none for a batch without items. Error: an argument that cannot be right.
// `few_pages`: fewer pages than that do not fill the device. `typed_blocks`: so many CTAs of typed_decode do.
Result<std::vector<BatchLaunch>> launches_of(const BatchCompression& batch, uint64_t few_pages = 0);
Result<std::vector<BatchLaunch>> launches_of(const BatchDecompression& batch, uint64_t typed_blocks = 1);
Result<std::vector<BatchLaunch>> launches_of(const BatchSizes& batch);

}  // namespace ptxkit::library
