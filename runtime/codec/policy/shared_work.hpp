// Shares items between a device and the CPU, for items of any type: the device takes all, or both take from one queue.
//
// When the device fails a whole range of items (out of memory, launch failure, lost device), the CPU computes them
// again and all later ones, after one notice; partial results of the failed attempt are discarded. So a failure of the
// device does not change the result.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "runtime/codec/threads/work_ranges.hpp"
#include "support/guarded.hpp"
#include "support/result.hpp"
#include "support/thread.hpp"

namespace ptxkit::codec {

// Receives the reason why the CPU is used although a device was requested. `matters` is true if something is broken
// that the user may want to repair, false if there simply is no GPU.
using FallbackNotice = std::function<void(const std::string& message, bool matters)>;

enum class Sharing : uint8_t {
  device_only,  // the CPU works only once the device has failed
  // Each batch is taken from both ends: the device takes ranges from the back, the CPU items from the front.
  both,
};

class SharedWork {
 public:
  // How many items each side takes from the queue at a time.
  struct Grain {
    size_t least_device_items, cpu_items;
  };

  // `notice` is called from any thread, at most once.
  explicit SharedWork(FallbackNotice notice) : notice_(std::move(notice)) {}

  bool has_failed() const { return failed_; }
  void device_failed(const Error& error) {
    if (!failed_.exchange(true) && notice_) notice_("continuing on the CPU: " + error.message(), true);
  }

  // on_device(items) and on_cpu(items) return Result<void>. The CPU computes the items of a failed call again.
  template <class Item, class OnDevice, class OnCpu>
  Result<void> run(Sharing sharing, std::span<Item> items, const Grain& grain, const OnDevice& on_device,
                   const OnCpu& on_cpu) {
    if (failed_) return on_cpu(items);
    if (sharing == Sharing::both && items.size() > grain.cpu_items) return on_both(items, grain, on_device, on_cpu);
    return in_turn(items, on_device, on_cpu);
  }

 private:
  // On the device, and on the CPU if that fails.
  template <class Item, class OnDevice, class OnCpu>
  Result<void> in_turn(std::span<Item> items, const OnDevice& on_device, const OnCpu& on_cpu) {
    Result<void> done = on_device(items);
    if (done) return done;
    device_failed(done.error());
    return on_cpu(items);
  }

  template <class Item, class OnDevice, class OnCpu>
  Result<void> on_both(std::span<Item> items, const Grain& grain, const OnDevice& on_device, const OnCpu& on_cpu) {
    scheduler::WorkRanges ranges(items.size());
    // The device's first range is taken before the CPU begins, so the device has part of every batch, whatever thread
    // runs first.
    auto batch = ranges.take_for_device(grain.least_device_items);
    const auto device_work = [&] {
      for (; batch; batch = ranges.take_for_device(grain.least_device_items)) {
        if (const Result<void> done = on_device(items.subspan(batch->begin, batch->size())); !done) {
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
    if (!device_side) return in_turn(items, on_device, on_cpu);
    Result<void> outcome = guarded([&]() -> Result<void> {
      while (const auto part = ranges.take_for_cpu(grain.cpu_items)) {
        if (auto done = on_cpu(items.subspan(part->begin, part->size())); !done) return done;
      }
      return {};
    });
    if (!outcome) ranges.abandon();
    device_side->join();
    if (outcome && of_device_side) outcome = tl::unexpected(*of_device_side);
    return outcome;
  }

  FallbackNotice notice_;
  std::atomic<bool> failed_{false};
};

}  // namespace ptxkit::codec
