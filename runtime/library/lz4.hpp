// LZ4 in host memory and of streams: what is behind ptxkit_context.
//
// An Lz4 object owns threads, page-locked memory and, where there is one, a GPU context. There is no global state:
// objects with different settings can coexist in a process. All functions are thread-safe, and concurrent calls share
// the device. If memory runs out, the system refuses threads, or a function of the caller throws, the call returns an
// error or does its work with fewer threads. For data in device memory see runtime/library/device_batches.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/stream/stream.hpp"

namespace ptxkit::library {

enum class Where : uint8_t {
  automatic,  // the GPU where measurements predict that it is faster; it is started only for inputs that are worth it
  cpu,
  gpu,   // for every operation that it supports; the CPU if there is no GPU or it fails
  both,  // each batch is shared out between them
};

enum class LogLevel : uint8_t { detail, warning };

struct Lz4Settings {
  Where where = Where::automatic;
  // The expected total of raw bytes; 0: unknown. Where::automatic starts the GPU only if this is large enough, and uses
  // the CPU if it is unknown. After the start, each batch, and each stream whose header states its length, goes to the
  // side that was faster for similar work; a stream of unknown length is assumed to have this length.
  uint64_t expected_bytes = 0;
  unsigned cpu_threads = 0;          // 0: one for each usable core
  std::vector<int> devices = {0};    // ordinals, used together; empty: all devices
  uint64_t device_memory_bytes = 0;  // limit for each device; 0: the free memory less a reserve
  // Allocates memory for the batches of streams, aligned to 64 bytes or more; null means that there is none. Called
  // from any thread. Empty: the library allocates, page-locked memory for a GPU.
  std::function<std::shared_ptr<uint8_t>(size_t size_bytes)> allocate = {};
  // Receives messages for people; the library itself prints nothing. Called from any thread.
  std::function<void(LogLevel level, std::string_view message)> log = {};
  bool measures_device_times = false;  // of batches; two more events around each copy and each launch
  std::string cuda_library = {};       // empty: the system's driver
  std::string calibration_path = {};   // where measured rates are kept; empty: nowhere
};

// Options of a stream. `progress` is called between batches, on the thread of the caller, with the raw and stored bytes
// so far. `limits.stop` ends the stream between two batches.
struct StreamOptions {
  codec::StreamLimits limits = {};
  codec::Progress progress = {};
  // Compression only: the same bytes on every backend. Excludes linked blocks.
  bool is_reproducible = false;
};

class Engine;

class Lz4 {
 public:
  static Result<Lz4> open(Lz4Settings settings = {});
  Lz4(Lz4&&) noexcept;
  Lz4& operator=(Lz4&&) noexcept;
  ~Lz4();

  // Threads and backend, for code of this project that works on other formats as well.
  Engine& engine() { return *engine_; }
  std::string description() const;  // of the backend: "cpu, 16 threads, liblz4 1.9.4"
  // Memory for items, page-locked if a GPU is in use: items in it are copied directly.
  Result<codec::HostMemory> host_memory(size_t size_bytes);

  // Batches of items of up to 4 MiB, whose outputs have at least the raw size. Each item gets its own status and flag
  // (runtime/codec/backend.hpp). After an error no result of the batch
  // is valid. `encoder`: reproducible and high give the same bytes on every backend, for items without history;
  // without one, the fastest of the side that runs the batch. `times` receives the time that a device spent on this
  // batch, if Lz4Settings::measures_device_times is set.
  Result<void> compress(std::span<codec::CompressItem> items, std::optional<codec::Encoder> encoder = {},
                        codec::DeviceTimes* times = nullptr);
  Result<void> decompress(std::span<codec::DecompressItem> items, codec::DeviceTimes* times = nullptr);

  // Streams: standard LZ4 frames, in bounded memory (runtime/codec/stream/stream.hpp).
  Result<codec::StreamTotals> compress(format::ByteSource& source, format::ByteSink& sink,
                                       const format::FrameHeader& header = {}, const StreamOptions& options = {});
  Result<codec::StreamTotals> decompress(format::ByteSource& source, format::ByteSink& sink,
                                         const StreamOptions& options = {});

 private:
  explicit Lz4(std::unique_ptr<Engine> engine);
  std::unique_ptr<Engine> engine_;
};

}  // namespace ptxkit::library
