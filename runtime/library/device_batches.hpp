// LZ4 of batches whose items lie anywhere in device memory, given by arrays of addresses and of 64-bit sizes that are
// in device memory too, on the caller's stream. The calls neither allocate nor copy nor wait, and are one launch each,
// so a stream that is being captured into a graph takes them.
//
// Runs in the primary context of a device, which the CUDA runtime uses, too. The caller owns buffers and stream.
// Results are valid once the stream has passed the call. No array, item or room may overlap another one that a call
// writes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/library/device_lz4.hpp"

namespace ptxkit::library {

// What stands around an item's LZ4 encoding.
enum class Framing : uint32_t {
  raw = 0,        // nothing: one LZ4 block
  numcodecs = 1,  // the raw size (u32, little-endian) before one LZ4 block: numcodecs.LZ4, and lz4.block of python-lz4
};

// The status of an item, in an array of i32. A bad item affects no other; its output_bytes is 0, and its room holds
// unspecified bytes.
enum class ItemOutcome : int32_t {
  ok = 0,
  invalid_value = 10,      // the address of an item or of its room that is not empty is null
  cannot_decompress = 12,  // the encoding is malformed
  output_too_small = 15,   // the item decodes to more than its capacity
  too_large = 18,          // the item is larger than 2^31 - 1 bytes
};

// A batch of decompress(). Item i is the input_bytes[i] bytes at inputs[i], of any alignment, and is decoded into at
// most output_capacities[i] bytes at outputs[i]. A capacity above 0x7E000000, LZ4's limit, counts as that.
struct BatchDecompression {
  DeviceAddress inputs = 0, input_bytes = 0;  // arrays of addresses and of u64
  DeviceAddress output_capacities = 0;        // u64
  DeviceAddress output_bytes = 0;             // u64, the decoded sizes; null: they are not wanted
  uint64_t item_count = 0;                    // at most 2^31 - 1
  DeviceAddress temp = 0;                     // not used
  size_t temp_bytes = 0;
  DeviceAddress outputs = 0;  // addresses
  Framing framing = Framing::raw;
  DeviceAddress statuses = 0;  // i32, ItemOutcome; null: they are not wanted
};

class DeviceBatches {
 public:
  // Opens the driver and compiles the kernels, which is slow. `cuda_library`: path of libcuda; empty for the system's.
  static Result<DeviceBatches> open(int device = 0, const std::string& cuda_library = {});
  DeviceBatches(DeviceBatches&&) noexcept;
  DeviceBatches& operator=(DeviceBatches&&) noexcept;
  ~DeviceBatches();

  // Submit a batch to `stream`. Thread-safe. A batch without items needs no arrays and launches nothing. An error means
  // that the arguments cannot be right, or that the driver refused the launch; nothing was launched then.
  Result<void> decompress(const BatchDecompression& batch, StreamHandle stream) const;

 private:
  struct State;
  explicit DeviceBatches(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ptxkit::library
