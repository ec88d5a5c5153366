#include "runtime/codec/policy/calibrate.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

namespace ptxkit::codec {
namespace {

constexpr size_t kBlockBytes = 64u << 10, kKindBytes = 2u << 20;  // bytes of each kind of data: text, zeros, noise
// Batches in the longest sample. The first few touch new buffers; the time added by the others gives the rate.
constexpr uint64_t kBatches = 16;
constexpr uint64_t kLeastLongest = 4u << 20, kMostLongest = 256u << 20;
// Lengths go down from there by kStep, and by kSmallStep where the fixed cost of a stream is about as large as its cost
// per byte.
constexpr uint64_t kStep = 4, kSmallStep = 2, kSmallStepsFrom = 1u << 20, kShortest = 4096;
constexpr int kRounds = 3, kMostRuns = 16;  // of a length in a round, for each side
constexpr double kEnoughSeconds = 0.02;     // of a length in a round, for both sides together
constexpr double kLongSeconds = 0.4;        // of a run on both sides: longer lengths are left out
constexpr size_t kSlowestPart = 8;          // the slowest 1/8 of the runs is discarded

class Random {
 public:
  unsigned operator()(unsigned below) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<unsigned>(state_ >> 33) % below;
  }
  // Small values are more frequent.
  unsigned low(unsigned below) {
    const unsigned one = (*this)(below);
    return std::min(one, (*this)(below));
  }

 private:
  uint64_t state_ = 1;
};

// Words made of syllables made of letters. At each level a few are very frequent, and frequent words are short.
std::vector<uint8_t> make_text(size_t size_bytes) {
  constexpr size_t kSyllables = 64, kWords = 8192;
  constexpr unsigned kLetters = 26, kLines = 40;
  Random random;
  std::vector<std::string> syllables(kSyllables), words(kWords);
  for (std::string& syllable : syllables) {
    for (unsigned left = 1 + random(3); left > 0; --left) {
      syllable += "etaoinshrdlucmfwypvbgkjqxz"[random.low(kLetters)];
    }
  }
  for (size_t word = 0; word < kWords; ++word) {
    unsigned left = 1;
    for (size_t frequent = 8; frequent <= word && left < 4; frequent *= 8) left += random(2);
    for (; left > 0; --left) words[word] += syllables[random.low(kSyllables)];
  }
  std::vector<uint8_t> text;
  while (text.size() < size_bytes) {
    const double even = random(1u << 16) / 65536.0;
    const std::string& word = words[static_cast<size_t>(std::pow(even, 6) * kWords)];
    text.insert(text.end(), word.begin(), word.end());
    const unsigned after = random(kLines);
    text.push_back(after == 0 ? '\n' : after < 4 ? ',' : ' ');
  }
  text.resize(size_bytes);
  return text;
}

std::vector<uint8_t> make_noise(size_t size_bytes) {
  Random random;
  std::vector<uint8_t> noise(size_bytes);
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random(256));
  return noise;
}

// Interleaves the kinds, a block of each in turn.
std::vector<uint8_t> in_turn(const std::vector<const std::vector<uint8_t>*>& kinds) {
  std::vector<uint8_t> all;
  all.reserve(kinds.size() * kKindBytes);
  for (size_t at = 0; at < kKindBytes; at += kBlockBytes) {
    for (const auto* kind : kinds)
      all.insert(all.end(), kind->begin() + static_cast<ptrdiff_t>(at),
                 kind->begin() + static_cast<ptrdiff_t>(at + kBlockBytes));
  }
  return all;
}

// The patterns are made once and never change.
const std::vector<uint8_t>& pattern_of(Sample sample) {
  static const auto patterns = [] {
    const std::vector<uint8_t> text = make_text(kKindBytes), zeros(kKindBytes), noise = make_noise(kKindBytes);
    return std::array{in_turn({&zeros, &noise}), text, in_turn({&text, &zeros, &noise})};
  }();
  return patterns[static_cast<size_t>(sample)];
}

CompressOptions options_for(std::optional<Encoder> encoder, uint64_t raw_bytes) {
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

SampleSource::SampleSource(uint64_t size_bytes, Sample sample)
    : pattern_(pattern_of(sample)), size_bytes_(size_bytes) {}

Result<size_t> SampleSource::read(MutableBytes into) {
  const size_t count = look_ahead(0, into);
  at_ += count;
  return count;
}

size_t SampleSource::look_ahead(uint64_t at, MutableBytes into) const {
  const uint64_t begin = std::min(at_ + at, size_bytes_);
  const auto count = static_cast<size_t>(std::min<uint64_t>(into.size(), size_bytes_ - begin));
  for (size_t done = 0; done < count;) {
    const size_t from = (begin + done) % pattern_.size(), piece = std::min(pattern_.size() - from, count - done);
    std::memcpy(into.data() + done, pattern_.data() + from, piece);
    done += piece;
  }
  return count;
}

Result<TimedStream> time_compression(Backend& backend, std::optional<Encoder> encoder, format::ByteSource& source,
                                     uint64_t raw_bytes) {
  return timed([&] {
    format::NullSink sink;
    return compress_stream(source, sink, backend, options_for(encoder, raw_bytes));
  });
}

Result<TimedStream> time_compression(Backend& backend, std::optional<Encoder> encoder, uint64_t raw_bytes,
                                     Sample sample) {
  SampleSource source(raw_bytes, sample);
  return time_compression(backend, encoder, source, raw_bytes);
}

Result<std::vector<uint8_t>> compress_sample(Backend& backend, uint64_t raw_bytes) {
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

std::vector<uint64_t> sample_lengths(const Backend& cpu, const Backend& gpu) {
  const uint64_t batch_bytes = std::max(cpu.preferred_batch_bytes(kBlockBytes), gpu.preferred_batch_bytes(kBlockBytes));
  std::vector<uint64_t> lengths;
  for (uint64_t length = std::clamp(kBatches * batch_bytes, kLeastLongest, kMostLongest); length >= kShortest;
       length /= length <= kSmallStepsFrom ? kSmallStep : kStep) {
    lengths.insert(lengths.begin(), length);
  }
  return lengths;
}

Result<MeasuredCurves> measure_curves(const std::vector<uint64_t>& lengths, const SecondsOf& cpu,
                                      const SecondsOf& gpu) {
  const SecondsOf* const sides[] = {&cpu, &gpu};
  std::vector<std::vector<double>> runs[2] = {std::vector<std::vector<double>>(lengths.size()),
                                              std::vector<std::vector<double>>(lengths.size())};
  size_t count = lengths.size();
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < count; ++i) {
      double all_seconds = 0;
      // Run -1 warms up the buffers and is not counted.
      for (int run = -1; run <= 0 || (run < kMostRuns && all_seconds < kEnoughSeconds); ++run) {
        for (int side = 0; side < 2; ++side) {
          const Result<double> seconds = (*sides[side])(lengths[i]);
          if (!seconds) return tl::unexpected(seconds.error());
          all_seconds += *seconds;
          if (run >= 0) runs[side][i].push_back(*seconds);
        }
        if (run >= 0) continue;
        if (all_seconds > kLongSeconds) count = std::max<size_t>(2, i + 1);
        all_seconds = 0;
      }
    }
  }
  std::vector<Curve::Sample> samples[2];
  for (int side = 0; side < 2; ++side) {
    for (size_t i = 0; i < count; ++i) {
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

SecondsOf compression(Backend& backend, Encoder encoder, Sample sample) {
  return [&backend, encoder, sample](uint64_t length) {
    return seconds_of(time_compression(backend, encoder, length, sample));
  };
}

// Times decompression of frames that the backend made itself, one for each length.
SecondsOf decompression(Backend& backend) {
  return [&backend, frame = std::vector<uint8_t>(),
          length_of_frame = uint64_t{0}](uint64_t length) mutable -> Result<double> {
    if (length != std::exchange(length_of_frame, length)) {
      auto made = compress_sample(backend, length);
      if (!made) return tl::unexpected(made.error());
      frame = std::move(*made);
    }
    return seconds_of(time_decompression(backend, frame));
  };
}

}  // namespace

Result<Calibration> calibrate(Backend& cpu, Backend& gpu, const std::vector<uint64_t>& lengths, unsigned cpu_threads,
                              double gpu_start_seconds) {
  // The first long stream allocates buffers that later streams reuse; that time is part of the start-up cost.
  const auto first = time_compression(gpu, gpu.default_encoder(), lengths.back());
  if (!first) return tl::unexpected(first.error());
  Calibration calibration{gpu.description(), cpu_threads, {}, {}, gpu_start_seconds};
  const auto measure = [&](Curve Curves::* curve, const SecondsOf& on_cpu, const SecondsOf& on_gpu) -> Result<void> {
    auto curves = measure_curves(lengths, on_cpu, on_gpu);
    if (!curves) return tl::unexpected(curves.error());
    calibration.cpu.*curve = std::move(curves->cpu);
    calibration.gpu.*curve = std::move(curves->gpu);
    return {};
  };
  const auto measure_compression = [&](Curve Curves::* curve, Encoder on_cpu, Sample sample) {
    return measure(curve, compression(cpu, on_cpu, sample), compression(gpu, gpu.default_encoder(), sample));
  };
  const auto measured =
      measure_compression(&Curves::compress_plain, Encoder::fast, Sample::plain)
          .and_then([&] { return measure_compression(&Curves::compress_text, Encoder::fast, Sample::text); })
          .and_then(
              [&] { return measure_compression(&Curves::compress_reproducible, Encoder::reproducible, Sample::mixed); })
          .and_then([&] { return measure(&Curves::decompress, decompression(cpu), decompression(gpu)); });
  if (!measured) return tl::unexpected(measured.error());
  calibration.gpu_start_seconds += std::max(
      0.0, first->seconds - calibration.once_started().gpu_seconds(Work::compress_reproducible, lengths.back()));
  return calibration;
}

}  // namespace ptxkit::codec
