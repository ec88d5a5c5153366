// The batch API: many chunks in; compressed bytes, lengths, flags and one status per chunk out.
//
// A Backend is where a batch runs: cpu (native code on a thread pool), emulator (the kernels' PTX, interpreted and
// checked) or cuda. They differ in speed and in what they can do, never in meaning: an operation that a backend lacks
// is an error that says so
// (`supports` asks beforehand), and the reproducible encoder gives the same bytes everywhere.
//
// Errors come at two levels. A batch fails as a whole (Result) when the machinery fails: no device, out of memory. An
// item fails on its own (ItemStatus) when its data is at fault, and the other items are still good.
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
// `high`: reproducible too, by the kernel of high ratio; where one of them is supported, so is the other.
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

// A stream, or a batch outside of streams, for who chooses where it runs.
struct CodecJob {
  Work work = Work::compress;
  std::optional<Encoder> encoder = {};  // of compression; nothing: the default of whoever does it
  std::optional<uint64_t> raw_bytes = {};
  bool is_batch = false;
  const format::ByteSource* source = nullptr;  // of compression: to look ahead in while it is asked who does it
};

// What became of a chunk; the numbers of kernels::PageFlag.
enum class ChunkFlag : uint8_t {
  compressed = 0,      // `output` holds an LZ4 block of compressed_bytes < raw.size()
  incompressible = 1,  // store the raw bytes: no shorter block was found; compressed_bytes == raw.size()
  zero = 2,            // every byte is 0, or there is none: nothing to store but the length; compressed_bytes == 0
};

// What became of an item; 0 to 5 are the numbers of kernels::Lz4Status. Pinned: new ones go at the end.
enum class ItemStatus : uint8_t {
  ok = 0,
  input_overrun = 1,
  output_overrun = 2,
  offset_zero = 3,
  offset_out_of_range = 4,
  item_too_large = 5,
  malformed = 6,    // refused by liblz4 for a reason that the above do not name
  unsupported = 7,  // the item needs an operation that the backend lacks
};
std::string_view text(ItemStatus status);  // "a match has offset 0"

struct CompressItem {
  Bytes raw;            // up to 4 MiB, any alignment; items need not be adjacent
  Bytes history;        // linked blocks: up to 64 KiB that precede raw in the stream (need not be adjacent in memory)
  MutableBytes output;  // at least raw.size() bytes
  // Results:
  uint32_t compressed_bytes = 0;
  ChunkFlag flag = ChunkFlag::incompressible;
  ItemStatus status = ItemStatus::ok;
};

struct DecompressItem {
  Bytes block;          // one LZ4 block, without a size field
  Bytes history;        // as above
  MutableBytes output;  // the most that the block may decode to
  // Results:
  uint32_t raw_bytes = 0;
  ItemStatus status = ItemStatus::ok;
};

// Host memory for items, uninitialised. A backend that copies to a device makes it page-locked, and copies items in it
// from and to where they lie; any other memory goes through staging memory.
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

// A batch that was begun and may still be under way. Its items, and what they point to, stay where they are until it
// has finished; dying, it waits.
class PendingBatch {
 public:
  virtual ~PendingBatch() = default;
  // Waits for this batch, and no other; called once.
  virtual Result<void> finish() = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  // For people: "cpu, 16 threads", "NVIDIA H200, driver 580.159".
  virtual std::string description() const = 0;
  virtual bool supports(Operation operation) const = 0;
  virtual Encoder default_encoder() const = 0;
  // The raw bytes that one call should carry so that the machine is busy and the start-up cost is spread.
  virtual size_t preferred_batch_bytes(size_t chunk_bytes) const = 0;

  virtual Result<HostMemory> host_memory(size_t size_bytes);

  virtual Result<void> compress(std::span<CompressItem> items, Encoder encoder) = 0;
  virtual Result<void> decompress(std::span<DecompressItem> items) = 0;
  // The same in two steps, so that a device need not run dry between two batches: begin the next one, then finish this
  // one. A backend without a device does it all at once. Batches finish in the order in which they began.
  virtual std::unique_ptr<PendingBatch> begin_compress(std::span<CompressItem> items, Encoder encoder);
  virtual std::unique_ptr<PendingBatch> begin_decompress(std::span<DecompressItem> items);

  // Who should do `job`: this backend, or one of those that it consists of. Who asks says afterwards how long it took,
  // if it came to its end: `job` with the raw bytes that there were. Any thread may call them.
  virtual Backend& chosen_for(const CodecJob& job);
  virtual void record_time(const CodecJob& job, const Backend& by, double seconds);

  // The error of a call to an operation for which supports() is false.
  tl::unexpected<Error> lacks(Operation operation) const;
};

// A batch that has this outcome already.
std::unique_ptr<PendingBatch> finished_batch(Result<void> outcome);

class Executor;

// Native code on `executor`, which must outlive the backend.
std::unique_ptr<Backend> make_cpu_backend(Executor& executor);

}  // namespace ptxkit::codec
