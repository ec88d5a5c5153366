// CPU or GPU for a given amount of work, from measured rates.
//
// The model is two lines: a side takes its start-up time plus the bytes over its rate. Rates are host to host (copies
// included), so they already hold what PCIe costs. The GPU's start-up is that of CUDA itself, hundreds of milliseconds,
// and dominates: it is asked about before any driver is opened, so small inputs never wait for it. Rates are measured
// once for each device, by the first input that is large enough to be worth opening the driver, and kept in a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/codec/backend.hpp"

namespace ptxkit::codec {

enum class Work : std::uint8_t { compress, compress_reproducible, decompress };

// Raw bytes a second.
struct Rates {
  double compress = 0, compress_reproducible = 0, decompress = 0;
  double of(Work work) const;
};

struct Calibration {
  std::string device;  // Backend::description() of the GPU: name and driver; another one needs another calibration
  unsigned cpu_threads = 0;
  Rates cpu, gpu;
  double gpu_start_seconds = 0;  // from nothing to the first result

  double cpu_seconds(Work work, std::uint64_t raw_bytes) const;
  double gpu_seconds(Work work, std::uint64_t raw_bytes) const;
  // The GPU only where it is faster. Bytes of unknown number (a pipe) may be few: the CPU.
  bool prefers_gpu(Work work, std::optional<std::uint64_t> raw_bytes) const;
  // The same for a process that has started the GPU already.
  Calibration once_started() const;
};

// What is believed of a GPU that nobody has measured: infinitely fast once it has started, which takes 0.2 s, beside
// CPU threads of 0.4 GB/s. So the driver is opened only for what the CPU needs longer than that for.
Calibration unmeasured(unsigned cpu_threads);

// $PTXKIT_CALIBRATION, or device-N.rates in $XDG_CACHE_HOME/ptxkit or ~/.cache/ptxkit; empty when none is set.
std::string calibration_path(int device);
// Nothing when there is no such file or it holds something else: it is measured anew.
std::optional<Calibration> load_calibration(const std::string& path);
Result<void> save_calibration(const Calibration& calibration, const std::string& path);

}  // namespace ptxkit::codec
