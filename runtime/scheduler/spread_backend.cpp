#include "runtime/scheduler/spread_backend.hpp"

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "support/check.hpp"

namespace ptxkit::codec {
namespace {

class SpreadBackend final : public Backend {
 public:
  SpreadBackend(std::vector<std::unique_ptr<Backend>> devices, FallbackNotice notice)
      : devices_(std::move(devices)), has_failed_(devices_.size()), notice_(std::move(notice)) {}

  std::string_view name() const override { return devices_[0]->name(); }
  std::string description() const override {
    std::string all = fmt::format("{} GPUs", devices_.size());
    for (const auto& device : devices_) all += "; " + device->description();
    return all;
  }
  bool supports(Operation operation) const override { return devices_[0]->supports(operation); }
  Encoder default_encoder() const override { return devices_[0]->default_encoder(); }
  std::size_t preferred_batch_bytes(std::size_t chunk_bytes) const override {
    return devices_.size() * devices_[0]->preferred_batch_bytes(chunk_bytes);
  }
  // Page-locked for all of them (CUDA Driver API, "Unified Addressing"), though only the first copies from where it
  // lies.
  Result<HostMemory> host_memory(std::size_t size_bytes) override { return devices_[0]->host_memory(size_bytes); }

  Result<void> compress(std::span<CompressItem> items, Encoder encoder) override {
    return begin_compress(items, encoder)->finish();
  }
  Result<void> decompress(std::span<DecompressItem> items) override { return begin_decompress(items)->finish(); }

  std::unique_ptr<BegunBatch> begin_compress(std::span<CompressItem> items, Encoder encoder) override {
    return begin<CompressItem>(
        items, [=](Backend& device, std::span<CompressItem> part) { return device.begin_compress(part, encoder); });
  }
  std::unique_ptr<BegunBatch> begin_decompress(std::span<DecompressItem> items) override {
    return begin<DecompressItem>(
        items, [](Backend& device, std::span<DecompressItem> part) { return device.begin_decompress(part); });
  }

 private:
  template <class Item>
  using BeginPart = std::function<std::unique_ptr<BegunBatch>(Backend&, std::span<Item>)>;

  template <class Item>
  struct Part {
    std::size_t device;
    std::span<Item> items;
    std::unique_ptr<BegunBatch> begun;
  };

  template <class Item>
  class Begun final : public BegunBatch {
   public:
    Begun(SpreadBackend& of, std::vector<Part<Item>> parts, BeginPart<Item> begin_part)
        : of_(of), parts_(std::move(parts)), begin_part_(std::move(begin_part)) {}
    Result<void> finish() override {
      Result<void> outcome;
      for (Part<Item>& part : parts_) {
        Result<void> done = std::exchange(part.begun, nullptr)->finish();
        while (!done) {
          const auto other = of_.after_failure(part.device, done.error());
          if (!other) {
            outcome = std::move(done);
            break;
          }
          part.device = *other;
          done = begin_part_(*of_.devices_[*other], part.items)->finish();
        }
      }
      return outcome;
    }

   private:
    SpreadBackend& of_;
    std::vector<Part<Item>> parts_;
    BeginPart<Item> begin_part_;
  };

  template <class Item>
  std::unique_ptr<BegunBatch> begin(std::span<Item> items, BeginPart<Item> begin_part) {
    std::vector<std::size_t> working = working_devices();
    // So that a call says why.
    if (working.empty()) working.push_back(0);
    std::vector<Part<Item>> parts;
    for (std::size_t i = 0; i < working.size(); ++i) {
      const std::size_t first = items.size() * i / working.size(), end = items.size() * (i + 1) / working.size();
      const auto part = items.subspan(first, end - first);
      parts.push_back({working[i], part, begin_part(*devices_[working[i]], part)});
    }
    return std::make_unique<Begun<Item>>(*this, std::move(parts), std::move(begin_part));
  }

  std::vector<std::size_t> working_devices() {
    std::lock_guard lock(mutex_);
    std::vector<std::size_t> working;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      if (!has_failed_[i]) working.push_back(i);
    }
    return working;
  }

  // A device that still works, if there is one.
  std::optional<std::size_t> after_failure(std::size_t device, const Error& error) {
    bool is_new = false;
    {
      std::lock_guard lock(mutex_);
      is_new = !has_failed_[device];
      has_failed_[device] = true;
    }
    const std::vector<std::size_t> working = working_devices();
    if (working.empty()) return std::nullopt;
    if (is_new && notice_)
      notice_(fmt::format("continuing on {} of {} GPUs: {}", working.size(), devices_.size(), error.message()), true);
    return working.front();
  }

  std::vector<std::unique_ptr<Backend>> devices_;
  std::mutex mutex_;
  std::vector<bool> has_failed_;
  FallbackNotice notice_;
};

}  // namespace

std::unique_ptr<Backend> spread(std::vector<std::unique_ptr<Backend>> devices, FallbackNotice notice) {
  PTXKIT_CHECK(!devices.empty(), "there is a device to spread over");
  if (devices.size() == 1) return std::move(devices.front());
  return std::make_unique<SpreadBackend>(std::move(devices), std::move(notice));
}

}  // namespace ptxkit::codec
