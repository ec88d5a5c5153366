#include "runtime/codec/select_backend.hpp"

#include <atomic>

#include <fmt/format.h>

#include "runtime/backend/cuda/cuda_machine.hpp"
#include "runtime/backend/kernels/emulator_machine.hpp"
#include "runtime/backend/kernels/kernel_backend.hpp"

namespace ptxkit::codec {
namespace {

class FallbackBackend final : public Backend {
 public:
  FallbackBackend(std::unique_ptr<Backend> primary, std::unique_ptr<Backend> substitute, FallbackNotice notice)
      : primary_(std::move(primary)), substitute_(std::move(substitute)), notice_(std::move(notice)) {}

  std::string_view name() const override { return current().name(); }
  std::string description() const override { return current().description(); }
  bool supports(Operation operation) const override {
    return primary_->supports(operation) || substitute_->supports(operation);
  }
  // Of the primary, for good: a stream must not change its encoder half-way.
  Encoder default_encoder() const override { return primary_->default_encoder(); }
  std::size_t preferred_batch_bytes(std::size_t chunk_bytes) const override {
    return current().preferred_batch_bytes(chunk_bytes);
  }

  Result<void> compress(std::span<CompressItem> items, Encoder encoder) override {
    const bool linked = !items.empty() && !items.back().history.empty();
    const Operation operation = encoder == Encoder::fast ? Operation::compress_fast : Operation::compress_reproducible;
    const bool capable = primary_->supports(operation) && (!linked || primary_->supports(Operation::compress_linked));
    return attempt(capable, [&](Backend& backend) { return backend.compress(items, encoder); });
  }

  Result<void> decompress(std::span<DecompressItem> items) override {
    const bool linked = !items.empty() && !items.back().history.empty();
    const bool capable = primary_->supports(linked ? Operation::decompress_linked : Operation::decompress);
    return attempt(capable, [&](Backend& backend) { return backend.decompress(items); });
  }

 private:
  Backend& current() const { return failed_ ? *substitute_ : *primary_; }

  template <class Run>
  Result<void> attempt(bool capable, Run run) {
    if (failed_ || !capable) return run(*substitute_);
    Result<void> done = run(*primary_);
    if (done) return done;
    if (!failed_.exchange(true) && notice_) {
      notice_(fmt::format("continuing on the CPU: {}", done.error().message()), true);
    }
    return run(*substitute_);
  }

  std::unique_ptr<Backend> primary_, substitute_;
  FallbackNotice notice_;
  std::atomic<bool> failed_{false};
};

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

std::unique_ptr<Backend> with_fallback(std::unique_ptr<Backend> primary, std::unique_ptr<Backend> substitute,
                                       FallbackNotice notice) {
  return std::make_unique<FallbackBackend>(std::move(primary), std::move(substitute), std::move(notice));
}

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
    if (backend) return with_fallback(std::move(*backend), make_cpu_backend(executor), request.notice);
    if (request.notice) {
      request.notice(fmt::format("using the CPU: {}", backend.error().error.message()), backend.error().matters);
    }
    return make_cpu_backend(executor);
  }
  return fail(fmt::format("there is no backend named {}: expected auto, cpu, cuda or emulator", request.name));
}

}  // namespace ptxkit::codec
