#include "runtime/codec/policy/spread_backend.hpp"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "support/check.hpp"
#include "support/guarded.hpp"
#include "support/result.hpp"
#include "support/thread.hpp"

namespace ptxkit::codec {
namespace {

// Of a batch, for each device: pieces are small enough that all devices end at about the same time.
constexpr size_t kPiecesPerDevice = 8;
// 16 chunks of 64 KiB are 1 MiB; fewer are not worth a launch.
constexpr size_t kLeastPieceItems = 16;
// Pieces that a device holds at a time: half of its share. Copies and kernels overlap, and a slow device holds little
// when the others run out of work.
constexpr size_t kMostUnderWay = 4;

class SpreadBackend final : public Backend {
 public:
  SpreadBackend(std::vector<std::unique_ptr<Backend>> devices, FallbackNotice notice)
      : devices_(std::move(devices)),
        errors_(devices_.size()),
        working_count_(devices_.size()),
        notice_(std::move(notice)) {
    threads_.reserve(devices_.size());
    std::vector<size_t> without_thread;
    without_thread.reserve(devices_.size());
    for (size_t device = 0; device < devices_.size(); ++device) {
      if (auto thread = try_thread([this, device] { work(device); })) {
        threads_.push_back(std::move(*thread));
      } else {
        without_thread.push_back(device);
      }
    }
    try {
      leave_out(without_thread);
    } catch (...) {
      stop();
      throw;
    }
  }
  ~SpreadBackend() override { stop(); }

  std::string_view name() const override { return devices_[0]->name(); }
  std::string description() const override {
    std::string all = fmt::format("{} GPUs", devices_.size());
    for (const auto& device : devices_) all += "; " + device->description();
    return all;
  }
  bool supports(Operation operation) const override { return devices_[0]->supports(operation); }
  Encoder default_encoder() const override { return devices_[0]->default_encoder(); }
  size_t preferred_batch_bytes(size_t chunk_bytes) const override {
    return devices_.size() * devices_[0]->preferred_batch_bytes(chunk_bytes);
  }
  // The memory is page-locked for all devices (CUDA Driver API, "Unified Addressing").
  Result<HostMemory> host_memory(size_t size_bytes) override {
    Result<HostMemory> memory = fail("no device is left");
    for (size_t device = 0; device < devices_.size() && !memory; ++device) {
      if (const auto error = error_of(device)) {
        memory = tl::unexpected(*error);
      } else {
        memory = devices_[device]->host_memory(size_bytes);
      }
    }
    return memory;
  }

  Result<void> compress(std::span<CompressItem> items, Encoder encoder) override {
    return begin_compress(items, encoder)->finish();
  }
  Result<void> decompress(std::span<DecompressItem> items) override { return begin_decompress(items)->finish(); }

  std::unique_ptr<PendingBatch> begin_compress(std::span<CompressItem> items, Encoder encoder) override {
    if (threads_.empty()) return devices_[0]->begin_compress(items, encoder);
    return begin(items,
                 [=](Backend& device, std::span<CompressItem> piece) { return device.begin_compress(piece, encoder); });
  }
  std::unique_ptr<PendingBatch> begin_decompress(std::span<DecompressItem> items) override {
    if (threads_.empty()) return devices_[0]->begin_decompress(items);
    return begin(items,
                 [](Backend& device, std::span<DecompressItem> piece) { return device.begin_decompress(piece); });
  }

 private:
  struct Batch {
    Result<void> outcome;
    size_t open_count = 0;  // pieces
    DeviceTimes times;
  };
  // A piece goes from list to list without memory being allocated for it: a device's thread must not throw.
  struct Piece {
    Batch* batch;
    std::function<std::unique_ptr<PendingBatch>(Backend&)> begin;
    std::unique_ptr<PendingBatch> begun = nullptr;
  };
  using Pieces = std::list<Piece>;

  class Begun final : public PendingBatch {
   public:
    explicit Begun(SpreadBackend& of) : of_(of) {}
    ~Begun() override { wait(); }
    Result<void> finish() override {
      wait();
      return batch.outcome;
    }
    DeviceTimes device_times() const override { return batch.times; }
    Batch batch;

   private:
    void wait() {
      std::unique_lock lock(of_.mutex_);
      of_.changed_.wait(lock, [this] { return batch.open_count == 0; });
    }

    SpreadBackend& of_;
  };

  template <class Item, class BeginPiece>
  std::unique_ptr<PendingBatch> begin(std::span<Item> items, BeginPiece begin_piece) {
    auto begun = std::make_unique<Begun>(*this);
    const size_t most = devices_.size() * kPiecesPerDevice;
    const size_t count = std::min(most, (items.size() + kLeastPieceItems - 1) / kLeastPieceItems);
    Pieces pieces;
    for (size_t i = 0; i < count; ++i) {
      const size_t first = items.size() * i / count, end = items.size() * (i + 1) / count;
      pieces.push_back(
          {&begun->batch, [=](Backend& device) { return begin_piece(device, items.subspan(first, end - first)); }});
    }
    {
      std::lock_guard lock(mutex_);
      if (working_count_ == 0) return finished_batch(tl::unexpected(*errors_.back()));
      pieces_.splice(pieces_.end(), pieces);
      begun->batch.open_count = count;
    }
    changed_.notify_all();
    return begun;
  }

  // The loop of a device's thread. Ends when the device fails.
  void work(size_t device) noexcept {
    Pieces under_way;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return is_stopping_ || !under_way.empty() || !pieces_.empty(); });
      if (!pieces_.empty() && under_way.size() < kMostUnderWay) {
        under_way.splice(under_way.end(), pieces_, pieces_.begin());
        lock.unlock();
        Piece& piece = under_way.back();
        Result<void> begun = guarded([&]() -> Result<void> {
          piece.begun = piece.begin(*devices_[device]);
          return {};
        });
        if (!begun) return failed(device, std::move(begun.error()), under_way);
        lock.lock();
        continue;
      }
      if (under_way.empty()) return;  // is_stopping_
      lock.unlock();
      Piece& oldest = under_way.front();
      Result<void> done = guarded([&] { return oldest.begun->finish(); });
      if (!done) return failed(device, std::move(done.error()), under_way);
      lock.lock();
      oldest.batch->times += oldest.begun->device_times();
      --oldest.batch->open_count;
      under_way.pop_front();
      changed_.notify_all();
    }
  }

  // The threads end when no piece is left; their own destructors wait for that.
  void stop() noexcept {
    {
      std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    changed_.notify_all();
  }

  // Leaves out the devices for which the system has no thread. Without any thread the caller drives the first device
  // itself.
  void leave_out(const std::vector<size_t>& devices) {
    if (devices.empty()) return;
    if (notice_) {
      notice_(fmt::format("threads could be had for {} of {} GPUs", threads_.size(), devices_.size()), false);
    }
    if (threads_.empty()) return;
    std::lock_guard lock(mutex_);
    for (const size_t device : devices) errors_[device] = Error{"no thread could be had for the device", {}, {}};
    working_count_ -= devices.size();
  }

  void failed(size_t device, Error reason, Pieces& under_way) noexcept {
    // Waits: no device may still write to the items that another one is about to redo.
    for (Piece& each : under_way) each.begun.reset();
    std::unique_lock lock(mutex_);
    const Error& error = errors_[device].emplace(std::move(reason));
    const size_t left = --working_count_;
    if (left != 0 && notice_) {
      // The notice comes before the batch can finish.
      lock.unlock();
      (void)guarded([&]() -> Result<void> {
        notice_(fmt::format("continuing on {} of {} GPUs: {}", left, devices_.size(), error.message()), true);
        return {};
      });
      lock.lock();
    }
    pieces_.splice(pieces_.begin(), under_way);
    if (working_count_ == 0) {
      for (const Piece& piece : pieces_) {
        piece.batch->outcome = guarded([&]() -> Result<void> { return tl::unexpected(error); });
        --piece.batch->open_count;
      }
      pieces_.clear();
    }
    changed_.notify_all();
  }

  std::optional<Error> error_of(size_t device) const {
    std::lock_guard lock(mutex_);
    return errors_[device];
  }

  std::vector<std::unique_ptr<Backend>> devices_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Pieces pieces_;
  std::vector<std::optional<Error>> errors_;  // of devices that have failed
  size_t working_count_;
  bool is_stopping_ = false;
  FallbackNotice notice_;
  std::vector<std::jthread> threads_;  // last: the threads use the other members
};

}  // namespace

std::unique_ptr<Backend> spread(std::vector<std::unique_ptr<Backend>> devices, FallbackNotice notice) {
  PTXKIT_CHECK(!devices.empty(), "there is a device to spread over");
  if (devices.size() == 1) return std::move(devices.front());
  return std::make_unique<SpreadBackend>(std::move(devices), std::move(notice));
}

}  // namespace ptxkit::codec
