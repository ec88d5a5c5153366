// Three stages over a sequence of batches: one thread reads, one works, the caller writes; order is kept and memory is
// bounded.
//
// A fixed number of batches travels in a ring: the reader fills a free one, the worker transforms it, the writer
// empties it and gives it back. Errors travel with the batches, so the one reported is always the first in the order of
// the data, whichever stage and whatever timing found it: a truncated block 9 never hides a corrupt block 7.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "support/result.hpp"

namespace ptxkit::codec {

// A queue between two threads. After close() what is queued still comes out, then nothing; after abandon() nothing
// does.
template <class T>
class Handover {
 public:
  void push(T value) {
    {
      std::lock_guard lock(mutex_);
      values_.push_back(std::move(value));
    }
    changed_.notify_one();
  }
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !values_.empty(); });
    if (values_.empty()) return std::nullopt;
    std::optional<T> value(std::move(values_.front()));
    values_.pop_front();
    return value;
  }
  void close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }
  void abandon() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
      values_.clear();
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> values_;
  bool closed_ = false;
};

// read(batch) -> Result<bool>: false means that the input had ended and the batch is empty; an error is reported after
// everything read before it, with the batch itself still transformed and written first, so a stage may return blocks
// and the error that follows them. work(batch), write(batch) -> Result<void>.
template <class Batch, class Read, class Work, class Write>
Result<void> run_pipeline(unsigned depth, Read read, Work work, Write write) {
  struct Load {
    Batch batch;
    std::optional<Error> error;  // of the reader: comes after the batch; of the worker: instead of it
    bool worked = true;
  };
  Handover<Batch> free_batches;
  Handover<Load> to_work, to_write;
  for (unsigned i = 0; i < depth; ++i) free_batches.push(Batch{});

  std::thread reader([&] {
    while (auto batch = free_batches.pop()) {
      Load load{std::move(*batch), {}, true};
      Result<bool> more = read(load.batch);
      if (more && !*more) break;
      if (!more) load.error = std::move(more.error());
      const bool last = load.error.has_value();
      to_work.push(std::move(load));
      if (last) break;
    }
    to_work.close();
  });
  std::thread worker([&] {
    while (auto load = to_work.pop()) {
      if (Result<void> done = work(load->batch); !done) {
        load->error = std::move(done.error());
        load->worked = false;
      }
      const bool last = !load->worked;
      to_write.push(std::move(*load));
      if (last) break;
    }
    to_write.close();
  });

  Result<void> outcome;
  while (auto load = to_write.pop()) {
    if (load->worked) outcome = write(load->batch);
    if (outcome && load->error) outcome = tl::unexpected(std::move(*load->error));
    if (!outcome) break;
    free_batches.push(std::move(load->batch));
  }
  // Both threads end at their next pop.
  free_batches.abandon();
  to_work.abandon();
  reader.join();
  worker.join();
  return outcome;
}

}  // namespace ptxkit::codec
