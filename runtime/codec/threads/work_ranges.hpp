// The items of one batch as a queue that is taken from both ends: CPU workers take a few items from the front, a device
// takes a GpuBatch from the back and gives back what it could not finish. A CPU worker that finds the queue empty waits
// while the device may still give items back.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

namespace ptxkit::scheduler {

struct Range {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};
// The items of one submission to the device.
using GpuBatch = Range;

class WorkRanges {
 public:
  explicit WorkRanges(size_t count) {
    if (count != 0) pending_.push_back({0, count});
  }

  // Takes up to `most` items. Nothing: all items are done, or abandon() was called. Waits while the device may give
  // items back.
  std::optional<Range> take_for_cpu(size_t most) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !pending_.empty() || device_done_; });
    if (pending_.empty()) return std::nullopt;
    Range& from = pending_.front();
    const Range taken{from.begin, from.begin + std::min(most, from.size())};
    from.begin = taken.end;
    if (from.size() == 0) pending_.erase(pending_.begin());
    return taken;
  }

  // Takes half of what is left, so that both sides end at about the same time, but no fewer than `least` items if there
  // are as many. Nothing if nothing is left. Never waits.
  std::optional<GpuBatch> take_for_device(size_t least) {
    std::lock_guard lock(mutex_);
    if (pending_.empty()) return std::nullopt;
    Range& from = pending_.back();
    const size_t size = std::min(from.size(), std::max(least, from.size() / 2));
    const GpuBatch taken{from.end - size, from.end};
    from.end = taken.begin;
    if (from.size() == 0) pending_.pop_back();
    return taken;
  }

  // The device takes no more items. `unfinished` goes to the CPU.
  void device_done(std::optional<GpuBatch> unfinished = std::nullopt) {
    {
      std::lock_guard lock(mutex_);
      if (unfinished && !abandoned_) pending_.push_back(*unfinished);
      device_done_ = true;
    }
    changed_.notify_all();
  }

  // Drops all items: later calls take nothing.
  void abandon() {
    std::lock_guard lock(mutex_);
    abandoned_ = true;
    pending_.clear();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Range> pending_;
  bool device_done_ = false, abandoned_ = false;
};

}  // namespace ptxkit::scheduler
