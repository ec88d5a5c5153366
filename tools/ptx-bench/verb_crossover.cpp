// From which size on the GPU is faster than the CPU: streams of 4 KiB to --size, and files, through each, both
// together, and what the policy takes, for a process that has to start CUDA and for one that has started it.
#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include "kernels/images.hpp"
#include "runtime/codec/calibrate.hpp"
#include "runtime/codec/select_backend.hpp"
#include "runtime/scheduler/choosing_backend.hpp"
#include "support/file.hpp"
#include "tools/ptx-bench/verb.hpp"

namespace ptxkit::bench {
namespace {

using codec::Backend;
using codec::Encoder;
using codec::Work;

constexpr std::uint64_t kLeastBytes = 4096, kStep = 4;
// Of a length: as many rounds as --runs at least, and more while they are short. Fewer where they take so long, and no
// round that does not count: five, or two where one side takes more than twice as long as the other.
constexpr double kShortSeconds = 0.3, kLongSeconds = 4;
constexpr unsigned kFewestRuns = 5, kFewestRunsFarApart = 2, kMostRuns = 999;
constexpr unsigned kRunsOfMixed = 3, kRunsOfLongMixed = 1;
constexpr std::uint64_t kLongBytes = 1u << 30;
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
  std::uint64_t raw_bytes;
  std::function<Result<codec::TimedStream>(Backend&)> run_on;
};

// Streams on the CPU, on the GPU, on what `automatic` takes for each, and once more on one of the sides, which says how
// much two measurements of the same thing differ. The four take turns, in another order each round.
class Comparison {
 public:
  Comparison(const Settings& settings, const codec::Calibration& rates, Backend& cpu, Backend& gpu, Backend& automatic,
             Backend& mixed, Measurements& all)
      : settings_(settings), rates_(rates), cpu_(cpu), gpu_(gpu), automatic_(automatic), mixed_(mixed), all_(all) {}

  Result<void> add(const Stream& stream) {
    auto measured = in_turn(stream);
    if (!measured) return tl::unexpected(measured.error());
    const auto& [seconds, again, on_gpu_count] = *measured;
    const bool is_long = stream.raw_bytes >= kLongBytes;
    const auto mixed = medians_in_turn(
        is_long ? Repetition{0, kRunsOfLongMixed} : Repetition{1, kRunsOfMixed},
        {[&] { return stream.run_on(mixed_).map([](const codec::TimedStream& run) { return run.seconds; }); }});
    if (!mixed) return tl::unexpected(mixed.error());
    std::array<Timing, kTurns> timings;
    std::transform(seconds.begin(), seconds.end(), timings.begin(), timing_of);
    const auto add_row = [&](std::string what, const Timing& timing) {
      all_.rows.push_back({stream.name, std::move(what), 0, static_cast<std::size_t>(stream.raw_bytes), 0, timing});
    };
    const double cpu = timings[kCpu], gpu = timings[kGpu], better = std::min(cpu, gpu);
    add_row("cpu", timings[kCpu]);
    add_row("gpu", timings[kGpu]);
    add_row("mixed", (*mixed)[0]);
    const bool starts = rates_.prefers_gpu(stream.work, stream.raw_bytes);
    const double gpu_after_start = rates_.gpu_start_seconds + gpu;
    add_row("auto, CUDA to be started", starts ? gpu_after_start : cpu);
    add_row("auto, CUDA started", timings[kAuto]);
    add_row(again == kCpu ? "cpu again" : "gpu again", timings[kAgain]);
    const bool kept = rates_.once_started().prefers_gpu(stream.work, stream.raw_bytes);
    to_start_.push_back((starts ? gpu_after_start : cpu) / std::min(cpu, gpu_after_start) - 1);
    started_.push_back(timings[kAuto] / better - 1);
    all_.notes.push_back(fmt::format(
        "{}, {} bytes: CUDA started, auto {:+.1f} % (mean {:+.1f}), {} of {} runs on the GPU, which takes {:.2f} times "
        "the CPU's time; kept rates alone {:+.1f} %; {} again {:+.1f} %",
        stream.name, stream.raw_bytes, 100 * started_.back(),
        100 * (mean(seconds[kAuto]) / std::min(mean(seconds[kCpu]), mean(seconds[kGpu])) - 1), on_gpu_count,
        seconds[kAuto].size(), gpu / cpu, 100 * ((kept ? gpu : cpu) / better - 1), again == kCpu ? "cpu" : "gpu",
        100 * (timings[kAgain] / timings[again] - 1)));
    return {};
  }

  // Of the streams since the last call.
  void end_of(const std::string& name) {
    for (auto& [when, lost] : {std::pair("CUDA to be started", &to_start_), std::pair("CUDA started", &started_)}) {
      const auto within = std::count_if(lost->begin(), lost->end(), [](double share) { return share <= 0.05; });
      all_.notes.push_back(fmt::format("{}, {}: auto within 5 % of the better side for {} of {}, at worst {:.1f} % off",
                                       name, when, within, lost->size(),
                                       100 * *std::max_element(lost->begin(), lost->end())));
      lost->clear();
    }
  }

 private:
  enum Turn : std::size_t { kCpu, kGpu, kAuto, kAgain, kTurns };
  struct InTurn {
    std::array<std::vector<double>, kTurns> seconds;
    Turn again;
    std::size_t on_gpu_count;  // of auto's
  };

  static double mean(const std::vector<double>& all) {
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
  }

  Result<InTurn> in_turn(const Stream& stream) {
    const bool is_gpus = rates_.once_started().prefers_gpu(stream.work, stream.raw_bytes);
    InTurn all{{}, is_gpus ? kGpu : kCpu, 0};
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
      for (const Turn turn : order) {
        Backend* const sides[] = {&cpu_, &gpu_, &automatic_, all.again == kCpu ? &cpu_ : &gpu_};
        const auto done = stream.run_on(*sides[turn]);
        if (!done) return tl::unexpected(done.error());
        seconds[turn] = done->seconds;
        all_seconds += done->seconds;
        if (turn == kAuto && warm_up == 0) all.on_gpu_count += done->totals.by != cpu_.description();
      }
      if (warm_up > 0) {
        if (--warm_up == 0) {
          all.again = seconds[kGpu] < seconds[kCpu] ? kGpu : kCpu;
          all_seconds = 0;
        }
        continue;
      }
      for (std::size_t turn = 0; turn < kTurns; ++turn) all.seconds[turn].push_back(seconds[turn]);
      ++run;
    }
    return all;
  }

  const Settings& settings_;
  const codec::Calibration& rates_;
  Backend &cpu_, &gpu_, &automatic_, &mixed_;
  Measurements& all_;
  std::minstd_rand random_;
  std::vector<double> to_start_, started_;  // what auto loses with each stream
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
    all.notes.push_back(fmt::format("{}: GB/s compress {:.2f}, reproducible {:.2f}, decompress {:.2f}", side,
                                    (*of)[0].rate() / 1e9, (*of)[1].rate() / 1e9, (*of)[2].rate() / 1e9));
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
    for (std::uint64_t bytes = kLeastBytes; bytes <= settings.size_bytes; bytes *= kStep) {
      std::vector<std::uint8_t> frame;
      if (task.work == Work::decompress) {
        auto made = codec::compress_sample(*cpu, bytes);
        if (!made) return tl::unexpected(made.error());
        frame = std::move(*made);
      }
      const auto run_on = [&](Backend& backend) {
        return task.work == Work::decompress ? codec::time_decompression(backend, frame)
                                             : codec::time_compression(backend, task.encoder, bytes);
      };
      if (auto done = comparison.add({task.name, task.work, bytes, run_on}); !done) {
        return tl::unexpected(done.error());
      }
    }
    comparison.end_of(task.name);
  }
  for (const std::string& path : settings.files) {
    const auto content = read_file(path);
    if (!content) return tl::unexpected(content.error());
    const codec::Bytes raw(reinterpret_cast<const std::uint8_t*>(content->data()), content->size());
    const auto run_on = [&](Backend& backend) {
      format::MemorySource source(raw, path);
      return codec::time_compression(backend, {}, source, raw.size());
    };
    const std::string name = kFilePrefix + std::filesystem::path(path).filename().string();
    if (auto done = comparison.add({name, Work::compress, raw.size(), run_on}); !done) {
      return tl::unexpected(done.error());
    }
  }
  if (!settings.files.empty()) comparison.end_of("files");
  return all;
}

}  // namespace ptxkit::bench
