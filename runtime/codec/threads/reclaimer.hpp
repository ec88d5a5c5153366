// One thread on which large things die. Freeing device memory waits for the device, and unlocking pages takes as long
// as copying them; whoever feeds the device has no time for either. Where the system has no thread, they die at once.
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

  // Returns at once. The destructor of `thing` must not call back.
  template <class T>
  void take(T thing) {
    if (!thread_) return;
    {
      std::lock_guard lock(mutex_);
      things_.push_back(std::make_shared<T>(std::move(thing)));
    }
    changed_.notify_all();
  }

  // Until everything that was taken is gone.
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
  std::optional<std::thread> thread_;  // last: it uses the others
};

}  // namespace ptxkit::scheduler
