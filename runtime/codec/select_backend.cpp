#include "runtime/codec/select_backend.hpp"

#include <chrono>
#include <memory>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "kernels/abi.hpp"
#include "runtime/codec/device/emulator_machine.hpp"
#include "runtime/codec/device/kernel_backend.hpp"
#include "runtime/codec/device/locked_memory.hpp"
#include "runtime/codec/policy/calibrate.hpp"
#include "runtime/codec/policy/choosing_backend.hpp"
#include "runtime/codec/policy/spread_backend.hpp"
#include "support/check.hpp"

namespace ptxkit::codec {
namespace {

struct NoGpu {
  Error error;
  bool matters;
};

using CudaBackend = tl::expected<std::unique_ptr<Backend>, NoGpu>;

Result<std::unique_ptr<Machine>> open_machine(const BackendRequest& request,
                                              const std::shared_ptr<const driver::Driver>& driver, int ordinal,
                                              std::shared_ptr<LockedRanges> page_locked = nullptr) {
  auto context = driver::Context::create(driver, ordinal);
  if (!context) return tl::unexpected(context.error());
  return make_cuda_machine(std::move(*context), request.find_image, request.limits, std::move(page_locked));
}

std::vector<int> ordinals_of(const BackendRequest& request, const driver::Driver& driver) {
  if (!request.devices.empty()) return request.devices;
  std::vector<int> all(static_cast<size_t>(driver.device_count()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

CudaBackend make_cuda_backend(const BackendRequest& request, Executor& executor) {
  auto driver = driver::Driver::open(request.cuda_library);
  if (!driver) return tl::unexpected(NoGpu{driver.error().error, driver.error().absence == driver::Absence::broken});
  const auto page_locked = std::make_shared<LockedRanges>();
  const auto open_device = [&](int ordinal) -> Result<std::unique_ptr<Backend>> {
    auto machine = open_machine(request, *driver, ordinal, page_locked);
    if (!machine) return tl::unexpected(machine.error());
    return make_kernel_backend(std::move(*machine), executor, request.throttle);
  };
  std::vector<std::unique_ptr<Backend>> devices;
  std::optional<Error> missing;
  const std::vector<int> ordinals = ordinals_of(request, **driver);
  for (const int ordinal : ordinals) {
    auto device = open_device(ordinal);
    if (device) {
      devices.push_back(std::move(*device));
    } else if (!missing) {
      missing = std::move(device.error());
    }
  }
  // `cuda` uses all the devices that were named, or fails.
  if (devices.empty() || (missing && request.name == "cuda")) return tl::unexpected(NoGpu{*missing, true});
  if (missing && request.notice) {
    request.notice(fmt::format("using {} of {} GPUs: {}", devices.size(), ordinals.size(), missing->message()), true);
  }
  return spread(std::move(devices), request.notice);
}

std::unique_ptr<Backend> cpu_backend(const BackendRequest& request, Executor& executor) {
  return with_allocator(make_cpu_backend(executor), request.allocate);
}

std::unique_ptr<Backend> without_gpu(const BackendRequest& request, Executor& executor, const std::string& why,
                                     bool matters) {
  if (request.notice) request.notice(fmt::format("using the CPU: {}", why), matters);
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

std::unique_ptr<Backend> select_by_rates(const BackendRequest& request, Executor& executor) {
  std::optional<Calibration> kept = kept_rates(request, executor.thread_count());
  const Calibration believed = kept.value_or(unmeasured(executor.thread_count()));
  auto cpu = cpu_backend(request, executor);
  if (!believed.prefers_gpu(request.work, request.raw_bytes)) return cpu;

  const auto begin = std::chrono::steady_clock::now();
  CudaBackend gpu = make_cuda_backend(request, executor);
  if (!gpu) return without_gpu(request, executor, gpu.error().error.message(), gpu.error().matters);
  if (!kept || kept->device != (*gpu)->description()) {
    Result<void> warm = warm_up(**gpu);
    const std::chrono::duration<double> start = std::chrono::steady_clock::now() - begin;
    const auto& lengths = request.sample_lengths;
    auto measured = warm ? calibrate(*cpu, **gpu, lengths.empty() ? sample_lengths(*cpu, **gpu) : lengths,
                                     executor.thread_count(), start.count())
                         : Result<Calibration>(tl::unexpected(warm.error()));
    if (!measured) return without_gpu(request, executor, measured.error().message(), true);
    if (!request.calibration_path.empty()) {
      const auto saved = save_calibration(*measured, request.calibration_path);
      if (!saved && request.notice) request.notice("rates are not kept: " + saved.error().message(), false);
    }
    if (!measured->prefers_gpu(request.work, request.raw_bytes)) {
      return without_gpu(request, executor, "it was measured to be faster for so many bytes", false);
    }
    kept = std::move(*measured);
  }
  auto scheduled = schedule(std::move(*gpu), make_cpu_backend(executor), Sharing::device_only, request.notice);
  return choosing(with_allocator(std::move(scheduled), request.allocate), std::move(cpu), kept->once_started(),
                  request.raw_bytes);
}

std::unique_ptr<Backend> select_by_policy(const BackendRequest& request, Executor& executor) {
  if (request.policy == Policy::cpu) return cpu_backend(request, executor);
  if (request.policy == Policy::automatic) return select_by_rates(request, executor);
  const bool both = request.policy == Policy::mixed;
  PTXKIT_CHECK(!both || (request.copy_executor != nullptr && request.copy_executor != &executor),
               "the mixed policy has an executor for copies");
  CudaBackend gpu = make_cuda_backend(request, both ? *request.copy_executor : executor);
  if (!gpu) return without_gpu(request, executor, gpu.error().error.message(), gpu.error().matters);
  return with_allocator(schedule(std::move(*gpu), make_cpu_backend(executor),
                                 both ? Sharing::both : Sharing::device_only, request.notice),
                        request.allocate);
}

}  // namespace

bool settle_use_of_gpu(BackendRequest& request, unsigned cpu_threads) {
  if (request.name == "cuda") return true;
  if (request.name != "auto") return false;
  if (request.policy == Policy::automatic &&
      !kept_rates(request, cpu_threads).value_or(unmeasured(cpu_threads)).prefers_gpu(request.work, request.raw_bytes))
    request.policy = Policy::cpu;
  return request.policy != Policy::cpu && driver::Driver::is_installed(request.cuda_library);
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
  return fail(fmt::format("there is no backend named {}: expected auto, cpu, cuda or emulator", request.name));
}

Result<std::unique_ptr<BlockKernels>> select_block_kernels(const BackendRequest& request, Executor& executor) {
  std::vector<std::unique_ptr<Machine>> machines;
  if (request.name == "emulator") {
    machines.push_back(make_emulator_machine(request.find_image, executor.thread_count()));
  } else if (request.name == "cuda") {
    auto driver = driver::Driver::open(request.cuda_library);
    if (!driver) return tl::unexpected(driver.error().error);
    for (const int ordinal : ordinals_of(request, **driver)) {
      auto machine = open_machine(request, *driver, ordinal);
      if (!machine) return tl::unexpected(machine.error());
      machines.push_back(std::move(*machine));
    }
  } else {
    return nullptr;
  }
  return std::make_unique<BlockKernels>(std::move(machines), executor);
}

}  // namespace ptxkit::codec
