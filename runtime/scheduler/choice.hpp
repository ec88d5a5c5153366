// CPU or GPU for one stream after the other, in a process where both are ready: what a calibration says, corrected by
// every stream that ran.
//
// A calibration is of other data and another moment. So each side has, for each kind of work and each length (in steps
// of four), the factor by which its last runs were off: the median of nine. The side that is believed to be faster
// runs. The other one is visited now and then, because nothing else would correct what is believed of it. What visits
// may cost is bounded beforehand: as much as a quarter of a run, 1 % of all runs, and 5 ms
// for the first one.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/codec/backend.hpp"
#include "runtime/scheduler/policy.hpp"

namespace ptxkit::codec {

enum class Side : std::uint8_t { cpu, gpu };

// Any thread may call it.
class Choice {
 public:
  explicit Choice(Calibration started) : kept_(std::move(started)) {}

  // `job` without raw_bytes: the CPU.
  Side choose(const CodecJob& job);
  // `job` has raw_bytes.
  void took(const CodecJob& job, Side side, double seconds);
  // What a run is expected to take now.
  double seconds(const CodecJob& job, Side side) const;

 private:
  struct Runs {
    std::vector<double> factors;  // the last few, oldest first
    bool has_run = false;
    std::uint64_t others_since = 0;  // runs of the other side since the last of these
    unsigned of_visit = 0;           // of them, those of this visit; a side that goes on running has ended its visit
    Runs();
  };
  struct Place {
    std::array<Runs, 2> sides;
    double spare_runs;  // what visits may still cost, in runs of the faster side
    Place();
  };
  static constexpr std::size_t kKinds = 2 * (kWorkCount + 1), kLengths = 16;
  static std::size_t place_of(const CodecJob& job);
  double kept_seconds(const CodecJob& job, Side side) const;
  double seconds_at(const Place& place, const CodecJob& job, Side side) const;

  const Calibration kept_;
  mutable std::mutex mutex_;
  std::array<Place, kKinds * kLengths> places_;
};

}  // namespace ptxkit::codec
