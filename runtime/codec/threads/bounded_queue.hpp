// A bounded queue between threads: push() blocks while the queue is full, pop() while it is empty.
//
// close(): queued values still come out, then pop() returns nothing. abandon(): queued values are destroyed at once,
// which releases the reservations that they carry, and no call blocks any more.
//
// Only the constructor allocates: a stream that finds no memory can still end its threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace ptxkit::scheduler {

template <class T>
class BoundedQueue {
  static_assert(std::is_nothrow_move_constructible_v<T>, "push() and pop() move values");

 public:
  explicit BoundedQueue(size_t capacity) : ring_(capacity) {}

  // False if the queue is closed; the value is destroyed.
  bool push(T value) noexcept {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closed_ || count_ < ring_.size(); });
      if (closed_) return false;
      ring_[(first_ + count_++) % ring_.size()].emplace(std::move(value));
    }
    changed_.notify_all();
    return true;
  }

  // Blocks until there is a value. Nothing if the queue is closed and empty.
  std::optional<T> pop() noexcept {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || count_ != 0; });
    return take(lock);
  }

  // Nothing if the queue is empty now. Never blocks.
  std::optional<T> try_pop() noexcept {
    std::unique_lock lock(mutex_);
    return take(lock);
  }

  void close() noexcept {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }

  void abandon() noexcept {
    close();
    while (try_pop()) {
    }
  }

 private:
  std::optional<T> take(std::unique_lock<std::mutex>& lock) noexcept {
    if (count_ == 0) return std::nullopt;
    std::optional<T> value = std::exchange(ring_[first_], std::nullopt);
    first_ = (first_ + 1) % ring_.size();
    --count_;
    lock.unlock();
    changed_.notify_all();
    return value;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<T>> ring_;  // of the capacity
  size_t first_ = 0, count_ = 0;        // of the values
  bool closed_ = false;
};

}  // namespace ptxkit::scheduler
