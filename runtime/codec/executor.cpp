#include "runtime/codec/executor.hpp"

#include <algorithm>

#include <sched.h>

namespace ptxkit::codec {
std::vector<unsigned> usable_cores() {
  std::vector<unsigned> cores;
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    for (unsigned core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
  }
  if (cores.empty()) cores.resize(std::max(1u, std::thread::hardware_concurrency()));
  return cores;
}

Executor::Executor(unsigned thread_count, Placement placement)
    : placement_(std::move(placement)),
      thread_count_(thread_count != 0          ? thread_count
                    : placement_.cores.empty() ? static_cast<unsigned>(usable_cores().size())
                                               : static_cast<unsigned>(placement_.cores.size())),
      progress_(thread_count_) {
  for (unsigned worker = 1; worker < thread_count_; ++worker) threads_.emplace_back([this, worker] { work(worker); });
}

Executor::~Executor() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  start_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Executor::for_each(std::size_t count, const std::function<void(std::size_t, unsigned)>& body) {
  std::lock_guard turn(turn_);
  if (count <= 1 || threads_.empty()) {
    body_ = &body;
    count_ = count;
    next_.store(0, std::memory_order_relaxed);
    drain(0);
    return;
  }
  const std::size_t helpers = std::min(count - 1, threads_.size());
  {
    std::lock_guard lock(mutex_);
    body_ = &body;
    count_ = count;
    next_.store(0, std::memory_order_relaxed);
    wanted_ = helpers;
  }
  if (helpers == threads_.size()) {
    start_.notify_all();
  } else {
    for (std::size_t helper = 0; helper < helpers; ++helper) start_.notify_one();
  }
  drain(0);
  std::unique_lock lock(mutex_);
  // Who has not woken up yet finds nothing left to do.
  wanted_ = 0;
  done_.wait(lock, [this] { return busy_ == 0; });
}

void Executor::drain(unsigned worker) {
  for (;;) {
    const std::size_t index = next_.fetch_add(1, std::memory_order_relaxed);
    if (index >= count_) return;
    (*body_)(index, worker);
    if (placement_.throttle != nullptr && ++progress_[worker].done_count % scheduler::kThrottleInterval == 0) {
      placement_.throttle->yield_if_set();
    }
  }
}

void Executor::work(unsigned worker) {
  if (!placement_.cores.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(placement_.cores[worker % placement_.cores.size()], &set);
    // Refused where the mask has shrunk meanwhile: then anywhere.
    ::sched_setaffinity(0, sizeof set, &set);
  }
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [this] { return stopping_ || wanted_ > 0; });
      if (stopping_) return;
      --wanted_;
      ++busy_;
    }
    drain(worker);
    std::lock_guard lock(mutex_);
    if (--busy_ == 0) done_.notify_one();
  }
}

}  // namespace ptxkit::codec
