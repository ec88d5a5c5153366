#include "runtime/codec/executor.hpp"

#include <algorithm>

#include <sched.h>

namespace ptxkit::codec {
namespace {

// Cores that this process may use: a container's affinity mask is often smaller than the machine.
unsigned usable_core_count() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

Executor::Executor(unsigned thread_count) : thread_count_(thread_count == 0 ? usable_core_count() : thread_count) {
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
    for (std::size_t index = 0; index < count; ++index) body(index, 0);
    return;
  }
  {
    std::lock_guard lock(mutex_);
    body_ = &body;
    count_ = count;
    next_.store(0, std::memory_order_relaxed);
    busy_ = static_cast<unsigned>(threads_.size());
    ++generation_;
  }
  start_.notify_all();
  drain(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
}

void Executor::drain(unsigned worker) {
  for (;;) {
    const std::size_t index = next_.fetch_add(1, std::memory_order_relaxed);
    if (index >= count_) return;
    (*body_)(index, worker);
  }
}

void Executor::work(unsigned worker) {
  std::size_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return stopping_ || generation_ != seen; });
      if (stopping_) return;
      seen = generation_;
    }
    drain(worker);
    std::lock_guard lock(mutex_);
    if (--busy_ == 0) done_.notify_one();
  }
}

}  // namespace ptxkit::codec
