#include "runtime/codec/select_backend.hpp"

#include <fmt/format.h>

#include "runtime/backend/cuda/cuda_machine.hpp"
#include "runtime/backend/kernels/emulator_machine.hpp"
#include "runtime/backend/kernels/kernel_backend.hpp"

namespace ptxkit::codec {
namespace {

struct NoGpu {
  Error error;
  bool matters;
};

tl::expected<std::unique_ptr<Backend>, NoGpu> make_cuda_backend(const BackendRequest& request, Executor& executor) {
  auto driver = driver::Driver::open(request.cuda_library);
  if (!driver) return tl::unexpected(NoGpu{driver.error().error, driver.error().absence == driver::Absence::broken});
  auto context = driver::Context::create(std::move(*driver), request.device);
  if (!context) return tl::unexpected(NoGpu{context.error(), true});
  auto machine = make_cuda_machine(std::move(*context), request.find_image);
  if (!machine) return tl::unexpected(NoGpu{machine.error(), true});
  return make_kernel_backend(std::move(*machine), executor);
}

}  // namespace

Result<std::unique_ptr<Backend>> select_backend(const BackendRequest& request, Executor& executor) {
  if (request.name == "cpu") return make_cpu_backend(executor);
  if (request.name == "emulator") {
    return make_kernel_backend(make_emulator_machine(request.find_image, executor.thread_count()), executor);
  }
  if (request.name == "cuda") {
    auto backend = make_cuda_backend(request, executor);
    if (!backend) return tl::unexpected(backend.error().error);
    return std::move(*backend);
  }
  if (request.name == "auto") {
    auto backend = make_cuda_backend(request, executor);
    if (backend) return schedule(std::move(*backend), make_cpu_backend(executor), Sharing::device_only, request.notice);
    if (request.notice) {
      request.notice(fmt::format("using the CPU: {}", backend.error().error.message()), backend.error().matters);
    }
    return make_cpu_backend(executor);
  }
  return fail(fmt::format("there is no backend named {}: expected auto, cpu, cuda or emulator", request.name));
}

}  // namespace ptxkit::codec
