// The slices that are under way on a machine's queues, across batches: a slice is added when its queue is free, and
// that is when the oldest slice is waited for, and nothing else. So a batch that is begun while the one before it is
// still under way finds the device busy.
//
// A slice has two ends. When its kernel is done, `fetch` reads what the kernel said of the results and asks for so much
// of them; when that is there, `collect` hands it to the items. Between the two lie half as many slices as there are
// queues.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "runtime/backend/kernels/machine.hpp"

namespace ptxkit::codec {

class SliceWindow {
 public:
  explicit SliceWindow(Machine& machine) : machine_(machine) {}

  // What a batch came to: the first error, and how many of its slices are under way.
  struct Batch {
    Result<void> outcome;
    std::size_t open_count = 0;
  };
  struct Steps {
    std::function<Result<void>()> fetch;  // may be empty
    std::function<Result<void>()> collect;
  };

  // Why every later call fails: after a wait that failed the machine may still copy into memory of its queue, which
  // therefore nobody may use again.
  const std::optional<Error>& lost() const { return lost_; }

  // submit(queue) -> Result<Steps> puts a slice on the queue. Nothing of a batch that has failed is submitted any more.
  template <class Submit>
  void add(Batch& batch, Submit submit) {
    const std::size_t queue_count = machine_.queue_count();
    while (slices_.size() >= queue_count) retire_oldest();
    if (!batch.outcome) return;
    const unsigned queue = next_queue_;
    next_queue_ = static_cast<unsigned>((queue + 1) % queue_count);
    // Under way even if it fails half-way: its copies may be.
    ++batch.open_count;
    slices_.push_back({&batch, queue, {}, true});
    Result<Steps> steps = submit(queue);
    if (!steps) {
      failed(batch, std::move(steps.error()));
      return;
    }
    slices_.back().steps = std::move(*steps);
    slices_.back().is_fetched = !slices_.back().steps.fetch;
    const std::size_t lead = std::max<std::size_t>(1, queue_count / 2);
    if (slices_.size() > lead) fetch(slices_[slices_.size() - 1 - lead]);
  }

  // Until no slice of the batch is under way.
  void finish(Batch& batch) {
    while (batch.open_count != 0) retire_oldest();
  }

 private:
  struct Slice {
    Batch* batch;
    unsigned queue;
    Steps steps;
    bool is_fetched;
  };

  static void failed(Batch& batch, Error error) {
    if (batch.outcome) batch.outcome = tl::unexpected(std::move(error));
  }

  bool wait(Slice& slice) {
    Result<void> waited = machine_.wait(slice.queue);
    if (waited) return slice.batch->outcome.has_value();
    if (!lost_) lost_ = waited.error();
    failed(*slice.batch, std::move(waited.error()));
    return false;
  }

  void fetch(Slice& slice) {
    if (std::exchange(slice.is_fetched, true) || !wait(slice)) return;
    if (Result<void> done = slice.steps.fetch(); !done) failed(*slice.batch, std::move(done.error()));
  }

  void retire_oldest() {
    Slice& slice = slices_.front();
    fetch(slice);
    if (wait(slice)) {
      if (Result<void> done = slice.steps.collect(); !done) failed(*slice.batch, std::move(done.error()));
    }
    --slice.batch->open_count;
    slices_.pop_front();
  }

  Machine& machine_;
  std::deque<Slice> slices_;  // oldest first, on consecutive queues
  unsigned next_queue_ = 0;
  std::optional<Error> lost_;
};

}  // namespace ptxkit::codec
