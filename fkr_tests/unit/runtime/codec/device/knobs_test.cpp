// Tests the means that keep the parts of a busy process from disturbing each other: placement of threads, the throttle,
// the reclaimer, and sharing of one backend between threads. Each test shows that the setting changes something.
#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <thread>

#include <gtest/gtest.h>
#include <sched.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/fake_backend.hpp"
#include "fkr_tests/cases/frames.hpp"
#include "runtime/codec/select_backend.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/codec/threads/reclaimer.hpp"
#include "runtime/codec/threads/throttle.hpp"

namespace ptxkit::codec {
namespace {

using ByteVector = std::vector<uint8_t>;

TEST(Placement, ThreadsOfAPoolStayOnItsCores) {
  const std::vector<unsigned> cores = usable_cores();
  ASSERT_FALSE(cores.empty());
  for (const unsigned core : {cores.front(), cores.back()}) {
    Executor placed(3, {.cores = {core}});
    EXPECT_EQ(placed.thread_count(), 3u);
    std::atomic<int> others{0};
    placed.for_each(300, [&](size_t, unsigned worker) {
      if (worker == 0) {  // the caller is not placed, and leaves work for the others
        while (others == 0) std::this_thread::yield();
        return;
      }
      cpu_set_t set;
      ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
      EXPECT_EQ(CPU_COUNT(&set), 1);
      EXPECT_TRUE(CPU_ISSET(core, &set));
      ++others;
    });
  }
  EXPECT_EQ(Executor(0, {.cores = {cores.front()}}).thread_count(), 1u);
  EXPECT_EQ(Executor().thread_count(), cores.size());
}

TEST(Throttle, WorkersStepAsideWhileItIsHeld) {
  scheduler::Throttle throttle;
  Executor executor(2, {.throttle = &throttle});
  constexpr size_t kLooks = 40;
  const auto run = [&] { executor.for_each(kLooks * scheduler::kThrottleInterval, [](size_t, unsigned) {}); };
  run();
  EXPECT_EQ(throttle.pause_count(), 0u);
  {
    const scheduler::Throttle::Hold hold(&throttle);
    run();
    // A worker checks the throttle after each 64 chunks of its own, counted over its lifetime, so the totals may differ
    // by a check.
    EXPECT_GE(throttle.pause_count(), kLooks - 1);
    EXPECT_LE(throttle.pause_count(), kLooks + 1);
  }
  const auto before = throttle.pause_count();
  run();
  EXPECT_EQ(throttle.pause_count(), before);
}

TEST(Throttle, APauseLastsItsTimeAndEndsByItself) {
  scheduler::Throttle throttle;
  const scheduler::Throttle::Hold hold(&throttle);
  const auto begin = std::chrono::steady_clock::now();
  throttle.yield_if_set();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, scheduler::Throttle::kLongestPause);
  EXPECT_EQ(throttle.pause_count(), 1u);
}

TEST(Reclaimer, ThingsDieOnItsThreadAndNobodyWaits) {
  std::promise<void> taken;  // the object is destroyed only after this, so take() cannot have waited for it
  struct Slow {
    std::thread::id* where;
    std::shared_future<void> after;
    Slow(std::thread::id* at, std::shared_future<void> then) : where(at), after(std::move(then)) {}
    Slow(Slow&& other) noexcept : where(std::exchange(other.where, nullptr)), after(std::move(other.after)) {}
    ~Slow() {
      if (where == nullptr) return;
      after.wait();
      *where = std::this_thread::get_id();
    }
  };
  const std::shared_future<void> after = taken.get_future().share();
  std::thread::id died[3];
  {
    scheduler::Reclaimer reclaimer;
    reclaimer.take(Slow(&died[0], after));
    reclaimer.take(Slow(&died[1], after));
    EXPECT_EQ(died[0], std::thread::id());
    taken.set_value();
    reclaimer.drain();
    EXPECT_NE(died[1], std::thread::id());
    reclaimer.take(Slow(&died[2], after));
  }
  EXPECT_NE(died[0], std::this_thread::get_id());
  EXPECT_EQ(died[0], died[2]);
}

class Knobs : public testing::FakeGpu {
 protected:
  BackendRequest request(std::string name, Policy policy) {
    BackendRequest request = testing::request_on_fake_gpu(images_, std::move(name), policy);
    request.copy_executor = &copies_;
    request.throttle = &throttle_;
    return request;
  }

  scheduler::Throttle throttle_;
  Executor executor_{2, {.throttle = &throttle_}}, copies_{1};
  testing::FakeImages images_;
  std::unique_ptr<Backend> cpu_ = make_cpu_backend(executor_);
};

// cuMemFree waits for the device, so it must not run on the thread that feeds the device.
TEST_F(Knobs, ArenasAreFreedByTheReclaimer) {
  auto asked = request("cuda", Policy::gpu);
  // One queue, which must grow, and a budget that does not hold both arenas: the old one must be freed before the new
  // one is allocated.
  asked.limits.queue_count = 1;
  asked.limits.memory_bytes = 9 << 20;
  const auto cuda = select_backend(asked, executor_).value();
  for (const size_t size : {100'000u, 1'000'000u, 4'000'000u}) {
    const ByteVector raw = testing::mixed_content(size);
    ByteVector room(raw.size());
    CompressItem item;
    item.raw = Bytes(raw).first(std::min<size_t>(raw.size(), 4u << 20));
    item.output = room;
    ASSERT_TRUE(cuda->compress({&item, 1}, Encoder::reproducible));
  }
  EXPECT_EQ(state_.calls["cuMemAlloc_v2"], 3);
  EXPECT_EQ(state_.freeing_threads.size(), 1u);
  EXPECT_FALSE(state_.freeing_threads.contains(std::this_thread::get_id()));
}

// In a mixed run CPU workers yield while the GPU's staging memory is filled.
TEST_F(Knobs, CopiesForTheDeviceHoldTheThrottle) {
  std::vector<ByteVector> pages, rooms;
  for (uint32_t i = 0; i < 4000; ++i) pages.push_back(testing::matchable_bytes(4096, i));
  rooms.assign(pages.size(), ByteVector(4096));
  std::vector<CompressItem> items(pages.size());
  for (size_t i = 0; i < items.size(); ++i) {
    items[i].raw = pages[i];
    items[i].output = rooms[i];
  }
  const auto cuda = select_backend(request("cuda", Policy::gpu), executor_).value();
  // The copies run on the executor that checks the throttle, so they meet their own hold: at the latest when every
  // thread has done kThrottleInterval pieces of them.
  for (unsigned i = 0; i < scheduler::kThrottleInterval && throttle_.pause_count() == 0; ++i)
    ASSERT_TRUE(cuda->compress(items, Encoder::reproducible));
  EXPECT_GT(throttle_.pause_count(), 0u);
  const auto before = throttle_.pause_count();
  ASSERT_TRUE(cpu_->compress(items, Encoder::reproducible));
  EXPECT_EQ(throttle_.pause_count(), before);
}

// Locking pages costs as much as compressing them: memory that many streams freed is kept for as many, and no more.
TEST_F(Knobs, AsMuchPageLockedMemoryIsKeptAsWasInUseAtATime) {
  const auto cuda = select_backend(request("cuda", Policy::gpu), executor_).value();
  const auto allocations_of = [&](size_t count, size_t size_bytes) {
    const int before = state_.calls["cuMemHostAlloc"];
    std::vector<HostMemory> held;
    for (size_t i = 0; i < count; ++i) held.push_back(cuda->host_memory(size_bytes).value());
    return state_.calls["cuMemHostAlloc"] - before;
  };
  EXPECT_EQ(allocations_of(40, 100'000), 40);
  EXPECT_EQ(allocations_of(40, 100'000), 0);
  EXPECT_EQ(allocations_of(10, 1'000'000), 10);
  // The larger blocks replaced ten of the smaller ones, and also serve smaller requests.
  EXPECT_EQ(allocations_of(40, 100'000), 0);
  EXPECT_EQ(allocations_of(10, 1'000'000), 0);
  EXPECT_EQ(allocations_of(41, 100'000), 1);
}

// Twenty jobs of at most one batch lock two buffers each and reserve no more than they need.
TEST_F(Knobs, AStreamThatEndsInItsFirstBatchTakesMemoryForOne) {
  auto asked = request("cuda", Policy::gpu);
  asked.limits = {.memory_bytes = 8 << 20, .queue_count = 2, .slice_bytes = 1 << 20};
  const auto cuda = select_backend(asked, executor_).value();
  const size_t batch_bytes = cuda->preferred_batch_bytes(65536);
  const ByteVector raw = testing::mixed_content(batch_bytes / 2);
  const auto compress = [&](std::optional<uint64_t> announced, scheduler::Ledger& memory, unsigned prefetch) {
    format::MemorySource source(raw, "raw");
    format::NullSink sink;
    CompressOptions options{
        .header = {}, .encoder = Encoder::reproducible, .progress = {}, .limits = {&memory, prefetch, {}}};
    options.header.block_size_id = 4;
    options.header.content_bytes = announced;
    return compress_stream(source, sink, *cuda, options).has_value();
  };
  scheduler::Ledger memory("memory", 100 << 20), announced("memory", 100 << 20);
  ASSERT_TRUE(compress({}, memory, 2));
  EXPECT_GT(state_.pinned_bytes, static_cast<long>(2 * batch_bytes));
  EXPECT_LT(state_.pinned_bytes, static_cast<long>(3 * batch_bytes));
  ASSERT_TRUE(compress(raw.size(), announced, 0));
  EXPECT_LT(announced.peak_bytes(), 3 * raw.size() + 200'000);
}

// A full batch followed by the end of the stream does not allocate a second batch either.
TEST_F(Knobs, AStreamAsLongAsABatchTakesMemoryForOne) {
  auto asked = request("cuda", Policy::gpu);
  asked.limits = {.memory_bytes = 8 << 20, .queue_count = 2, .slice_bytes = 1 << 20};
  const auto cuda = select_backend(asked, executor_).value();
  const size_t batch_bytes = cuda->preferred_batch_bytes(65536);
  const ByteVector raw = testing::mixed_content(batch_bytes);
  format::MemorySource source(raw, "raw");
  format::NullSink sink;
  CompressOptions options{.header = {}, .encoder = Encoder::reproducible, .progress = {}, .limits = {}};
  options.header.block_size_id = 4;
  options.header.content_bytes = raw.size();
  ASSERT_TRUE(compress_stream(source, sink, *cuda, options));
  EXPECT_GE(state_.pinned_bytes, static_cast<long>(2 * batch_bytes));
  EXPECT_LT(state_.pinned_bytes, static_cast<long>(3 * batch_bytes));
}

TEST_F(Knobs, TwentyThreadsShareABackend) {
  for (const auto& [name, policy] : {std::pair("cuda", Policy::gpu), std::pair("auto", Policy::mixed),
                                     std::pair("auto", Policy::gpu), std::pair("cpu", Policy::cpu)}) {
    const auto backend = select_backend(request(name, policy), executor_).value();
    std::vector<std::thread> jobs;
    for (uint32_t job = 0; job < 20; ++job) {
      jobs.emplace_back([&, job] {
        const ByteVector raw = testing::matchable_bytes(200'000 + 7 * job, job);
        const auto frame = testing::compress_frame(*backend, raw);
        ASSERT_TRUE(frame) << frame.error().message();
        EXPECT_TRUE(testing::decompress_frame(*backend, *frame).value() == raw);
      });
    }
    for (std::thread& job : jobs) job.join();
  }
}

}  // namespace
}  // namespace ptxkit::codec
