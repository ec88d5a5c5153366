#include "runtime/library/device_batches.hpp"

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/abi.hpp"
#include "kernels/deflate/deflate_encode_format.hpp"
#include "kernels/deflate/inflate_format.hpp"
#include "kernels/images.hpp"
#include "kernels/typed/typed_format.hpp"
#include "kernels/zstd/zstd_decode_format.hpp"
#include "kernels/zstd/zstd_format.hpp"
#include "runtime/driver/context.hpp"
#include "runtime/driver/driver.hpp"
#include "runtime/library/batch_launches.hpp"

namespace ptxkit::library {

// The page kernel uses a warp for each page and runs 28 of them on a multiprocessor. On an H200, one CTA for each page
// is faster up to about twice that number: 5000 pages, not 10000 (docs/log/performance.md).
constexpr uint64_t kPagesAMultiprocessor = 2 * 28;

struct DeviceBatches::State {
  driver::ContextPointer context;
  std::map<std::string_view, driver::Kernel> kernels;

  // Error: the stream belongs to another device or context. The driver makes the handles of default streams belong to
  // the context that is current, and may lack the call.
  Result<void> check(driver::CuStream stream) const {
    if (reinterpret_cast<uintptr_t>(stream) <= kStreamPerThread || context->api().stream_get_context == nullptr) {
      return {};
    }
    if (auto current = context->make_current(); !current) return current;
    driver::CuContext of_stream = nullptr;
    const int status = context->api().stream_get_context(stream, &of_stream);
    if (auto good = context->check(status, "cuStreamGetCtx"); !good) return good;
    if (of_stream == context->handle()) return {};
    return fail(fmt::format("expected a stream of device {}, found one of another context", context->info().ordinal),
                context->info().name, "create the stream on the device that the batches were opened for");
  }

  Result<void> submit(const Result<std::vector<BatchLaunch>>& launches, StreamHandle handle) const {
    if (!launches) return tl::unexpected(launches.error());
    auto* const stream = static_cast<driver::CuStream>(handle);
    if (auto good = check(stream); !good) return good;
    for (const BatchLaunch& launch : *launches) {
      auto done =
          kernels.at(launch.kernel).launch_on(stream, launch.grid_blocks, launch.shape.block_threads, launch.arguments);
      if (!done) return done;
    }
    return {};
  }

 private:
  static constexpr uintptr_t kStreamPerThread = 2;  // CU_STREAM_PER_THREAD; null and 1 are the legacy stream
};

DeviceBatches::DeviceBatches(std::unique_ptr<State> state) : state_(std::move(state)) {}
DeviceBatches::DeviceBatches(DeviceBatches&&) noexcept = default;
DeviceBatches& DeviceBatches::operator=(DeviceBatches&&) noexcept = default;
DeviceBatches::~DeviceBatches() = default;

Result<DeviceBatches> DeviceBatches::open(int device, const std::string& cuda_library) {
  auto driver = driver::Driver::open(cuda_library);
  if (!driver) return tl::unexpected(driver.error().error);
  auto context = driver::Context::create(std::move(*driver), device);
  if (!context) return tl::unexpected(context.error());
  auto state = std::make_unique<State>();
  state->context = *context;
  const auto& info = (*context)->info();
  for (const std::string_view name : {kernels::kLz4BatchCompressPage,
                                      kernels::kLz4BatchCompressChunk,
                                      kernels::kLz4BatchPlan,
                                      kernels::kLz4BatchJoin,
                                      kernels::kLz4BatchDecompress,
                                      kernels::kLz4BatchSizes,
                                      kernels::kLz4BatchIndex,
                                      kernels::kLz4BatchBlocks,
                                      kernels::kLz4BatchFinish,
                                      kernels::kTypedEncode,
                                      kernels::kTypedJoin,
                                      kernels::kTypedBegin,
                                      kernels::kTypedDecode,
                                      kernels::kZstdBatchIndex,
                                      kernels::kZstdBatchReadLiterals,
                                      kernels::kZstdBatchReadSequences,
                                      kernels::kZstdBatchExecute,
                                      kernels::kZstdBatchDecompress,
                                      kernels::kZstdBatchSplit,
                                      kernels::kZstdMatch,
                                      kernels::kZstdMatchHigh,
                                      kernels::kZstdChoose,
                                      kernels::kZstdLiterals,
                                      kernels::kZstdSequences,
                                      kernels::kZstdBatchPlan,
                                      kernels::kZstdBatchJoin,
                                      kernels::kDeflateMatch,
                                      kernels::kDeflateMatchHigh,
                                      kernels::kDeflateEncode,
                                      kernels::kInflateBatch}) {
    const kernels::KernelImage* const image = kernels::find_kernel_image(name, info.major, info.minor);
    if (image == nullptr) {
      return fail(fmt::format("there is no image of kernel {} for sm_{}{}", name, info.major, info.minor), info.name);
    }
    auto kernel = driver::Kernel::load(*context, *image);
    if (!kernel) return tl::unexpected(kernel.error());
    state->kernels.emplace(name, std::move(*kernel));
  }
  return DeviceBatches(std::move(state));
}

Result<void> DeviceBatches::compress(const BatchCompression& batch, StreamHandle stream) const {
  const uint64_t few_pages = kPagesAMultiprocessor * state_->context->info().multiprocessor_count;
  return state_->submit(launches_of(batch, batch.is_reproducible ? 0 : few_pages), stream);
}

Result<void> DeviceBatches::decompress(const BatchDecompression& batch, StreamHandle stream) const {
  return state_->submit(launches_of(batch, kTypedBlocksAMultiprocessor * state_->context->info().multiprocessor_count),
                        stream);
}

Result<void> DeviceBatches::decompressed_sizes(const BatchSizes& batch, StreamHandle stream) const {
  return state_->submit(launches_of(batch), stream);
}

}  // namespace ptxkit::library
