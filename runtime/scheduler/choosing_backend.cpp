#include "runtime/scheduler/choosing_backend.hpp"

#include <utility>

#include "runtime/scheduler/choice.hpp"

namespace ptxkit::codec {
namespace {

class ChoosingBackend final : public Backend {
 public:
  ChoosingBackend(std::shared_ptr<Backend> gpu, std::shared_ptr<Backend> cpu, Calibration started,
                  std::optional<std::uint64_t> usual_bytes)
      : gpu_(std::move(gpu)), cpu_(std::move(cpu)), choice_(std::move(started)), usual_bytes_(usual_bytes) {}

  std::string_view name() const override { return gpu_->name(); }
  std::string description() const override { return gpu_->description(); }
  bool supports(Operation operation) const override { return gpu_->supports(operation) || cpu_->supports(operation); }
  Encoder default_encoder() const override { return gpu_->default_encoder(); }
  std::size_t preferred_batch_bytes(std::size_t chunk_bytes) const override {
    return gpu_->preferred_batch_bytes(chunk_bytes);
  }
  Result<HostMemory> host_memory(std::size_t size_bytes) override { return gpu_->host_memory(size_bytes); }

  Result<void> compress(std::span<CompressItem> items, Encoder encoder) override {
    return gpu_->compress(items, encoder);
  }
  Result<void> decompress(std::span<DecompressItem> items) override { return gpu_->decompress(items); }
  std::unique_ptr<BegunBatch> begin_compress(std::span<CompressItem> items, Encoder encoder) override {
    return gpu_->begin_compress(items, encoder);
  }
  std::unique_ptr<BegunBatch> begin_decompress(std::span<DecompressItem> items) override {
    return gpu_->begin_decompress(items);
  }

  Backend& chosen_for(const CodecJob& job) override {
    if (is_the_cpus(job)) return *cpu_;
    CodecJob whole = job;
    if (!whole.raw_bytes) whole.raw_bytes = usual_bytes_;
    return choice_.choose(whole) == Side::cpu ? *cpu_ : *gpu_;
  }
  void took(const CodecJob& job, const Backend& by, double seconds) override {
    if (!is_the_cpus(job)) choice_.took(job, &by == cpu_.get() ? Side::cpu : Side::gpu, seconds);
  }

 private:
  static bool is_the_cpus(const CodecJob& job) { return job.work == Work::compress && job.encoder == Encoder::fast; }

  std::shared_ptr<Backend> gpu_, cpu_;
  Choice choice_;
  std::optional<std::uint64_t> usual_bytes_;
};

}  // namespace

std::unique_ptr<Backend> choosing(std::shared_ptr<Backend> gpu, std::shared_ptr<Backend> cpu, Calibration started,
                                  std::optional<std::uint64_t> usual_bytes) {
  return std::make_unique<ChoosingBackend>(std::move(gpu), std::move(cpu), std::move(started), usual_bytes);
}

}  // namespace ptxkit::codec
