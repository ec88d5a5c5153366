#include "runtime/scheduler/policy.hpp"

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "support/file.hpp"

namespace ptxkit::codec {
namespace {

constexpr double kUnmeasuredStartSeconds = 0.2, kUnmeasuredCpuThreadRate = 0.4e9;
constexpr const char* kHeading = "ptxkit rates 1";

}  // namespace

double Rates::of(Work work) const {
  return work == Work::compress ? compress : work == Work::decompress ? decompress : compress_reproducible;
}

double Calibration::cpu_seconds(Work work, std::uint64_t raw_bytes) const {
  return static_cast<double>(raw_bytes) / cpu.of(work);
}

double Calibration::gpu_seconds(Work work, std::uint64_t raw_bytes) const {
  return gpu_start_seconds + static_cast<double>(raw_bytes) / gpu.of(work);
}

bool Calibration::prefers_gpu(Work work, std::optional<std::uint64_t> raw_bytes) const {
  return raw_bytes && gpu_seconds(work, *raw_bytes) < cpu_seconds(work, *raw_bytes);
}

Calibration Calibration::once_started() const {
  Calibration started = *this;
  started.gpu_start_seconds = 0;
  return started;
}

Calibration unmeasured(unsigned cpu_threads) {
  const double cpu = kUnmeasuredCpuThreadRate * cpu_threads, gpu = std::numeric_limits<double>::infinity();
  return {{}, cpu_threads, {cpu, cpu, cpu}, {gpu, gpu, gpu}, kUnmeasuredStartSeconds};
}

std::string calibration_path(int device) {
  if (const char* path = std::getenv("PTXKIT_CALIBRATION")) return path;
  const std::string name = fmt::format("ptxkit/device-{}.rates", device);
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return fmt::format("{}/{}", cache, name);
  }
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? fmt::format("{}/.cache/{}", home, name) : std::string();
}

std::optional<Calibration> load_calibration(const std::string& path) {
  if (path.empty()) return std::nullopt;
  const auto content = read_file(path);
  if (!content) return std::nullopt;
  std::istringstream lines(*content);
  Calibration found;
  std::string heading, key;
  if (!std::getline(lines, heading) || heading != kHeading || !std::getline(lines, found.device)) return std::nullopt;
  std::map<std::string, double> numbers;
  while (lines >> key) {
    if (!(lines >> numbers[key])) return std::nullopt;
  }
  const auto read = [&](const char* name, double& into) {
    const auto at = numbers.find(name);
    into = at == numbers.end() ? 0 : at->second;
    return into > 0;
  };
  double threads = 0;
  const bool complete = read("cpu_threads", threads) && read("cpu_compress", found.cpu.compress) &&
                        read("cpu_compress_reproducible", found.cpu.compress_reproducible) &&
                        read("cpu_decompress", found.cpu.decompress) && read("gpu_compress", found.gpu.compress) &&
                        read("gpu_compress_reproducible", found.gpu.compress_reproducible) &&
                        read("gpu_decompress", found.gpu.decompress) &&
                        read("gpu_start_seconds", found.gpu_start_seconds);
  if (!complete || threads > 65536) return std::nullopt;
  found.cpu_threads = static_cast<unsigned>(threads);
  return found;
}

Result<void> save_calibration(const Calibration& calibration, const std::string& path) {
  const auto& [device, threads, cpu, gpu, start] = calibration;
  std::error_code ignored;  // write_file says what is wrong with the folder
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::filesystem::create_directories(folder, ignored);
  }
  return write_file(path, fmt::format("{}\n{}\ncpu_threads {}\ncpu_compress {:.6g}\ncpu_compress_reproducible {:.6g}\n"
                                      "cpu_decompress {:.6g}\ngpu_compress {:.6g}\ngpu_compress_reproducible {:.6g}\n"
                                      "gpu_decompress {:.6g}\ngpu_start_seconds {:.6g}\n",
                                      kHeading, device, threads, cpu.compress, cpu.compress_reproducible,
                                      cpu.decompress, gpu.compress, gpu.compress_reproducible, gpu.decompress, start));
}

}  // namespace ptxkit::codec
