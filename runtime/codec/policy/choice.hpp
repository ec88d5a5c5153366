// Chooses CPU or GPU for one job after another, in a process where both are ready.
//
// Streams are what was calibrated, so the calibration decides, together with the data where they matter
// (policy/effort.hpp). Streams make no exploratory runs, and the same stream goes to the same side every time. The
// exception is a side that is in use by another process: if it takes more than twice the calibrated time, it is
// believed to be that slow until an exploratory run shows otherwise.
//
// Batches of the library are not streams: their cost without reading, checksum and framing was not calibrated. So each
// side keeps, for each kind of work and each length class (steps of factor four), the factor between actual and
// calibrated time of its last runs; the median of nine counts. The side that is believed faster runs the batch. The
// other side gets exploratory runs now and then ("visits"), because nothing else would correct a wrong belief about it.
//
// The cost of visits is bounded in advance: a quarter of a run at the start, plus 1 % of all runs, plus 5 ms for the
// first run.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/policy/policy.hpp"

namespace ptxkit::codec {

enum class Side : uint8_t { cpu, gpu };

// Thread-safe.
class Choice {
 public:
  explicit Choice(Calibration started) : kept_(std::move(started)) {}

  // The CPU if `job.raw_bytes` is empty.
  Side choose(const CodecJob& job);
  // `job.raw_bytes` must be set.
  void record_time(const CodecJob& job, Side side, double seconds);
  // The expected time of a run now, in seconds.
  double seconds(const CodecJob& job, Side side) const;

 private:
  struct Runs {
    std::vector<double> factors;  // actual over calibrated time of the last few runs, oldest first
    bool has_run = false;
    uint64_t others_since = 0;  // runs of the other side since the last run of this one
    unsigned of_visit = 0;      // runs made in the current visit; a side that keeps running has ended its visit
    Runs();
  };
  struct Place {
    std::array<Runs, 2> sides;
    double spare_runs;  // what visits may still cost, in units of a run on the faster side
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
