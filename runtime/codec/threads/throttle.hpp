// A flag by which background stages yield memory bandwidth to a stage that others wait for. That stage holds the flag;
// background stages check it every kThrottleInterval chunks, at the cost of one relaxed load.
//
// A check waits kLongestPause at most, so a long hold slows the background stages down and never stops them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace ptxkit::scheduler {

inline constexpr unsigned kThrottleInterval = 64;

class Throttle {
 public:
  static constexpr std::chrono::microseconds kLongestPause{1000};

  // Sets the flag for its lifetime. Several holds may exist at a time.
  class Hold {
   public:
    explicit Hold(Throttle* of) : of_(of) {
      if (of_ != nullptr) of_->hold_count_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Hold() {
      if (of_ != nullptr) of_->hold_count_.fetch_sub(1, std::memory_order_relaxed);
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Throttle* of_;
  };

  bool is_set() const { return hold_count_.load(std::memory_order_relaxed) != 0; }
  void yield_if_set() {
    if (is_set()) [[unlikely]] {
      pause();
    }
  }
  // How often a thread has paused.
  uint64_t pause_count() const { return pause_count_.load(std::memory_order_relaxed); }

 private:
  void pause() {
    pause_count_.fetch_add(1, std::memory_order_relaxed);
    const auto end = std::chrono::steady_clock::now() + kLongestPause;
    while (is_set() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kLongestPause / 20);
  }

  std::atomic<unsigned> hold_count_{0};
  std::atomic<uint64_t> pause_count_{0};
};

}  // namespace ptxkit::scheduler
