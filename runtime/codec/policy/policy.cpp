#include "runtime/codec/policy/policy.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <sstream>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/check.hpp"
#include "support/file.hpp"

namespace ptxkit::codec {
namespace {

constexpr double kUnmeasuredStartSeconds = 0.2, kUnmeasuredCpuThreadRate = 0.4e9;
constexpr double kLeastGain = 0.04;  // of the CPU's time: the GPU must be faster by more than this
constexpr const char* kHeading = "ptxkit rates 4";
constexpr size_t kMostFileBytes = 1u << 20;  // many times the size of a file with all curves
// A thread takes a block at a time. With no more blocks than threads the slowest block decides the time; with more
// blocks, their mean. With many batches reading, checksum and encoder overlap and the slowest of them decides, so that
// some text costs nothing as long as the encoder is not the slowest.
constexpr uint64_t kBlockBytes = 64u << 10, kBlocksOfManyBatches = 64;

// The sample from which to extrapolate, and the seconds for each byte beyond it.
std::pair<const Curve::Sample*, double> segment_of(const std::vector<Curve::Sample>& samples, uint64_t raw_bytes) {
  size_t i = 0;
  while (i + 2 < samples.size() && samples[i + 1].raw_bytes <= raw_bytes) ++i;
  const auto &from = samples[i], &to = samples[i + 1];
  return {&from, (to.seconds - from.seconds) / static_cast<double>(to.raw_bytes - from.raw_bytes)};
}

const auto* curve_named(std::string_view name) {
  const auto* const found =
      std::find_if(kCurves.begin(), kCurves.end(), [&](const auto& curve) { return curve.first == name; });
  return found == kCurves.end() ? nullptr : found;
}

}  // namespace

Curve::Curve(std::vector<Sample> samples) : samples_(std::move(samples)) {
  PTXKIT_CHECK(samples_.size() >= 2, "a line has two points");
  struct Pool {
    double seconds;
    size_t count;
  };
  std::vector<Pool> pools;
  for (const Sample& sample : samples_) {
    pools.push_back({sample.seconds, 1});
    while (pools.size() > 1 && pools.back().seconds < pools[pools.size() - 2].seconds) {
      const auto [seconds, count] = pools.back();
      pools.pop_back();
      Pool& before = pools.back();
      before.seconds = (before.seconds * static_cast<double>(before.count) + seconds * static_cast<double>(count)) /
                       static_cast<double>(before.count + count);
      before.count += count;
    }
  }
  auto sample = samples_.begin();
  for (const Pool& pool : pools) {
    for (size_t i = 0; i < pool.count; ++i) (sample++)->seconds = pool.seconds;
  }
}

double Curve::seconds(uint64_t raw_bytes) const {
  if (samples_.empty()) return 0;
  const auto [from, each] = segment_of(samples_, raw_bytes);
  if (raw_bytes <= from->raw_bytes) return from->seconds;
  return from->seconds + static_cast<double>(raw_bytes - from->raw_bytes) * each;
}

double Curve::rate() const {
  const double each = samples_.empty() ? 0 : segment_of(samples_, std::numeric_limits<uint64_t>::max()).second;
  return each > 0 ? 1 / each : std::numeric_limits<double>::infinity();
}

double Calibration::seconds(const Curves& side, Work work, uint64_t raw_bytes, const Effort& effort) const {
  if (work == Work::compress_reproducible) return side.compress_reproducible.seconds(raw_bytes);
  if (work == Work::decompress) return side.decompress.seconds(raw_bytes);
  const double plain = side.compress_plain.seconds(raw_bytes), text = side.compress_text.seconds(raw_bytes);
  const uint64_t bytes_of_threads = cpu_threads * kBlockBytes;
  if (raw_bytes > kBlocksOfManyBatches * bytes_of_threads) return std::max(plain, effort.mean * text);
  return std::lerp(plain, text, raw_bytes <= bytes_of_threads ? effort.most : effort.mean);
}

double Calibration::cpu_seconds(Work work, uint64_t raw_bytes, const Effort& effort) const {
  return seconds(cpu, work, raw_bytes, effort);
}

double Calibration::gpu_seconds(Work work, uint64_t raw_bytes, const Effort& effort) const {
  return gpu_start_seconds + seconds(gpu, work, raw_bytes, effort);
}

bool Calibration::prefers_gpu(Work work, std::optional<uint64_t> raw_bytes, const Effort& effort) const {
  return raw_bytes && gpu_seconds(work, *raw_bytes, effort) < (1 - kLeastGain) * cpu_seconds(work, *raw_bytes, effort);
}

Calibration Calibration::once_started() const {
  Calibration started = *this;
  started.gpu_start_seconds = 0;
  return started;
}

Calibration unmeasured(unsigned cpu_threads) {
  const auto cpu = Curve({{0, 0}, {1'000'000'000, 1e9 / (kUnmeasuredCpuThreadRate * cpu_threads)}});
  return {{}, cpu_threads, {cpu, cpu, cpu, cpu}, {}, kUnmeasuredStartSeconds};
}

std::string calibration_path(const std::vector<int>& devices) {
  if (const char* path = std::getenv("PTXKIT_CALIBRATION")) return path;
  const std::string name =
      fmt::format("ptxkit/device-{}.rates", devices.empty() ? "all" : fmt::format("{}", fmt::join(devices, "-")));
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return fmt::format("{}/{}", cache, name);
  }
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? fmt::format("{}/.cache/{}", home, name) : std::string();
}

// Lines such as "cpu decompress 65536 0.000211": side, curve, raw bytes, seconds. The lengths of a curve ascend. The
// line "end" marks a complete file.
std::optional<Calibration> load_calibration(const std::string& path) {
  if (path.empty()) return std::nullopt;
  const auto content = read_regular_file(path, kMostFileBytes);
  if (!content) return std::nullopt;
  std::istringstream lines(*content);
  Calibration found;
  std::string heading, side, name;
  if (!std::getline(lines, heading) || heading != kHeading || !std::getline(lines, found.device)) return std::nullopt;
  if (!(lines >> found.cpu_threads >> found.gpu_start_seconds) || found.gpu_start_seconds <= 0) return std::nullopt;
  std::array<std::vector<Curve::Sample>, kCurves.size()> cpu, gpu;
  while (lines >> side && side != "end") {
    Curve::Sample sample;
    if (!(lines >> name >> sample.raw_bytes >> sample.seconds)) return std::nullopt;
    const auto* const curve = curve_named(name);
    if (curve == nullptr || (side != "cpu" && side != "gpu") || sample.raw_bytes == 0 || !(sample.seconds > 0)) {
      return std::nullopt;
    }
    auto& samples = (side == "cpu" ? cpu : gpu)[static_cast<size_t>(curve - kCurves.begin())];
    if (!samples.empty() && sample.raw_bytes <= samples.back().raw_bytes) return std::nullopt;
    samples.push_back(sample);
  }
  if (side != "end" || lines >> side) return std::nullopt;
  for (size_t i = 0; i < kCurves.size(); ++i) {
    if (cpu[i].size() < 2 || gpu[i].size() < 2) return std::nullopt;
    found.cpu.*kCurves[i].second = Curve(std::move(cpu[i]));
    found.gpu.*kCurves[i].second = Curve(std::move(gpu[i]));
  }
  return found;
}

Result<void> save_calibration(const Calibration& calibration, const std::string& path) {
  std::error_code ignored;  // write_file reports what is wrong with the directory
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::filesystem::create_directories(folder, ignored);
  }
  std::string text = fmt::format("{}\n{}\n{} {:.6g}\n", kHeading, calibration.device, calibration.cpu_threads,
                                 calibration.gpu_start_seconds);
  for (const auto& [side, curves] : {std::pair("cpu", &calibration.cpu), std::pair("gpu", &calibration.gpu)}) {
    for (const auto& [name, curve] : kCurves) {
      for (const Curve::Sample& sample : (curves->*curve).samples()) {
        text += fmt::format("{} {} {} {:.6g}\n", side, name, sample.raw_bytes, sample.seconds);
      }
    }
  }
  return write_file(path, text + "end\n");
}

}  // namespace ptxkit::codec
