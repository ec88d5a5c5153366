// Measured times of two backends, as streams see them: reading, checksum and framing included.
#pragma once

#include <functional>
#include <vector>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/policy/policy.hpp"
#include "runtime/codec/stream/stream.hpp"

namespace ptxkit::codec {

// `text`: words, which an LZ encoder takes as long for as for English. `plain`: zeros and noise, a block of 64 KiB each
// in turn. `mixed`: text, zeros and noise.
enum class Sample : uint8_t { plain, text, mixed };

// An input of any length from a small pattern.
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
// One frame of all of `source`, which has `raw_bytes`, or of so many sample bytes, in blocks of 64 KiB, to nowhere. The
// stream knows its length beforehand, as that of a file does. `encoder`: nothing for whatever is usual where it runs.
Result<TimedStream> time_compression(Backend& backend, std::optional<Encoder> encoder, format::ByteSource& source,
                                     uint64_t raw_bytes);
Result<TimedStream> time_compression(Backend& backend, std::optional<Encoder> encoder, uint64_t raw_bytes,
                                     Sample sample = Sample::mixed);
// `frame` as `compress_sample` makes it; to nowhere.
Result<std::vector<uint8_t>> compress_sample(Backend& backend, uint64_t raw_bytes);
Result<TimedStream> time_decompression(Backend& backend, Bytes frame);

// The lengths that suit both, ascending: from few bytes to many batches.
std::vector<uint64_t> sample_lengths(const Backend& cpu, const Backend& gpu);

// Of each length the mean of runs, the slowest eighth left out. The two sides take turns, so that what slows the
// machine down for a while slows both, and all lengths come in each of three rounds, so that it does not last through
// all runs of one: 3 runs of each side, or up to 48 as far as 60 ms suffice. The first run of a length in a round does
// not count; where it takes both sides more than 0.4 s, longer lengths are left out.
using SecondsOf = std::function<Result<double>(uint64_t raw_bytes)>;
struct MeasuredCurves {
  Curve cpu, gpu;
};
Result<MeasuredCurves> measure_curves(const std::vector<uint64_t>& lengths, const SecondsOf& cpu, const SecondsOf& gpu);

// Measures both sides with streams of these lengths, which with those of sample_lengths takes a few seconds;
// `gpu_start_seconds`, from nothing to the first result, was measured by
// whoever made `gpu`, which has run no stream yet.
Result<Calibration> calibrate(Backend& cpu, Backend& gpu, const std::vector<uint64_t>& lengths, unsigned cpu_threads,
                              double gpu_start_seconds);

}  // namespace ptxkit::codec
