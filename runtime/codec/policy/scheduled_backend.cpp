#include "runtime/codec/policy/scheduled_backend.hpp"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

// Fewer items are not worth a launch: 64 blocks of 64 KiB are 4 MiB. The CPU takes enough items at a time to make
// handing out cheap, and few enough to keep the tail short.
constexpr SharedWork::Grain kGrain{.least_device_items = 64, .cpu_items = 16};

class ScheduledBackend final : public Backend {
 public:
  ScheduledBackend(std::unique_ptr<Backend> device, std::unique_ptr<Backend> cpu, Sharing sharing,
                   FallbackNotice notice)
      : device_(std::move(device)), cpu_(std::move(cpu)), sharing_(sharing), work_(std::move(notice)) {}

  std::string_view name() const override { return current().name(); }
  std::string description() const override {
    if (sharing_ == Sharing::device_only || work_.has_failed()) return current().description();
    return fmt::format("{}; with {}", device_->description(), cpu_->description());
  }
  bool supports(Operation operation) const override {
    return device_->supports(operation) || cpu_->supports(operation);
  }
  // Always the device's, even after it has failed: a stream must not change its encoder half-way.
  Encoder default_encoder() const override { return device_->default_encoder(); }
  size_t preferred_batch_bytes(size_t chunk_bytes) const override {
    return current().preferred_batch_bytes(chunk_bytes);
  }

  Result<HostMemory> host_memory(size_t size_bytes) override {
    if (work_.has_failed()) return cpu_->host_memory(size_bytes);
    auto memory = device_->host_memory(size_bytes);
    if (memory) return memory;
    work_.device_failed(memory.error());
    return cpu_->host_memory(size_bytes);
  }

  std::unique_ptr<PendingBatch> begin_compress(std::span<CompressItem> items, Encoder encoder) override {
    return begin(items, is_capable(items, encoder),
                 [=](Backend& backend, std::span<CompressItem> part) { return backend.begin_compress(part, encoder); });
  }
  std::unique_ptr<PendingBatch> begin_decompress(std::span<DecompressItem> items) override {
    return begin(items, is_capable(items),
                 [](Backend& backend, std::span<DecompressItem> part) { return backend.begin_decompress(part); });
  }

  Result<void> compress(std::span<CompressItem> items, Encoder encoder) override {
    return begin_compress(items, encoder)->finish();
  }
  Result<void> decompress(std::span<DecompressItem> items) override { return begin_decompress(items)->finish(); }

 private:
  // A batch on the device, with the function that redoes it on the CPU if the device fails.
  class Begun final : public PendingBatch {
   public:
    Begun(std::unique_ptr<PendingBatch> device, std::function<Result<void>(const Error&)> instead)
        : device_(std::move(device)), instead_(std::move(instead)) {}
    Result<void> finish() override {
      const Result<void> done = device_->finish();
      return done ? done : instead_(done.error());
    }
    DeviceTimes device_times() const override { return device_->device_times(); }

   private:
    std::unique_ptr<PendingBatch> device_;
    std::function<Result<void>(const Error&)> instead_;
  };

  bool is_capable(std::span<const CompressItem> items, Encoder encoder) const {
    const bool linked = !items.empty() && !items.back().history.empty();
    const Operation operation = encoder == Encoder::fast ? Operation::compress_fast : Operation::compress_reproducible;
    return device_->supports(operation) && (!linked || device_->supports(Operation::compress_linked));
  }
  bool is_capable(std::span<const DecompressItem> items) const {
    const bool linked = !items.empty() && !items.back().history.empty();
    return device_->supports(linked ? Operation::decompress_linked : Operation::decompress);
  }

  Backend& current() const { return work_.has_failed() ? *cpu_ : *device_; }

  // begin_part(backend, items) begins them there. Only a batch that is the device's alone is still running afterwards.
  template <class Item, class BeginPart>
  std::unique_ptr<PendingBatch> begin(std::span<Item> items, bool capable, BeginPart begin_part) {
    const auto on_cpu = [=, this](std::span<Item> part) { return begin_part(*cpu_, part)->finish(); };
    if (!capable || work_.has_failed()) return finished_batch(on_cpu(items));
    if (sharing_ == Sharing::device_only) {
      return std::make_unique<Begun>(begin_part(*device_, items), [=, this](const Error& error) {
        work_.device_failed(error);
        return on_cpu(items);
      });
    }
    DeviceTimes times;
    const auto on_device = [&](std::span<Item> part) {
      const auto begun = begin_part(*device_, part);
      Result<void> done = begun->finish();
      times += begun->device_times();
      return done;
    };
    Result<void> done = work_.run(sharing_, items, kGrain, on_device, on_cpu);
    return finished_batch(std::move(done), times);
  }

  std::unique_ptr<Backend> device_, cpu_;
  Sharing sharing_;
  SharedWork work_;
};

}  // namespace

std::unique_ptr<Backend> schedule(std::unique_ptr<Backend> device, std::unique_ptr<Backend> cpu, Sharing sharing,
                                  FallbackNotice notice) {
  return std::make_unique<ScheduledBackend>(std::move(device), std::move(cpu), sharing, std::move(notice));
}

}  // namespace ptxkit::codec
