// The slices that are under way on a machine's queues, across batches: a slice is added when its queue is free, and
// that is when the oldest slice is waited for, and nothing else. So a batch that is begun while the one before it is
// still under way finds the device busy.
//
// A slice has two ends. When its kernel is done, `fetch` reads what the kernel said of the results and asks for so much
// of them; when that is there, `collect` hands it to the items. Between the two lie half as many slices as there are
// queues.
//
// Threads share a window under one lock, which every call is given and which nobody holds while the device is waited
// for or results are copied: meanwhile others give the device work. A slice somebody waits for is that thread's alone,
// and so is its queue.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/codec/device/machine.hpp"

namespace ptxkit::codec {

class SliceWindow {
 public:
  using Lock = std::unique_lock<std::mutex>;

  explicit SliceWindow(Machine& machine) : machine_(machine) {}

  // What a batch came to: the first error, and how many of its slices are under way.
  struct Batch {
    Result<void> outcome;
    size_t open_count = 0;
  };
  struct Steps {
    std::function<Result<void>()> fetch;  // may be empty
    std::function<Result<void>()> collect;
  };

  // submit(queue) -> Result<Steps> puts a slice on the queue, under the lock. Nothing of a batch that has failed is
  // submitted any more.
  template <class Submit>
  void add(Lock& lock, Batch& batch, Submit submit) {
    const size_t queue_count = machine_.queue_count();
    while (slices_.size() >= queue_count) retire_oldest(lock);
    if (batch.outcome && lost_) batch.outcome = tl::unexpected(*lost_);
    if (!batch.outcome) return;
    const unsigned queue = next_queue_;
    next_queue_ = static_cast<unsigned>((queue + 1) % queue_count);
    // Under way even if it fails half-way: its copies may be.
    ++batch.open_count;
    slices_.push_back({.batch = &batch, .queue = queue, .steps = {}});
    Result<Steps> steps = submit(queue);
    if (!steps) {
      failed(batch, std::move(steps.error()));
      return;
    }
    slices_.back().steps = std::move(*steps);
    slices_.back().is_fetched = !slices_.back().steps.fetch;
    const size_t lead = std::max<size_t>(1, queue_count / 2);
    if (slices_.size() > lead) fetch(lock, slices_[slices_.size() - 1 - lead]);
  }

  // Until no slice of the batch is under way.
  void finish(Lock& lock, Batch& batch) {
    while (batch.open_count != 0) retire_oldest(lock);
  }

 private:
  struct Slice {
    Batch* batch;
    unsigned queue;
    Steps steps;
    bool is_fetched = true;
    bool is_taken = false;  // by a thread that does not hold the lock meanwhile
  };

  static void failed(Batch& batch, Error error) {
    if (batch.outcome) batch.outcome = tl::unexpected(std::move(error));
  }

  // Without the lock. A slice stays where it is in the deque until it is retired.
  template <class Work>
  Result<void> unlocked(Lock& lock, Slice& slice, const Work& work) {
    slice.is_taken = true;
    lock.unlock();
    Result<void> done = work();
    lock.lock();
    slice.is_taken = false;
    changed_.notify_all();
    return done;
  }

  bool wait(Lock& lock, Slice& slice) {
    Result<void> waited = unlocked(lock, slice, [&] { return machine_.wait(slice.queue); });
    if (waited) return slice.batch->outcome.has_value();
    if (!lost_) lost_ = waited.error();
    failed(*slice.batch, std::move(waited.error()));
    return false;
  }

  // Of a slice that nobody has taken.
  void fetch(Lock& lock, Slice& slice) {
    if (slice.is_taken || std::exchange(slice.is_fetched, true) || !wait(lock, slice)) return;
    if (Result<void> done = slice.steps.fetch(); !done) failed(*slice.batch, std::move(done.error()));
  }

  // Waits for whoever has the oldest slice, or retires it.
  void retire_oldest(Lock& lock) {
    Slice& slice = slices_.front();
    if (slice.is_taken) {
      changed_.wait(lock);
      return;
    }
    fetch(lock, slice);
    if (wait(lock, slice)) {
      if (Result<void> done = unlocked(lock, slice, slice.steps.collect); !done) {
        failed(*slice.batch, std::move(done.error()));
      }
    }
    --slice.batch->open_count;
    slices_.pop_front();
    changed_.notify_all();
  }

  Machine& machine_;
  std::condition_variable changed_;
  std::deque<Slice> slices_;  // oldest first, on consecutive queues
  unsigned next_queue_ = 0;
  // Why nothing is submitted any more: after a wait that failed the machine may still copy into memory of its queue,
  // which therefore nobody may use again.
  std::optional<Error> lost_;
};

}  // namespace ptxkit::codec
