// Tests the choice between CPU and GPU where both are ready. Batches: runs correct the belief, exploration has a
// bounded cost, and nothing else changes the choice. Streams: the calibration, the data, and a side that another
// process uses.
#include "runtime/codec/policy/choice.hpp"

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

namespace ptxkit::codec {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// A calibration with 1 s a GiB on the CPU and `gpu_part` of that on the GPU.
Calibration kept(double gpu_part) {
  const auto curve = [](double part) { return Curve({{kMiB, part / 1024}, {1024 * kMiB, part}}); };
  const Curve cpu = curve(1), gpu = curve(gpu_part);
  return {"", 16, {cpu, cpu, cpu, cpu}, {gpu, gpu, gpu, gpu}, 0};
}

CodecJob job_of(uint64_t raw_bytes, Work work = Work::compress) {
  return {.work = work, .raw_bytes = raw_bytes, .is_batch = true};
}

// How many of `runs` runs the GPU gets, if runs take `cpu` and `gpu` times the CPU's calibrated time.
int gpu_runs(Choice& choice, int runs, double cpu, double gpu, uint64_t raw_bytes = kMiB) {
  const double seconds = static_cast<double>(raw_bytes) / (1024.0 * kMiB);
  int count = 0;
  for (int run = 0; run < runs; ++run) {
    const Side side = choice.choose(job_of(raw_bytes));
    choice.record_time(job_of(raw_bytes), side, (side == Side::cpu ? cpu : gpu) * seconds);
    count += side == Side::gpu ? 1 : 0;
  }
  return count;
}

TEST(Choice, AWrongCalibrationIsCorrectedByAFewRuns) {
  for (const double part : {0.5, 0.8, 0.95}) {
    Choice to_cpu(kept(part));
    EXPECT_LE(gpu_runs(to_cpu, 10, 1, 1.3), 4) << part;
    EXPECT_LE(gpu_runs(to_cpu, 100, 1, 1.3), 8) << part;
    Choice to_gpu(kept(1 / part));
    EXPECT_GE(gpu_runs(to_gpu, 100, 1.3, 1), 50) << part;
    EXPECT_GE(gpu_runs(to_gpu, 100, 1.3, 1), 90) << part;
  }
}

TEST(Choice, VisitsToTheSlowerSideCostAQuarterOfARunAndOnePercent) {
  for (const double part : {0.2, 0.5, 0.7, 0.9, 1.1, 1.3, 1.6, 2.1, 8.0}) {
    for (const int runs : {1, 10, 100, 1000}) {
      for (const uint64_t raw_bytes : {kMiB, 16 * kMiB, 4096 * kMiB}) {
        Choice choice(kept(part));
        const int on_gpu = gpu_runs(choice, runs, 1, part, raw_bytes);
        // The extra cost of a run on the slower side, in runs of the faster side.
        const double each = part > 1 ? part - 1 : 1 / part - 1;
        const double lost = each * (part > 1 ? on_gpu : runs - on_gpu);
        const double seconds = each * std::min(part, 1.0) * static_cast<double>(raw_bytes) / (1024.0 * kMiB);
        const double free = seconds <= 5e-3 ? each : 0;  // the first run
        EXPECT_LE(lost, free + 0.25 + 0.01 * runs + 1e-9) << part << ", " << runs << " runs of " << raw_bytes;
        if (each < 0.25 && runs >= 10) {
          EXPECT_GT(lost, 0);
        }
      }
    }
  }
}

// A first run may cost up to 5 ms more: a run of a millisecond is tried on the side where four are expected.
TEST(Choice, AShortRunIsTriedHoweverSlowItIsBelievedToBe) {
  Choice choice(kept(4));
  EXPECT_GE(gpu_runs(choice, 10, 1, 0.5), 9);
  Choice longer(kept(4));
  EXPECT_EQ(gpu_runs(longer, 10, 1, 0.5, 16 * kMiB), 0);
}

TEST(Choice, OneLongRunIsBelieved) {
  Choice choice(kept(0.9));
  EXPECT_EQ(gpu_runs(choice, 8, 1, 1.3, 1024 * kMiB), 1);
}

TEST(Choice, OneSlowRunChangesNothing) {
  Choice choice(kept(1.5));
  EXPECT_LE(gpu_runs(choice, 40, 1, 1.5), 3);
  EXPECT_EQ(choice.choose(job_of(kMiB)), Side::cpu);
  choice.record_time(job_of(kMiB), Side::cpu, 10.0);
  EXPECT_EQ(choice.choose(job_of(kMiB)), Side::cpu);
  // Nor does the very first run.
  Choice fresh(kept(1.5));
  fresh.record_time(job_of(kMiB), Side::cpu, 10.0);
  EXPECT_LE(gpu_runs(fresh, 40, 1, 1.5), 4);
}

TEST(Choice, FollowsAMachineThatChanges) {
  Choice choice(kept(1.3));
  EXPECT_LE(gpu_runs(choice, 200, 1, 1.3), 18);
  EXPECT_GE(gpu_runs(choice, 200, 2, 1.3), 185);
  EXPECT_LE(gpu_runs(choice, 200, 1, 1.3), 20);
}

TEST(Choice, LengthsAndKindsOfWorkAreApart) {
  Choice choice(kept(0.8));
  gpu_runs(choice, 30, 1, 2);
  EXPECT_EQ(choice.choose(job_of(kMiB)), Side::cpu);
  EXPECT_EQ(choice.choose(job_of(3 * kMiB)), Side::cpu) << "lengths from 1 to 4 MiB are one";
  EXPECT_EQ(choice.choose(job_of(4 * kMiB)), Side::gpu);
  EXPECT_EQ(choice.choose(job_of(kMiB - 1)), Side::gpu);
  EXPECT_EQ(choice.choose(job_of(kMiB, Work::decompress)), Side::gpu);
  EXPECT_EQ(choice.choose({.work = Work::compress, .raw_bytes = kMiB}), Side::gpu) << "a stream";
  const CodecJob reproducible{
      .work = Work::compress_reproducible, .encoder = Encoder::reproducible, .raw_bytes = kMiB, .is_batch = true};
  CodecJob high = reproducible;
  high.encoder = Encoder::high;
  for (int run = 0; run < 10; ++run) choice.record_time(high, Side::gpu, 1);
  EXPECT_EQ(choice.choose(high), Side::cpu);
  EXPECT_EQ(choice.choose(reproducible), Side::gpu);
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
    choice.record_time(job_of(bytes), choice.choose(job_of(bytes)), 1);
  }
}

TEST(Choice, AnUnknownLengthIsTheCpus) {
  Choice choice(kept(0.1));
  EXPECT_EQ(choice.choose({.work = Work::compress}), Side::cpu);
}

int gpu_streams(Choice& choice, int runs, double cpu, double gpu) {
  int count = 0;
  for (int run = 0; run < runs; ++run) {
    const CodecJob stream{.work = Work::decompress, .raw_bytes = kMiB};
    const Side side = choice.choose(stream);
    choice.record_time(stream, side, (side == Side::cpu ? cpu : gpu) / 1024);
    count += side == Side::gpu ? 1 : 0;
  }
  return count;
}

// Streams up to twice as slow as calibrated change nothing, so nothing is explored.
TEST(Choice, OfStreamsIsTheSameEachTime) {
  for (const double cpu : {0.2, 0.6, 1.0, 1.9}) {
    for (const double gpu : {0.2, 0.6, 1.0, 1.9}) {
      Choice to_cpu(kept(1.05)), to_gpu(kept(0.95));
      EXPECT_EQ(gpu_streams(to_cpu, 1000, cpu, 1.05 * gpu), 0);
      EXPECT_EQ(gpu_streams(to_gpu, 1000, cpu, 0.95 * gpu), 1000);
    }
  }
}

TEST(Choice, ASideInOtherHandsLosesTheStreamsUntilItIsBack) {
  Choice gpu_is_busy(kept(0.5));
  EXPECT_EQ(gpu_streams(gpu_is_busy, 100, 1, 0.5), 100);
  EXPECT_LE(gpu_streams(gpu_is_busy, 400, 1, 2), 12);
  EXPECT_GE(gpu_streams(gpu_is_busy, 400, 1, 0.5), 250) << "a visit finds it back";
  Choice cpu_is_busy(kept(1.5));
  EXPECT_GE(gpu_streams(cpu_is_busy, 400, 4, 1.5), 390);
  EXPECT_LE(gpu_streams(cpu_is_busy, 400, 1, 1.5), 150);
  // If both are busy, the original choice holds.
  Choice both_are_busy(kept(0.9));
  EXPECT_GE(gpu_streams(both_are_busy, 200, 3, 2.7), 180);
}

TEST(Choice, ThreadsShareIt) {
  Choice choice(kept(0.9));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&choice] { gpu_runs(choice, 200, 1, 2); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(choice.choose(job_of(kMiB)), Side::cpu);
  EXPECT_NEAR(choice.seconds(job_of(kMiB), Side::gpu), 2.0 / 1024, 1e-9);
}

}  // namespace
}  // namespace ptxkit::codec
