#include "runtime/library/engine.hpp"

#include <algorithm>

#include "kernels/images.hpp"

namespace ptxkit::library {
namespace {

codec::Policy policy_of(Where where) {
  switch (where) {
    case Where::cpu:
      return codec::Policy::cpu;
    case Where::gpu:
      return codec::Policy::gpu;
    case Where::both:
      return codec::Policy::mixed;
    case Where::automatic:
      break;
  }
  return codec::Policy::automatic;
}

}  // namespace

Engine::Engine(Lz4Settings settings) : settings_(std::move(settings)), executor_(settings_.cpu_threads) {
  if (settings_.where == Where::both) copies_.emplace(std::max(1u, executor_.thread_count() / 4));
}

codec::BackendRequest Engine::request() {
  codec::BackendRequest request;
  request.policy = policy_of(settings_.where);
  if (settings_.expected_bytes != 0) request.raw_bytes = settings_.expected_bytes;
  request.calibration_path = settings_.calibration_path;
  if (copies_) request.copy_executor = &*copies_;
  request.devices = settings_.devices;
  request.find_image = kernels::find_kernel_image;
  if (settings_.log) {
    request.notice = [log = settings_.log](const std::string& message, bool matters) {
      try {
        log(matters ? LogLevel::warning : LogLevel::detail, message);
      } catch (...) {  // NOLINT(bugprone-empty-catch): a failed log call must not stop the work
      }
    };
  }
  request.limits.memory_bytes = settings_.device_memory_bytes;
  request.limits.measures_times = settings_.measures_device_times;
  request.cuda_library = settings_.cuda_library;
  request.allocate = settings_.allocate;
  return request;
}

Result<std::unique_ptr<Engine>> Engine::open(Lz4Settings settings) {
  std::unique_ptr<Engine> engine(new Engine(std::move(settings)));
  const codec::BackendRequest request = engine->request();
  if (const auto& executor = engine->executor_; request.notice && executor.thread_count() < executor.wanted_count()) {
    request.notice("threads are fewer than asked for: " + std::to_string(executor.thread_count()) + " of " +
                       std::to_string(executor.wanted_count()),
                   false);
  }
  auto backend = codec::select_backend(request, engine->executor_);
  if (!backend) return tl::unexpected(backend.error());
  engine->backend_ = std::move(*backend);
  return engine;
}

Result<Engine::BorrowedCoder> Engine::block_coder() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_coders_.empty()) {
      auto coder = std::move(idle_coders_.back());
      idle_coders_.pop_back();
      return BorrowedCoder(*this, std::move(coder));
    }
    idle_coders_.reserve(++coder_count_);  // so that nothing throws in ~BorrowedCoder()
  }
  auto coder = codec::select_block_coder(request(), executor_);
  if (!coder) return tl::unexpected(coder.error());
  return BorrowedCoder(*this, std::move(*coder));
}

Engine::BorrowedCoder::~BorrowedCoder() {
  if (coder_ == nullptr) return;
  const std::lock_guard lock(engine_.mutex_);
  engine_.idle_coders_.push_back(std::move(coder_));
}

}  // namespace ptxkit::library
