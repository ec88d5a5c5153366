// LZ4 for other programs, in host memory and in streams: find_package(ptxkit), link ptxkit::lz4, include this.
//
// An Lz4 holds threads, a device if there is one, and page-locked memory. Nothing is global: several of them, with
// settings of their own, live side by side in a process. Any thread may call any of them at any time, and calls of
// several threads share the device. Where memory runs out, where the system has no more threads and where a function
// of the caller throws, a call returns an error or does its work with fewer threads. runtime/library/device_lz4.hpp is
// for data that lies in device memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/stream/stream.hpp"

namespace ptxkit::library {

enum class Where : uint8_t {
  automatic,  // the GPU for what it is measured to be faster at, started only for inputs that are worth it
  cpu,
  gpu,   // for everything it can do; the CPU if there is none or it fails
  both,  // from one queue
};

enum class LogLevel : uint8_t { detail, warning };

struct Lz4Settings {
  Where where = Where::automatic;
  // How many raw bytes will pass in all, as far as known: of Where::automatic, which starts the GPU only for enough of
  // them, and leaves unknown amounts to the CPU. Once it is started, each batch, and each stream whose header says how
  // long it is, goes to whichever of the two its like was faster on; other streams count as being so long.
  uint64_t expected_bytes = 0;
  unsigned cpu_threads = 0;          // 0: all cores
  std::vector<int> devices = {0};    // counted from 0, used together; empty: all there are
  uint64_t device_memory_bytes = 0;  // the most to take of each; 0: what is free, less a reserve
  // Memory for the batches of streams, at least 64-byte aligned; null says there is none. Empty: of the library, which
  // takes page-locked memory for a GPU. Called from any thread.
  std::function<std::shared_ptr<uint8_t>(size_t size_bytes)> allocate = {};
  // Told what a person may want to know; nothing is ever printed. Called from any thread.
  std::function<void(LogLevel level, std::string_view message)> log = {};
  std::string cuda_library = {};      // empty: the system's driver
  std::string calibration_path = {};  // where measured rates are kept; empty: nowhere
};

// What a batch needs. Items need not be adjacent, and nothing of them needs to be aligned.
struct Requirements {
  size_t largest_item_bytes;      // that a batch may have
  size_t alignment_bytes;         // of inputs and outputs
  size_t compressed_bytes_bound;  // of each item: raw bytes that do not shrink are stored, never expanded
  size_t scratch_bytes;           // that the caller has to bring
};

// Of a stream. `progress` is called between batches, from the thread that called, with raw and stored bytes so far;
// `limits.stop` ends the stream between two batches.
struct StreamOptions {
  codec::StreamLimits limits = {};
  codec::Progress progress = {};
  bool is_reproducible = false;  // of compression: the same bytes wherever it runs; linked blocks are not
};

class Lz4 {
 public:
  static Result<Lz4> open(Lz4Settings settings = {});
  Lz4(Lz4&&) noexcept;
  Lz4& operator=(Lz4&&) noexcept;
  ~Lz4();

  // Of items of up to item_bytes. Larger items than largest_item_bytes are a stream's.
  static Requirements requirements(size_t item_bytes);

  std::string description() const;  // of who does it: "cpu, 16 threads, liblz4 1.9.4"
  // Page-locked where that matters: items in it are copied from where they lie.
  Result<codec::HostMemory> host_memory(size_t size_bytes);

  // Batches: each item has a status and a flag of its own (runtime/codec/backend.hpp). An error means that no result of
  // the batch is valid. `reproducible`: the same bytes wherever it runs, of items without history; otherwise whatever
  // is fastest there.
  Result<void> compress(std::span<codec::CompressItem> items, bool reproducible = false);
  Result<void> decompress(std::span<codec::DecompressItem> items);

  // Streams: standard LZ4 frames with bounded memory (runtime/codec/stream/stream.hpp).
  Result<codec::StreamTotals> compress(format::ByteSource& source, format::ByteSink& sink,
                                       const format::FrameHeader& header = {}, const StreamOptions& options = {});
  Result<codec::StreamTotals> decompress(format::ByteSource& source, format::ByteSink& sink,
                                         const StreamOptions& options = {});

 private:
  struct State;
  static Result<Lz4> open_unguarded(Lz4Settings& settings);
  explicit Lz4(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ptxkit::library
