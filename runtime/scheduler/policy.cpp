#include "runtime/scheduler/policy.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "support/file.hpp"

namespace ptxkit::codec {
namespace {

constexpr double kUnmeasuredStartSeconds = 0.3, kUnmeasuredCpuThreadRate = 0.4e9;
// As much as the backend likes to have at a time, within reason.
constexpr std::size_t kLeastSampleBytes = 4u << 20, kMostSampleBytes = 128u << 20, kSampleBlockBytes = 64u << 10;
constexpr int kRepetitions = 3;
constexpr const char* kHeading = "ptxkit rates 1";

// A third each of text-like bytes, zeros and noise, interleaved block by block.
std::vector<std::uint8_t> sample(std::size_t size_bytes) {
  std::vector<std::uint8_t> bytes(size_bytes);
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t block = i / kSampleBlockBytes;
    if (block % 3 == 1) continue;
    if (i % 8 == 0) state = state * 6364136223846793005u + 1442695040888963407u;
    const auto noise = static_cast<std::uint8_t>(state >> (8 * (i % 8)));
    // One of 4096 words of eight letters: matches as text has them.
    const std::uint64_t word = state >> 52;
    bytes[i] = block % 3 == 2 ? noise : static_cast<std::uint8_t>("etaoinsr"[(word >> (i % 8)) & 7]);
  }
  return bytes;
}

template <class Run>
Result<double> seconds_of(const Run& run) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRepetitions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    if (Result<void> done = run(); !done) return tl::unexpected(done.error());
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

Result<Rates> measure(Backend& backend) {
  const std::size_t wanted_bytes =
      backend.preferred_batch_bytes(kSampleBlockBytes) / kSampleBlockBytes * kSampleBlockBytes;
  const std::vector<std::uint8_t> raw = sample(std::clamp(wanted_bytes, kLeastSampleBytes, kMostSampleBytes));
  std::vector<std::uint8_t> packed(raw.size()), unpacked(raw.size());
  std::vector<CompressItem> items(raw.size() / kSampleBlockBytes);
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].raw = Bytes(raw).subspan(i * kSampleBlockBytes, kSampleBlockBytes);
    items[i].output = MutableBytes(packed).subspan(i * kSampleBlockBytes, kSampleBlockBytes);
  }
  Rates rates;
  const auto rate = [&](Result<double> seconds) { return static_cast<double>(raw.size()) / *seconds; };
  const auto reproducible = seconds_of([&] { return backend.compress(items, Encoder::reproducible); });
  if (!reproducible) return tl::unexpected(reproducible.error());
  rates.compress = rates.compress_reproducible = rate(reproducible);
  if (backend.default_encoder() == Encoder::fast) {
    const auto fast = seconds_of([&] { return backend.compress(items, Encoder::fast); });
    if (!fast) return tl::unexpected(fast.error());
    rates.compress = rate(fast);
  }
  std::vector<DecompressItem> back;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].flag != ChunkFlag::compressed) continue;
    DecompressItem item;
    item.block = Bytes(items[i].output).first(items[i].compressed_bytes);
    item.output = MutableBytes(unpacked).subspan(i * kSampleBlockBytes, kSampleBlockBytes);
    back.push_back(item);
  }
  const auto decompress = seconds_of([&] { return backend.decompress(back); });
  if (!decompress) return tl::unexpected(decompress.error());
  rates.decompress = static_cast<double>(back.size() * kSampleBlockBytes) / *decompress;
  return rates;
}

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

Calibration unmeasured(unsigned cpu_threads) {
  const double cpu = kUnmeasuredCpuThreadRate * cpu_threads, gpu = std::numeric_limits<double>::infinity();
  return {{}, cpu_threads, {cpu, cpu, cpu}, {gpu, gpu, gpu}, kUnmeasuredStartSeconds};
}

Result<Calibration> calibrate(Backend& cpu, Backend& gpu, unsigned cpu_threads, double gpu_start_seconds) {
  Calibration calibration{gpu.description(), cpu_threads, {}, {}, gpu_start_seconds};
  for (const auto& [rates, backend] : {std::pair(&calibration.cpu, &cpu), std::pair(&calibration.gpu, &gpu)}) {
    auto measured = measure(*backend);
    if (!measured) return tl::unexpected(measured.error());
    *rates = *measured;
  }
  return calibration;
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
