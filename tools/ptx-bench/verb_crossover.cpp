// From which size on the GPU is faster than the CPU: streams of 4 KiB to --size, and files, through each, both
// together, and what the policy takes, for a process that has to start CUDA and for one that has started it.
#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "kernels/images.hpp"
#include "runtime/codec/calibrate.hpp"
#include "runtime/codec/select_backend.hpp"
#include "support/file.hpp"
#include "tools/ptx-bench/verb.hpp"

namespace ptxkit::bench {
namespace {

using codec::Backend;
using codec::Encoder;
using codec::Work;

constexpr std::uint64_t kLeastBytes = 4096, kStep = 4;
// The threads of a short stream take longer to wake up than its bytes, one time this long, another time twice: of up to
// so many bytes more runs are measured.
constexpr std::uint64_t kShortBytes = 4u << 20;
constexpr unsigned kRunsOfShort = 10;
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

}  // namespace

Result<Measurements> run_crossover(const Settings& settings) {
  using Clock = std::chrono::steady_clock;
  codec::Executor executor, copies(std::max(1u, executor.thread_count() / 4));
  Measurements all;
  const auto begin = Clock::now();
  auto wanted = requests(settings, copies);
  auto gpu = codec::select_backend(wanted[0], executor);
  if (!gpu) return tl::unexpected(gpu.error());
  if (auto warm = codec::compress_sample(**gpu, 1); !warm) return tl::unexpected(warm.error());
  const double start = std::chrono::duration<double>(Clock::now() - begin).count();
  auto mixed = codec::select_backend(wanted[1], executor);
  if (!mixed) return tl::unexpected(mixed.error());
  const auto cpu = codec::make_cpu_backend(executor);
  const auto rates = codec::calibrate(*cpu, **gpu, codec::sample_lengths(*cpu, **gpu), executor.thread_count(), start);
  if (!rates) return tl::unexpected(rates.error());
  all.device = (*gpu)->description();
  all.cpu = cpu->description();
  all.rows.push_back({"-", "start", 0, 0, 0, rates->gpu_start_seconds});
  for (const auto& [side, of] : {std::pair("cpu", &rates->cpu), std::pair("gpu", &rates->gpu)}) {
    all.notes.push_back(fmt::format("{}: GB/s compress {:.2f}, reproducible {:.2f}, decompress {:.2f}", side,
                                    (*of)[0].rate() / 1e9, (*of)[1].rate() / 1e9, (*of)[2].rate() / 1e9));
  }
  struct Stream {
    std::string name;
    Work work;
    std::uint64_t raw_bytes;
    std::function<Result<double>(Backend&)> seconds_of;  // of a run
  };
  // Rows of a stream on every side and of what auto takes; `worst`: that over the better side, the most so far.
  const auto compare = [&](const Stream& stream, double& worst) -> Result<void> {
    const auto size = static_cast<std::size_t>(stream.raw_bytes);
    Repetition repetition = settings.repetition;
    if (stream.raw_bytes <= kShortBytes) repetition.runs *= kRunsOfShort;
    const auto seconds =
        medians_in_turn(repetition, {[&] { return stream.seconds_of(*cpu); }, [&] { return stream.seconds_of(**gpu); },
                                     [&] { return stream.seconds_of(**mixed); }});
    if (!seconds) return tl::unexpected(seconds.error());
    const double on_cpu = (*seconds)[0], on_gpu = (*seconds)[1];
    for (const auto& [name, side] : {std::pair("cpu", 0u), std::pair("gpu", 1u), std::pair("mixed", 2u)}) {
      all.rows.push_back({stream.name, name, 0, size, 0, (*seconds)[side]});
    }
    for (const auto& [what, policy] :
         {std::pair("auto, CUDA to be started", *rates), std::pair("auto, CUDA started", rates->once_started())}) {
      const double gpu_seconds = policy.gpu_start_seconds + on_gpu;
      const double taken = policy.prefers_gpu(stream.work, stream.raw_bytes) ? gpu_seconds : on_cpu;
      all.rows.push_back({stream.name, what, 0, size, 0, taken});
      worst = std::max(worst, taken / std::min(gpu_seconds, on_cpu));
    }
    return {};
  };
  struct Task {
    Work work;
    const char* name;
    Encoder cpu_encoder;
  };
  for (const Task task : {Task{Work::compress, "compress", Encoder::fast},
                          Task{Work::compress_reproducible, "compress, reproducible", Encoder::reproducible},
                          Task{Work::decompress, "decompress", Encoder::fast}}) {
    double worst = 1;
    for (std::uint64_t bytes = kLeastBytes; bytes <= settings.size_bytes; bytes *= kStep) {
      std::vector<std::uint8_t> frame;
      if (task.work == Work::decompress) {
        auto made = codec::compress_sample(*cpu, bytes);
        if (!made) return tl::unexpected(made.error());
        frame = std::move(*made);
      }
      const auto seconds_of = [&](Backend& backend) {
        if (task.work == Work::decompress) return codec::seconds_to_decompress(backend, frame);
        return codec::seconds_to_compress(backend, &backend == cpu.get() ? task.cpu_encoder : Encoder::reproducible,
                                          bytes);
      };
      if (auto done = compare({task.name, task.work, bytes, seconds_of}, worst); !done)
        return tl::unexpected(done.error());
    }
    all.notes.push_back(
        fmt::format("{}: auto is at worst {:.1f} % slower than the better side", task.name, (worst - 1) * 100));
  }
  double worst = 1;
  for (const std::string& path : settings.files) {
    const auto content = read_file(path);
    if (!content) return tl::unexpected(content.error());
    const codec::Bytes raw(reinterpret_cast<const std::uint8_t*>(content->data()), content->size());
    const auto seconds_of = [&](Backend& backend) {
      format::MemorySource source(raw, path);
      return codec::seconds_to_compress(backend, backend.default_encoder(), source);
    };
    const std::string name = kFilePrefix + std::filesystem::path(path).filename().string();
    if (auto done = compare({name, Work::compress, raw.size(), seconds_of}, worst); !done) {
      return tl::unexpected(done.error());
    }
  }
  if (!settings.files.empty()) {
    all.notes.push_back(fmt::format("files: auto is at worst {:.1f} % slower than the better side", (worst - 1) * 100));
  }
  return all;
}

}  // namespace ptxkit::bench
