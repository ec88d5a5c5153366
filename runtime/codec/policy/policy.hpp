// Chooses CPU or GPU for a given amount of work, from measured streams.
//
// A side is a curve: the times of streams of a few lengths, with straight lines between and beyond them. A single rate
// is not enough: latency dominates a short stream, first touch of buffers one of a few batches, and only a long stream
// shows the rate. Streams run from host memory to host memory, so the times include the PCIe copies. The GPU adds the
// start of CUDA, hundreds of milliseconds; the policy decides before any driver is opened, so small inputs never wait
// for it. Curves are measured once for each device, by measure_rates while nothing else runs, and are kept in a file.
//
// Text takes the fast encoder several times as long as runs or noise; the GPU takes the same time for both. So
// compression has a curve for each, and the time for other data is interpolated between them (policy/effort.hpp). For
// the scalar reproducible encoder and the decoders a mixed sample is enough: their times differ much from the GPU's, or
// depend little on the data.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/policy/effort.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {

// The time of a stream as a function of its raw bytes.
class Curve {
 public:
  struct Sample {
    uint64_t raw_bytes = 0;
    double seconds = 0;
    bool operator==(const Sample&) const = default;
  };
  Curve() = default;
  // `samples`: two or more, lengths ascending. A longer stream is assumed to take at least as long as a shorter one;
  // measurements that contradict this are replaced by their mean (isotonic regression, pool adjacent violators).
  explicit Curve(std::vector<Sample> samples);

  // In seconds; 0 without samples. A stream shorter than the first sample takes as long as the first sample.
  double seconds(uint64_t raw_bytes) const;
  // Raw bytes a second at the slope of the last segment; infinite where it is flat.
  double rate() const;
  const std::vector<Sample>& samples() const { return samples_; }

 private:
  std::vector<Sample> samples_;
};

// The curves of a side. `compress_*`: with the side's default encoder; plain: runs and noise.
struct Curves {
  Curve compress_plain, compress_text, compress_reproducible, decompress;
};
inline constexpr std::array<std::pair<std::string_view, Curve Curves::*>, 4> kCurves = {
    {{"compress_plain", &Curves::compress_plain},
     {"compress_text", &Curves::compress_text},
     {"compress_reproducible", &Curves::compress_reproducible},
     {"decompress", &Curves::decompress}}};

struct Calibration {
  std::string device;  // Backend::description() of the GPU (name and driver); another one needs another calibration
  unsigned cpu_threads = 0;
  Curves cpu, gpu;
  double gpu_start_seconds = 0;  // added to the first stream of a process

  double cpu_seconds(Work work, uint64_t raw_bytes, const Effort& effort = {}) const;
  double gpu_seconds(Work work, uint64_t raw_bytes, const Effort& effort = {}) const;
  // Prefers the GPU only where it is faster by more than 4 %: below that the measurements do not separate the two, and
  // the CPU's time varies less. An unknown length (a pipe) may be short, so it goes to the CPU.
  bool prefers_gpu(Work work, std::optional<uint64_t> raw_bytes, const Effort& effort = {}) const;
  // The same calibration for a process that has already started the GPU.
  Calibration once_started() const;

 private:
  double seconds(const Curves& side, Work work, uint64_t raw_bytes, const Effort& effort) const;
};

// The assumed calibration before any measurement: a GPU that is infinitely fast after a start of 0.2 s, beside CPU
// threads of 0.4 GB/s each. So the driver is opened only for work that would take the CPU more than 0.2 s.
Calibration unmeasured(unsigned cpu_threads);

// $PTXKIT_CALIBRATION, or device-N.rates in $XDG_CACHE_HOME/ptxkit or ~/.cache/ptxkit, where N lists the ordinals
// ("0-2") or is "all" where `devices` is empty. Empty where none of the variables is set.
std::string calibration_path(const std::vector<int>& devices);
// Nothing if the file does not exist or is not a valid calibration; the caller measures again.
std::optional<Calibration> load_calibration(const std::string& path);
Result<void> save_calibration(const Calibration& calibration, const std::string& path);

}  // namespace ptxkit::codec
