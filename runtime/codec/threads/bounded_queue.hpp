// A bounded queue between threads: push() blocks while the queue is full, pop() while it is empty.
//
// close(): queued values still come out, then pop() returns nothing. abandon(): queued values are destroyed at once,
// which releases the reservations that they carry, and no call blocks any more.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace ptxkit::scheduler {

template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // False if the queue is closed; the value is destroyed.
  bool push(T value) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closed_ || values_.size() < capacity_; });
      if (closed_) return false;
      values_.push_back(std::move(value));
    }
    changed_.notify_all();
    return true;
  }

  // Blocks until there is a value. Nothing if the queue is closed and empty.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !values_.empty(); });
    return take(lock);
  }

  // Nothing if the queue is empty now. Never blocks.
  std::optional<T> try_pop() {
    std::unique_lock lock(mutex_);
    return take(lock);
  }

  void close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }

  void abandon() {
    std::deque<T> dropped;
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
      dropped.swap(values_);
    }
    changed_.notify_all();
  }

 private:
  std::optional<T> take(std::unique_lock<std::mutex>& lock) {
    if (values_.empty()) return std::nullopt;
    std::optional<T> value(std::move(values_.front()));
    values_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return value;
  }

  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> values_;
  bool closed_ = false;
};

}  // namespace ptxkit::scheduler
