// Runs a preparation once, whichever thread comes first. std::call_once of libstdc++ unwinds through pthread_once(),
// for which glibc loads libgcc_s.so.1: without memory for it, an exception ends the process.
#pragma once

#include <atomic>
#include <mutex>

namespace ptxkit {

class Once {
 public:
  // Waits while another thread prepares. After an exception the next call prepares anew.
  template <class Prepare>
  void run(Prepare prepare) {
    if (is_done_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    if (is_done_.load(std::memory_order_relaxed)) return;
    prepare();
    is_done_.store(true, std::memory_order_release);
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> is_done_{false};
};

}  // namespace ptxkit
