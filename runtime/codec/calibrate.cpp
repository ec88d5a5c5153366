#include "runtime/codec/calibrate.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/codec/stream.hpp"

namespace ptxkit::codec {
namespace {

constexpr std::size_t kBlockBytes = 64u << 10, kPatternBytes = 6u << 20;
// Of the longest sample, so many batches: the buffers of the first few are new, and what is added beyond is the rate.
constexpr std::uint64_t kBatches = 16;
constexpr std::uint64_t kLeastLongest = 4u << 20, kMostLongest = 256u << 20;
// Lengths in steps down from there.
constexpr std::uint64_t kStep = 4, kShortest = 4096;
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

Result<double> seconds_to_compress(Backend& backend, Encoder encoder, format::ByteSource& source) {
  return timed([&] {
    format::NullSink sink;
    return compress_stream(source, sink, backend, options_for(encoder));
  });
}

Result<double> seconds_to_compress(Backend& backend, Encoder encoder, std::uint64_t raw_bytes) {
  SampleSource source(raw_bytes);
  return seconds_to_compress(backend, encoder, source);
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

std::vector<std::uint64_t> sample_lengths(const Backend& backend) {
  std::vector<std::uint64_t> lengths;
  for (std::uint64_t length =
           std::clamp(kBatches * backend.preferred_batch_bytes(kBlockBytes), kLeastLongest, kMostLongest);
       length >= kShortest; length /= kStep) {
    lengths.insert(lengths.begin(), length);
  }
  return lengths;
}

Result<Curve> measure_curve(const std::vector<std::uint64_t>& lengths, const SecondsOf& seconds_of) {
  std::vector<Curve::Sample> samples;
  for (const std::uint64_t length : lengths) {
    Curve::Sample best{length, std::numeric_limits<double>::infinity()};
    for (int i = 0; i < kRepetitions; ++i) {
      const Result<double> seconds = seconds_of(length);
      if (!seconds) return tl::unexpected(seconds.error());
      best.seconds = std::min(best.seconds, *seconds);
    }
    samples.push_back(best);
  }
  return Curve(std::move(samples));
}

namespace {

Result<std::array<Curve, kWorkCount>> measure_side(Backend& backend) {
  const auto lengths = sample_lengths(backend);
  std::array<Curve, kWorkCount> curves;
  const auto compress = [&](Encoder encoder) {
    return measure_curve(lengths, [&](std::uint64_t length) { return seconds_to_compress(backend, encoder, length); });
  };
  auto reproducible = compress(Encoder::reproducible);
  if (!reproducible) return tl::unexpected(reproducible.error());
  auto fast = backend.default_encoder() == Encoder::fast ? compress(Encoder::fast) : reproducible;
  if (!fast) return tl::unexpected(fast.error());
  std::vector<std::uint8_t> frame;
  std::uint64_t length_of_frame = 0;
  auto decompress = measure_curve(lengths, [&](std::uint64_t length) -> Result<double> {
    if (length != std::exchange(length_of_frame, length)) {
      auto made = compress_sample(backend, length);
      if (!made) return tl::unexpected(made.error());
      frame = std::move(*made);
    }
    return seconds_to_decompress(backend, frame);
  });
  if (!decompress) return tl::unexpected(decompress.error());
  return std::array{std::move(*fast), std::move(*reproducible), std::move(*decompress)};
}

}  // namespace

Result<Calibration> calibrate(Backend& cpu, Backend& gpu, unsigned cpu_threads, double gpu_start_seconds) {
  // The first long stream allocates what the later ones find: that is part of the start.
  const std::uint64_t longest = sample_lengths(gpu).back();
  const auto first = seconds_to_compress(gpu, gpu.default_encoder(), longest);
  if (!first) return tl::unexpected(first.error());
  auto of_gpu = measure_side(gpu);
  if (!of_gpu) return tl::unexpected(of_gpu.error());
  auto of_cpu = measure_side(cpu);
  if (!of_cpu) return tl::unexpected(of_cpu.error());
  Calibration calibration{gpu.description(), cpu_threads, std::move(*of_cpu), std::move(*of_gpu), gpu_start_seconds};
  calibration.gpu_start_seconds +=
      std::max(0.0, *first - calibration.once_started().gpu_seconds(Work::compress_reproducible, longest));
  return calibration;
}

}  // namespace ptxkit::codec
