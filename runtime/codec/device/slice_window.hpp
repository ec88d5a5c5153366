// The slices running on a machine's queues, across batches. Adding a slice waits only until its queue is free, that is
// for the oldest slice. So a batch that begins while the previous one is still running finds the device busy.
//
// A slice has two steps after its kernel. `fetch` reads the sizes that the kernel reported and starts the copies of the
// results; `collect` hands the copied results to the items. Half as many slices as there are queues lie between the
// two.
//
// Several threads share a window under one lock, which they pass to every call. The lock is released while a thread
// waits for the device or copies results, so that other threads can submit work. A slice that a thread waits for is
// reserved for that thread, and so is its queue.
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

  // The state of a batch: its first error, and the number of its slices still running.
  struct Batch {
    Result<void> outcome;
    size_t open_count = 0;
    DeviceTimes times;
  };
  struct Steps {
    std::function<Result<void>()> fetch;  // may be empty
    std::function<Result<void>()> collect;
  };

  // submit(queue) -> Result<Steps> puts a slice on the queue, under the lock. Slices of a batch that has failed are not
  // submitted.
  template <class Submit>
  void add(Lock& lock, Batch& batch, Submit submit) {
    const size_t queue_count = machine_.queue_count();
    while (slices_.size() >= queue_count) retire_oldest(lock);
    if (batch.outcome && lost_) batch.outcome = tl::unexpected(*lost_);
    if (!batch.outcome) return;
    const unsigned queue = next_queue_;
    next_queue_ = static_cast<unsigned>((queue + 1) % queue_count);
    // Counts as running even if submit() fails: some of its copies may have started.
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

  // Waits until no slice of the batch is running.
  void finish(Lock& lock, Batch& batch) {
    while (batch.open_count != 0) retire_oldest(lock);
  }

 private:
  struct Slice {
    Batch* batch;
    unsigned queue;
    Steps steps;
    bool is_fetched = true;
    bool is_taken = false;  // by a thread that has released the lock
  };

  static void failed(Batch& batch, Error error) {
    if (batch.outcome) batch.outcome = tl::unexpected(std::move(error));
  }

  // Runs `work` without the lock. A slice keeps its place in the deque until it is retired.
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

  // Does nothing if another thread has taken the slice.
  void fetch(Lock& lock, Slice& slice) {
    if (slice.is_taken || std::exchange(slice.is_fetched, true) || !wait(lock, slice)) return;
    if (Result<void> done = slice.steps.fetch(); !done) failed(*slice.batch, std::move(done.error()));
  }

  // Retires the oldest slice, or waits for the thread that has taken it.
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
    slice.batch->times += machine_.take_times(slice.queue);
    --slice.batch->open_count;
    slices_.pop_front();
    changed_.notify_all();
  }

  Machine& machine_;
  std::condition_variable changed_;
  std::deque<Slice> slices_;  // oldest first, on consecutive queues
  unsigned next_queue_ = 0;
  // If set, nothing more is submitted: after a failed wait the machine may still copy from or to the memory of its
  // queue, which therefore must not be reused.
  std::optional<Error> lost_;
};

}  // namespace ptxkit::codec
