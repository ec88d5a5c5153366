#include "runtime/codec/threads/executor.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include <sched.h>

#include "support/thread.hpp"

namespace ptxkit::codec {
namespace {

constexpr unsigned kMostThreads = 4096;  // larger requests are taken for mistakes

}  // namespace

std::vector<unsigned> usable_cores() {
  std::vector<unsigned> cores;
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    for (unsigned core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
  }
  if (cores.empty()) {  // more cores than a cpu_set_t holds
    cores.resize(std::max(1u, std::thread::hardware_concurrency()));
    std::iota(cores.begin(), cores.end(), 0u);
  }
  return cores;
}

Executor::Executor(unsigned thread_count, Placement placement)
    : placement_(std::move(placement)),
      wanted_count_(std::min(kMostThreads, thread_count != 0 ? thread_count
                                           : placement_.cores.empty()
                                               ? static_cast<unsigned>(usable_cores().size())
                                               : static_cast<unsigned>(placement_.cores.size()))),
      thread_count_(1),
      progress_(wanted_count_) {
  threads_.reserve(wanted_count_ - 1);
  for (unsigned worker = 0; placement_.trace != nullptr && worker < wanted_count_; ++worker) {
    lines_.push_back(
        placement_.trace->line(scheduler::kHostProcess, std::string(placement_.name) + " " + std::to_string(worker)));
  }
  // Thread stacks may take half of a limited address space at most.
  const auto left = address_space_left();
  const uint64_t most = left && stack_bytes() != 0 ? *left / 2 / stack_bytes() : wanted_count_;
  for (; thread_count_ < wanted_count_ && threads_.size() < most; ++thread_count_) {
    auto thread = try_thread([this, worker = thread_count_] { work(worker); });
    if (!thread) break;
    threads_.push_back(std::move(*thread));
  }
}

Executor::~Executor() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  start_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Executor::for_each(size_t count, const std::function<void(size_t, unsigned)>& body) {
  std::lock_guard turn(turn_);
  if (count <= 1 || threads_.empty()) {
    body_ = &body;
    count_ = count;
    next_.store(0, std::memory_order_relaxed);
    drain(0);
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
    return;
  }
  const size_t helpers = std::min(count - 1, threads_.size());
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
    for (size_t helper = 0; helper < helpers; ++helper) start_.notify_one();
  }
  drain(0);
  std::unique_lock lock(mutex_);
  // Threads that have not woken up yet need not take part: every index has been taken.
  wanted_ = 0;
  done_.wait(lock, [this] { return busy_ == 0; });
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void Executor::drain(unsigned worker) {
  if (placement_.trace == nullptr) {
    run_iterations(worker);
    return;
  }
  const double begin = placement_.trace->now();
  run_iterations(worker);
  placement_.trace->add({lines_[worker], scheduler::kLoopSpan, begin, placement_.trace->now()});
}

void Executor::run_iterations(unsigned worker) try {
  for (;;) {
    const size_t index = next_.fetch_add(1, std::memory_order_relaxed);
    if (index >= count_) return;
    (*body_)(index, worker);
    if (placement_.throttle != nullptr && ++progress_[worker].done_count % scheduler::kThrottleInterval == 0) {
      placement_.throttle->yield_if_set();
    }
  }
} catch (...) {
  std::lock_guard lock(mutex_);
  if (!thrown_) thrown_ = std::current_exception();
  next_.store(std::numeric_limits<size_t>::max() / 2, std::memory_order_relaxed);  // starts no further index
}

void Executor::work(unsigned worker) {
  if (!placement_.cores.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(placement_.cores[worker % placement_.cores.size()], &set);
    // The call fails if the affinity mask has shrunk since; the thread then runs on any core.
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
