// Finds the size from which the GPU is faster than the CPU: streams of 4 KiB to --size, and files, on the CPU, on the
// GPU, on both together and on the side that the policy chooses, for a process that must start CUDA and for one that
// has started it.
//
// It reports two quantities. The cost of a choice: the median time of the chosen side relative to that of the better
// side, both over all rounds, so that no run counts only for one of them. And the times of `auto` in its own runs,
// which include the look at the data, and noise: one side measured a second time, as if it were another, shows how
// large the noise is.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/images.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/policy/calibrate.hpp"
#include "runtime/codec/policy/choosing_backend.hpp"
#include "runtime/codec/policy/effort.hpp"
#include "runtime/codec/policy/policy.hpp"
#include "runtime/codec/select_backend.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "support/file.hpp"
#include "support/result.hpp"
#include "tools/ptx-bench/input.hpp"
#include "tools/ptx-bench/verb.hpp"

namespace ptxkit::bench {
namespace {

using codec::Backend;
using codec::Encoder;
using codec::Work;

constexpr uint64_t kLeastBytes = 4096, kStep = 4;
// A length gets at least --runs rounds, and more while they are short. If they take long, it gets fewer rounds and no
// warm-up: five, or two if one side takes more than twice as long as the other.
constexpr double kShortSeconds = 0.3, kLongSeconds = 4;
constexpr unsigned kFewestRuns = 5, kFewestRunsFarApart = 2, kMostRuns = 999;
constexpr unsigned kRunsOfMixed = 3, kRunsOfLongMixed = 1;
constexpr uint64_t kLongBytes = 1u << 30;
constexpr const char* kFilePrefix = "file ";

std::vector<codec::BackendRequest> requests(const Settings& settings, codec::Executor& copies) {
  std::vector<codec::BackendRequest> all(2);
  for (codec::BackendRequest& request : all) {
    request.devices = {settings.device};
    request.copy_executor = &copies;
    request.find_image = kernels::find_kernel_image;
  }
  all[0].name = "cuda";
  all[1].policy = codec::Policy::mixed;
  return all;
}

struct Stream {
  std::string name;
  Work work;
  uint64_t raw_bytes;
  std::optional<codec::Effort> effort;  // of the data, if they are compressed with the default encoder
  std::function<Result<codec::TimedStream>(Backend&)> run_on;
};

// Runs streams on the CPU, on the GPU, on the side that `automatic` chooses, and once more on one of the sides to
// measure how much two measurements of the same thing differ. The four alternate, in a new order each round.
class Comparison {
 public:
  Comparison(const Settings& settings, const codec::Calibration& rates, Backend& cpu, Backend& gpu, Backend& automatic,
             Backend& mixed, Measurements& all)
      : settings_(settings), rates_(rates), cpu_(cpu), gpu_(gpu), automatic_(automatic), mixed_(mixed), all_(all) {}

  Result<void> add(const Stream& stream) {
    auto measured = in_turn(stream);
    if (!measured) return tl::unexpected(measured.error());
    const auto& [seconds, again, of_chosen, on_gpu_count] = *measured;
    const bool is_long = stream.raw_bytes >= kLongBytes;
    const auto mixed = medians_in_turn(
        is_long ? Repetition{0, kRunsOfLongMixed} : Repetition{1, kRunsOfMixed},
        {[&] { return stream.run_on(mixed_).map([](const codec::TimedStream& run) { return run.seconds; }); }});
    if (!mixed) return tl::unexpected(mixed.error());
    std::array<Timing, kTurns> timings;
    std::transform(seconds.begin(), seconds.end(), timings.begin(), timing_of);
    const auto add_row = [&](std::string what, const Timing& timing) {
      all_.rows.push_back({stream.name, std::move(what), 0, static_cast<size_t>(stream.raw_bytes), 0, timing});
    };
    const double cpu = timings[kCpu], gpu = timings[kGpu], better = std::min(cpu, gpu);
    add_row("cpu", timings[kCpu]);
    add_row("gpu", timings[kGpu]);
    add_row("mixed", (*mixed)[0]);
    const bool starts = rates_.prefers_gpu(stream.work, stream.raw_bytes);
    const double gpu_after_start = rates_.gpu_start_seconds + gpu;
    add_row("auto, CUDA to be started", starts ? gpu_after_start : cpu);
    add_row("auto, CUDA started", timings[kAuto]);
    const Timing chosen = timing_of(of_chosen);
    add_row("chosen, CUDA started", chosen);
    add_row(again == kCpu ? "cpu again" : "gpu again", timings[kAgain]);
    to_start_.push_back((starts ? gpu_after_start : cpu) / std::min(cpu, gpu_after_start));
    chosen_.push_back(chosen / better);
    took_.push_back(timings[kAuto] / better);
    again_.push_back(timings[kAgain] / timings[again]);
    all_.notes.push_back(fmt::format(
        "{}, {} bytes{}: CUDA started, auto takes the GPU in {} of {} runs, which costs {:+.1f} %; "
        "took {:+.1f} % (mean {:+.1f}); the GPU takes {:.2f} times the CPU's time; {} again {:+.1f} %",
        stream.name, stream.raw_bytes,
        stream.effort ? fmt::format(", effort {:.2f} to {:.2f}", stream.effort->mean, stream.effort->most) : "",
        on_gpu_count, seconds[kAuto].size(), 100 * (chosen_.back() - 1), 100 * (took_.back() - 1),
        100 * (mean(seconds[kAuto]) / std::min(mean(seconds[kCpu]), mean(seconds[kGpu])) - 1), gpu / cpu,
        again == kCpu ? "cpu" : "gpu", 100 * (again_.back() - 1)));
    return {};
  }

  // Summarises the streams since the last call.
  void end_of(const std::string& name) {
    for (auto& [what, ratios] :
         {std::pair("CUDA to be started: the side that auto takes", &to_start_),
          std::pair("CUDA started: the side that auto takes", &chosen_),
          std::pair("CUDA started: what auto took", &took_), std::pair("one side measured again", &again_)}) {
      const auto within = std::count_if(ratios->begin(), ratios->end(), [](double ratio) { return ratio <= 1.05; });
      double logarithms = 0;
      for (const double ratio : *ratios) logarithms += std::log(ratio);
      all_.notes.push_back(
          fmt::format("{}, {}: within 5 % of {} for {} of {}, at worst {:+.1f} %, in the geometric mean {:+.2f} %",
                      name, what, ratios == &again_ ? "itself" : "the better side", within, ratios->size(),
                      100 * (*std::max_element(ratios->begin(), ratios->end()) - 1),
                      100 * (std::exp(logarithms / static_cast<double>(ratios->size())) - 1)));
      ratios->clear();
    }
  }

 private:
  enum Turn : size_t { kCpu, kGpu, kAuto, kAgain, kTurns };
  struct InTurn {
    std::array<std::vector<double>, kTurns> seconds;
    Turn again;
    std::vector<double> of_chosen;  // for each round: the time of the side that auto chose
    size_t on_gpu_count;            // runs of auto on the GPU
  };

  static double mean(const std::vector<double>& all) {
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
  }

  Result<InTurn> in_turn(const Stream& stream) {
    const bool is_gpus = rates_.once_started().prefers_gpu(stream.work, stream.raw_bytes);
    InTurn all{{}, is_gpus ? kGpu : kCpu, {}, 0};
    std::array<Turn, kTurns> order = {kCpu, kGpu, kAuto, kAgain};
    double all_seconds = 0;
    unsigned warm_up = stream.raw_bytes < kLongBytes ? settings_.repetition.warm_up : 0;
    const auto is_enough = [&](unsigned runs) {
      if (runs >= settings_.repetition.runs) return runs >= kMostRuns || all_seconds >= kShortSeconds;
      if (runs < kFewestRunsFarApart || all_seconds < kLongSeconds) return false;
      const auto [faster, slower] = std::minmax({median(all.seconds[kCpu]), median(all.seconds[kGpu])});
      return runs >= kFewestRuns || slower > 2 * faster;
    };
    for (unsigned run = 0; !is_enough(run);) {
      std::shuffle(order.begin(), order.end(), random_);
      std::array<double, kTurns> seconds;
      bool took_gpu = false;
      for (const Turn turn : order) {
        Backend* const sides[] = {&cpu_, &gpu_, &automatic_, all.again == kCpu ? &cpu_ : &gpu_};
        const auto done = stream.run_on(*sides[turn]);
        if (!done) return tl::unexpected(done.error());
        seconds[turn] = done->seconds;
        all_seconds += done->seconds;
        if (turn == kAuto) took_gpu = done->totals.by != cpu_.description();
      }
      if (warm_up > 0) {
        if (--warm_up == 0) {
          all.again = seconds[kGpu] < seconds[kCpu] ? kGpu : kCpu;
          all_seconds = 0;
        }
        continue;
      }
      for (size_t turn = 0; turn < kTurns; ++turn) all.seconds[turn].push_back(seconds[turn]);
      all.of_chosen.push_back(seconds[took_gpu ? kGpu : kCpu]);
      all.on_gpu_count += took_gpu;
      ++run;
    }
    return all;
  }

  const Settings& settings_;
  const codec::Calibration& rates_;
  Backend &cpu_, &gpu_, &automatic_, &mixed_;
  Measurements& all_;
  std::minstd_rand random_;
  // For each stream, relative to the better side; again_: relative to the first measurement of the same side.
  std::vector<double> to_start_, chosen_, took_, again_;
};

}  // namespace

Result<Measurements> run_crossover(const Settings& settings) {
  using Clock = std::chrono::steady_clock;
  codec::Executor executor, copies(std::max(1u, executor.thread_count() / 4));
  Measurements all;
  const auto begin = Clock::now();
  auto wanted = requests(settings, copies);
  auto selected = codec::select_backend(wanted[0], executor);
  if (!selected) return tl::unexpected(selected.error());
  const std::shared_ptr<Backend> gpu = std::move(*selected);
  if (auto warm = codec::compress_sample(*gpu, 1); !warm) return tl::unexpected(warm.error());
  const double start = std::chrono::duration<double>(Clock::now() - begin).count();
  auto mixed = codec::select_backend(wanted[1], executor);
  if (!mixed) return tl::unexpected(mixed.error());
  const std::shared_ptr<Backend> cpu = codec::make_cpu_backend(executor);
  const auto rates = codec::calibrate(*cpu, *gpu, codec::sample_lengths(*cpu, *gpu), executor.thread_count(), start);
  if (!rates) return tl::unexpected(rates.error());
  all.device = gpu->description();
  all.cpu = cpu->description();
  all.rows.push_back({"-", "start", 0, 0, 0, rates->gpu_start_seconds});
  for (const auto& [side, of] : {std::pair("cpu", &rates->cpu), std::pair("gpu", &rates->gpu)}) {
    for (const auto& [name, curve] : codec::kCurves) {
      for (const codec::Curve::Sample& sample : (of->*curve).samples()) {
        all.rows.push_back({"calibration", fmt::format("{} {}", side, name), 0, sample.raw_bytes, 0, sample.seconds});
      }
      all.notes.push_back(
          fmt::format("{} {}: {:.2f} GB/s beyond the longest sample", side, name, (of->*curve).rate() / 1e9));
    }
  }
  const auto automatic = codec::choosing(gpu, cpu, rates->once_started(), std::nullopt);
  Comparison comparison{settings, *rates, *cpu, *gpu, *automatic, **mixed, all};
  struct Task {
    Work work;
    const char* name;
    std::optional<Encoder> encoder;
  };
  for (const Task task : {Task{Work::compress, "compress", {}},
                          Task{Work::compress_reproducible, "compress, reproducible", Encoder::reproducible},
                          Task{Work::decompress, "decompress", {}}}) {
    for (uint64_t bytes = kLeastBytes; bytes <= settings.size_bytes; bytes *= kStep) {
      std::vector<uint8_t> frame;
      if (task.work == Work::decompress) {
        auto made = codec::compress_sample(*cpu, bytes);
        if (!made) return tl::unexpected(made.error());
        frame = std::move(*made);
      }
      const auto run_on = [&](Backend& backend) {
        return task.work == Work::decompress ? codec::time_decompression(backend, frame)
                                             : codec::time_compression(backend, task.encoder, bytes);
      };
      std::optional<codec::Effort> effort;
      if (task.work == Work::compress) effort = codec::effort_of(codec::SampleSource(bytes), bytes);
      if (auto done = comparison.add({task.name, task.work, bytes, effort, run_on}); !done) {
        return tl::unexpected(done.error());
      }
    }
    comparison.end_of(task.name);
  }
  for (const std::string& path : settings.files) {
    const auto content = read_file(path);
    if (!content) return tl::unexpected(content.error());
    const codec::Bytes raw(reinterpret_cast<const uint8_t*>(content->data()), content->size());
    const auto run_on = [&](Backend& backend) {
      format::MemorySource source(raw, path);
      return codec::time_compression(backend, {}, source, raw.size());
    };
    const std::string name = kFilePrefix + std::filesystem::path(path).filename().string();
    const codec::Effort effort = codec::effort_of(format::MemorySource(raw, path), raw.size());
    if (auto done = comparison.add({name, Work::compress, raw.size(), effort, run_on}); !done) {
      return tl::unexpected(done.error());
    }
  }
  if (!settings.files.empty()) comparison.end_of("files");
  return all;
}

}  // namespace ptxkit::bench
