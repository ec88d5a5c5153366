#include "runtime/library/device_lz4.hpp"

#include <fmt/format.h>

#include "kernels/abi.hpp"
#include "kernels/images.hpp"
#include "runtime/driver/context.hpp"

namespace ptxkit::library {
namespace {

using driver::Kernel;
using driver::LaunchArgument;

Result<Kernel> load(const driver::ContextPointer& context, std::string_view name) {
  const auto& info = context->info();
  const kernels::KernelImage* const image = kernels::find_kernel_image(name, info.major, info.minor);
  if (image == nullptr) {
    return fail(fmt::format("there is no image of kernel {} for sm_{}{}", name, info.major, info.minor), info.name);
  }
  return Kernel::load(context, *image);
}

Result<void> launch(const Kernel& kernel, const kernels::LaunchShape& shape, uint32_t item_count, StreamHandle stream,
                    std::span<const LaunchArgument> arguments) {
  if (item_count == 0) return {};
  return kernel.launch_on(static_cast<driver::CuStream>(stream), shape.grid_blocks(item_count), shape.block_threads,
                          arguments);
}

// The page kernel uses a warp for each page and runs 28 of them on a multiprocessor. On an H200, one CTA for each page
// is faster up to about twice that number: 5000 pages, not 10000 (docs/log/performance.md).
constexpr uint32_t kPagesAMultiprocessor = 2 * 28;

}  // namespace

struct DeviceLz4::State {
  Kernel page, chunk, decompress;
  uint32_t few_pages;  // fewer pages than this do not fill the device
};

DeviceLz4::DeviceLz4(std::unique_ptr<State> state) : state_(std::move(state)) {}
DeviceLz4::DeviceLz4(DeviceLz4&&) noexcept = default;
DeviceLz4& DeviceLz4::operator=(DeviceLz4&&) noexcept = default;
DeviceLz4::~DeviceLz4() = default;

Result<DeviceLz4> DeviceLz4::open(int device, const std::string& cuda_library) {
  auto driver = driver::Driver::open(cuda_library);
  if (!driver) return tl::unexpected(driver.error().error);
  auto context = driver::Context::create(std::move(*driver), device);
  if (!context) return tl::unexpected(context.error());
  auto page = load(*context, kernels::kLz4CompressPage), chunk = load(*context, kernels::kLz4CompressChunk),
       decompress = load(*context, kernels::kLz4Decompress);
  for (const auto* kernel : {&page, &chunk, &decompress}) {
    if (!*kernel) return tl::unexpected(kernel->error());
  }
  return DeviceLz4(std::make_unique<State>(State{std::move(*page), std::move(*chunk), std::move(*decompress),
                                                 kPagesAMultiprocessor * (*context)->info().multiprocessor_count}));
}

DeviceRequirements DeviceLz4::requirements(uint32_t item_bytes, uint32_t item_count) {
  constexpr size_t kUnit = kernels::kStrideUnitBytes;
  const size_t stride = (size_t{item_bytes} + kUnit - 1) / kUnit * kUnit, count = item_count;
  return {.alignment_bytes = kUnit,
          .stride_bytes = stride,
          .items_bytes = stride * count,
          .sizes_bytes = 4 * count,
          .offsets_bytes = 8 * count,
          .flags_bytes = count,
          .scratch_bytes = 0,
          .largest_item_bytes = kernels::kMaxChunkBytes};
}

Result<void> DeviceLz4::compress(const DeviceCompression& batch, StreamHandle stream) const {
  constexpr uint32_t kUnit = kernels::kStrideUnitBytes;
  const bool is_aligned = batch.raw % kUnit == 0 && batch.packed % kUnit == 0 && batch.stride_bytes % kUnit == 0;
  if (!is_aligned || batch.largest_bytes > batch.stride_bytes || batch.largest_bytes > kernels::kMaxChunkBytes) {
    return fail(
        fmt::format("expected items of at most {} bytes at a stride not below their size, all multiples of {}, "
                    "found items of {} at a stride of {}, at {:#x} and {:#x}",
                    kernels::kMaxChunkBytes, kUnit, batch.largest_bytes, batch.stride_bytes, batch.raw, batch.packed),
        {}, "see DeviceLz4::requirements");
  }
  const bool by_page =
      batch.largest_bytes <= kernels::kMaxPageBytes && (batch.is_reproducible || batch.item_count >= state_->few_pages);
  const auto stride = LaunchArgument::of(batch.stride_bytes / kUnit);
  const LaunchArgument arguments[] = {LaunchArgument::of_address(batch.raw),
                                      LaunchArgument::of_address(batch.raw_sizes),
                                      LaunchArgument::of_address(batch.packed),
                                      LaunchArgument::of_address(batch.packed_sizes),
                                      LaunchArgument::of_address(batch.flags),
                                      stride,
                                      stride,
                                      LaunchArgument::of(batch.item_count)};
  return launch(by_page ? state_->page : state_->chunk,
                by_page ? kernels::kLz4CompressPageShape : kernels::kLz4CompressChunkShape, batch.item_count, stream,
                arguments);
}

Result<void> DeviceLz4::decompress(const DeviceDecompression& batch, StreamHandle stream) const {
  const LaunchArgument arguments[] = {LaunchArgument::of_address(batch.blocks),
                                      LaunchArgument::of_address(batch.block_offsets),
                                      LaunchArgument::of_address(batch.block_sizes),
                                      LaunchArgument::of_address(batch.output),
                                      LaunchArgument::of_address(batch.output_offsets),
                                      LaunchArgument::of_address(batch.capacities),
                                      LaunchArgument::of_address(batch.output_sizes),
                                      LaunchArgument::of_address(batch.statuses),
                                      LaunchArgument::of(batch.item_count)};
  return launch(state_->decompress, kernels::kLz4DecompressShape, batch.item_count, stream, arguments);
}

}  // namespace ptxkit::library
