#include "runtime/library/lz4.hpp"

#include <chrono>
#include <optional>

#include "runtime/library/engine.hpp"
#include "runtime/library/stored_item.hpp"
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

// begin_batch(backend) -> what was begun there.
template <class BeginBatch>
Result<void> run(Backend& backend, const codec::CodecJob& job, codec::DeviceTimes* times, BeginBatch begin_batch) {
  Backend& chosen = backend.chosen_for(job);
  const auto begin = std::chrono::steady_clock::now();
  Result<void> done = guarded([&] {
    const auto begun = begin_batch(chosen);
    Result<void> finished = begun->finish();
    if (times != nullptr) *times = begun->device_times();
    return finished;
  });
  if (done) {
    backend.record_time(job, chosen, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return done;
}

}  // namespace

Lz4::Lz4(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
Lz4::Lz4(Lz4&&) noexcept = default;
Lz4& Lz4::operator=(Lz4&&) noexcept = default;
Lz4::~Lz4() = default;

Result<Lz4> Lz4::open(Lz4Settings settings) {
  return guarded([&] {
    return Engine::open(std::move(settings)).map([](std::unique_ptr<Engine> engine) { return Lz4(std::move(engine)); });
  });
}

std::string Lz4::description() const { return engine_->backend().description(); }

Result<HostMemory> Lz4::host_memory(size_t size_bytes) {
  return guarded([&] { return engine_->backend().host_memory(size_bytes); });
}

Result<void> Lz4::compress(std::span<CompressItem> items, std::optional<Encoder> encoder, codec::DeviceTimes* times) {
  for (const CompressItem& item : items) {
    if (item.raw.size() > kLargestItemBytes || item.output.size() < item.raw.size()) {
      return fail("item " + std::to_string(&item - items.data()) + ": expected at most " +
                  std::to_string(kLargestItemBytes) + " bytes and an output as large, found " +
                  std::to_string(item.raw.size()) + " and " + std::to_string(item.output.size()));
    }
  }
  const bool is_reproducible = encoder && *encoder != Encoder::fast;
  codec::CodecJob job{.work = is_reproducible ? codec::Work::compress_reproducible : codec::Work::compress,
                      .encoder = encoder,
                      .is_batch = true};
  job.raw_bytes = 0;
  bool is_linked = false;
  for (const CompressItem& item : items) {
    *job.raw_bytes += item.raw.size();
    is_linked |= !item.history.empty();
  }
  if (!encoder && is_linked && engine_->backend().supports(codec::Operation::compress_fast)) {
    job.encoder = Encoder::fast;  // only the fast encoder links blocks
  }
  const auto done = run(engine_->backend(), job, times, [&](Backend& backend) {
    return backend.begin_compress(items, job.encoder.value_or(backend.default_encoder()));
  });
  if (done) flag_filled_items(items);
  return done;
}

Result<void> Lz4::decompress(std::span<DecompressItem> items, codec::DeviceTimes* times) {
  codec::CodecJob job{.work = codec::Work::decompress, .is_batch = true};
  job.raw_bytes = 0;
  for (const DecompressItem& item : items) *job.raw_bytes += item.output.size();
  return run(engine_->backend(), job, times, [&](Backend& backend) { return backend.begin_decompress(items); });
}

Result<codec::StreamTotals> Lz4::compress(format::ByteSource& source, format::ByteSink& sink,
                                          const format::FrameHeader& header, const StreamOptions& options) {
  const auto encoder = options.is_reproducible ? std::optional(Encoder::reproducible) : std::nullopt;
  return guarded([&] {
    return codec::compress_stream(
        source, sink, engine_->backend(),
        {.header = header, .encoder = encoder, .progress = options.progress, .limits = options.limits});
  });
}

Result<codec::StreamTotals> Lz4::decompress(format::ByteSource& source, format::ByteSink& sink,
                                            const StreamOptions& options) {
  return guarded([&] {
    return codec::decompress_stream(source, sink, engine_->backend(),
                                    {.progress = options.progress, .limits = options.limits});
  });
}

}  // namespace ptxkit::library
