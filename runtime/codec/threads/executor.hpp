// A thread pool that runs the iterations of one loop at a time.
//
// Threads take iterations one by one from an atomic counter, so unequal blocks balance themselves; the calling thread
// takes part. Debian packages oneTBB only as a shared library, and these programs must run on a machine that has
// nothing but glibc and a driver: hence this small pool.
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
#include "runtime/codec/threads/trace.hpp"

namespace ptxkit::codec {

// The cores in the affinity mask of this process, which in a container are often fewer than the machine's. Never empty.
std::vector<unsigned> usable_cores();

struct Placement {
  // Pins worker i to cores[i % cores.size()]. Worker 0, the caller of for_each, is not pinned. Empty: no pinning.
  std::vector<unsigned> cores = {};
  // Workers yield while it is set; they look every 64 iterations. Must outlive the pool.
  scheduler::Throttle* throttle = nullptr;
  // Records when each thread worked, on a line with this name and the thread's number. It must outlive the pool.
  scheduler::Trace* trace = nullptr;
  const char* name = "pool";
};

class Executor {
 public:
  // `thread_count`: workers including the caller of for_each; 0: one for each core of the placement, or of the process.
  // Where the system refuses threads the pool has fewer; in the worst case the caller works alone.
  explicit Executor(unsigned thread_count = 0, Placement placement = {});
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  unsigned thread_count() const { return thread_count_; }
  unsigned wanted_count() const { return wanted_count_; }  // the number asked for

  // Calls body(index, worker) for each index in [0, count), in any order, with worker in [0, thread_count()); returns
  // when all calls have returned. Concurrent callers run one after another. `body` must not call for_each of the same
  // executor. If `body` throws, for_each rethrows the first exception after all threads have stopped, and indices not
  // yet begun are skipped.
  void for_each(size_t count, const std::function<void(size_t index, unsigned worker)>& body);

 private:
  void work(unsigned worker);
  void drain(unsigned worker);
  void run_iterations(unsigned worker);

  // Padded to a cache line.
  struct alignas(64) Progress {
    unsigned done_count = 0;
  };

  Placement placement_;
  unsigned wanted_count_, thread_count_;
  std::vector<Progress> progress_;
  std::vector<scheduler::Trace::LineNumber> lines_;  // of the trace, by worker
  std::vector<std::jthread> threads_;
  std::mutex turn_;  // held by the caller whose loop is running
  std::mutex mutex_;
  std::condition_variable start_, done_;
  size_t wanted_ = 0;  // threads that should still join the loop
  unsigned busy_ = 0;  // threads that have joined and not finished
  bool stopping_ = false;
  const std::function<void(size_t, unsigned)>* body_ = nullptr;
  size_t count_ = 0;
  std::atomic<size_t> next_{0};
  std::exception_ptr thrown_;  // the first exception of a loop
};

}  // namespace ptxkit::codec
