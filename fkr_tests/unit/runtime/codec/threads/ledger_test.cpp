// Tests the byte budget: no more than the budget is reserved, requests are served in order, and everything is given
// back.
#include "runtime/codec/threads/ledger.hpp"

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/codec/threads/bounded_queue.hpp"

namespace ptxkit::scheduler {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

TEST(Ledger, CountsWhatIsHeldAndTheMostThatEverWas) {
  Ledger ledger("memory", 100);
  {
    const Reservation first = ledger.reserve(60).value();
    EXPECT_EQ(first.size_bytes(), 60u);
    EXPECT_FALSE(ledger.try_reserve(41));
    Reservation second = ledger.try_reserve(40).value();
    EXPECT_EQ(ledger.reserved_bytes(), 100u);
    Reservation moved = std::move(second);
    EXPECT_EQ(second.size_bytes(), 0u);
    EXPECT_EQ(ledger.reserved_bytes(), 100u);
    moved = Reservation();
    EXPECT_EQ(ledger.reserved_bytes(), 60u);
  }
  EXPECT_EQ(ledger.reserved_bytes(), 0u);
  EXPECT_EQ(ledger.peak_bytes(), 100u);
}

TEST(Ledger, WhatCanNeverFitIsRefusedAtOnce) {
  Ledger ledger("device memory", 100);
  EXPECT_THAT(ledger.reserve(101).error().message(),
              HasSubstr("101 bytes of device memory are needed, the budget is 100"));
  EXPECT_EQ(ledger.reserved_bytes(), 0u);
}

TEST(Ledger, TheFirstToAskIsServedFirst) {
  Ledger ledger("memory", 100);
  std::optional<Reservation> most = ledger.reserve(50).value();
  std::atomic<bool> served{false};
  std::thread large([&] {
    const Reservation reservation = ledger.reserve(80).value();
    served = true;
  });
  // 50 bytes are free. Once the large request waits, no small request may overtake it, even if it would fit.
  while (ledger.try_reserve(10)) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(ledger.try_reserve(1));
  EXPECT_FALSE(served);
  most.reset();
  large.join();
  EXPECT_TRUE(served);
  EXPECT_TRUE(ledger.try_reserve(10));
}

TEST(Ledger, CancelEndsEveryWait) {
  Ledger ledger("memory", 10);
  const Reservation all = ledger.reserve(10).value();
  std::atomic<int> cancelled{0};
  std::vector<std::thread> waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.emplace_back([&] {
      const auto reservation = ledger.reserve(1);
      if (!reservation && reservation.error().what == "cancelled while waiting for memory") ++cancelled;
    });
  }
  std::this_thread::sleep_for(5ms);
  ledger.cancel();
  for (auto& thread : waiting) thread.join();
  EXPECT_EQ(cancelled, 4);
  EXPECT_FALSE(ledger.try_reserve(0));
  EXPECT_EQ(ledger.reserved_bytes(), 10u);
}

TEST(Ledger, ManyThreadsNeverHoldMoreThanThereIs) {
  Ledger ledger("memory", 1000);
  std::atomic<uint64_t> held{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 2000; ++i) {
        const uint64_t size = random() % 700;
        Reservation reservation;
        if (i % 3 == 0) {
          if (auto taken = ledger.try_reserve(size)) reservation = std::move(*taken);
        } else {
          reservation = ledger.reserve(size).value();
        }
        held += reservation.size_bytes();
        EXPECT_LE(held.load(), 1000u);
        held -= reservation.size_bytes();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ledger.reserved_bytes(), 0u);
  EXPECT_LE(ledger.peak_bytes(), 1000u);
  EXPECT_GT(ledger.peak_bytes(), 500u);
}

TEST(MaxInFlight, IsWhatTheBudgetHoldsUpToTheDepth) {
  EXPECT_EQ(max_in_flight(100, 30, 8), 3u);
  EXPECT_EQ(max_in_flight(100, 30, 2), 2u);
  EXPECT_EQ(max_in_flight(100, 100, 2), 1u);
  EXPECT_EQ(max_in_flight(100, 101, 2), 0u);  // refused, never submitted
  EXPECT_EQ(max_in_flight(Ledger::kUnlimited, 1, 3), 3u);
  EXPECT_EQ(max_in_flight(0, 0, 3), 3u);
}

TEST(BoundedQueue, ProducersWaitForConsumers) {
  BoundedQueue<int> queue(2);
  std::atomic<int> pushed{0}, popped{0};
  std::thread producer([&] {
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(queue.push(i));
      ++pushed;
    }
    queue.close();
  });
  std::thread other([&] {
    while (queue.pop()) ++popped;
  });
  while (queue.pop()) {
    ++popped;
    const int pushed_before = pushed;      // read first: `popped` can only grow in between
    EXPECT_LE(pushed_before - popped, 3);  // two queued, one held by the other consumer
  }
  producer.join();
  other.join();
  EXPECT_EQ(popped, 100);
}

TEST(BoundedQueue, AbandonedValuesGiveTheirPermitsBack) {
  Ledger ledger("memory", 10);
  BoundedQueue<Reservation> queue(2);
  EXPECT_FALSE(queue.try_pop());
  queue.push(ledger.reserve(4).value());
  queue.push(ledger.reserve(5).value());
  std::thread blocked([&] { EXPECT_FALSE(queue.push(ledger.reserve(1).value())); });
  std::this_thread::sleep_for(2ms);
  queue.abandon();
  blocked.join();
  EXPECT_FALSE(queue.pop());
  EXPECT_EQ(ledger.reserved_bytes(), 0u);
}

}  // namespace
}  // namespace ptxkit::scheduler
