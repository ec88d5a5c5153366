// LZ4 between buffers in device memory, on the caller's stream: nothing is allocated, copied or waited for.
//
// It works in the primary context of a device, which is the one that the CUDA runtime uses. Buffers and stream are the
// caller's; what they must be, requirements() says. Results are there when the stream has passed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "support/result.hpp"

namespace ptxkit::library {

using DeviceAddress = uint64_t;  // CUdeviceptr
using StreamHandle = void*;      // CUstream or cudaStream_t; null, the default stream, is refused

// What compress() and decompress() need of their buffers, in bytes. Bounds are proven: no kernel writes more.
struct DeviceRequirements {
  size_t alignment_bytes;  // of packed items and pages
  size_t stride_bytes;     // from one item to the next, of compress()
  size_t items_bytes;      // of the raw and of the packed items each
  size_t sizes_bytes;      // of an array of sizes, capacities or statuses
  size_t offsets_bytes;    // of an array of offsets
  size_t flags_bytes;
  size_t scratch_bytes;         // that the kernels want besides: none
  uint32_t largest_item_bytes;  // of compress(): 65536
};

// Item i is raw[i * stride .. + raw_sizes[i]) and becomes packed[i * stride .. + packed_sizes[i]); flags[i] is a
// codec::ChunkFlag, or 3 for an item larger than the stride.
struct DeviceCompression {
  DeviceAddress raw = 0, raw_sizes = 0, packed = 0, packed_sizes = 0, flags = 0;  // u8, u32, u8, u32, u8
  uint32_t stride_bytes = 0, item_count = 0;
  uint32_t largest_bytes = 0;  // of an item: pages of up to 4096 bytes have a kernel of their own
  // Too few pages to fill the device go to the kernel of larger items, which has a CTA for each: a thousand on an H200
  // in half the time, with other bytes. This asks for bytes that do not depend on the number of pages.
  bool is_reproducible = false;
};

// Item i is blocks[block_offsets[i] .. + block_sizes[i]) and becomes output[output_offsets[i] .. + output_sizes[i]), at
// most capacities[i] bytes; statuses[i] is a codec::ItemStatus. Nothing is aligned.
struct DeviceDecompression {
  DeviceAddress blocks = 0, block_offsets = 0, block_sizes = 0;
  DeviceAddress output = 0, output_offsets = 0, capacities = 0, output_sizes = 0, statuses = 0;
  uint32_t item_count = 0;
};

class DeviceLz4 {
 public:
  // Opens the driver and compiles the kernels; the slow part. `cuda_library`: empty for the system's.
  static Result<DeviceLz4> open(int device = 0, const std::string& cuda_library = {});
  DeviceLz4(DeviceLz4&&) noexcept;
  DeviceLz4& operator=(DeviceLz4&&) noexcept;
  ~DeviceLz4();

  static DeviceRequirements requirements(uint32_t item_bytes, uint32_t item_count);

  // Any thread may call them. Errors: what contradicts the requirements, and what the driver refuses.
  Result<void> compress(const DeviceCompression& batch, StreamHandle stream) const;
  Result<void> decompress(const DeviceDecompression& batch, StreamHandle stream) const;

 private:
  struct State;
  explicit DeviceLz4(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ptxkit::library
