// Times streams on two backends, reading, checksum and framing included.
#pragma once

#include <functional>
#include <vector>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/policy/policy.hpp"
#include "runtime/codec/stream/stream.hpp"

namespace ptxkit::codec {

// `text`: words that cost an LZ encoder as much as English text does. `plain`: zeros and noise, alternating in blocks
// of 64 KiB. `mixed`: text, zeros and noise, alternating likewise.
enum class Sample : uint8_t { plain, text, mixed };

// An input of any length that repeats a small pattern.
class SampleSource final : public format::ByteSource {
 public:
  explicit SampleSource(uint64_t size_bytes, Sample sample = Sample::mixed);
  Result<size_t> read(MutableBytes into) override;
  size_t look_ahead(uint64_t at, MutableBytes into) const override;
  const std::string& name() const override { return name_; }

 private:
  const std::vector<uint8_t>& pattern_;
  uint64_t at_ = 0, size_bytes_;
  std::string name_ = "sample";
};

struct TimedStream {
  StreamTotals totals;
  double seconds;
};
// Compresses all of `source`, which holds `raw_bytes`, or a sample of that length, into one frame of 64 KiB blocks and
// discards the output. The stream knows its length beforehand, as that of a file does. `encoder`: empty for the default
// of the backend that runs it.
Result<TimedStream> time_compression(Backend& backend, std::optional<Encoder> encoder, format::ByteSource& source,
                                     uint64_t raw_bytes);
Result<TimedStream> time_compression(Backend& backend, std::optional<Encoder> encoder, uint64_t raw_bytes,
                                     Sample sample = Sample::mixed);
// compress_sample() makes a frame; time_decompression() decodes one and discards the output.
Result<std::vector<uint8_t>> compress_sample(Backend& backend, uint64_t raw_bytes);
Result<TimedStream> time_decompression(Backend& backend, Bytes frame);

// The lengths to time, ascending: from a few KiB to many batches of the side that takes the larger ones.
std::vector<uint64_t> sample_lengths(const Backend& cpu, const Backend& gpu);

// Measures, for each length, the mean time of its runs without the slowest eighth. The two sides alternate, so that a
// temporary slowdown of the machine affects both. Every length is measured in each of three rounds, so that a slowdown
// does not affect all runs of one length. Each side runs at least 3 times for each length, and up to 48 times while the
// runs of both take less than 60 ms. The first run of a length in a round is not counted; if it takes more than 0.4 s
// on both sides together, longer lengths are left out.
using SecondsOf = std::function<Result<double>(uint64_t raw_bytes)>;
struct MeasuredCurves {
  Curve cpu, gpu;
};
Result<MeasuredCurves> measure_curves(const std::vector<uint64_t>& lengths, const SecondsOf& cpu, const SecondsOf& gpu);

// Measures both sides with streams of `lengths`, which takes a few seconds for those of sample_lengths(). `gpu` must
// not have run a stream yet. `gpu_start_seconds` is the time that the caller measured from before `gpu` was made to its
// first result.
Result<Calibration> calibrate(Backend& cpu, Backend& gpu, const std::vector<uint64_t>& lengths, unsigned cpu_threads,
                              double gpu_start_seconds);

}  // namespace ptxkit::codec
