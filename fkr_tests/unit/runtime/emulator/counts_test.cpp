// How often warps and threads execute each instruction, counted by launch_counted().
#include <map>

#include <gtest/gtest.h>

#include "analyzer/ptx/tree.hpp"
#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "runtime/emulator/watch.hpp"

namespace ptxkit::emulator {
namespace {

// Thread t goes round the loop t % 4 + 1 times; half of the threads execute the guarded addition.
const std::string kText = entry_text(R"(
  and.b32 %r1, %r0, 3;
  and.b32 %r2, %r0, 1;
  setp.eq.u32 %p1, %r2, 0;
again:
  setp.eq.u32 %p0, %r1, 0;
  @%p1 add.u32 %r3, %r0, 1;
  sub.u32 %r1, %r1, 1;
  @!%p0 bra again;
)");

// Warps and threads by line of the PTX.
using Counts = std::map<uint32_t, std::pair<uint64_t, uint64_t>>;

Counts counted(const LaunchShape& shape, const LaunchOptions& options, Statistics& statistics) {
  Device device;
  const auto program = Program::load_text(device, kText, "test.ptx").value();
  const auto ran =
      launch_counted(program, "k", shape, std::vector{Argument::of(uint64_t{0}), Argument::of(uint64_t{0})}, options);
  if (!ran) {
    ADD_FAILURE() << ran.error().message();
    return {};
  }
  EXPECT_TRUE(ran->outcome.ok()) << render(ran->outcome, "test.ptx");
  statistics = ran->outcome.statistics;
  Counts counts;
  const ptx::Module& module = program.module();
  for (const InstructionCount& count : ran->counts) {
    const auto& instruction = module.functions[count.function].instructions[count.instruction];
    auto& [warps, threads] = counts[module.position(instruction.at).line];
    warps += count.warps;
    threads += count.threads;
  }
  return counts;
}

TEST(InstructionCounts, AreThoseOfWarpsAndOfThreadsWhoseGuardHolds) {
  Statistics statistics;
  const Counts counts = counted({.grid = {5}, .block = {64}}, {}, statistics);
  const uint32_t first = counts.begin()->first;
  uint64_t warps = 0, threads = 0;
  for (const auto& [line, count] : counts) {
    warps += count.first;
    threads += count.second;
  }
  EXPECT_EQ(warps, statistics.warp_instructions);
  EXPECT_EQ(threads, statistics.thread_instructions);
  // Lines from the first instruction of entry_text on: six of its own, an empty one, then those of kText.
  const auto at = [&](uint32_t number) { return counts.at(first + number); };
  constexpr uint64_t kWarps = 5 * 2, kThreads = 5 * 64;
  EXPECT_EQ(at(0), std::pair(kWarps, kThreads));             // ld.param
  EXPECT_EQ(at(9), std::pair(kWarps, kThreads));             // setp before the loop
  EXPECT_EQ(at(11).second, kThreads * (1 + 2 + 3 + 4) / 4);  // setp in the loop
  EXPECT_EQ(at(11).first, kWarps * 4);
  EXPECT_EQ(at(12), std::pair(kWarps * 4, kThreads / 4 * (1 + 3)));  // threads 0 and 2 of each four
}

TEST(InstructionCounts, DoNotDependOnThreadsOrChecks) {
  Statistics statistics;
  const Counts counts = counted({.grid = {7}, .block = {96}}, {}, statistics);
  EXPECT_EQ(counted({.grid = {7}, .block = {96}}, {.threads = 3}, statistics), counts);
  EXPECT_EQ(counted({.grid = {7}, .block = {96}}, {.checks = kCheckNone}, statistics), counts);
}

}  // namespace
}  // namespace ptxkit::emulator
