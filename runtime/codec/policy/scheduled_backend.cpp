#include "runtime/codec/policy/scheduled_backend.hpp"

#include <atomic>
#include <functional>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "runtime/codec/threads/work_ranges.hpp"
#include "support/guarded.hpp"
#include "support/thread.hpp"

namespace ptxkit::codec {
namespace {

using scheduler::GpuBatch;
using scheduler::WorkRanges;

// Fewer items are not worth a launch: 64 blocks of 64 KiB are 4 MiB.
constexpr size_t kLeastDeviceItems = 64;
// Items that the CPU takes at a time: enough to make handing out cheap, few enough to keep the tail short.
constexpr size_t kCpuItems = 16;

class ScheduledBackend final : public Backend {
 public:
  ScheduledBackend(std::unique_ptr<Backend> device, std::unique_ptr<Backend> cpu, Sharing sharing,
                   FallbackNotice notice)
      : device_(std::move(device)), cpu_(std::move(cpu)), sharing_(sharing), notice_(std::move(notice)) {}

  std::string_view name() const override { return current().name(); }
  std::string description() const override {
    if (sharing_ == Sharing::device_only || failed_) return current().description();
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
    if (failed_) return cpu_->host_memory(size_bytes);
    auto memory = device_->host_memory(size_bytes);
    if (memory) return memory;
    device_failed(memory.error());
    return cpu_->host_memory(size_bytes);
  }

  std::unique_ptr<PendingBatch> begin_compress(std::span<CompressItem> items, Encoder encoder) override {
    if (failed_ || sharing_ == Sharing::both || !is_capable(items, encoder)) {
      return finished_batch(compress(items, encoder));
    }
    return std::make_unique<Begun>(device_->begin_compress(items, encoder), [=, this](const Error& error) {
      device_failed(error);
      return cpu_->compress(items, encoder);
    });
  }
  std::unique_ptr<PendingBatch> begin_decompress(std::span<DecompressItem> items) override {
    if (failed_ || sharing_ == Sharing::both || !is_capable(items)) return finished_batch(decompress(items));
    return std::make_unique<Begun>(device_->begin_decompress(items), [=, this](const Error& error) {
      device_failed(error);
      return cpu_->decompress(items);
    });
  }

  Result<void> compress(std::span<CompressItem> items, Encoder encoder) override {
    return run(items, is_capable(items, encoder),
               [=](Backend& backend, std::span<CompressItem> part) { return backend.compress(part, encoder); });
  }

  Result<void> decompress(std::span<DecompressItem> items) override {
    return run(items, is_capable(items),
               [](Backend& backend, std::span<DecompressItem> part) { return backend.decompress(part); });
  }

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

  Backend& current() const { return failed_ ? *cpu_ : *device_; }

  template <class Item, class Work>
  Result<void> run(std::span<Item> items, bool capable, Work work) {
    if (failed_ || !capable) return work(*cpu_, items);
    if (sharing_ == Sharing::both && items.size() > kCpuItems) return run_on_both(items, work);
    return run_in_turn(items, work);
  }

  // Runs on the device, and again on the CPU if that fails.
  template <class Item, class Work>
  Result<void> run_in_turn(std::span<Item> items, Work work) {
    Result<void> done = work(*device_, items);
    if (done) return done;
    device_failed(done.error());
    return work(*cpu_, items);
  }

  template <class Item, class Work>
  Result<void> run_on_both(std::span<Item> items, Work work) {
    WorkRanges ranges(items.size());
    const auto device_work = [&] {
      while (const auto batch = ranges.take_for_device(kLeastDeviceItems)) {
        if (const Result<void> done = work(*device_, items.subspan(batch->begin, batch->size())); !done) {
          device_failed(done.error());
          ranges.device_done(batch);
          return;
        }
      }
      ranges.device_done();
    };
    std::optional<Error> of_device_side;
    const auto device_thread = [&] {
      try {
        device_work();
      } catch (...) {
        of_device_side = error_of_exception();
        ranges.abandon();
        ranges.device_done();
      }
    };
    auto device_side = try_thread(std::ref(device_thread));
    if (!device_side) return run_in_turn(items, work);
    Result<void> outcome = guarded([&]() -> Result<void> {
      while (const auto part = ranges.take_for_cpu(kCpuItems)) {
        if (auto done = work(*cpu_, items.subspan(part->begin, part->size())); !done) return done;
      }
      return {};
    });
    if (!outcome) ranges.abandon();
    device_side->join();
    if (outcome && of_device_side) outcome = tl::unexpected(*of_device_side);
    return outcome;
  }

  void device_failed(const Error& error) {
    if (!failed_.exchange(true) && notice_) notice_(fmt::format("continuing on the CPU: {}", error.message()), true);
  }

  std::unique_ptr<Backend> device_, cpu_;
  Sharing sharing_;
  FallbackNotice notice_;
  std::atomic<bool> failed_{false};
};

}  // namespace

std::unique_ptr<Backend> schedule(std::unique_ptr<Backend> device, std::unique_ptr<Backend> cpu, Sharing sharing,
                                  FallbackNotice notice) {
  return std::make_unique<ScheduledBackend>(std::move(device), std::move(cpu), sharing, std::move(notice));
}

}  // namespace ptxkit::codec
