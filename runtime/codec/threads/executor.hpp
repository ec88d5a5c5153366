// A fixed set of worker threads that run the iterations of one loop at a time.
//
// The codec needs exactly this: "compress these blocks on all cores, tell me when done". Iterations are handed out one
// by one from an atomic counter, so unequal blocks balance themselves; the calling thread works too. Debian has oneTBB
// only as a shared library, and the programs here must run on a machine with nothing but glibc and a driver: hence
// a hundred lines of our own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/codec/threads/throttle.hpp"

namespace ptxkit::codec {

// The cores that this process may use: a container's affinity mask is often smaller than the machine.
std::vector<unsigned> usable_cores();

struct Placement {
  // Threads of the pool run on these, one after another; the caller of for_each runs where it runs. Empty: anywhere.
  std::vector<unsigned> cores = {};
  // Workers step aside while it is set; looked at every 64 iterations. It must outlive the pool.
  scheduler::Throttle* throttle = nullptr;
};

class Executor {
 public:
  // `thread_count` workers in all, the caller of for_each included; 0: as many as there are cores in the placement, or
  // for the process. Where the system has fewer threads to give the pool is as large as it can be: in the end the
  // caller works alone.
  explicit Executor(unsigned thread_count = 0, Placement placement = {});
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  unsigned thread_count() const { return thread_count_; }
  unsigned wanted_count() const { return wanted_count_; }  // before the system had its say

  // body(index, worker) for each index in [0, count), worker in [0, thread_count()), in no order; returns when all are
  // done. Two callers take turns. `body` must not call for_each of the same executor. What it throws, as when memory
  // has run out, for_each throws once no thread works any more; indices that were not begun by then are left out.
  void for_each(size_t count, const std::function<void(size_t index, unsigned worker)>& body);

 private:
  void work(unsigned worker);
  void drain(unsigned worker);

  // A cache line each.
  struct alignas(64) Progress {
    unsigned done_count = 0;
  };

  Placement placement_;
  unsigned wanted_count_, thread_count_;
  std::vector<Progress> progress_;
  std::vector<std::thread> threads_;
  std::mutex turn_;  // held by the caller whose loop runs
  std::mutex mutex_;
  std::condition_variable start_, done_;
  size_t wanted_ = 0;  // threads that should take part in the loop and have not begun
  unsigned busy_ = 0;  // that have begun and not ended
  bool stopping_ = false;
  const std::function<void(size_t, unsigned)>* body_ = nullptr;
  size_t count_ = 0;
  std::atomic<size_t> next_{0};
  std::exception_ptr thrown_;  // the first of a loop
};

}  // namespace ptxkit::codec
