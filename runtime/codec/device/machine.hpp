// Where kernels run, as the kernel backend sees it: queues, each with regions of device memory that host memory
// mirrors.
//
// The GPU and the emulator implement this one interface, so both run the same kernels through the same launch code:
// what the emulator's sanitizer passed is what the GPU gets. A queue is a stream on the GPU: calls on it happen in
// order and may happen later, until wait(). Each queue holds one arrangement of regions at a time; on the emulator
// every region is an allocation of its own with exactly its size, so an access between regions is caught.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kernels/images.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/driver/context.hpp"
#include "runtime/driver/launch_contract.hpp"

namespace ptxkit::codec {

struct Region {
  const char* name;
  size_t size_bytes = 0;  // DeclaredCosts gives it
  // The host side of the region, where the caller has page-locked memory for it; null: staging memory of the machine.
  uint8_t* host = nullptr;
  bool stays_on_device = false;  // it has no host side
};

// A part of a region, and memory of any kind for it.
struct PartUp {
  size_t region, offset_bytes;
  Bytes from;
};
struct PartDown {
  size_t region, offset_bytes;
  MutableBytes into;
};

// The image of a kernel for a compute capability; null when there is none. Programs pass kernels::find_kernel_image.
using FindImage = std::function<const kernels::KernelImage*(std::string_view name, uint32_t major, uint32_t minor)>;

class Machine {
 public:
  virtual ~Machine() = default;
  virtual std::string_view name() const = 0;  // of the backend: "cuda", "emulator"
  virtual std::string description() const = 0;
  virtual unsigned queue_count() const = 0;
  // The raw bytes that one launch should carry, and those that keep all queues busy.
  virtual size_t slice_bytes() const = 0;
  // The most that the regions of one queue may take together.
  virtual size_t queue_memory_bytes() const = 0;

  // What it launches as the kernel of that name. Fails without an image.
  virtual Result<const kernels::KernelImage*> image(std::string_view kernel) const = 0;
  // Makes a kernel ready by its name; again is free. Fails without an image or without its verdict.
  virtual Result<void> prepare(std::string_view kernel) = 0;
  // Memory that regions can have as their host side, and that is found again by is_page_locked as long as it lives.
  virtual Result<HostMemory> host_memory(size_t size_bytes) = 0;
  virtual bool is_page_locked(Bytes memory) const = 0;

  // Gives the queue these regions, 256-byte aligned, contents undefined. The queue must be idle. Allocates only when it
  // must grow.
  virtual Result<void> arrange(unsigned queue, std::span<const Region> regions) = 0;
  // Host side of a region: size_bytes of it, page-locked where that matters.
  virtual MutableBytes host(unsigned queue, size_t region) = 0;
  virtual uint64_t address(unsigned queue, size_t region) = 0;
  // Copies the whole region between its two sides. A download waits for nothing but its own queue: for what tells of
  // the results. The results themselves, which are large, come down by rows, one queue's after another's.
  virtual Result<void> upload(unsigned queue, size_t region) = 0;
  virtual Result<void> download(unsigned queue, size_t region) = 0;
  // Parts of regions. Their memory lives until wait(); where it is not page-locked, the call takes as long as the copy.
  virtual Result<void> upload_parts(unsigned queue, std::span<const PartUp> parts) = 0;
  virtual Result<void> download_parts(unsigned queue, std::span<const PartDown> parts) = 0;
  // Zeros in the whole region.
  virtual Result<void> clear(unsigned queue, size_t region) = 0;
  // Only rows of the region.
  virtual Result<void> download_rows(unsigned queue, size_t region, std::span<const driver::Rows> rows) = 0;
  virtual Result<void> launch(unsigned queue, std::string_view kernel, uint32_t grid_blocks, uint32_t block_threads,
                              std::span<const driver::LaunchArgument> arguments) = 0;
  // What is launched between these two is one submission, where the machine has such a thing; its kernels are prepared
  // before. Nothing else is put on the queue meanwhile. An error of a launch has ended the chain already.
  virtual Result<void> begin_chain(unsigned queue) = 0;
  virtual Result<void> end_chain(unsigned queue) = 0;
  // Until everything on the queue has happened; errors of the queue's calls come here at the latest.
  virtual Result<void> wait(unsigned queue) = 0;
};

}  // namespace ptxkit::codec
