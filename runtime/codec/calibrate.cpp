#include "runtime/codec/calibrate.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <utility>

namespace ptxkit::codec {
namespace {

constexpr std::size_t kBlockBytes = 64u << 10, kPatternBytes = 6u << 20;
// Of the longest sample, so many batches: the buffers of the first few are new, and what is added beyond is the rate.
constexpr std::uint64_t kBatches = 16;
constexpr std::uint64_t kLeastLongest = 4u << 20, kMostLongest = 256u << 20;
// Lengths in steps down from there.
constexpr std::uint64_t kStep = 4, kShortest = 4096;
constexpr int kRounds = 4, kMostRuns = 6;  // of a length in a round, of each side
constexpr double kEnoughSeconds = 0.01;    // of a length in a round, both sides together
constexpr double kLongSeconds = 0.4;       // of a run of both: no longer ones
constexpr std::size_t kSlowestPart = 8;    // of the runs, which does not count

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

CompressOptions options_for(std::optional<Encoder> encoder, std::uint64_t raw_bytes) {
  CompressOptions options;
  options.header.block_size_id = 4;
  options.header.content_bytes = raw_bytes;
  options.encoder = encoder;
  return options;
}

template <class Run>
Result<TimedStream> timed(Run run) {
  const auto begin = std::chrono::steady_clock::now();
  Result<StreamTotals> done = run();
  if (!done) return tl::unexpected(done.error());
  return TimedStream{std::move(*done), std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

Result<double> seconds_of(const Result<TimedStream>& run) {
  return run.map([](const TimedStream& done) { return done.seconds; });
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

Result<TimedStream> time_compression(Backend& backend, std::optional<Encoder> encoder, format::ByteSource& source,
                                     std::uint64_t raw_bytes) {
  return timed([&] {
    format::NullSink sink;
    return compress_stream(source, sink, backend, options_for(encoder, raw_bytes));
  });
}

Result<TimedStream> time_compression(Backend& backend, std::optional<Encoder> encoder, std::uint64_t raw_bytes) {
  SampleSource source(raw_bytes);
  return time_compression(backend, encoder, source, raw_bytes);
}

Result<std::vector<std::uint8_t>> compress_sample(Backend& backend, std::uint64_t raw_bytes) {
  SampleSource source(raw_bytes);
  format::MemorySink sink;
  const auto done = compress_stream(source, sink, backend, options_for(backend.default_encoder(), raw_bytes));
  if (!done) return tl::unexpected(done.error());
  return sink.take();
}

Result<TimedStream> time_decompression(Backend& backend, Bytes frame) {
  return timed([&] {
    format::MemorySource source(frame, "sample");
    format::NullSink sink;
    return decompress_stream(source, sink, backend);
  });
}

std::vector<std::uint64_t> sample_lengths(const Backend& cpu, const Backend& gpu) {
  const std::uint64_t batch_bytes =
      std::max(cpu.preferred_batch_bytes(kBlockBytes), gpu.preferred_batch_bytes(kBlockBytes));
  std::vector<std::uint64_t> lengths;
  for (std::uint64_t length = std::clamp(kBatches * batch_bytes, kLeastLongest, kMostLongest); length >= kShortest;
       length /= kStep) {
    lengths.insert(lengths.begin(), length);
  }
  return lengths;
}

Result<MeasuredCurves> measure_curves(const std::vector<std::uint64_t>& lengths, const SecondsOf& cpu,
                                      const SecondsOf& gpu) {
  const SecondsOf* const sides[] = {&cpu, &gpu};
  std::vector<std::vector<double>> runs[2] = {std::vector<std::vector<double>>(lengths.size()),
                                              std::vector<std::vector<double>>(lengths.size())};
  std::size_t count = lengths.size();
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      const int first = round == 0 ? -1 : 0;  // makes buffers that the others find, and does not count
      double all_seconds = 0;
      for (int run = first; run <= 0 || (run < kMostRuns && all_seconds < kEnoughSeconds); ++run) {
        for (int side = 0; side < 2; ++side) {
          const Result<double> seconds = (*sides[side])(lengths[i]);
          if (!seconds) return tl::unexpected(seconds.error());
          all_seconds += *seconds;
          if (run >= 0) runs[side][i].push_back(*seconds);
        }
        if (run == -1 && all_seconds > kLongSeconds) count = std::max<std::size_t>(2, i + 1);
      }
    }
  }
  std::vector<Curve::Sample> samples[2];
  for (int side = 0; side < 2; ++side) {
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<double>& all = runs[side][i];
      std::sort(all.begin(), all.end());
      all.resize(all.size() - all.size() / kSlowestPart);
      const double sum = std::accumulate(all.begin(), all.end(), 0.0);
      samples[side].push_back({lengths[i], sum / static_cast<double>(all.size())});
    }
  }
  return MeasuredCurves{Curve(std::move(samples[0])), Curve(std::move(samples[1]))};
}

namespace {

SecondsOf compression(Backend& backend, Encoder encoder) {
  return [&backend, encoder](std::uint64_t length) { return seconds_of(time_compression(backend, encoder, length)); };
}

// Of frames that the backend makes, each length's once.
SecondsOf decompression(Backend& backend) {
  return [&backend, frame = std::vector<std::uint8_t>(),
          length_of_frame = std::uint64_t{0}](std::uint64_t length) mutable -> Result<double> {
    if (length != std::exchange(length_of_frame, length)) {
      auto made = compress_sample(backend, length);
      if (!made) return tl::unexpected(made.error());
      frame = std::move(*made);
    }
    return seconds_of(time_decompression(backend, frame));
  };
}

}  // namespace

Result<Calibration> calibrate(Backend& cpu, Backend& gpu, const std::vector<std::uint64_t>& lengths,
                              unsigned cpu_threads, double gpu_start_seconds) {
  // The first long stream allocates what the later ones find: that is part of the start.
  const auto first = time_compression(gpu, gpu.default_encoder(), lengths.back());
  if (!first) return tl::unexpected(first.error());
  Calibration calibration{gpu.description(), cpu_threads, {}, {}, gpu_start_seconds};
  const auto measure = [&](Work work, const SecondsOf& on_cpu, const SecondsOf& on_gpu) -> Result<void> {
    auto curves = measure_curves(lengths, on_cpu, on_gpu);
    if (!curves) return tl::unexpected(curves.error());
    calibration.cpu[static_cast<std::size_t>(work)] = std::move(curves->cpu);
    calibration.gpu[static_cast<std::size_t>(work)] = std::move(curves->gpu);
    return {};
  };
  const SecondsOf kernels = compression(gpu, gpu.default_encoder());
  const auto measured =
      measure(Work::compress, compression(cpu, Encoder::fast), kernels)
          .and_then(
              [&] { return measure(Work::compress_reproducible, compression(cpu, Encoder::reproducible), kernels); })
          .and_then([&] { return measure(Work::decompress, decompression(cpu), decompression(gpu)); });
  if (!measured) return tl::unexpected(measured.error());
  calibration.gpu_start_seconds += std::max(
      0.0, first->seconds - calibration.once_started().gpu_seconds(Work::compress_reproducible, lengths.back()));
  return calibration;
}

}  // namespace ptxkit::codec
