// Launches that never end are found by default, quickly and with their line; launches that end late are left alone.
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/emulator/sanitizer/counting.hpp"

namespace ptxkit::emulator {
namespace {

using ::testing::HasSubstr;

constexpr const char* kBefore =
    ".visible .global .align 4 .u32 flag;\n.visible .global .align 4 .u32 other;\n.shared .align 8 .b64 bar;\n";

constexpr const char* kNoOtherWay = "no iteration changes the outcome of a branch in it";

struct Hang {
  std::string name, body;
  std::string line, says;
  uint32_t threads = 32, blocks = 1;
  FaultKind kind = FaultKind::endless_loop;
};

const std::vector<Hang>& hangs() {
  static const std::vector<Hang> all{
      {"a flag that nobody sets",
       "w:\n  ld.volatile.global.u32 %r1, [flag];\n  setp.eq.u32 %p1, %r1, 0;\n  @%p1 bra w;\n",
       "ld.volatile.global.u32 %r1, [flag];", "wait for 'flag' + 0"},
      {"the same without volatile, in many blocks",
       "w:\n  ld.global.u32 %r1, [flag];\n  setp.eq.u32 %p1, %r1, 0;\n  @%p1 bra w;\n", "ld.global.u32 %r1, [flag];",
       "wait for 'flag' + 0", 256, 40},
      {"three instructions", "  mov.u32 %r1, 0;\na:\n  xor.b32 %r1, %r1, 0;\n  mov.u32 %r2, %r1;\n  bra a;\n", "",
       "no path leads from here to an exit"},
      {"a counter without an end", "  mov.u32 %r1, 0;\na:\n  add.u32 %r1, %r1, 1;\n  bra a;\n", "",
       "no path leads from here to an exit"},
      {"a counter that is stored",
       "  mov.u32 %r1, 0;\na:\n  add.u32 %r1, %r1, 1;\n  st.global.u32 [%rd2], %r1;\n  bra a;\n", "",
       "no path leads from here to an exit"},
      {"a condition that nothing changes",
       "  mov.u32 %r1, 5;\na:\n  xor.b32 %r2, %r1, 3;\n  setp.ne.u32 %p1, %r2, 0;\n  @%p1 bra a;\n", "",
       "with the same registers"},
      {"a count that steps over its end",
       "  mov.u32 %r1, 0;\na:\n  add.u32 %r1, %r1, 2;\n  setp.ne.u32 %p1, %r1, 1;\n  @%p1 bra a;\n", "", kNoOtherWay},
      {"a count down that is never below 0",
       "  mov.u32 %r1, 9;\na:\n  sub.u32 %r1, %r1, 1;\n  setp.ge.u32 %p1, %r1, 0;\n  @%p1 bra a;\n", "", kNoOtherWay},
      {"a condition beside a sum",
       "  mov.u32 %r1, 5;\n  mov.u32 %r2, 0;\na:\n  mad.lo.u32 %r2, %r2, 3, %r1;\n  setp.eq.u32 %p1, %r1, 5;\n"
       "  @%p1 bra a;\n",
       "", kNoOtherWay},
      {"a step that is a register with 0",
       "  mov.u32 %r1, 1;\n  mov.u32 %r2, 0;\n  mov.u32 %r3, 0;\na:\n  add.u32 %r1, %r1, %r2;\n  add.u32 %r3, %r3, 7;\n"
       "  setp.lt.u32 %p1, %r1, 100;\n  @%p1 bra a;\n",
       "", kNoOtherWay},
      {"a wait that counts how long it waits",
       "  mov.u32 %r2, 0;\nw:\n  add.u32 %r2, %r2, 1;\n  ld.volatile.global.u32 %r1, [flag];\n  setp.eq.u32 %p1, %r1, "
       "0;\n"
       "  @%p1 bra w;\n  st.global.u32 [%rd2], %r2;\n",
       "ld.volatile.global.u32 %r1, [flag];", "wait for 'flag' + 0"},
      {"odd lanes count past their end, one warp waits for them",
       "  setp.lt.u32 %p2, %r0, 32;\n  @%p2 bra z;\n  mov.u32 %r1, %laneid;\na:\n  add.u32 %r1, %r1, 2;\n"
       "  setp.ne.u32 %p1, %r1, 1000;\n  @%p1 bra a;\nz:\n  bar.sync 0;\n",
       "", "wait at line", 64},
      {"two blocks that wait for each other",
       "  mov.u32 %r1, %ctaid.x;\n  setp.eq.u32 %p1, %r1, 0;\n  mov.u64 %rd4, flag;\n  mov.u64 %rd5, other;\n"
       "  selp.b64 %rd6, %rd4, %rd5, %p1;\n  selp.b64 %rd7, %rd5, %rd4, %p1;\nw:\n"
       "  ld.acquire.gpu.global.u32 %r2, [%rd6];\n  setp.eq.u32 %p2, %r2, 0;\n  @%p2 bra w;\n"
       "  st.release.gpu.global.u32 [%rd7], 1;\n",
       "ld.acquire.gpu.global.u32 %r2, [%rd6];", "elsewhere: block (", 32, 2},
      {"a lock whose holder has left",
       "  mov.u32 %r5, %laneid;\n  setp.ne.u32 %p3, %r5, 0;\nw:\n  atom.global.cas.b32 %r1, [flag], 0, 1;\n"
       "  setp.ne.u32 %p1, %r1, 0;\n  @%p1 bra w;\n  exit;\n",
       "atom.global.cas.b32 %r1, [flag], 0, 1;", "wait for 'flag' + 0"},
      {"a lock by exchange, with a pause",
       "w:\n  atom.global.exch.b32 %r1, [flag], 1;\n  setp.eq.u32 %p1, %r1, 0;\n  @%p1 exit;\n  nanosleep.u32 64;\n  "
       "bra w;\n",
       "atom.global.exch.b32 %r1, [flag], 1;", "wait for 'flag' + 0"},
      {"the same value stored again and again",
       "w:\n  st.global.u32 [other], 5;\n  ld.global.u32 %r1, [flag];\n  setp.eq.u32 %p1, %r1, 0;\n  @%p1 bra w;\n",
       "ld.global.u32 %r1, [flag];", "wait for 'flag' + 0", 1},
      {"one warp waits at a barrier for one that loops",
       "  setp.lt.u32 %p2, %r0, 32;\n  @%p2 bra z;\nw:\n  ld.volatile.global.u32 %r1, [flag];\n  setp.eq.u32 %p1, %r1, "
       "0;\n"
       "  @%p1 bra w;\nz:\n  bar.sync 0;\n",
       "ld.volatile.global.u32 %r1, [flag];", "wait at line", 64},
      {"lanes that wait for lanes of their warp",
       "  setp.lt.u32 %p2, %r0, 8;\n  @%p2 bra z;\nw:\n  ld.volatile.global.u32 %r1, [flag];\n  setp.eq.u32 %p1, %r1, "
       "0;\n"
       "  @%p1 bra w;\nz:\n  bar.warp.sync -1;\n  st.volatile.global.u32 [flag], 1;\n",
       "ld.volatile.global.u32 %r1, [flag];", "wait at line"},
      {"barriers in the loop",
       "w:\n  bar.sync 0;\n  ld.volatile.global.u32 %r1, [flag];\n  bar.sync 0;\n  setp.eq.u32 %p1, %r1, 0;\n  @%p1 "
       "bra w;\n",
       "ld.volatile.global.u32 %r1, [flag];", "wait for 'flag' + 0", 128},
      {"an mbarrier that is never completed, asked without waiting",
       "  setp.eq.u32 %p2, %r0, 0;\n  @%p2 mbarrier.init.shared.b64 [bar], 2;\n  bar.sync 0;\n"
       "  @%p2 mbarrier.arrive.shared.b64 %rd4, [bar];\n  @!%p2 exit;\nw:\n"
       "  mbarrier.test_wait.shared.b64 %p1, [bar], %rd4;\n  @!%p1 bra w;\n",
       "mbarrier.test_wait.shared.b64 %p1, [bar], %rd4;", "wait for 'bar' + 0"},
      {"an mbarrier that is never completed",
       "  mbarrier.init.shared.b64 [bar], 2;\n  mbarrier.arrive.shared.b64 %rd4, [bar];\nw:\n"
       "  mbarrier.try_wait.shared.b64 %p1, [bar], %rd4;\n  @!%p1 bra w;\n",
       "mbarrier.try_wait.shared.b64 %p1, [bar], %rd4;", "1 more arrivals", 1, 1, FaultKind::mbarrier_deadlock},
      {"in a function", "  call spin, ();\n", "ld.volatile.global.u32 %r1, [flag];", "wait for 'flag' + 0"},
  };
  return all;
}

Ran run(const std::string& body, uint32_t threads, uint32_t blocks, const LaunchOptions& options) {
  const std::string before =
      std::string(kBefore) +
      ".func spin()\n{\n  .reg .pred %p<2>;\n  .reg .b32 %r<2>;\nw:\n"
      "  ld.volatile.global.u32 %r1, [flag];\n  setp.eq.u32 %p1, %r1, 0;\n  @%p1 bra w;\n  ret;\n}\n";
  return run_kernel(entry_text(body, before), {.grid = {blocks}, .block = {threads}}, 64, std::vector<uint32_t>(64, 1),
                    options);
}

void expect_found(const Hang& each, const LaunchOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const Ran ran = run(each.body, each.threads, each.blocks, options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const std::string text = render(ran.outcome, "test.ptx");
  ASSERT_FALSE(ran.outcome.ok());
  const Fault& fault = ran.outcome.faults.back();
  EXPECT_EQ(name(fault.kind), name(each.kind)) << text;
  // With several threads, the one that reports names a loop that it runs itself.
  if (options.threads <= 1) {
    EXPECT_THAT(text, HasSubstr(each.says));
  }
  if (!each.line.empty()) {
    EXPECT_EQ(fault.site.text, each.line) << text;
  }
  EXPECT_GE(fault.site.line, 4u);
  // Warp instructions, because a limit in seconds would depend on the machine's load.
  EXPECT_LT(ran.outcome.statistics.warp_instructions, 20'000'000u) << took.count() << " s";
}

TEST(Hangs, AreFoundWithoutALimit) {
  for (const Hang& each : hangs())
    for (const uint32_t checks : {uint32_t{kCheckNone}, uint32_t{kCheckBounds | kCheckAlignment}}) {
      SCOPED_TRACE(fmt::format("{}, checks {}", each.name, checks));
      expect_found(each, {.checks = checks, .max_idle_steps = 0});
    }
}

TEST(Hangs, AreFoundInOtherSchedulesAndOnSeveralThreads) {
  for (const Hang& each : hangs())
    for (const bool adversarial : {false, true}) {
      SCOPED_TRACE(each.name + (adversarial ? ", adversarial" : ", random"));
      expect_found(each, {.checks = kCheckNone, .schedule_seed = 7, .adversarial = adversarial, .max_idle_steps = 0});
    }
  for (const Hang& each : hangs()) {
    SCOPED_TRACE(each.name + ", 3 threads");
    expect_found(each, {.checks = kCheckNone, .max_idle_steps = 0, .threads = 3});
  }
}

// Loops that end, but only after a search for hangs has begun.
TEST(Hangs, LongLoopsAreLeftAlone) {
  const std::string counted =
      "  mov.u32 %r1, 0;\na:\n  add.u32 %r1, %r1, 1;\n  setp.lt.u32 %p1, %r1, 1500000;\n  @%p1 bra a;\n";
  const std::vector<std::pair<std::string, std::string>> clean{
      {"a count", counted},
      {"a count of 64 bits by a large step",
       "  mov.u64 %rd4, 0;\na:\n  add.u64 %rd4, %rd4, 0x100000000000;\n  setp.ne.u64 %p1, %rd4, 0;\n  @%p1 bra a;\n"},
      {"a count whose step changes on the way",
       "  mov.u32 %r1, 0;\n  mov.u32 %r2, 1;\na:\n  add.u32 %r1, %r1, %r2;\n  setp.gt.u32 %p2, %r1, 500000;\n"
       "  selp.b32 %r2, 0x1000, 1, %p2;\n  setp.lt.u32 %p1, %r1, 0x40000000;\n  @%p1 bra a;\n"},
      {"a count in a count",
       "  mov.u32 %r2, 0;\nb:\n  mov.u32 %r1, 0;\na:\n  add.u32 %r1, %r1, 1;\n  setp.lt.u32 %p2, %r1, 600000;\n"
       "  @%p2 bra a;\n  add.u32 %r2, %r2, 0x40000000;\n  setp.ne.u32 %p1, %r2, 0;\n  @%p1 bra b;\n"},
      {"a generator whose low bits come back",
       "  mov.u32 %r1, 1;\n  mov.u32 %r2, 0;\na:\n  mul.lo.u32 %r1, %r1, 1664525;\n  add.u32 %r1, %r1, 1013904223;\n"
       "  and.b32 %r3, %r1, 7;\n  add.u32 %r2, %r2, 1;\n  setp.lt.u32 %p1, %r2, 900000;\n  @%p1 bra a;\n"},
      {"a count in local memory",
       "  .local .align 4 .b32 n[1];\n  st.local.u32 [n], 0;\na:\n  ld.local.u32 %r1, [n];\n  add.u32 %r1, %r1, 1;\n"
       "  st.local.u32 [n], %r1;\n  setp.lt.u32 %p1, %r1, 700000;\n  @%p1 bra a;\n"},
      {"a flag that another warp sets late",
       "  setp.lt.u32 %p2, %r0, 32;\n  @%p2 bra w;\n" + counted +
           "  st.volatile.global.u32 [flag], 1;\n  bra e;\nw:\n  ld.volatile.global.u32 %r1, [flag];\n"
           "  setp.eq.u32 %p1, %r1, 0;\n  @%p1 bra w;\ne:\n"},
      {"a flag that another block sets late",
       "  mov.u32 %r5, %ctaid.x;\n  setp.eq.u32 %p2, %r5, 0;\n  @%p2 bra w;\n" + counted +
           "  st.volatile.global.u32 [flag], 1;\n  bra e;\nw:\n  ld.volatile.global.u32 %r1, [flag];\n"
           "  setp.eq.u32 %p1, %r1, 0;\n  @%p1 bra w;\ne:\n"},
      {"a wait that gives up by the clock",
       "  mov.u64 %rd4, %clock64;\nw:\n  mov.u64 %rd5, %clock64;\n  sub.u64 %rd5, %rd5, %rd4;\n"
       "  setp.lt.u64 %p1, %rd5, 3000000;\n  @%p1 bra w;\n"},
      {"a wait for an atomic that others bring forward",
       "  mov.u32 %r4, 0;\na:\n  atom.global.add.u32 %r1, [flag], 1;\n  add.u32 %r4, %r4, 1;\n  setp.lt.u32 %p1, %r4, "
       "400000;\n"
       "  @%p1 bra a;\n"},
      {"a wait for a warp that computes, at a barrier",
       "  setp.lt.u32 %p2, %r0, 32;\n  @%p2 bra z;\n" + counted + "z:\n  bar.sync 0;\n"},
  };
  for (const auto& [name, body] : clean)
    for (const uint64_t seed : {0u, 3u}) {
      SCOPED_TRACE(fmt::format("{}, seed {}", name, seed));
      const bool two_warps =
          name.find("another warp") != std::string::npos || name.find("computes") != std::string::npos;
      const bool two_blocks = name.find("another block") != std::string::npos;
      const Ran ran = run(body, two_warps ? 64 : 32, two_blocks ? 2 : 1, {.checks = kCheckNone, .schedule_seed = seed});
      EXPECT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
    }
}

// A loop whose end can be calculated, and comes after more than the limit, is not run up to the limit.
TEST(Hangs, ALoopThatEndsAfterTheLimitIsFoundAtOnce) {
  const std::vector<std::pair<std::string, std::string>> late{
      {"the wrong sign", "  mov.u32 %r1, 0;\na:\n  sub.s32 %r1, %r1, 1;\n  setp.lt.s32 %p1, %r1, 10;\n  @%p1 bra a;\n"},
      {"64 bits", "  mov.u64 %rd4, 0;\na:\n  add.u64 %rd4, %rd4, 3;\n  setp.ne.u64 %p1, %rd4, 1;\n  @%p1 bra a;\n"},
      {"a bound of 2^31",
       "  mov.u32 %r1, 0;\na:\n  add.u32 %r1, %r1, 1;\n  setp.lt.u32 %p1, %r1, 0x80000000;\n  @%p1 bra a;\n"},
  };
  for (const auto& [name, body] : late) {
    SCOPED_TRACE(name);
    const Ran ran = run(body + "  st.global.u32 [%rd2], 1;\n", 64, 3, {.checks = kCheckNone});
    ASSERT_EQ(ran.outcome.faults.size(), 1u);
    EXPECT_EQ(ran.outcome.faults[0].kind, FaultKind::no_progress);
    const std::string text = render(ran.outcome, "test.ptx");
    EXPECT_THAT(text, HasSubstr("run the loop at line"));
    EXPECT_THAT(text, HasSubstr("more than 536870912 warp instructions nothing is stored"));
    EXPECT_THAT(text, HasSubstr("--max-idle-steps"));
    EXPECT_LT(ran.outcome.statistics.warp_instructions, 20'000'000u);
  }
  // Where another warp stores now and then, if only what is there, the limit is not met.
  const std::string beside =
      "  setp.lt.u32 %p2, %r0, 32;\n  @%p2 bra w;\n  mov.u32 %r1, 0;\na:\n  add.u32 %r1, %r1, 1;\n"
      "  setp.lt.u32 %p1, %r1, 700000;\n  @%p1 bra a;\n  st.volatile.global.u32 [flag], 1;\n  exit;\nw:\n"
      "  st.volatile.global.u32 [other], 5;\n  ld.volatile.global.u32 %r3, [flag];\n  setp.eq.u32 %p1, %r3, 0;\n"
      "  @%p1 bra w;\n";
  EXPECT_TRUE(run(beside, 64, 1, {.checks = kCheckNone, .max_idle_steps = 500'000}).outcome.ok());
  // 1,500,000 rounds of 3 instructions are run to their end where the limit lets them.
  const std::string early =
      "  mov.u32 %r1, 7;\na:\n  add.u32 %r1, %r1, 0x40000001;\n  setp.ne.u32 %p1, %r1, 1500007;\n  @%p1 bra a;\n"
      "  st.global.u32 [%rd2], %r1;\n";
  EXPECT_TRUE(run(early, 1, 1, {.checks = kCheckNone, .max_idle_steps = 4'600'000}).outcome.ok());
  EXPECT_EQ(run(early, 1, 1, {.checks = kCheckNone, .max_idle_steps = 4'400'000}).outcome.faults.size(), 1u);
}

// The first round that is different, against going round.
TEST(Hangs, RoundsAreCalculated) {
  uint64_t state = 1;
  const auto random = [&](uint64_t most) {
    return (state = state * 6364136223846793005u + 1442695040888963407u) >> 33 & most;
  };
  for (unsigned bits = 1; bits <= 8; ++bits)
    for (int i = 0; i < 4000; ++i) {
      const uint64_t most = (1u << bits) - 1, start = random(most), step = random(most);
      const uint64_t length = random(most) + random(1);
      std::optional<uint64_t> expected;
      for (uint64_t n = 0, at = start; n <= most && !expected; ++n, at = (at + step) & most)
        if (at < length) expected = n;
      EXPECT_EQ(first_below(start, step, bits, length), expected)
          << start << ' ' << step << ' ' << bits << ' ' << length;
    }
  EXPECT_EQ(first_below(5, 1, 64, 5), ~uint64_t{0} - 4);
  EXPECT_EQ(first_below(1, 2, 64, 1), std::nullopt);
  EXPECT_EQ(first_below(~uint64_t{0}, 3, 64, static_cast<unsigned __int128>(1) << 64), 0u);
}

// A loop that returns to no earlier state, does not count and has an exit is found only by the limit.
TEST(Hangs, TheLimitOfIdleStepsIsNamed) {
  const std::string body =
      "  mov.u32 %r1, 1;\na:\n  mad.lo.u32 %r1, %r1, 1664525, 1013904223;\n  and.b32 %r2, %r1, 0xfffffffe;\n"
      "  setp.ne.u32 %p1, %r2, 1;\n  @%p1 bra a;\n  st.global.u32 [%rd2], %r1;\n";
  const Ran ran = run(body, 32, 1, {.checks = kCheckNone, .max_idle_steps = 5'000'000});
  ASSERT_EQ(ran.outcome.faults.size(), 1u);
  EXPECT_EQ(ran.outcome.faults[0].kind, FaultKind::no_progress);
  EXPECT_THAT(render(ran.outcome, "test.ptx"), HasSubstr("5000000 warp instructions in a row stored nothing"));
  EXPECT_THAT(render(ran.outcome, "test.ptx"), HasSubstr("--max-idle-steps"));
  // An occasional store is progress.
  const std::string stores =
      "  mov.u32 %r1, 0;\na:\n  add.u32 %r1, %r1, 1;\n  and.b32 %r2, %r1, 0xffff;\n  setp.eq.u32 %p2, %r2, 0;\n"
      "  @%p2 st.global.u32 [%rd2], %r1;\n  setp.lt.u32 %p1, %r1, 300000;\n  @%p1 bra a;\n";
  EXPECT_TRUE(run(stores, 32, 1, {.checks = kCheckNone, .max_idle_steps = 1'000'000}).outcome.ok());
}

}  // namespace
}  // namespace ptxkit::emulator
