// The batch API. A call takes many chunks and returns, for each, its compressed bytes, their length, a flag and a
// status.
//
// A Backend runs batches: cpu (native code on a thread pool), emulator (interprets the kernels' PTX with all checks) or
// cuda. Backends differ in speed and in the operations that they support, never in results: an unsupported operation is
// an error that names it (ask `supports` first), and the reproducible encoder writes the same bytes on every backend.
//
// Errors come at two levels. The call returns an error for the whole batch when the machinery fails: no device, out of
// memory. An item whose data is at fault gets its own ItemStatus; the other items of the batch remain valid.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/codec/format/byte_stream.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {

using format::Bytes;
using format::MutableBytes;

// `fast`: liblz4 at its default level. `reproducible`: the algorithm of kernels/lz4, byte-identical on every backend.
// `high`: also byte-identical, by the high-ratio kernel; a backend that supports one of the two supports the other.
enum class Encoder : uint8_t { fast, reproducible, high };
std::string_view name_of(Encoder encoder);

enum class Operation : uint8_t {
  compress_fast,
  compress_reproducible,
  compress_linked,  // CompressItem::history is not empty
  decompress,
  decompress_linked,  // DecompressItem::history is not empty
};
std::string_view name_of(Operation operation);

enum class Work : uint8_t { compress, compress_reproducible, decompress };
inline constexpr size_t kWorkCount = 3;

// Describes a stream, or a batch outside of a stream, to a backend that chooses between others (Backend::chosen_for).
struct CodecJob {
  Work work = Work::compress;
  std::optional<Encoder> encoder = {};  // compression only; empty: the default encoder of the chosen backend
  std::optional<uint64_t> raw_bytes = {};
  bool is_batch = false;
  // Compression only: chosen_for() samples the data through look_ahead(). Used during that call only.
  const format::ByteSource* source = nullptr;
};

// The outcome of a chunk. Values 0 to 2 equal kernels::PageFlag.
enum class ChunkFlag : uint8_t {
  compressed = 0,      // `output` holds an LZ4 block of compressed_bytes < raw.size()
  incompressible = 1,  // store the raw bytes: no shorter block was found; compressed_bytes == raw.size()
  zero = 2,            // every byte is 0, or the chunk is empty: store only the length; compressed_bytes == 0
  filled = 4,  // every byte equals output[0]; compressed_bytes == 1. From Lz4::compress only, never from a backend
};

// The outcome of an item. Values 0 to 5 equal kernels::Lz4Status. Values are pinned: append new ones.
enum class ItemStatus : uint8_t {
  ok = 0,
  input_overrun = 1,
  output_overrun = 2,
  offset_zero = 3,
  offset_out_of_range = 4,
  item_too_large = 5,
  malformed = 6,     // refused by liblz4 for a reason not named above
  unsupported = 7,   // the item needs an operation that the backend lacks
  wrong_length = 8,  // of a StoredItem: the stored bytes do not give the item's length
  unknown_flag = 9,  // of a StoredItem
};
std::string_view text(ItemStatus status);  // for messages: "a match has offset 0"

struct CompressItem {
  Bytes raw;            // up to 4 MiB, any alignment; items need not be adjacent
  Bytes history;        // of linked blocks: up to 64 KiB that precede `raw` in the stream, at any address
  MutableBytes output;  // at least raw.size() bytes
  // Results:
  uint32_t compressed_bytes = 0;
  ChunkFlag flag = ChunkFlag::incompressible;
  ItemStatus status = ItemStatus::ok;
};

struct DecompressItem {
  Bytes block;          // one LZ4 block, without a size field
  Bytes history;        // as in CompressItem
  MutableBytes output;  // room for the decoded block; a block that decodes to more fails
  // Results:
  uint32_t raw_bytes = 0;
  ItemStatus status = ItemStatus::ok;
};

// Uninitialised host memory for items, freed with the last copy of the object. A backend that copies to a device
// returns page-locked memory and copies items directly from and to it. Items in any other memory go through staging
// memory.
class HostMemory {
 public:
  HostMemory() = default;
  HostMemory(std::shared_ptr<uint8_t> first, size_t size_bytes) : first_(std::move(first)), size_bytes_(size_bytes) {}
  MutableBytes bytes() const { return {first_.get(), size_bytes_}; }

 private:
  std::shared_ptr<uint8_t> first_;
  size_t size_bytes_ = 0;
};
HostMemory pageable_memory(size_t size_bytes);

// The time that a device spent on a batch, in seconds of its own clock: copies to the device, kernels, copies to the
// host. They overlap with each other and with those of other batches. All are 0 if no device ran the batch or times are
// not measured.
struct DeviceTimes {
  double h2d = 0, kernel = 0, d2h = 0;
  DeviceTimes& operator+=(const DeviceTimes& more) {
    h2d += more.h2d;
    kernel += more.kernel;
    d2h += more.d2h;
    return *this;
  }
};

// A batch that was begun and may still be running. Its items and the memory that they point to must stay in place until
// it has finished. The destructor waits for it.
class PendingBatch {
 public:
  virtual ~PendingBatch() = default;
  // Waits for this batch only. Call it once.
  virtual Result<void> finish() = 0;
  // Valid after finish().
  virtual DeviceTimes device_times() const { return {}; }
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  // A description for people: "cpu, 16 threads", "NVIDIA H200, driver 580.159".
  virtual std::string description() const = 0;
  virtual bool supports(Operation operation) const = 0;
  virtual Encoder default_encoder() const = 0;
  // The raw bytes that one call should carry to keep the machine busy and amortise the start-up cost.
  virtual size_t preferred_batch_bytes(size_t chunk_bytes) const = 0;

  virtual Result<HostMemory> host_memory(size_t size_bytes);

  virtual Result<void> compress(std::span<CompressItem> items, Encoder encoder) = 0;
  virtual Result<void> decompress(std::span<DecompressItem> items) = 0;
  // The two halves of compress() and decompress(). A caller begins the next batch before it finishes this one, so that
  // the device always has work. A backend without a device does all the work in begin_*. Batches finish in the order in
  // which they began.
  virtual std::unique_ptr<PendingBatch> begin_compress(std::span<CompressItem> items, Encoder encoder);
  virtual std::unique_ptr<PendingBatch> begin_decompress(std::span<DecompressItem> items);

  // Chooses who runs `job`: this backend, or one of those that it is made of. After a successful run the caller reports
  // its duration with record_time(), where `job.raw_bytes` is the number of raw bytes processed. Both functions are
  // thread-safe.
  virtual Backend& chosen_for(const CodecJob& job);
  virtual void record_time(const CodecJob& job, const Backend& by, double seconds);

  // The error of a call of `operation` where supports(operation) is false.
  tl::unexpected<Error> lacks(Operation operation) const;
};

// A batch that has already finished with `outcome`.
std::unique_ptr<PendingBatch> finished_batch(Result<void> outcome, const DeviceTimes& times = {});

class Executor;

// Runs native code on `executor`, which must outlive the backend.
std::unique_ptr<Backend> make_cpu_backend(Executor& executor);

}  // namespace ptxkit::codec
