#include "runtime/codec/policy/choosing_backend.hpp"

#include <utility>

#include "runtime/codec/forwarding_backend.hpp"
#include "runtime/codec/policy/choice.hpp"

namespace ptxkit::codec {
namespace {

// Calls that do not go through chosen_for() run on the GPU.
class ChoosingBackend final : public ForwardingBackend {
 public:
  ChoosingBackend(std::shared_ptr<Backend> gpu, std::shared_ptr<Backend> cpu, Calibration started,
                  std::optional<uint64_t> usual_bytes)
      : ForwardingBackend(std::move(gpu)),
        cpu_(std::move(cpu)),
        choice_(std::move(started)),
        usual_bytes_(usual_bytes) {}

  bool supports(Operation operation) const override {
    return backend_->supports(operation) || cpu_->supports(operation);
  }
  Backend& chosen_for(const CodecJob& job) override {
    if (is_the_cpus(job)) return *cpu_;
    CodecJob whole = job;
    if (!whole.raw_bytes) whole.raw_bytes = usual_bytes_;
    return choice_.choose(whole) == Side::cpu ? *cpu_ : *backend_;
  }
  void record_time(const CodecJob& job, const Backend& by, double seconds) override {
    if (!is_the_cpus(job)) choice_.record_time(job, &by == cpu_.get() ? Side::cpu : Side::gpu, seconds);
  }

 private:
  static bool is_the_cpus(const CodecJob& job) { return job.work == Work::compress && job.encoder == Encoder::fast; }

  std::shared_ptr<Backend> cpu_;
  Choice choice_;
  std::optional<uint64_t> usual_bytes_;
};

}  // namespace

std::unique_ptr<Backend> choosing(std::shared_ptr<Backend> gpu, std::shared_ptr<Backend> cpu, Calibration started,
                                  std::optional<uint64_t> usual_bytes) {
  return std::make_unique<ChoosingBackend>(std::move(gpu), std::move(cpu), std::move(started), usual_bytes);
}

}  // namespace ptxkit::codec
