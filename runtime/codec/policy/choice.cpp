#include "runtime/codec/policy/choice.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "support/check.hpp"

namespace ptxkit::codec {
namespace {

constexpr size_t kFactors = 9;
constexpr double kLeastGain = 0.02;  // of the CPU's time: the GPU must be faster by more than this
constexpr double kSpareAtFirst = 0.25, kSpareOfEachRun = 0.01, kMostSpare = 4;
constexpr double kFreeSeconds = 5e-3;  // the first run of a side may always cost this much more
// A visit is a few exploratory runs on the side that is believed slower: kRunsOfVisit, or one if a run is long enough
// to be representative. The next visit is due after the other side has made kRunsBetween times as many runs. At the end
// of a visit only kFactorsBefore older factors are kept beside its own, because they describe an older state of the
// machine.
constexpr unsigned kRunsOfVisit = 3, kRunsBetween = 8;
constexpr double kLongSeconds = 0.1;
constexpr size_t kFactorsBefore = 2;
constexpr unsigned kShortestBits = 12;  // lengths below 4 KiB share one entry
constexpr double kOtherHands = 2;       // times the calibrated time: another process uses the side
constexpr Effort kNoEffort{0, 0}, kMostEffort{1, 1};

constexpr Side other(Side side) { return side == Side::cpu ? Side::gpu : Side::cpu; }
constexpr size_t index_of(Side side) { return static_cast<size_t>(side); }

constexpr unsigned runs_of_visit(double kept_seconds) { return kept_seconds < kLongSeconds ? kRunsOfVisit : 1; }

bool is_the_gpus(double on_cpu, double on_gpu) { return on_gpu < (1 - kLeastGain) * on_cpu; }

// Of two middle values the lower one: slow outliers are rarer than fast ones.
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

// Start as if the previous runs had taken exactly the calibrated time.
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

// Skips the look at the data where plain data and text would go to the same side.
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
  // Within a visit take the best run: one slow run says little, and would end the visit before the side shows its
  // speed.
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
  // Streams: the data may not have been examined, or can no longer be. Assume text, so that the side does not appear
  // slow.
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
