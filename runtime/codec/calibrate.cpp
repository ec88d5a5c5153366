#include "runtime/codec/calibrate.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "runtime/codec/stream.hpp"

namespace ptxkit::codec {
namespace {

constexpr std::size_t kBlockBytes = 64u << 10, kPatternBytes = 6u << 20;
// Several batches, within reason.
constexpr std::uint64_t kLeastBytes = 4u << 20, kMostBytes = 256u << 20;
constexpr unsigned kBatches = 4;
constexpr int kRepetitions = 3;

std::vector<std::uint8_t> make_pattern() {
  std::vector<std::uint8_t> bytes(kPatternBytes);
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t block = i / kBlockBytes;
    if (block % 3 == 1) continue;
    if (i % 8 == 0) state = state * 6364136223846793005u + 1442695040888963407u;
    const auto noise = static_cast<std::uint8_t>(state >> (8 * (i % 8)));
    // One of 4096 words of eight letters: matches as text has them.
    const std::uint64_t word = state >> 52;
    bytes[i] = block % 3 == 2 ? noise : static_cast<std::uint8_t>("etaoinsr"[(word >> (i % 8)) & 7]);
  }
  return bytes;
}

// Made once; never changed.
const std::vector<std::uint8_t>& pattern() {
  static const std::vector<std::uint8_t> bytes = make_pattern();
  return bytes;
}

CompressOptions options_for(Encoder encoder) {
  CompressOptions options;
  options.header.block_size_id = 4;
  options.encoder = encoder;
  return options;
}

template <class Run>
Result<double> best_of(Run run) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRepetitions; ++i) {
    const Result<double> seconds = run();
    if (!seconds) return seconds;
    best = std::min(best, *seconds);
  }
  return best;
}

template <class Run>
Result<double> timed(Run run) {
  const auto begin = std::chrono::steady_clock::now();
  if (const auto done = run(); !done) return tl::unexpected(done.error());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

SampleSource::SampleSource(std::uint64_t size_bytes) : pattern_(pattern()), size_bytes_(size_bytes) {}

Result<std::size_t> SampleSource::read(MutableBytes into) {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), size_bytes_ - at_));
  for (std::size_t done = 0; done < count;) {
    const std::size_t from = at_ % pattern_.size(), piece = std::min(pattern_.size() - from, count - done);
    std::memcpy(into.data() + done, pattern_.data() + from, piece);
    done += piece;
    at_ += piece;
  }
  return count;
}

Result<double> seconds_to_compress(Backend& backend, Encoder encoder, std::uint64_t raw_bytes) {
  return timed([&] {
    SampleSource source(raw_bytes);
    format::NullSink sink;
    return compress_stream(source, sink, backend, options_for(encoder));
  });
}

Result<std::vector<std::uint8_t>> compress_sample(Backend& backend, std::uint64_t raw_bytes) {
  SampleSource source(raw_bytes);
  format::MemorySink sink;
  const auto done = compress_stream(source, sink, backend, options_for(backend.default_encoder()));
  if (!done) return tl::unexpected(done.error());
  return sink.take();
}

Result<double> seconds_to_decompress(Backend& backend, Bytes frame) {
  return timed([&] {
    format::MemorySource source(frame, "sample");
    format::NullSink sink;
    return decompress_stream(source, sink, backend);
  });
}

Result<Rates> measure_rates(Backend& backend) {
  const std::uint64_t raw_bytes =
      std::clamp<std::uint64_t>(kBatches * backend.preferred_batch_bytes(kBlockBytes), kLeastBytes, kMostBytes);
  const auto rate = [&](Result<double> seconds) { return static_cast<double>(raw_bytes) / *seconds; };
  Rates rates;
  const auto reproducible = best_of([&] { return seconds_to_compress(backend, Encoder::reproducible, raw_bytes); });
  if (!reproducible) return tl::unexpected(reproducible.error());
  rates.compress = rates.compress_reproducible = rate(reproducible);
  if (backend.default_encoder() == Encoder::fast) {
    const auto fast = best_of([&] { return seconds_to_compress(backend, Encoder::fast, raw_bytes); });
    if (!fast) return tl::unexpected(fast.error());
    rates.compress = rate(fast);
  }
  const auto frame = compress_sample(backend, raw_bytes);
  if (!frame) return tl::unexpected(frame.error());
  const auto decompress = best_of([&] { return seconds_to_decompress(backend, *frame); });
  if (!decompress) return tl::unexpected(decompress.error());
  rates.decompress = rate(decompress);
  return rates;
}

Result<Calibration> calibrate(Backend& cpu, Backend& gpu, unsigned cpu_threads, double gpu_start_seconds) {
  Calibration calibration{gpu.description(), cpu_threads, {}, {}, gpu_start_seconds};
  for (const auto& [rates, backend] : {std::pair(&calibration.cpu, &cpu), std::pair(&calibration.gpu, &gpu)}) {
    auto measured = measure_rates(*backend);
    if (!measured) return tl::unexpected(measured.error());
    *rates = *measured;
  }
  return calibration;
}

}  // namespace ptxkit::codec
