// Tests the codec on a system that refuses threads: fewer threads, or the caller alone, do the same work. An exception
// on any thread, such as exhausted memory, becomes an error.
#include "fkr_tests/cases/no_threads.hpp"

#include <atomic>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/frames.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/background_hash.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/codecs.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "runtime/codec/policy/scheduled_backend.hpp"
#include "runtime/codec/policy/shared_work.hpp"
#include "runtime/codec/policy/spread_backend.hpp"
#include "runtime/codec/stream/pipeline.hpp"
#include "runtime/codec/stream/ptz_stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "runtime/codec/threads/reclaimer.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

using ::testing::HasSubstr;
using ByteVector = std::vector<uint8_t>;

TEST(NoThreads, AnExecutorIsItsCallerAlone) {
  const testing::NoThreads none;
  Executor executor(8);
  EXPECT_EQ(executor.thread_count(), 1u);
  EXPECT_EQ(executor.wanted_count(), 8u);
  std::vector<int> done(1000);
  executor.for_each(done.size(), [&](size_t i, unsigned worker) { done[i] += worker == 0; });
  EXPECT_EQ(std::accumulate(done.begin(), done.end(), 0), 1000);
}

TEST(NoThreads, ANumberOfThreadsThatNobodyMeansIsNoProblem) {
  const testing::NoThreads none;
  Executor executor(~0u);
  EXPECT_EQ(executor.thread_count(), 1u);
}

TEST(NoThreads, StreamsHaveTheSameBytes) {
  const ByteVector raw = testing::mixed_content(5'000'000);
  Executor many(4);
  const auto usual = make_cpu_backend(many);
  const auto expected = testing::compress_frame(*usual, raw, 4, Encoder::fast).value();
  format::MemorySource raw_source(raw, "raw");
  format::MemorySink ptz;
  ASSERT_TRUE(compress_ptz(raw_source, ptz, many, {format::PtzCodec::lzr, 18}));

  const testing::NoThreads none;
  Executor executor(4);
  const auto cpu = make_cpu_backend(executor);
  EXPECT_TRUE(testing::compress_frame(*cpu, raw, 4, Encoder::fast).value() == expected);
  EXPECT_TRUE(testing::decompress_frame(*cpu, expected).value() == raw);
  auto damaged = expected;
  damaged.resize(damaged.size() - 100);
  EXPECT_THAT(testing::decompress_frame(*cpu, damaged).error().what, HasSubstr("truncated"));
  format::MemorySource again(raw, "raw"), packed(ptz.bytes(), "ptz");
  format::MemorySink same, back;
  ASSERT_TRUE(compress_ptz(again, same, executor, {format::PtzCodec::lzr, 18}));
  EXPECT_TRUE(same.bytes() == ptz.bytes());
  ASSERT_TRUE(decompress_ptz(packed, back, executor));
  EXPECT_TRUE(back.bytes() == raw);
}

TEST(NoThreads, AContentChecksumIsComputedAtOnce) {
  const ByteVector raw = testing::random_bytes(4'000'000, 1);
  const testing::NoThreads none;
  format::BackgroundHash hash;
  for (size_t at = 0; at < raw.size(); at += 400'000) (void)hash.update(format::Bytes(raw).subspan(at, 400'000));
  EXPECT_EQ(hash.value(), format::block_hash(raw));
}

TEST(NoThreads, WhatIsToDieDiesAtOnce) {
  const testing::NoThreads none;
  scheduler::Reclaimer reclaimer;
  auto thing = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = thing;
  reclaimer.take(std::move(thing));
  reclaimer.drain();
  EXPECT_TRUE(watched.expired());
}

TEST(NoThreads, SharedWorkIsDoneInTurn) {
  Executor executor(2);
  const ByteVector raw = testing::mixed_content(5'000'000);
  const auto plain = make_cpu_backend(executor);
  const auto expected = testing::compress_frame(*plain, raw).value();
  const testing::NoThreads none;
  std::vector<std::string> told;
  const auto notice = [&](const std::string& message, bool) { told.push_back(message); };
  std::vector<std::unique_ptr<Backend>> devices;
  for (int i = 0; i < 3; ++i) devices.push_back(make_cpu_backend(executor));
  const auto shared = schedule(spread(std::move(devices), notice), make_cpu_backend(executor), Sharing::both, notice);
  EXPECT_TRUE(testing::compress_frame(*shared, raw).value() == expected);
  EXPECT_TRUE(testing::decompress_frame(*shared, expected).value() == raw);
  EXPECT_THAT(told, ::testing::ElementsAre("threads could be had for 0 of 3 GPUs"));
}

TEST(ThrowingWork, OfAnExecutorIsThrownToTheCallerOnce) {
  for (const unsigned threads : {1u, 4u}) {
    Executor executor(threads);
    std::atomic<int> begun{0};
    const auto run = [&](size_t bad) {
      executor.for_each(1000, [&](size_t i, unsigned) {
        ++begun;
        if (i == bad) throw std::bad_alloc();
      });
    };
    EXPECT_THROW(run(3), std::bad_alloc);
    begun = 0;
    run(1000);
    EXPECT_EQ(begun, 1000);
  }
}

TEST(ThrowingWork, OfAnyStageIsAnError) {
  for (const bool has_threads : {true, false}) {
    std::optional<testing::NoThreads> none;
    if (!has_threads) none.emplace();
    for (const int bad_stage : {0, 1, 2, 3}) {
      scheduler::Ledger memory("memory", 1000);
      int left = 20;
      const auto done = run_pipeline<int>(
          PipelineLimits{memory, 100, 3, {}},
          [&](int&) -> Result<bool> {
            if (bad_stage == 0 && left == 10) throw std::bad_alloc();
            return --left > 0;
          },
          [&](int&) {
            if (bad_stage == 1) throw std::bad_alloc();
            return finished_batch({});
          },
          [&](int&) -> Result<void> {
            if (bad_stage == 2) throw std::bad_alloc();
            return {};
          });
      EXPECT_EQ(memory.reserved_bytes(), 0u);
      EXPECT_EQ(done.has_value(), bad_stage == 3);
      if (!done) {
        EXPECT_EQ(done.error().what, "no memory left");
      }
    }
  }
}

}  // namespace
}  // namespace ptxkit::codec
