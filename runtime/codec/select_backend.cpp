#include "runtime/codec/select_backend.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <numeric>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/abi.hpp"
#include "runtime/codec/cpu/cpu_blocks.hpp"
#include "runtime/codec/device/block_kernels.hpp"
#include "runtime/codec/device/emulator_machine.hpp"
#include "runtime/codec/device/kernel_backend.hpp"
#include "runtime/codec/device/locked_memory.hpp"
#include "runtime/codec/policy/automatic_blocks.hpp"
#include "runtime/codec/policy/block_rates.hpp"
#include "runtime/codec/policy/calibrate.hpp"
#include "runtime/codec/policy/choosing_backend.hpp"
#include "runtime/codec/policy/scheduled_blocks.hpp"
#include "runtime/codec/policy/spread_backend.hpp"
#include "support/check.hpp"

namespace ptxkit::codec {
namespace {

struct NoGpu {
  Error error;
  bool matters;
};

template <class T>
using OnGpu = tl::expected<T, NoGpu>;

std::vector<int> ordinals_of(const BackendRequest& request, const driver::Driver& driver) {
  std::vector<int> all = request.devices;
  if (all.empty()) {
    all.resize(static_cast<size_t>(driver.device_count()));
    std::iota(all.begin(), all.end(), 0);
  }
  return request.only_device && !all.empty() ? std::vector{all[*request.only_device % all.size()]} : all;
}

// `cuda` needs all the devices that were named, `auto` takes those that it can open.
OnGpu<std::vector<std::unique_ptr<Machine>>> open_machines(const BackendRequest& request) {
  auto driver = driver::Driver::open(request.cuda_library);
  if (!driver) return tl::unexpected(NoGpu{driver.error().error, driver.error().absence == driver::Absence::broken});
  const auto page_locked = std::make_shared<LockedRanges>();
  const auto open_machine = [&](int ordinal) -> Result<std::unique_ptr<Machine>> {
    auto context = driver::Context::create(*driver, ordinal);
    if (!context) return tl::unexpected(context.error());
    return make_cuda_machine(std::move(*context), request.find_image, request.limits, page_locked);
  };
  std::vector<std::unique_ptr<Machine>> machines;
  std::optional<Error> missing;
  const std::vector<int> ordinals = ordinals_of(request, **driver);
  for (const int ordinal : ordinals) {
    auto machine = open_machine(ordinal);
    if (machine) {
      machines.push_back(std::move(*machine));
    } else if (!missing) {
      missing = std::move(machine.error());
    }
  }
  // `cuda` uses all the devices that were named, or fails.
  if (machines.empty() || (missing && request.name == "cuda")) return tl::unexpected(NoGpu{*missing, true});
  if (missing && request.notice) {
    request.notice(fmt::format("using {} of {} GPUs: {}", machines.size(), ordinals.size(), missing->message()), true);
  }
  return machines;
}

OnGpu<std::unique_ptr<Backend>> make_cuda_backend(const BackendRequest& request, Executor& executor) {
  return open_machines(request).map([&](std::vector<std::unique_ptr<Machine>> machines) {
    std::vector<std::unique_ptr<Backend>> devices;
    for (auto& machine : machines)
      devices.push_back(make_kernel_backend(std::move(machine), executor, request.throttle));
    return spread(std::move(devices), request.notice);
  });
}

OnGpu<std::unique_ptr<BlockCoder>> make_cuda_blocks(const BackendRequest& request, Executor& executor) {
  auto machines = open_machines(request);
  if (!machines) return tl::unexpected(machines.error());
  return std::make_unique<BlockKernels>(std::move(*machines), executor, request.notice);
}

void tell_of_no_gpu(const BackendRequest& request, const std::string& why, bool matters) {
  if (request.notice) request.notice("using the CPU: " + why, matters);
}

std::unique_ptr<Backend> cpu_backend(const BackendRequest& request, Executor& executor) {
  return with_allocator(make_cpu_backend(executor), request.allocate);
}

std::unique_ptr<Backend> without_gpu(const BackendRequest& request, Executor& executor, const std::string& why,
                                     bool matters) {
  tell_of_no_gpu(request, why, matters);
  return cpu_backend(request, executor);
}

// Compresses and decompresses one block, so that kernels are compiled and memory is allocated.
Result<void> warm_up(Backend& gpu) {
  const std::vector<uint8_t> raw(kernels::kMaxChunkBytes, 1);
  std::vector<uint8_t> packed(raw.size()), unpacked(raw.size());
  CompressItem item;
  item.raw = raw;
  item.output = packed;
  if (auto done = gpu.compress({&item, 1}, Encoder::reproducible); !done) return done;
  DecompressItem back;
  back.block = Bytes(packed).first(item.compressed_bytes);
  back.output = unpacked;
  return gpu.decompress({&back, 1});
}

// Nothing where none was measured with so many threads.
std::optional<Calibration> kept_rates(const BackendRequest& request, unsigned cpu_threads) {
  std::optional<Calibration> kept = load_calibration(request.calibration_path);
  return kept && kept->cpu_threads == cpu_threads ? kept : std::nullopt;
}

// Nothing is measured here, which takes ten seconds: without rates the CPU does it.
std::unique_ptr<Backend> select_by_rates(const BackendRequest& request, Executor& executor) {
  const std::optional<Calibration> kept = kept_rates(request, executor.thread_count());
  const Calibration believed = kept.value_or(unmeasured(executor.thread_count()));
  auto cpu = cpu_backend(request, executor);
  if (!believed.prefers_gpu(request.work, request.raw_bytes)) return cpu;
  if (!kept) return without_gpu(request, executor, kRatesAreUnknown, false);
  auto gpu = make_cuda_backend(request, executor);
  if (!gpu) return without_gpu(request, executor, gpu.error().error.message(), gpu.error().matters);
  if (kept->device != (*gpu)->description()) {
    std::error_code ignored;  // it is only measured once more
    std::filesystem::remove(request.calibration_path, ignored);
    return without_gpu(request, executor, "what was measured was another device or driver", false);
  }
  auto scheduled = schedule(std::move(*gpu), make_cpu_backend(executor), Sharing::device_only, request.notice);
  return choosing(with_allocator(std::move(scheduled), request.allocate), std::move(cpu), kept->once_started(),
                  request.raw_bytes);
}

// That copies between items and staging memory.
Executor& device_executor(const BackendRequest& request, Executor& executor) {
  if (request.policy != Policy::mixed) return executor;
  PTXKIT_CHECK(request.copy_executor != nullptr && request.copy_executor != &executor,
               "the mixed policy has an executor for copies");
  return *request.copy_executor;
}

std::unique_ptr<Backend> select_by_policy(const BackendRequest& request, Executor& executor) {
  if (request.policy == Policy::cpu) return cpu_backend(request, executor);
  if (request.policy == Policy::automatic) return select_by_rates(request, executor);
  const bool both = request.policy == Policy::mixed;
  auto gpu = make_cuda_backend(request, device_executor(request, executor));
  if (!gpu) return without_gpu(request, executor, gpu.error().error.message(), gpu.error().matters);
  return with_allocator(schedule(std::move(*gpu), make_cpu_backend(executor),
                                 both ? Sharing::both : Sharing::device_only, request.notice),
                        request.allocate);
}

// Of a batch that a device may share: four launches of 16 MiB.
constexpr size_t kSharedBatchBytes = 64u << 20;
// Of the blocks that a device is tried with; of a device with little memory a block.
constexpr size_t kSampleBytes = 8u << 20;

std::unique_ptr<BlockCoder> select_blocks_by_rates(const BackendRequest& request, Executor& executor,
                                                   std::unique_ptr<CpuBlocks> cpu) {
  const std::string path = block_rates_path(request.calibration_path);
  const unsigned threads = executor.thread_count();
  if (!request.raw_bytes || !may_be_worth_a_device(load_block_rates(path), threads, *request.raw_bytes)) return cpu;
  if (!driver::Driver::is_installed(request.cuda_library)) {
    tell_of_no_gpu(request, "no NVIDIA driver is installed", false);
    return cpu;
  }
  const auto open = [request](Executor& copies) -> std::unique_ptr<BlockCoder> {
    auto gpu = make_cuda_blocks(request, copies);
    if (gpu) return std::move(*gpu);
    tell_of_no_gpu(request, gpu.error().error.message(), gpu.error().matters);
    return nullptr;
  };
  return automatic_blocks(std::move(cpu), {.open = open,
                                           .expected_bytes = *request.raw_bytes,
                                           .cpu_threads = threads,
                                           .rates_path = path,
                                           .sample_bytes = request.limits.memory_bytes != 0 ? 1 : kSampleBytes,
                                           .batch_bytes = kSharedBatchBytes,
                                           .notice = request.notice});
}

std::unique_ptr<BlockCoder> select_blocks_by_policy(const BackendRequest& request, Executor& executor) {
  auto cpu = std::make_unique<CpuBlocks>(executor);
  if (request.policy == Policy::cpu) return cpu;
  if (request.policy == Policy::automatic) return select_blocks_by_rates(request, executor, std::move(cpu));
  auto gpu = make_cuda_blocks(request, device_executor(request, executor));
  if (!gpu) {
    tell_of_no_gpu(request, gpu.error().error.message(), gpu.error().matters);
    return cpu;
  }
  return schedule(std::move(*gpu), std::move(cpu),
                  request.policy == Policy::mixed ? Sharing::both : Sharing::device_only, request.notice);
}

tl::unexpected<Error> no_such_backend(const std::string& name) {
  return fail(fmt::format("there is no backend named {}: expected auto, cpu, cuda or emulator", name));
}

}  // namespace

bool settle_use_of_gpu(BackendRequest& request, unsigned cpu_threads, const GpuWork& work) {
  if (request.name == "cuda") return true;
  if (request.name != "auto") return false;
  if (!work.may_be_lz4 && !work.may_be_blocks) request.policy = Policy::cpu;
  if (request.policy == Policy::automatic) {
    const auto kept = kept_rates(request, cpu_threads);
    const bool is_lz4_faster = work.may_be_lz4 && kept && kept->prefers_gpu(request.work, request.raw_bytes);
    const bool are_blocks_faster = work.may_be_blocks && request.raw_bytes &&
                                   may_be_worth_a_device(load_block_rates(block_rates_path(request.calibration_path)),
                                                         cpu_threads, *request.raw_bytes);
    if (!is_lz4_faster && !are_blocks_faster) request.policy = Policy::cpu;
  }
  return request.policy != Policy::cpu && driver::Driver::is_installed(request.cuda_library);
}

bool lacks_rates(const BackendRequest& request, unsigned cpu_threads) {
  return request.name == "auto" && request.policy == Policy::automatic && !request.calibration_path.empty() &&
         !kept_rates(request, cpu_threads) && unmeasured(cpu_threads).prefers_gpu(request.work, request.raw_bytes) &&
         driver::Driver::is_installed(request.cuda_library);
}

Result<void> measure_rates(const BackendRequest& request, Executor& executor) {
  const auto cpu = make_cpu_backend(executor);
  const auto begin = std::chrono::steady_clock::now();
  auto gpu = make_cuda_backend(request, executor);
  if (!gpu) return tl::unexpected(gpu.error().error);
  if (auto warm = warm_up(**gpu); !warm) return warm;
  const std::chrono::duration<double> start = std::chrono::steady_clock::now() - begin;
  const auto& lengths = request.sample_lengths;
  const auto measured = calibrate(*cpu, **gpu, lengths.empty() ? sample_lengths(*cpu, **gpu) : lengths,
                                  executor.thread_count(), start.count());
  if (!measured) return tl::unexpected(measured.error());
  return save_calibration(*measured, request.calibration_path);
}

Result<std::unique_ptr<Backend>> select_backend(const BackendRequest& request, Executor& executor) {
  if (request.name == "cpu") return cpu_backend(request, executor);
  if (request.name == "emulator") {
    return with_allocator(
        make_kernel_backend(make_emulator_machine(request.find_image, executor.thread_count()), executor),
        request.allocate);
  }
  if (request.name == "cuda") {
    auto backend = make_cuda_backend(request, executor);
    if (!backend) return tl::unexpected(backend.error().error);
    return with_allocator(std::move(*backend), request.allocate);
  }
  if (request.name == "auto") return select_by_policy(request, executor);
  return no_such_backend(request.name);
}

Result<std::unique_ptr<BlockCoder>> select_block_coder(const BackendRequest& request, Executor& executor) {
  if (request.name == "cpu") return std::make_unique<CpuBlocks>(executor);
  if (request.name == "emulator") {
    return std::make_unique<BlockKernels>(make_emulator_machine(request.find_image, executor.thread_count()), executor);
  }
  if (request.name == "cuda") {
    auto blocks = make_cuda_blocks(request, executor);
    if (!blocks) return tl::unexpected(blocks.error().error);
    return std::move(*blocks);
  }
  if (request.name == "auto") return select_blocks_by_policy(request, executor);
  return no_such_backend(request.name);
}

}  // namespace ptxkit::codec
