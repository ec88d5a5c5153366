// A thread that destroys large objects. Freeing device memory waits for the device, and unlocking pages takes as long
// as copying them; the thread that feeds the device must not spend that time. Where the system has no thread, take()
// destroys the object itself.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "support/thread.hpp"

namespace ptxkit::scheduler {

class Reclaimer {
 public:
  Reclaimer() : thread_(try_thread([this] { work(); })) {}
  ~Reclaimer() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    if (thread_) thread_->join();
  }
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  // Returns at once, if there is a thread. The destructor of `thing` must not call this object.
  template <class T>
  void take(T thing) {
    if (!thread_) return;
    {
      std::lock_guard lock(mutex_);
      things_.push_back(std::make_shared<T>(std::move(thing)));
    }
    changed_.notify_all();
  }

  // Blocks until every object that was taken is destroyed.
  void drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return things_.empty() && !is_busy_; });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stopping_ || !things_.empty(); });
      if (things_.empty()) return;
      std::shared_ptr<void> thing = std::move(things_.front());
      things_.pop_front();
      is_busy_ = true;
      lock.unlock();
      thing.reset();
      lock.lock();
      is_busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<void>> things_;
  bool is_busy_ = false, stopping_ = false;
  std::optional<std::jthread> thread_;  // last: the thread uses the other members
};

}  // namespace ptxkit::scheduler
