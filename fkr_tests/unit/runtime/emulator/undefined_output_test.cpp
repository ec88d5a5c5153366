// Outputs that hold undefined bits, planted in the ways in which they occur, and stores that must not be blamed.
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::emulator {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTile = ".shared .align 16 .b32 tile[64];\n";
// tile + 4 * tid in %r1.
const std::string kTileAt = "  mov.u32 %r1, tile;\n  shl.b32 %r2, %r0, 2;\n  add.u32 %r1, %r1, %r2;\n";

Ran run(const std::string& body, uint32_t threads = 32, uint32_t checks = kCheckStandard, size_t out_words = 64) {
  return run_kernel(entry_text(body, kTile), {.block = {threads}}, out_words, std::vector<uint32_t>(64, 1),
                    {.checks = checks, .max_steps = 1'000'000});
}

struct Planted {
  std::string name, body;
  std::string line, says;
  std::string space;
  uint64_t bytes = 0;
  size_t range_count = 1;
  uint32_t threads = 32;
};

TEST(UndefinedOutput, IsReportedByRangeAndOrigin) {
  const std::string first_half = "  setp.lt.u32 %p1, %r0, 16;\n  @%p1 st.shared.u32 [%r1], %r0;\n  bar.sync 0;\n";
  const std::vector<Planted> planted{
      {"a copy of shared memory that half of the threads wrote",
       kTileAt + first_half + "  ld.shared.u32 %r3, [%r1];\n  st.global.u32 [%rd2], %r3;\n",
       "st.global.u32 [%rd2], %r3;",
       "64 bytes of 'out' hold bits that no thread wrote: bytes 64 to 127; they come from 'tile' + 64 of .shared",
       "shared", 64},
      {"a sum with it",
       kTileAt + first_half + "  ld.shared.u32 %r3, [%r1];\n  add.u32 %r3, %r3, %r0;\n  st.global.u32 [%rd2], %r3;\n",
       "st.global.u32 [%rd2], %r3;", "they were computed from 'tile' + 64 of .shared", "shared", 64},
      {"a register", "  st.global.u32 [%rd2], %r9;\n", "st.global.u32 [%rd2], %r9;", "they come from register %r9",
       "register", 128},
      {"local memory", "  .local .align 4 .b32 a[4];\n  ld.local.u32 %r3, [a+8];\n  st.global.u32 [%rd2], %r3;\n",
       "st.global.u32 [%rd2], %r3;", "they come from 'a' + 8 of .local", "local", 128},
      {"another buffer", "  ld.global.u32 %r3, [%rd2+128];\n  st.global.u32 [%rd2], %r3;\n",
       "st.global.u32 [%rd2], %r3;", "they come from 'out' + 128 of .global", "global", 128},
      {"every other word",
       "  and.b32 %r3, %r0, 1;\n  setp.eq.u32 %p1, %r3, 0;\n  mov.u32 %r4, 7;\n  @%p1 ld.global.u32 %r4, [%rd2+128];\n"
       "  st.global.u32 [%rd2], %r4;\n",
       "st.global.u32 [%rd2], %r4;", "bytes 0 to 3, 8 to 11, 16 to 19 and 13 more ranges", "global", 64, 16},
      {"a part of a vector, in some threads",
       kTileAt + first_half +
           "  shl.b32 %r2, %r0, 3;\n  mov.u32 %r1, tile;\n  add.u32 %r1, %r1, %r2;\n  setp.lt.u32 %p1, %r0, 9;\n"
           "  @!%p1 exit;\n  ld.shared.v2.u32 {%r3, %r4}, [%r1];\n  setp.eq.u32 %p2, %r0, 8;\n  @%p2 mov.u32 %r3, 1;\n"
           "  mul.wide.u32 %rd4, %r0, 8;\n  add.u64 %rd4, %rd4, %rd0;\n  st.global.v2.u32 [%rd4], {%r3, %r4};\n",
       "st.global.v2.u32 [%rd4], {%r3, %r4};", "bytes 68 to 71", "shared", 4},
      {"a bulk copy",
       "  setp.eq.u32 %p1, %r0, 0;\n  @!%p1 exit;\n  mov.u32 %r3, 1;\n  st.shared.v2.u32 [tile], {%r3, %r3};\n"
       "  cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 32;\n  cp.async.bulk.commit_group;\n"
       "  cp.async.bulk.wait_group 0;\n",
       "cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 32;", "they come from 'tile' + 0 of .shared",
       "shared", 24},
      {"an exchange", "  atom.global.exch.b32 %r3, [%rd2], %r9;\n", "atom.global.exch.b32 %r3, [%rd2], %r9;",
       "bytes 0 to 127", "", 128},
  };
  for (const Planted& each : planted) {
    SCOPED_TRACE(each.name);
    const Ran ran = run(each.body, each.threads);
    const std::string text = render(ran.outcome, "test.ptx");
    ASSERT_EQ(ran.outcome.faults.size(), 1u) << text;
    const Fault& fault = ran.outcome.faults.front();
    EXPECT_EQ(name(fault.kind), "undefined_output") << text;
    EXPECT_EQ(rule(fault.kind), "F071");
    EXPECT_EQ(fault.site.text, each.line);
    EXPECT_THAT(text, HasSubstr(each.says));
    EXPECT_EQ(fault.undefined.space, each.space);
    EXPECT_EQ(fault.undefined.bytes, each.bytes);
    EXPECT_EQ(fault.undefined.range_count, each.range_count);
    EXPECT_EQ(fault.object, "out");
    // Without the check nothing is reported.
    EXPECT_TRUE(run(each.body, each.threads, kCheckStandard & ~kCheckOutputs).outcome.ok());
  }
}

TEST(UndefinedOutput, NothingElseIsBlamed) {
  const std::vector<std::pair<std::string, std::string>> clean{
      {"what is stored over before the end",
       "  ld.global.u32 %r3, [%rd2+128];\n  st.global.u32 [%rd2], %r3;\n  st.global.u32 [%rd2], %r0;\n"},
      {"bytes that nobody stored to", "  setp.eq.u32 %p1, %r0, 3;\n  @%p1 st.global.u32 [%rd2], %r0;\n"},
      {"padding behind a field of a vector",
       "  .local .align 16 .b8 s[16];\n  st.local.u64 [s], %rd2;\n  st.local.u32 [s+8], %r0;\n"
       "  ld.local.v2.u64 {%rd4, %rd5}, [s];\n  mul.wide.u32 %rd6, %r0, 16;\n  add.u64 %rd6, %rd6, %rd0;\n"
       "  setp.lt.u32 %p1, %r0, 16;\n  @%p1 st.global.v2.u64 [%rd6], {%rd4, %rd5};\n"},
      {"padding between fields, copied as words of eight bytes",
       "  .local .align 8 .b8 s[16];\n  st.local.u8 [s], %r0;\n  st.local.u32 [s+4], %r0;\n  st.local.u64 [s+8], "
       "%rd2;\n"
       "  ld.local.u64 %rd4, [s];\n  ld.local.u64 %rd5, [s+8];\n  mul.wide.u32 %rd6, %r0, 16;\n"
       "  add.u64 %rd6, %rd6, %rd0;\n  setp.lt.u32 %p1, %r0, 16;\n  @!%p1 exit;\n  st.global.u64 [%rd6], %rd4;\n"
       "  st.global.u64 [%rd6+8], %rd5;\n"},
      {"bits that a mask takes out",
       "  ld.global.u32 %r3, [%rd2+128];\n  and.b32 %r3, %r3, 0;\n  st.global.u32 [%rd2], %r3;\n"},
      {"what goes to shared memory alone", kTileAt + "  ld.global.u32 %r3, [%rd2+128];\n  st.shared.u32 [%r1], %r3;\n"},
      {"padding in a bulk copy",
       "  setp.eq.u32 %p1, %r0, 0;\n  @!%p1 exit;\n  st.shared.u64 [tile], %rd0;\n  st.shared.u32 [tile+8], %r0;\n"
       "  cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 16;\n  cp.async.bulk.commit_group;\n"
       "  cp.async.bulk.wait_group 0;\n"},
  };
  for (const auto& [name, body] : clean) {
    SCOPED_TRACE(name);
    const Ran ran = run(body);
    EXPECT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  }
}

TEST(UndefinedOutput, OfAVariableAndNotOfTheHeap) {
  const std::string before =
      std::string(kTile) +
      ".visible .global .align 4 .b32 result[4];\n.extern .func (.param .b64 r) malloc(.param .b64 s);\n";
  const auto of = [&](const std::string& body) {
    return run_kernel(entry_text("  ld.shared.u32 %r3, [tile];\n" + body, before), {.block = {1}}, 4, {1});
  };
  const Ran variable = of("  st.global.u32 [result+4], %r3;\n");
  ASSERT_EQ(variable.outcome.faults.size(), 1u);
  EXPECT_EQ(variable.outcome.faults[0].object, "result");
  EXPECT_EQ(variable.outcome.faults[0].object_offset, 4);
  const Ran heap =
      of("  .param .b64 block;\n  .param .b64 size;\n  st.param.b64 [size], 16;\n"
         "  call (block), malloc, (size);\n  ld.param.b64 %rd5, [block];\n  st.u32 [%rd5], %r3;\n");
  EXPECT_TRUE(heap.outcome.ok()) << render(heap.outcome, "test.ptx");
}

// A launch that a fault ended has not finished its stores: its outputs are not reported.
TEST(UndefinedOutput, OfALaunchThatCameToItsEnd) {
  const Ran ran = run("  ld.shared.u32 %r3, [tile];\n  st.global.u32 [%rd2], %r3;\n  bar.sync 0;\n  trap;\n");
  ASSERT_EQ(ran.outcome.faults.size(), 1u);
  EXPECT_EQ(ran.outcome.faults[0].kind, FaultKind::trap);
}

// A launch is not blamed for the output of an earlier one.
TEST(UndefinedOutput, OfThisLaunchAlone) {
  Device device;
  const auto program = Program::load_text(
      device,
      entry_text("  setp.eq.u32 %p1, %r0, 0;\n  ld.global.u32 %r3, [%rd1];\n  setp.eq.u32 %p2, %r3, 0;\n"
                 "  @%p2 ld.shared.u32 %r4, [tile];\n  @%p2 st.global.u32 [%rd2], %r4;\n",
                 kTile),
      "test.ptx");
  ASSERT_TRUE(program);
  const Address out = *device.allocate(128, "out"), in = *device.allocate(4, "in");
  for (const uint32_t word : {0u, 1u}) {
    ASSERT_TRUE(device.write(in, std::as_bytes(std::span(&word, 1))));
    const auto outcome = launch(*program, "k", {.block = {32}}, std::vector{Argument::of(out), Argument::of(in)});
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->faults.size(), word == 0 ? 1u : 0u) << render(*outcome, "test.ptx");
  }
}

TEST(UndefinedOutput, FindsTheSameOnSeveralThreads) {
  const std::string body =
      "  mov.u32 %r5, %ctaid.x;\n  shl.b32 %r6, %r5, 7;\n  cvt.u64.u32 %rd5, %r6;\n  add.u64 %rd2, %rd2, %rd5;\n"
      "  ld.shared.u32 %r3, [tile];\n  st.global.u32 [%rd2], %r3;\n";
  for (const unsigned threads : {1u, 4u}) {
    const Ran ran =
        run_kernel(entry_text(body, kTile), {.grid = {64}, .block = {32}}, 64 * 32, {1}, {.threads = threads});
    ASSERT_EQ(ran.outcome.faults.size(), 1u);
    EXPECT_EQ(ran.outcome.faults[0].undefined.bytes, 64u * 128);
    EXPECT_EQ(ran.outcome.faults[0].undefined.range_count, 1u);
  }
}

}  // namespace
}  // namespace ptxkit::emulator
