#include "runtime/backend/cuda/cuda_machine.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "runtime/scheduler/ledger.hpp"
#include "support/check.hpp"

namespace ptxkit::codec {
namespace {

using driver::DeviceMemory;
using driver::Kernel;
using driver::PinnedMemory;
using driver::Stream;

// 32 MiB are 512 chunks of 64 KiB, and four such launches fill a large GPU.
constexpr std::size_t kSliceBytes = 32u << 20;
constexpr std::size_t kRegionAlignment = 256;
// Left for modules, local memory and other processes, but never more than a quarter of what is free.
constexpr std::uint64_t kReserveBytes = 256u << 20;

class CudaMachine final : public Machine {
 public:
  CudaMachine(driver::ContextPointer context, FindImage find_image, std::vector<Stream> streams,
              std::uint64_t budget_bytes)
      : context_(std::move(context)), find_image_(std::move(find_image)), memory_("device memory", budget_bytes) {
    for (Stream& stream : streams) queues_.push_back(Queue{std::move(stream), {}, {}, {}, {}});
  }

  std::string_view name() const override { return "cuda"; }
  std::string description() const override {
    const auto& info = context_->info();
    const int version = context_->driver().version();
    return fmt::format("cuda, device {}, {}, sm_{}{}, driver for CUDA {}.{}", info.ordinal, info.name, info.major,
                       info.minor, version / 1000, version % 1000 / 10);
  }
  unsigned queue_count() const override { return static_cast<unsigned>(queues_.size()); }
  // Input and output are about as large.
  std::size_t slice_bytes() const override { return std::min(kSliceBytes, queue_memory_bytes() / 2); }
  std::size_t queue_memory_bytes() const override { return memory_.budget_bytes() / queues_.size(); }

  Result<void> prepare(std::string_view kernel) override {
    if (kernels_.contains(kernel)) return {};
    const auto& info = context_->info();
    const kernels::KernelImage* const image = find_image_(kernel, info.major, info.minor);
    if (image == nullptr) {
      return fail(fmt::format("there is no image of kernel {} for sm_{}{}", kernel, info.major, info.minor),
                  description(), "use --backend cpu");
    }
    auto loaded = Kernel::load(context_, *image);
    if (!loaded) return tl::unexpected(loaded.error());
    kernels_.emplace(std::string(kernel), std::move(*loaded));
    return {};
  }

  Result<void> arrange(unsigned queue_index, std::span<const Region> regions) override {
    Queue& queue = queues_[queue_index];
    queue.placed.clear();
    std::size_t total = 0;
    for (const Region& region : regions) {
      queue.placed.push_back({total, region.size_bytes});
      total += (region.size_bytes + kRegionAlignment - 1) / kRegionAlignment * kRegionAlignment;
    }
    if (queue.device && queue.device->size_bytes() >= total) return {};
    // Freed first: the old and the new arena need not fit together.
    queue.device.reset();
    queue.host.reset();
    queue.permit = {};
    auto permit = memory_.try_reserve(total);
    if (!permit) {
      return fail(fmt::format("{} bytes of device memory are needed, {} of {} are left", total,
                              memory_.budget_bytes() - memory_.reserved_bytes(), memory_.budget_bytes()),
                  description(), "raise the budget, or use --backend cpu");
    }
    queue.permit = std::move(*permit);
    auto device = DeviceMemory::allocate(context_, total);
    if (!device) return tl::unexpected(device.error());
    auto host = PinnedMemory::allocate(context_, total);
    if (!host) return tl::unexpected(host.error());
    queue.device = std::move(*device);
    queue.host = std::move(*host);
    // Whole rooms come back, beyond what a kernel wrote: never what someone else left in this memory.
    return queue.device->fill(0, queue.stream);
  }

  MutableBytes host(unsigned queue, std::size_t region) override {
    const Placed& placed = queues_[queue].placed[region];
    return queues_[queue].host->bytes().subspan(placed.offset_bytes, placed.size_bytes);
  }
  std::uint64_t address(unsigned queue, std::size_t region) override {
    return queues_[queue].device->handle() + queues_[queue].placed[region].offset_bytes;
  }
  Result<void> upload(unsigned queue, std::size_t region) override {
    return queues_[queue].device->upload(host(queue, region), queues_[queue].stream,
                                         queues_[queue].placed[region].offset_bytes);
  }
  Result<void> download(unsigned queue, std::size_t region) override {
    return queues_[queue].device->download(host(queue, region), queues_[queue].stream,
                                           queues_[queue].placed[region].offset_bytes);
  }

  Result<void> launch(unsigned queue, std::string_view kernel, std::uint32_t grid_blocks, std::uint32_t block_threads,
                      std::span<const driver::LaunchArgument> arguments) override {
    const auto found = kernels_.find(kernel);
    PTXKIT_CHECK(found != kernels_.end(), "a kernel is prepared before it is launched");
    return found->second.launch(queues_[queue].stream, grid_blocks, block_threads, arguments);
  }

  Result<void> wait(unsigned queue) override { return queues_[queue].stream.wait(); }

 private:
  struct Placed {
    std::size_t offset_bytes, size_bytes;
  };
  struct Queue {
    Stream stream;
    scheduler::Reservation permit;
    std::optional<DeviceMemory> device;
    std::optional<PinnedMemory> host;
    std::vector<Placed> placed;
  };

  driver::ContextPointer context_;
  FindImage find_image_;
  std::map<std::string, Kernel, std::less<>> kernels_;
  scheduler::Ledger memory_;
  std::vector<Queue> queues_;
};

}  // namespace

Result<std::unique_ptr<Machine>> make_cuda_machine(driver::ContextPointer context, FindImage find_image,
                                                   const CudaLimits& limits) {
  PTXKIT_CHECK(limits.queue_count != 0, "a machine has a queue");
  auto free_bytes = context->free_memory_bytes();
  if (!free_bytes) return tl::unexpected(free_bytes.error());
  std::uint64_t budget_bytes = *free_bytes - std::min<std::uint64_t>(kReserveBytes, *free_bytes / 4);
  if (limits.memory_bytes != 0) budget_bytes = std::min(budget_bytes, limits.memory_bytes);
  std::vector<Stream> streams;
  for (unsigned i = 0; i < limits.queue_count; ++i) {
    auto stream = Stream::create(context);
    if (!stream) return tl::unexpected(stream.error());
    streams.push_back(std::move(*stream));
  }
  return std::make_unique<CudaMachine>(std::move(context), std::move(find_image), std::move(streams), budget_bytes);
}

}  // namespace ptxkit::codec
