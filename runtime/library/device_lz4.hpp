// LZ4 between buffers in device memory, on the caller's stream. The calls neither allocate nor copy nor wait.
//
// Runs in the primary context of a device, which the CUDA runtime uses, too. The caller owns buffers and stream;
// requirements() gives sizes and alignment. Results are valid once the stream has passed the call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "support/result.hpp"

namespace ptxkit::library {

using DeviceAddress = uint64_t;  // CUdeviceptr
using StreamHandle = void*;      // CUstream or cudaStream_t; null, 1 and 2 are the driver's default streams

// The sizes in bytes of the buffers for compress() and decompress(). The bounds are proven: no kernel writes more.
struct DeviceRequirements {
  size_t alignment_bytes;  // of each item in `raw` and `packed` (compress())
  size_t stride_bytes;     // from one item to the next (compress())
  size_t items_bytes;      // of all raw items, and of all packed items
  size_t sizes_bytes;      // of an array of sizes, capacities or statuses (u32)
  size_t offsets_bytes;    // of an array of offsets (u64)
  size_t flags_bytes;
  size_t scratch_bytes;         // further memory for the kernels: 0
  uint32_t largest_item_bytes;  // compress() only: 65536
};

// A batch of compress(). Item i reads raw[i * stride .. + raw_sizes[i]) and writes packed[i * stride .. +
// packed_sizes[i]). flags[i] is a codec::ChunkFlag (0 to 2), or 3 for an item larger than the stride.
struct DeviceCompression {
  DeviceAddress raw = 0, raw_sizes = 0, packed = 0, packed_sizes = 0, flags = 0;  // arrays of u8, u32, u8, u32, u8
  uint32_t stride_bytes = 0, item_count = 0;
  // Upper bound of an item's size. Items of up to 4096 bytes (pages) have a kernel of their own.
  uint32_t largest_bytes = 0;
  // By default, too few pages to fill the device go to the kernel for larger items, which uses a CTA for each: on an
  // H200 a thousand pages take half the time, but the bytes differ. Set this to get bytes that do not depend on the
  // number of pages.
  bool is_reproducible = false;
};

// A batch of decompress(). Item i reads blocks[block_offsets[i] .. + block_sizes[i]) and writes
// output[output_offsets[i] .. + output_sizes[i]), at most capacities[i] bytes. statuses[i] is a codec::ItemStatus. No
// alignment is required.
struct DeviceDecompression {
  DeviceAddress blocks = 0, block_offsets = 0, block_sizes = 0;
  DeviceAddress output = 0, output_offsets = 0, capacities = 0, output_sizes = 0, statuses = 0;
  uint32_t item_count = 0;
};

class DeviceLz4 {
 public:
  // Opens the driver and compiles the kernels, which is slow. `cuda_library`: path of libcuda; empty for the system's.
  static Result<DeviceLz4> open(int device = 0, const std::string& cuda_library = {});
  DeviceLz4(DeviceLz4&&) noexcept;
  DeviceLz4& operator=(DeviceLz4&&) noexcept;
  ~DeviceLz4();

  // Sizes for `item_count` items of up to `item_bytes`.
  static DeviceRequirements requirements(uint32_t item_bytes, uint32_t item_count);

  // Submit a batch to `stream`. Thread-safe. An error means that the batch violates the requirements, or that the
  // driver refused the launch.
  Result<void> compress(const DeviceCompression& batch, StreamHandle stream) const;
  Result<void> decompress(const DeviceDecompression& batch, StreamHandle stream) const;

 private:
  struct State;
  explicit DeviceLz4(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ptxkit::library
