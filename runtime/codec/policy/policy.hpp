// CPU or GPU for a given amount of work, from measured streams.
//
// A side is a curve: how long streams of a few lengths took, and straight lines between and beyond them. One rate is
// not enough: a stream of few bytes is latency, one of a few batches is buffers that are touched for the first time,
// and only a long one is the rate. Streams are host to host (copies included), so they already hold what PCIe costs.
// The GPU has the start of CUDA on top, hundreds of milliseconds, which dominates: it is asked about before any driver
// is opened, so small inputs never wait for it. Curves are measured once for each device, by the first input that is
// large enough to be worth opening the driver, and kept in a file.
//
// The fast encoder takes text several times as long as runs or noise, and the GPU does not. So compression has a curve
// for each, and what is between them takes a time between them (codec/effort.hpp). The scalar reproducible encoder and
// decoders differ so much from the GPU, or so little with the data, that a mixed sample tells enough.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/policy/effort.hpp"

namespace ptxkit::codec {

// The time of a stream over its raw bytes.
class Curve {
 public:
  struct Sample {
    uint64_t raw_bytes = 0;
    double seconds = 0;
    bool operator==(const Sample&) const = default;
  };
  Curve() = default;
  // `samples`: two at least, lengths ascending. A longer stream is not believed to be faster than a shorter one: where
  // measurements say so, both have their mean (isotonic regression, by pooling adjacent violators).
  explicit Curve(std::vector<Sample> samples);

  // 0 without samples. Shorter streams than the first sample's take as long as that.
  double seconds(uint64_t raw_bytes) const;
  // Raw bytes a second of what a long stream is made longer by; infinite when that costs nothing.
  double rate() const;
  const std::vector<Sample>& samples() const { return samples_; }

 private:
  std::vector<Sample> samples_;
};

// Of a side. `compress`: whatever encoder is usual there; plain: runs and noise.
struct Curves {
  Curve compress_plain, compress_text, compress_reproducible, decompress;
};
inline constexpr std::array<std::pair<std::string_view, Curve Curves::*>, 4> kCurves = {
    {{"compress_plain", &Curves::compress_plain},
     {"compress_text", &Curves::compress_text},
     {"compress_reproducible", &Curves::compress_reproducible},
     {"decompress", &Curves::decompress}}};

struct Calibration {
  std::string device;  // Backend::description() of the GPU: name and driver; another one needs another calibration
  unsigned cpu_threads = 0;
  Curves cpu, gpu;
  double gpu_start_seconds = 0;  // what a stream of a process that has not used the GPU takes longer

  double cpu_seconds(Work work, uint64_t raw_bytes, const Effort& effort = {}) const;
  double gpu_seconds(Work work, uint64_t raw_bytes, const Effort& effort = {}) const;
  // The GPU only where it is faster by more than 4 %: within that the measurements do not tell them apart, and the
  // CPU's time is the steadier one. Bytes of unknown number (a pipe) may be few: the CPU.
  bool prefers_gpu(Work work, std::optional<uint64_t> raw_bytes, const Effort& effort = {}) const;
  // The same for a process that has started the GPU already.
  Calibration once_started() const;

 private:
  double seconds(const Curves& side, Work work, uint64_t raw_bytes, const Effort& effort) const;
};

// What is believed of a GPU that nobody has measured: infinitely fast once it has started, which takes 0.2 s, beside
// CPU threads of 0.4 GB/s. So the driver is opened only for what the CPU needs longer than that for.
Calibration unmeasured(unsigned cpu_threads);

// $PTXKIT_CALIBRATION, or device-N.rates in $XDG_CACHE_HOME/ptxkit or ~/.cache/ptxkit, where N is as in "0-2", or "all"
// for no number; empty when none is set.
std::string calibration_path(const std::vector<int>& devices);
// Nothing when there is no such file or it holds something else: it is measured anew.
std::optional<Calibration> load_calibration(const std::string& path);
Result<void> save_calibration(const Calibration& calibration, const std::string& path);

}  // namespace ptxkit::codec
