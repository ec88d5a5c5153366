// CPU or GPU for one piece of work after the other, in a process where both are ready.
//
// A stream is what was calibrated, so the calibration decides, and what the data is like: where that matters, it is
// looked at (codec/effort.hpp). Nothing is tried out. The same stream goes the same way each time, unless a side is in
// somebody else's hands: one that takes more than twice as long as was measured is believed to be so slow, until a
// visit says otherwise.
//
// A batch of the library is no stream: nobody measured what it takes without reading, checksum and framing. So each
// side has, for each kind of work and each length (in steps of four), the factor by which its last runs were off: the
// median of nine. The side that is believed to be faster runs. The other one is visited now and then, because nothing
// else would correct what is believed of it.
//
// What visits may cost is bounded beforehand: as much as a quarter of a run, 1 % of all runs, and 5 ms for the first
// one.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/policy/policy.hpp"

namespace ptxkit::codec {

enum class Side : uint8_t { cpu, gpu };

// Any thread may call it.
class Choice {
 public:
  explicit Choice(Calibration started) : kept_(std::move(started)) {}

  // `job` without raw_bytes: the CPU.
  Side choose(const CodecJob& job);
  // `job` has raw_bytes.
  void record_time(const CodecJob& job, Side side, double seconds);
  // What a run is expected to take now.
  double seconds(const CodecJob& job, Side side) const;

 private:
  struct Runs {
    std::vector<double> factors;  // the last few, oldest first
    bool has_run = false;
    uint64_t others_since = 0;  // runs of the other side since the last of these
    unsigned of_visit = 0;      // of them, those of this visit; a side that goes on running has ended its visit
    Runs();
  };
  struct Place {
    std::array<Runs, 2> sides;
    double spare_runs;  // what visits may still cost, in runs of the faster side
    Place();
  };
  static constexpr size_t kKinds = 2 * (kWorkCount + 1), kLengths = 16;
  static size_t place_of(const CodecJob& job);
  double kept_seconds(const CodecJob& job, Side side, const Effort& effort) const;
  Side calibrated_side(const CodecJob& job, const Effort& effort) const;
  Effort effort_that_matters(const CodecJob& job) const;
  double seconds_at(const Place& place, const CodecJob& job, Side side, const Effort& effort) const;

  const Calibration kept_;
  mutable std::mutex mutex_;
  std::array<Place, kKinds * kLengths> places_;
};

}  // namespace ptxkit::codec
