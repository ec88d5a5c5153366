#include "runtime/library/lz4.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include "kernels/images.hpp"
#include "runtime/codec/select_backend.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "support/guarded.hpp"

namespace ptxkit::library {
namespace {

using codec::Backend;
using codec::CompressItem;
using codec::DecompressItem;
using codec::Encoder;
using codec::HostMemory;

// The largest LZ4 frame block, 4 MiB; liblz4 and the kernels accept it.
constexpr size_t kLargestItemBytes = 4u << 20;

codec::Policy policy_of(Where where) {
  switch (where) {
    case Where::cpu:
      return codec::Policy::cpu;
    case Where::gpu:
      return codec::Policy::gpu;
    case Where::both:
      return codec::Policy::mixed;
    case Where::automatic:
      break;
  }
  return codec::Policy::automatic;
}

}  // namespace

struct Lz4::State {
  State(unsigned cpu_threads, Where where) : executor(cpu_threads) {
    if (where == Where::both) copies.emplace(std::max(1u, executor.thread_count() / 4));
  }

  codec::BackendRequest request_for(Lz4Settings& settings);

  codec::Executor executor;
  std::optional<codec::Executor> copies;  // of Where::both
  std::unique_ptr<Backend> backend;       // last: it uses the other members

  // begin_batch(backend) -> what was begun there.
  template <class BeginBatch>
  Result<void> run(const codec::CodecJob& job, codec::DeviceTimes* times, BeginBatch begin_batch) {
    Backend& chosen = backend->chosen_for(job);
    const auto begin = std::chrono::steady_clock::now();
    Result<void> done = guarded([&] {
      const auto begun = begin_batch(chosen);
      Result<void> finished = begun->finish();
      if (times != nullptr) *times = begun->device_times();
      return finished;
    });
    if (done) {
      backend->record_time(job, chosen,
                           std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return done;
  }
};

Lz4::Lz4(std::unique_ptr<State> state) : state_(std::move(state)) {}
Lz4::Lz4(Lz4&&) noexcept = default;
Lz4& Lz4::operator=(Lz4&&) noexcept = default;
Lz4::~Lz4() = default;

codec::BackendRequest Lz4::State::request_for(Lz4Settings& settings) {
  codec::BackendRequest request;
  request.policy = policy_of(settings.where);
  if (settings.expected_bytes != 0) request.raw_bytes = settings.expected_bytes;
  request.calibration_path = settings.calibration_path;
  if (copies) request.copy_executor = &*copies;
  request.devices = settings.devices;
  request.find_image = kernels::find_kernel_image;
  if (settings.log) {
    request.notice = [log = settings.log](const std::string& message, bool matters) {
      try {
        log(matters ? LogLevel::warning : LogLevel::detail, message);
      } catch (...) {  // a failed log call must not stop the work
      }
    };
    if (executor.thread_count() < executor.wanted_count()) {
      request.notice("threads are fewer than asked for: " + std::to_string(executor.thread_count()) + " of " +
                         std::to_string(executor.wanted_count()),
                     false);
    }
  }
  request.limits.memory_bytes = settings.device_memory_bytes;
  request.limits.measures_times = settings.measures_device_times;
  request.cuda_library = settings.cuda_library;
  request.allocate = std::move(settings.allocate);
  return request;
}

Result<Lz4> Lz4::open(Lz4Settings settings) {
  return guarded([&] { return open_unguarded(settings); });
}

Result<void> Lz4::measure_rates(Lz4Settings settings) {
  return guarded([&] { return measure_unguarded(settings); });
}

Result<void> Lz4::measure_unguarded(Lz4Settings& settings) {
  if (settings.calibration_path.empty()) return fail("rates are measured for a file: calibration_path is empty");
  State state(settings.cpu_threads, settings.where);
  return codec::measure_rates(state.request_for(settings), state.executor);
}

Result<Lz4> Lz4::open_unguarded(Lz4Settings& settings) {
  auto state = std::make_unique<State>(settings.cpu_threads, settings.where);
  auto backend = codec::select_backend(state->request_for(settings), state->executor);
  if (!backend) return tl::unexpected(backend.error());
  state->backend = std::move(*backend);
  return Lz4(std::move(state));
}

Requirements Lz4::requirements(size_t item_bytes) {
  return {.largest_item_bytes = kLargestItemBytes,
          .alignment_bytes = 1,
          .compressed_bytes_bound = item_bytes,
          .scratch_bytes = 0};
}

std::string Lz4::description() const { return state_->backend->description(); }

Result<HostMemory> Lz4::host_memory(size_t size_bytes) {
  return guarded([&] { return state_->backend->host_memory(size_bytes); });
}

Result<void> Lz4::compress(std::span<CompressItem> items, bool reproducible, codec::DeviceTimes* times) {
  for (const CompressItem& item : items) {
    if (item.raw.size() > kLargestItemBytes || item.output.size() < item.raw.size()) {
      return fail("item " + std::to_string(&item - items.data()) + ": expected at most " +
                  std::to_string(kLargestItemBytes) + " bytes and an output as large, found " +
                  std::to_string(item.raw.size()) + " and " + std::to_string(item.output.size()));
    }
  }
  codec::CodecJob job{.work = reproducible ? codec::Work::compress_reproducible : codec::Work::compress,
                      .is_batch = true};
  job.raw_bytes = 0;
  bool is_linked = false;
  for (const CompressItem& item : items) {
    *job.raw_bytes += item.raw.size();
    is_linked |= !item.history.empty();
  }
  if (reproducible) job.encoder = Encoder::reproducible;
  if (!reproducible && is_linked && state_->backend->supports(codec::Operation::compress_fast)) {
    job.encoder = Encoder::fast;  // only the fast encoder links blocks
  }
  const auto done = state_->run(job, times, [&](Backend& backend) {
    return backend.begin_compress(items, job.encoder.value_or(backend.default_encoder()));
  });
  if (done) flag_filled_items(items);
  return done;
}

Result<void> Lz4::decompress(std::span<DecompressItem> items, codec::DeviceTimes* times) {
  codec::CodecJob job{.work = codec::Work::decompress, .is_batch = true};
  job.raw_bytes = 0;
  for (const DecompressItem& item : items) *job.raw_bytes += item.output.size();
  return state_->run(job, times, [&](Backend& backend) { return backend.begin_decompress(items); });
}

Result<void> Lz4::restore(std::span<StoredItem> items, codec::DeviceTimes* times) {
  if (times != nullptr) *times = {};
  return guarded([&] {
    return library::restore(items, [&](std::span<DecompressItem> blocks) { return decompress(blocks, times); });
  });
}

Result<codec::StreamTotals> Lz4::compress(format::ByteSource& source, format::ByteSink& sink,
                                          const format::FrameHeader& header, const StreamOptions& options) {
  const auto encoder = options.is_reproducible ? std::optional(Encoder::reproducible) : std::nullopt;
  return guarded([&] {
    return codec::compress_stream(
        source, sink, *state_->backend,
        {.header = header, .encoder = encoder, .progress = options.progress, .limits = options.limits});
  });
}

Result<codec::StreamTotals> Lz4::decompress(format::ByteSource& source, format::ByteSink& sink,
                                            const StreamOptions& options) {
  return guarded([&] {
    return codec::decompress_stream(source, sink, *state_->backend,
                                    {.progress = options.progress, .limits = options.limits});
  });
}

}  // namespace ptxkit::library
