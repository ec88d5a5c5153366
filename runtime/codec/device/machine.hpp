// The interface through which the kernel backend runs kernels: queues, each with regions of device memory and their
// host sides.
//
// The GPU and the emulator both implement it, so the kernels and the launch code that pass the emulator's checks are
// those that run on the GPU. A queue corresponds to a stream: its calls execute in order and may still be running until
// wait() returns. A queue has one arrangement of regions at a time. On the emulator every region is a separate
// allocation of its exact size, so an access between regions is caught.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "kernels/images.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/driver/context.hpp"
#include "runtime/driver/launch_contract.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {

struct Region {
  const char* name;
  size_t size_bytes = 0;  // computed by DeclaredCosts
  // Page-locked memory of the caller that serves as host side; null: staging memory of the machine.
  uint8_t* host = nullptr;
  bool stays_on_device = false;  // the region has no host side
  // The region is its host side, 16-byte aligned, which kernels read or write over the bus. upload_rows() names what
  // they read and download_rows() what they wrote: a machine that cannot reach host memory copies it.
  bool lies_on_host = false;
};

// A part of a region, and any host memory to copy it from or to.
struct PartUp {
  size_t region, offset_bytes;
  Bytes from;
};
struct PartDown {
  size_t region, offset_bytes;
  MutableBytes into;
};

// Finds the image of a kernel for a compute capability; null if there is none. Programs pass
// kernels::find_kernel_image.
using FindImage = std::function<const kernels::KernelImage*(std::string_view name, uint32_t major, uint32_t minor)>;

class Machine {
 public:
  virtual ~Machine() = default;
  virtual std::string_view name() const = 0;  // of the backend: "cuda", "emulator"
  virtual std::string description() const = 0;
  virtual unsigned queue_count() const = 0;
  // The raw bytes that one launch should carry. Slices of this size on all queues keep the machine busy.
  virtual size_t slice_bytes() const = 0;
  // The most memory that the regions of one queue may take together.
  virtual size_t queue_memory_bytes() const = 0;

  // The image that launch() uses for the kernel of this name. Fails if there is none.
  virtual Result<const kernels::KernelImage*> image(std::string_view kernel) const = 0;
  // Loads a kernel by its name; repeated calls cost nothing. Fails without an image, or if the image has no verdict of
  // the analyzer.
  virtual Result<void> prepare(std::string_view kernel) = 0;
  // Allocates host memory that can serve as host side of regions. is_page_locked() recognises it while it lives.
  virtual Result<HostMemory> host_memory(size_t size_bytes) = 0;
  virtual bool is_page_locked(Bytes memory) const = 0;

  // Gives an idle queue these regions, 256-byte aligned, with undefined contents. Allocates only if it must grow.
  virtual Result<void> arrange(unsigned queue, std::span<const Region> regions) = 0;
  // The host side of a region, size_bytes long; page-locked on a GPU.
  virtual MutableBytes host(unsigned queue, size_t region) = 0;
  virtual uint64_t address(unsigned queue, size_t region) = 0;
  // Copy the whole region between its two sides. download() waits for its own queue only and suits small results such
  // as sizes; large results come down with download_rows(), one queue after another.
  virtual Result<void> upload(unsigned queue, size_t region) = 0;
  virtual Result<void> download(unsigned queue, size_t region) = 0;
  // Copy parts of regions. Their host memory must stay valid until wait(). If it is not page-locked, the call blocks
  // for the duration of the copy.
  virtual Result<void> upload_parts(unsigned queue, std::span<const PartUp> parts) = 0;
  virtual Result<void> download_parts(unsigned queue, std::span<const PartDown> parts) = 0;
  // Fills the region with zeros.
  virtual Result<void> clear(unsigned queue, size_t region) = 0;
  // Copy only these rows of the region.
  virtual Result<void> upload_rows(unsigned queue, size_t region, std::span<const driver::Rows> rows) = 0;
  virtual Result<void> download_rows(unsigned queue, size_t region, std::span<const driver::Rows> rows) = 0;
  virtual Result<void> launch(unsigned queue, std::string_view kernel, uint32_t grid_blocks, uint32_t block_threads,
                              std::span<const driver::LaunchArgument> arguments) = 0;
  // Launches between these two calls form one submission, if the machine supports it (CUDA graphs). Prepare the kernels
  // before begin_chain(), and put nothing else on the queue in between. If a launch fails, the chain has ended.
  virtual Result<void> begin_chain(unsigned queue) = 0;
  virtual Result<void> end_chain(unsigned queue) = 0;
  // Blocks until every call on the queue has completed. Reports errors of those calls, at the latest.
  virtual Result<void> wait(unsigned queue) = 0;
  // The times of the queue's complete calls since the last call of this function; 0 if they are not measured.
  virtual DeviceTimes take_times(unsigned) { return {}; }
};

}  // namespace ptxkit::codec
