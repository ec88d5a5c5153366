#include "runtime/codec/policy/choice.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "support/check.hpp"

namespace ptxkit::codec {
namespace {

constexpr size_t kFactors = 9;
constexpr double kLeastGain = 0.02;  // of the CPU's time: the GPU has to be faster by more
constexpr double kSpareAtFirst = 0.25, kSpareOfEachRun = 0.01, kMostSpare = 4;
constexpr double kFreeSeconds = 5e-3;  // what the first run of a side may cost in any case
// A visit is so many runs, one where a run is long enough to be no accident; the next one comes when the other side has
// run so many times as often. At its end so many factors are left besides its own: they are of another moment.
constexpr unsigned kRunsOfVisit = 3, kRunsBetween = 8;
constexpr double kLongSeconds = 0.1;
constexpr size_t kFactorsBefore = 2;
constexpr unsigned kShortestBits = 12;  // lengths below 4 KiB are one
constexpr double kOtherHands = 2;       // times what was measured, that a stream takes
constexpr Effort kNoEffort{0, 0}, kMostEffort{1, 1};

constexpr Side other(Side side) { return side == Side::cpu ? Side::gpu : Side::cpu; }
constexpr size_t index_of(Side side) { return static_cast<size_t>(side); }

constexpr unsigned runs_of_visit(double kept_seconds) { return kept_seconds < kLongSeconds ? kRunsOfVisit : 1; }

bool is_the_gpus(double on_cpu, double on_gpu) { return on_gpu < (1 - kLeastGain) * on_cpu; }

// Lower of the two in the middle: what slows a run down is rarer than what speeds it up.
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

// As if runs had been what the calibration says.
Choice::Runs::Runs() : factors(kFactorsBefore, 1.0) {}

Choice::Place::Place() : spare_runs(kSpareAtFirst) {}

size_t Choice::place_of(const CodecJob& job) {
  const size_t kind = job.work == Work::compress_reproducible && job.encoder == Encoder::high
                          ? kWorkCount
                          : static_cast<size_t>(job.work);
  const auto bits = static_cast<unsigned>(std::bit_width(*job.raw_bytes >> kShortestBits));
  const size_t length = std::min<size_t>(bits == 0 ? 0 : (bits - 1) / 2, kLengths - 1);
  return (2 * kind + (job.is_batch ? 1 : 0)) * kLengths + length;
}

double Choice::kept_seconds(const CodecJob& job, Side side, const Effort& effort) const {
  return side == Side::cpu ? kept_.cpu_seconds(job.work, *job.raw_bytes, effort)
                           : kept_.gpu_seconds(job.work, *job.raw_bytes, effort);
}

Side Choice::calibrated_side(const CodecJob& job, const Effort& effort) const {
  const bool is_gpus = is_the_gpus(kept_seconds(job, Side::cpu, effort), kept_seconds(job, Side::gpu, effort));
  return is_gpus ? Side::gpu : Side::cpu;
}

// Not looked at where runs and text would go the same way.
Effort Choice::effort_that_matters(const CodecJob& job) const {
  if (job.source == nullptr) return {};
  if (calibrated_side(job, kNoEffort) == calibrated_side(job, kMostEffort)) return {};
  return effort_of(*job.source, *job.raw_bytes);
}

double Choice::seconds_at(const Place& place, const CodecJob& job, Side side, const Effort& effort) const {
  const double kept = kept_seconds(job, side, effort);
  const Runs& runs = place.sides[index_of(side)];
  const bool is_visiting = runs.of_visit < runs_of_visit(kept);
  const auto visit = runs.factors.end() - (is_visiting ? runs.of_visit : 0);
  // Within a visit a slow run says little, and a side that one put off would not get to show what it can.
  const double factor = std::accumulate(visit, runs.factors.end(), median({runs.factors.begin(), visit}),
                                        [](double a, double b) { return std::min(a, b); });
  return job.is_batch || factor > kOtherHands ? kept * factor : kept;
}

double Choice::seconds(const CodecJob& job, Side side) const {
  const Effort effort = effort_that_matters(job);
  std::lock_guard lock(mutex_);
  return seconds_at(places_[place_of(job)], job, side, effort);
}

Side Choice::choose(const CodecJob& job) {
  if (!job.raw_bytes) return Side::cpu;
  const Effort effort = effort_that_matters(job);
  std::lock_guard lock(mutex_);
  Place& place = places_[place_of(job)];
  const double on_cpu = seconds_at(place, job, Side::cpu, effort), on_gpu = seconds_at(place, job, Side::gpu, effort);
  const Side faster = is_the_gpus(on_cpu, on_gpu) ? Side::gpu : Side::cpu;
  if (!job.is_batch && faster == calibrated_side(job, effort)) return faster;
  const Runs &taken = place.sides[index_of(faster)], &visited = place.sides[index_of(other(faster))];
  const unsigned enough = runs_of_visit(kept_seconds(job, other(faster), effort));
  const bool is_due = visited.of_visit < enough || visited.others_since >= uint64_t{kRunsBetween} * enough;
  if (!taken.has_run || !is_due) return faster;
  const auto [least, most] = std::minmax(on_cpu, on_gpu);
  const double costs = most / least - 1;
  const bool is_free = !visited.has_run && most - least <= kFreeSeconds;
  if (!is_free && !(costs <= place.spare_runs)) return faster;
  if (!is_free) place.spare_runs -= costs;
  return other(faster);
}

void Choice::record_time(const CodecJob& job, Side side, double seconds) {
  PTXKIT_CHECK(job.raw_bytes.has_value(), "a job that was done has a length");
  // Of a stream that was not looked at, or is not any more: as if it were text, lest it seem slow.
  const double kept = kept_seconds(job, side, job.is_batch ? Effort{} : kMostEffort);
  const unsigned enough = runs_of_visit(kept);
  std::lock_guard lock(mutex_);
  Place& place = places_[place_of(job)];
  Runs& runs = place.sides[index_of(side)];
  if (runs.others_since >= uint64_t{kRunsBetween} * enough) runs.of_visit = 0;
  runs.factors.push_back(seconds / kept);
  runs.has_run = true;
  const bool visit_ends = ++runs.of_visit == enough;
  const size_t most = !visit_ends ? kFactors : enough == 1 ? 1 : enough + kFactorsBefore;
  if (runs.factors.size() > most) {
    runs.factors.erase(runs.factors.begin(), runs.factors.end() - static_cast<ptrdiff_t>(most));
  }
  runs.of_visit = std::min(runs.of_visit, enough);
  runs.others_since = 0;
  ++place.sides[index_of(other(side))].others_since;
  place.spare_runs = std::min(kMostSpare, place.spare_runs + kSpareOfEachRun);
}

}  // namespace ptxkit::codec
