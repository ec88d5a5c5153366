// LZ4, typed rANS, Zstandard and Deflate of batches whose items lie anywhere in device memory, given by arrays of
// addresses and of 64-bit sizes that are in device memory too, on the caller's stream. The calls only launch kernels:
// they neither allocate nor copy nor wait, so a stream that is being captured into a graph takes them.
//
// Runs in the primary context of a device, which the CUDA runtime uses, too. The caller owns buffers and stream.
// Results are valid once the stream has passed the call. No array, item or room may overlap another one that a call
// writes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "support/result.hpp"

namespace ptxkit::library {

using DeviceAddress = uint64_t;  // CUdeviceptr
using StreamHandle = void*;      // CUstream or cudaStream_t; null, 1 and 2 are the driver's default streams

// What stands around an item's LZ4 encoding.
enum class Framing : uint32_t {
  raw = 0,        // nothing: one LZ4 block
  numcodecs = 1,  // the raw size (u32, little-endian) before one LZ4 block: numcodecs.LZ4, and lz4.block of python-lz4
  frame = 2,      // LZ4 frames; skippable frames are passed
  hdf5 = 3,       // a chunk of HDF5 filter 32004
};
constexpr bool has_blocks(Framing framing) { return framing == Framing::frame || framing == Framing::hdf5; }

// What is coded: bytes by LZ4, Zstandard or Deflate, or arrays of numbers by typed rANS, in which items and rooms have
// addresses that are multiples of 16. Values of those are kernels::TypedLayout's.
enum class Coding : uint32_t {
  lz4 = 0,
  bytes = 1,  // int8, fp8
  float16 = 2,
  bfloat16 = 3,
  float32 = 4,
  stride2 = 5,  // elements of 2, 4 or 8 bytes
  stride4 = 6,
  stride8 = 7,
  zstd = 9,      // in framing `frame`, a frame each; decompress() takes those of any encoder, and skippable ones
  deflate = 10,  // in framing `raw`, a stream each
  zlib = 11,     // in framing `frame`, the same with a header and a checksum
  gzip = 12,     // in framing `frame`, a member each; decompress() takes several
};
constexpr bool is_deflate(Coding coding) { return coding >= Coding::deflate && coding <= Coding::gzip; }

// The status of an item, in an array of i32. A bad item affects no other; its output_bytes is 0, and its room holds
// unspecified bytes.
enum class ItemOutcome : int32_t {
  ok = 0,
  invalid_value = 10,      // the address of an item or of its room that is not empty is null
  unsupported = 11,        // a legacy LZ4 frame, or one that needs a dictionary; for sizes, one that does not state it;
                           // a Zstandard frame with a window of more than 2^32 bytes
  cannot_decompress = 12,  // the encoding is malformed
  bad_checksum = 13,       // of a frame's header, of a block, or of a frame's content
  output_too_small = 15,   // the item decodes to more than its capacity
  misaligned = 17,         // the address of an item to compress is no multiple of 16
  too_large = 18,          // the item is larger than max_input_bytes says, or, coded, than 2^31 - 1 bytes; of
                           // Zstandard, it decodes to more than temp suffices for
};

// What compress() and decompress() need, for items of at most max_input_bytes.
struct BatchRequirements {
  size_t input_alignment;   // of each item to compress. Up to 15 bytes after it, to the next multiple, are read
  size_t output_alignment;  // of each room
  size_t temp_alignment;    // of temp
  size_t temp_bytes;        // of temp. LZ4: 0 unless items may be larger than 64 KiB, or the framing has blocks

  size_t output_bytes_bound;     // of each room: an item that does not shrink becomes literals. 0: compress() refuses
                                 // items of this size
  size_t decompress_temp_bytes;  // of temp of decompress(): 0 but for framings of blocks
};

// A batch of compress(). Item i is the input_bytes[i] bytes at inputs[i], and its encoding the output_bytes[i] bytes at
// outputs[i], where requirements().output_bytes_bound bytes must be, or those of the item's own size. The bytes depend
// on the item and the framing only; in framing `raw` they are those of the reproducible encoder wherever that shrinks
// the item, in `frame` and `hdf5` always. Only batches of too few items of at most 4096 bytes to fill the device have
// other bytes, unless is_reproducible is set or the framing has blocks: a CTA for each takes half the time of a warp
// there.
//
// Zstandard and Deflate need temporary memory of 7 and 6 times the raw bytes of the items that are encoded at the same
// time: all that temp suffices for, one such round after the other. requirements().temp_bytes suffices for
// 4096 blocks of 64 KiB, which keep a GPU at work. An item of Deflate has at most 64 KiB.
struct BatchCompression {
  DeviceAddress inputs = 0, input_bytes = 0;  // arrays of addresses and of u64
  uint64_t max_input_bytes = 0;               // at most 0x7E000000
  uint64_t item_count = 0;                    // at most 2^31 - 1, also in chunks of 64 KiB of the largest item
  DeviceAddress temp = 0;  // of requirements().temp_bytes, in use until the stream has passed the call
  size_t temp_bytes = 0;
  DeviceAddress outputs = 0;       // addresses
  DeviceAddress output_bytes = 0;  // u64, the coded sizes
  DeviceAddress statuses = 0;      // i32, ItemOutcome; null: they are not wanted
  Framing framing = Framing::raw;
  bool is_reproducible = false;
  Coding coding = Coding::lz4;
  bool is_fast = false;  // of Zstandard and Deflate: fewer matches are found, in less than half the time
};

// A batch of decompress(). Item i is the input_bytes[i] bytes at inputs[i], of any alignment, and is decoded into at
// most output_capacities[i] bytes at outputs[i]. A capacity above 0x7E000000, LZ4's limit, counts as that.
//
// Items of framings `frame` and `hdf5` are three launches: one finds the blocks, one decodes them, one checks the
// items. `temp` says how many blocks of an item are decoded at once: requirements().decompress_temp_bytes suffices for
// items of max_input_bytes raw bytes in blocks of 64 KiB or more. An item of more blocks, of several frames, or of
// blocks that depend on each other or are not full is decoded by one warp.
//
// Items of Zstandard are five launches: one finds the blocks, two read them, one writes the output, and one decodes the
// items of more compressed blocks than one for each 16 KiB by a warp each. `temp` says how large an item may become:
// requirements().decompress_temp_bytes suffices for items of max_input_bytes raw bytes, at most 256 MiB.
struct BatchDecompression {
  DeviceAddress inputs = 0, input_bytes = 0;  // arrays of addresses and of u64
  DeviceAddress output_capacities = 0;        // u64
  DeviceAddress output_bytes = 0;             // u64, the decoded sizes; null: they are not wanted
  uint64_t item_count = 0;                    // at most 2^31 - 1
  DeviceAddress temp = 0;  // in use until the stream has passed the call; used by framings of blocks only
  size_t temp_bytes = 0;
  DeviceAddress outputs = 0;  // addresses
  Framing framing = Framing::raw;
  DeviceAddress statuses = 0;   // i32, ItemOutcome; null: they are not wanted
  Coding coding = Coding::lz4;  // any of typed rANS decodes each of its layouts
};

// A batch of decompressed_sizes(). output_bytes[i] becomes the size that decompress() makes of item i, given the room,
// or 0. In framing `raw` that is half the instructions of decompressing, otherwise a look at the headers.
struct BatchSizes {
  DeviceAddress inputs = 0, input_bytes = 0;  // arrays of addresses and of u64
  uint64_t item_count = 0;                    // at most 2^31 - 1
  DeviceAddress output_bytes = 0;             // u64
  DeviceAddress statuses = 0;                 // i32, ItemOutcome; null: they are not wanted
  Framing framing = Framing::raw;
};

class DeviceBatches {
 public:
  // Opens the driver and compiles the kernels, which is slow. `cuda_library`: path of libcuda; empty for the system's.
  static Result<DeviceBatches> open(int device = 0, const std::string& cuda_library = {});
  DeviceBatches(DeviceBatches&&) noexcept;
  DeviceBatches& operator=(DeviceBatches&&) noexcept;
  ~DeviceBatches();

  // What they need for `item_count` items of up to `max_input_bytes`. Error: more than a call takes.
  static Result<BatchRequirements> requirements(uint64_t max_input_bytes, uint64_t item_count,
                                                Framing framing = Framing::raw, Coding coding = Coding::lz4);

  // Submit a batch to `stream`. Thread-safe. A batch without items needs no arrays and launches nothing. An error means
  // that the arguments cannot be right, or that the driver refused the launch; nothing was launched then.
  Result<void> compress(const BatchCompression& batch, StreamHandle stream) const;
  Result<void> decompress(const BatchDecompression& batch, StreamHandle stream) const;
  Result<void> decompressed_sizes(const BatchSizes& batch, StreamHandle stream) const;

 private:
  struct State;
  explicit DeviceBatches(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ptxkit::library
