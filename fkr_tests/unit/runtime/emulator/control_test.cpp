// Divergence, calls, barriers, collectives, atomics: interaction of threads.
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::emulator {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

void expect_clean(const Ran& ran) { ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx"); }

// Runs under several schedules; results must not depend on them.
Ran run_all_schedules(const std::string& text, const LaunchShape& shape, size_t out_words,
                      const std::vector<uint32_t>& in = {}) {
  Ran first = run_kernel(text, shape, out_words, in, {.max_steps = 3'000'000});
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Ran other = run_kernel(text, shape, out_words, in, {.schedule_seed = seed, .max_steps = 3'000'000});
    EXPECT_TRUE(other.outcome.ok()) << "seed " << seed << "\n" << render(other.outcome, "test.ptx");
    EXPECT_EQ(other.out, first.out) << "seed " << seed;
  }
  return first;
}

TEST(Control, LanesLoopTheirOwnNumberOfTimes) {
  Ran ran = run_all_schedules(entry_text(R"(
  mov.u32 %r1, 0;
  mov.u32 %r2, 0;
loop:
  setp.ge.u32 %p1, %r2, %r0;
  @%p1 bra done;
  add.u32 %r1, %r1, %r2;
  add.u32 %r2, %r2, 1;
  bra loop;
done:
  st.global.u32 [%rd2], %r1;
)"),
                              {.block = {70}}, 70);
  expect_clean(ran);
  for (uint32_t i = 0; i < 70; ++i) EXPECT_EQ(ran.out[i], i ? i * (i - 1) / 2 : 0) << i;
}

TEST(Control, LanesMeetAgainAfterABranch) {
  // After the branches all 32 lanes take part in the ballot without an explicit synchronisation.
  Ran ran = run_kernel(entry_text(R"(
  and.b32 %r1, %r0, 3;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra zero;
  setp.eq.u32 %p2, %r1, 1;
  @%p2 bra one;
  mov.u32 %r2, 30;
  bra meet;
zero:
  mov.u32 %r2, 10;
  bra meet;
one:
  mov.u32 %r2, 20;
meet:
  activemask.b32 %r3;
  st.global.u32 [%rd2], %r3;
)"),
                       {.block = {32}}, 32);
  expect_clean(ran);
  EXPECT_THAT(ran.out, Each(0xffffffffu));
}

TEST(Control, ALaneMaySpinOnAnother) {
  // Lane 0 waits, at a lower address, for a store of lane 31. Fails if one side of a branch runs to its end first.
  Ran ran = run_all_schedules(entry_text(R"(
  mov.u32 %r1, flag;
  mov.u32 %r4, 0;
  setp.ne.u32 %p1, %r0, 0;
  @!%p1 st.shared.u32 [%r1], %r4;
  bar.sync 0;
  @%p1 bra others;
wait:
  ld.volatile.shared.u32 %r2, [%r1];
  setp.ne.u32 %p2, %r2, 7;
  @%p2 bra wait;
  st.global.u32 [%rd0], %r2;
  bra end;
others:
  setp.ne.u32 %p3, %r0, 31;
  @%p3 bra end;
  mov.u32 %r3, 7;
  st.volatile.shared.u32 [%r1], %r3;
end:
)",
                                         ".shared .align 4 .b32 flag;\n"),
                              {.block = {32}}, 1);
  expect_clean(ran);
  EXPECT_EQ(ran.out[0], 7u);
}

TEST(Control, TableBranch) {
  Ran ran = run_all_schedules(entry_text(R"(
  and.b32 %r1, %r0, 3;
targets: .branchtargets a, b, c, a;
  brx.idx %r1, targets;
a:
  mov.u32 %r2, 100;
  bra done;
b:
  mov.u32 %r2, 200;
  bra done;
c:
  mov.u32 %r2, 300;
done:
  st.global.u32 [%rd2], %r2;
)"),
                              {.block = {32}}, 32);
  expect_clean(ran);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(ran.out[i], (i & 3) == 1 ? 200u : (i & 3) == 2 ? 300u : 100u);
}

constexpr std::string_view kFibonacci = R"(
.func (.param .b32 result) fibonacci(.param .b32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  ld.param.u32 %r1, [n];
  mov.u32 %r5, %r1;
  setp.lt.u32 %p1, %r1, 2;
  @%p1 bra base;
  {
    .param .b32 a;
    .param .b32 b;
    sub.u32 %r2, %r1, 1;
    st.param.b32 [a], %r2;
    call (b), fibonacci, (a);
    ld.param.b32 %r3, [b];
  }
  {
    .param .b32 a;
    .param .b32 b;
    sub.u32 %r2, %r1, 2;
    st.param.b32 [a], %r2;
    call.uni (b), fibonacci, (a);
    ld.param.b32 %r4, [b];
  }
  add.u32 %r5, %r3, %r4;
base:
  st.param.b32 [result], %r5;
  ret;
}
)";

TEST(Control, RecursionWithItsOwnFrames) {
  Ran ran = run_all_schedules(entry_text(R"(
  .param .b32 a;
  .param .b32 b;
  and.b32 %r1, %r0, 7;
  st.param.b32 [a], %r1;
  call (b), fibonacci, (a);
  ld.param.b32 %r2, [b];
  st.global.u32 [%rd2], %r2;
)",
                                         kFibonacci),
                              {.block = {40}}, 40);
  expect_clean(ran);
  const uint32_t fibonacci[] = {0, 1, 1, 2, 3, 5, 8, 13};
  for (uint32_t i = 0; i < 40; ++i) EXPECT_EQ(ran.out[i], fibonacci[i & 7]) << i;
}

TEST(Control, IndirectCallsAndRegisterParameters) {
  Ran ran = run_all_schedules(entry_text(R"(
  and.b32 %r1, %r0, 1;
  setp.eq.u32 %p1, %r1, 0;
  mov.u64 %rd4, twice;
  mov.u64 %rd5, thrice;
  selp.b64 %rd6, %rd4, %rd5, %p1;
shape: .callprototype (.reg .b32 out) _ (.reg .b32 in);
  call (%r2), %rd6, (%r0), shape;
  st.global.u32 [%rd2], %r2;
)",
                                         R"(
.func (.reg .b32 out) twice(.reg .b32 in) { shl.b32 out, in, 1; ret; }
.func (.reg .b32 out) thrice(.reg .b32 in) { mul.lo.u32 out, in, 3; ret; }
)"),
                              {.block = {32}}, 32);
  expect_clean(ran);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(ran.out[i], i & 1 ? 3 * i : 2 * i);
}

TEST(Control, LocalMemoryIsEachThreadsOwn) {
  Ran ran = run_kernel(entry_text(R"(
  .local .align 4 .b32 mine[4];
  mov.u64 %rd4, mine;
  cvta.local.u64 %rd5, %rd4;
  st.local.u32 [mine+4], %r0;
  ld.u32 %r1, [%rd5+4];
  isspacep.local %p1, %rd5;
  @!%p1 trap;
  st.global.u32 [%rd2], %r1;
)"),
                       {.block = {64}}, 64);
  expect_clean(ran);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(ran.out[i], i);
}

TEST(Control, BlockReductionThroughSharedMemory) {
  std::vector<uint32_t> in(256);
  std::iota(in.begin(), in.end(), 1000);
  Ran ran = run_all_schedules(entry_text(R"(
  ld.global.u32 %r1, [%rd3];
  mov.u32 %r2, buffer;
  shl.b32 %r3, %r0, 2;
  add.u32 %r2, %r2, %r3;
  st.shared.u32 [%r2], %r1;
  bar.sync 0;
  mov.u32 %r4, 128;
loop:
  setp.ge.u32 %p1, %r0, %r4;
  @%p1 bra skip;
  shl.b32 %r5, %r4, 2;
  add.u32 %r5, %r2, %r5;
  ld.shared.u32 %r6, [%r5];
  ld.shared.u32 %r7, [%r2];
  add.u32 %r7, %r7, %r6;
  st.shared.u32 [%r2], %r7;
skip:
  bar.sync 0;
  shr.u32 %r4, %r4, 1;
  setp.ne.u32 %p2, %r4, 0;
  @%p2 bra loop;
  setp.ne.u32 %p3, %r0, 0;
  @%p3 bra end;
  st.global.u32 [%rd0], %r7;
end:
)",
                                         ".shared .align 4 .b32 buffer[256];\n"),
                              {.block = {256}}, 1, in);
  expect_clean(ran);
  EXPECT_EQ(ran.out[0], std::accumulate(in.begin(), in.end(), 0u));
  EXPECT_EQ(ran.outcome.statistics.barriers, 9u);
}

TEST(Control, NamedBarriersPairProducersWithConsumers) {
  // Warp 1 produces, warp 0 consumes, warp 2 takes no part. bar.red counts over all.
  Ran ran = run_all_schedules(entry_text(R"(
  mov.u32 %r1, box;
  mov.u32 %r9, %warpid;
  setp.eq.u32 %p1, %r9, 1;
  @!%p1 bra not_producer;
  and.b32 %r2, %r0, 31;
  shl.b32 %r3, %r2, 2;
  add.u32 %r3, %r1, %r3;
  st.shared.u32 [%r3], %r0;
  bar.arrive 3, 64;
  bra all;
not_producer:
  setp.eq.u32 %p2, %r9, 0;
  @!%p2 bra all;
  bar.sync 3, 64;
  shl.b32 %r3, %r0, 2;
  add.u32 %r3, %r1, %r3;
  ld.shared.u32 %r4, [%r3];
  st.global.u32 [%rd2], %r4;
all:
  setp.lt.u32 %p3, %r0, 10;
  bar.red.popc.u32 %r5, 0, %p3;
  bar.red.and.pred %p4, 0, %p3;
  bar.red.or.pred %p5, 0, %p3;
  selp.u32 %r6, 100, 0, %p4;
  selp.u32 %r7, 1000, 0, %p5;
  add.u32 %r5, %r5, %r6;
  add.u32 %r5, %r5, %r7;
  setp.eq.u32 %p6, %r0, 95;
  @%p6 st.global.u32 [%rd0+128], %r5;
)",
                                         ".shared .align 4 .b32 box[32];\n"),
                              {.block = {96}}, 33);
  expect_clean(ran);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(ran.out[i], 32 + i);
  EXPECT_EQ(ran.out[32], 1010u);
}

TEST(Control, ShufflesOfEveryMode) {
  Ran ran = run_all_schedules(entry_text(R"(
  shfl.sync.up.b32 %r1|%p1, %r0, 3, 0, -1;
  shfl.sync.down.b32 %r2|%p2, %r0, 5, 31, -1;
  shfl.sync.bfly.b32 %r3, %r0, 1, 31, -1;
  shfl.sync.idx.b32 %r4|%p4, %r0, 9, 0x181f, -1;
  selp.u32 %r5, 1, 0, %p1;
  selp.u32 %r6, 2, 0, %p2;
  add.u32 %r5, %r5, %r6;
  st.global.u32 [%rd2], %r1;
  st.global.u32 [%rd2+128], %r2;
  st.global.u32 [%rd2+256], %r3;
  st.global.u32 [%rd2+384], %r4;
  st.global.u32 [%rd2+512], %r5;
)"),
                              {.block = {32}}, 160);
  expect_clean(ran);
  for (uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(ran.out[i], i >= 3 ? i - 3 : i);
    EXPECT_EQ(ran.out[32 + i], i + 5 <= 31 ? i + 5 : i);
    EXPECT_EQ(ran.out[64 + i], i ^ 1);
    EXPECT_EQ(ran.out[96 + i], (i & 24) | 1);  // segments of 8 lanes
    EXPECT_EQ(ran.out[128 + i], (i >= 3 ? 1u : 0u) + (i + 5 <= 31 ? 2u : 0u));
  }
}

TEST(Control, VotesMatchesReductions) {
  Ran ran = run_all_schedules(entry_text(R"(
  setp.lt.u32 %p1, %r0, 5;
  vote.sync.ballot.b32 %r1, %p1, -1;
  vote.sync.any.pred %p2, %p1, -1;
  vote.sync.all.pred %p3, !%p1, -1;
  vote.sync.uni.pred %p4, %p2, -1;
  and.b32 %r2, %r0, 1;
  match.any.sync.b32 %r3, %r2, -1;
  match.all.sync.b32 %r4|%p5, 7, -1;
  redux.sync.add.u32 %r5, %r0, -1;
  redux.sync.max.s32 %r6, %r0, -1;
  elect.sync %r7|%p6, -1;
  selp.u32 %r8, 1, 0, %p2;
  selp.u32 %r9, 2, 0, %p3;
  selp.u32 %r10, 4, 0, %p4;
  selp.u32 %r11, 8, 0, %p5;
  selp.u32 %r12, 16, 0, %p6;
  add.u32 %r8, %r8, %r9;
  add.u32 %r8, %r8, %r10;
  add.u32 %r8, %r8, %r11;
  add.u32 %r8, %r8, %r12;
  st.global.u32 [%rd2], %r1;
  st.global.u32 [%rd2+128], %r3;
  st.global.u32 [%rd2+256], %r4;
  st.global.u32 [%rd2+384], %r5;
  st.global.u32 [%rd2+512], %r6;
  st.global.u32 [%rd2+640], %r8;
)"),
                              {.block = {32}}, 192);
  expect_clean(ran);
  for (uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(ran.out[i], 0x1fu);
    EXPECT_EQ(ran.out[32 + i], i & 1 ? 0xaaaaaaaau : 0x55555555u);
    EXPECT_EQ(ran.out[64 + i], 0xffffffffu);
    EXPECT_EQ(ran.out[96 + i], 496u);
    EXPECT_EQ(ran.out[128 + i], 31u);
    EXPECT_EQ(ran.out[160 + i], 1u + 4 + 8 + (i == 0 ? 16 : 0));
  }
}

TEST(Control, CollectivesWaitForLanesThatComeFromElsewhere) {
  // The two halves execute different shfl instructions with one mask: each lane gets its partner's value.
  Ran ran = run_all_schedules(entry_text(R"(
  setp.lt.u32 %p1, %r0, 16;
  add.u32 %r1, %r0, 100;
  @%p1 bra low;
  shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;
  bra done;
low:
  shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;
done:
  st.global.u32 [%rd2], %r2;
)"),
                              {.block = {32}}, 32);
  expect_clean(ran);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(ran.out[i], (i ^ 16) + 100);
}

TEST(Control, AtomicsOfSharedAndGlobalMemory) {
  Ran ran = run_all_schedules(entry_text(R"(
  setp.eq.u32 %p1, %r0, 0;
  mov.u32 %r1, 0;
  @%p1 st.shared.u32 [counter], %r1;
  bar.sync 0;
  atom.shared.add.u32 %r2, [counter], 2;
  red.global.add.u32 [%rd1], 1;
  red.global.max.s32 [%rd1+4], %r0;
  atom.global.inc.u32 %r3, [%rd1+8], 9;
  red.global.xor.b32 [%rd1+12], %r0;
  atom.global.cas.b32 %r4, [%rd1+16], 0, 5;
  bar.sync 0;
  ld.shared.u32 %r5, [counter];
  mov.u64 %rd8, 3;
  red.global.add.u64 [%rd1+24], %rd8;
  @%p1 st.global.u32 [%rd0], %r5;
  bar.sync 0;
  @%p1 ld.global.u32 %r6, [%rd1];
  @%p1 st.global.u32 [%rd0+4], %r6;
  @%p1 ld.global.u32 %r6, [%rd1+4];
  @%p1 st.global.u32 [%rd0+8], %r6;
  @%p1 ld.global.u32 %r6, [%rd1+8];
  @%p1 st.global.u32 [%rd0+12], %r6;
  @%p1 ld.global.u32 %r6, [%rd1+12];
  @%p1 st.global.u32 [%rd0+16], %r6;
  @%p1 ld.global.u32 %r6, [%rd1+16];
  @%p1 st.global.u32 [%rd0+20], %r6;
  @%p1 ld.global.u32 %r6, [%rd1+24];
  @%p1 st.global.u32 [%rd0+24], %r6;
)",
                                         ".shared .align 4 .b32 counter;\n"),
                              {.block = {100}}, 7, std::vector<uint32_t>(8));
  expect_clean(ran);
  uint32_t all = 0;
  for (uint32_t i = 0; i < 100; ++i) all ^= i;
  EXPECT_EQ(ran.out, (std::vector<uint32_t>{200, 100, 99, 0, all, 5, 300}));
}

TEST(Control, BlocksMayWaitForEachOther) {
  // A barrier of the whole grid: every CTA counts itself and spins until all have arrived. CTA 0 runs first and must
  // not keep the others from starting. A slice of a CTA is millions of steps, so the test has few CTAs, of one lane
  // each.
  Ran ran = run_kernel(entry_text(R"(
  atom.global.add.u32 %r1, [%rd1], 1;
  mov.u32 %r2, %nctaid.x;
wait:
  ld.acquire.gpu.global.u32 %r3, [%rd1];
  setp.lt.u32 %p1, %r3, %r2;
  @%p1 bra wait;
  mov.u32 %r4, %ctaid.x;
  mul.wide.u32 %rd4, %r4, 4;
  add.u64 %rd4, %rd0, %rd4;
  st.global.u32 [%rd4], %r3;
)"),
                       {.grid = {3}, .block = {1}}, 3, {0}, {.checks = kCheckNone, .max_steps = 100'000'000});
  expect_clean(ran);
  EXPECT_THAT(ran.out, Each(3u));
}

TEST(Control, GlobalAndConstantVariablesAreInitialised) {
  Ran ran = run_kernel(
      entry_text(R"(
  mul.wide.u32 %rd4, %r0, 4;
  mov.u64 %rd5, table;
  add.u64 %rd5, %rd5, %rd4;
  ld.const.u32 %r1, [%rd5];
  ld.global.u64 %rd6, [pointer];
  ld.global.u32 %r2, [%rd6];
  ld.global.u8 %r3, [bytes+2];
  cvta.const.u64 %rd7, %rd5;
  ld.u32 %r4, [%rd7];
  add.u32 %r1, %r1, %r2;
  add.u32 %r1, %r1, %r3;
  add.u32 %r1, %r1, %r4;
  st.global.u32 [%rd2], %r1;
)",
                 ".const .align 4 .b32 table[4] = {1, 2, 3};\n.global .align 1 .b8 bytes[4] = {9, 8, 7, 6};\n"
                 ".global .align 4 .u32 words[2] = {40, 50};\n.global .align 8 .u64 pointer = words+4;\n"),
      {.block = {4}}, 4);
  expect_clean(ran);
  EXPECT_EQ(ran.out, (std::vector<uint32_t>{59, 61, 63, 57}));
}

TEST(Control, SpecialRegistersOfThreeDimensions) {
  Ran ran = run_kernel(entry_text(R"(
  mov.u32 %r1, %tid.y;
  mov.u32 %r2, %tid.z;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %ntid.y;
  mad.lo.u32 %r5, %r2, %r4, %r1;
  mad.lo.u32 %r5, %r5, %r3, %r0;
  mul.lo.u32 %r6, %r0, 100;
  mad.lo.u32 %r6, %r1, 10, %r6;
  add.u32 %r6, %r6, %r2;
  mul.wide.u32 %rd4, %r5, 4;
  add.u64 %rd4, %rd0, %rd4;
  st.global.u32 [%rd4], %r6;
)"),
                       {.block = {3, 4, 5}}, 60);
  expect_clean(ran);
  for (uint32_t i = 0; i < 60; ++i) EXPECT_EQ(ran.out[i], i % 3 * 100 + i / 3 % 4 * 10 + i / 12);
}

// ptxas accepts `d|_` in place of d for a single result, and braces around a single operand.
TEST(Control, ASinkBesideOneResultAndBracesAroundOneOperand) {
  Ran ran = run_kernel(entry_text(R"(
  add.u32 %r1|_, %r0, 7;
  mov.b32 %r2, {%r1};
  setp.gt.u32 %p1|_, %r2, 8;
  selp.u32 %r1, %r2, 1, %p1;
  mul.wide.u32 %rd4, %r0, 4;
  add.u64 %rd4|_, %rd0, %rd4;
  st.global.u32 [%rd4], {%r1};
)"),
                       {.block = {4}}, 4);
  expect_clean(ran);
  EXPECT_EQ(ran.out, (std::vector<uint32_t>{1, 1, 9, 10}));
}

const std::string kBuiltins = R"(
.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 values);
.extern .func __assertfail(.param .b64 message, .param .b64 file, .param .b32 line, .param .b64 function, .param .b64 size);
)";

// Fails an assertion in line 77, with the variable `text` as message and function, and the file's name at `file`.
std::string failed_assertion(const std::string& text, const std::string& file) {
  return fmt::format(R"(
  .param .b64 a;
  .param .b64 b;
  .param .b32 c;
  .param .b64 d;
  .param .b64 e;
  mov.u64 %rd6, {};
  st.param.b64 [a], %rd6;
  st.param.b64 [b], {};
  st.param.b32 [c], 77;
  st.param.b64 [d], %rd6;
  st.param.b64 [e], 1;
  call __assertfail, (a, b, c, d, e);
)",
                     text, file);
}

TEST(Control, PrintfAndAssertions) {
  const std::string before =
      kBuiltins +
      R"(.global .align 1 .b8 text[30] = {116, 61, 37, 100, 32, 37, 53, 46, 49, 102, 32, 37, 108, 108, 120, 32, 37, 115, 37, 37, 10, 0};
.global .align 1 .b8 word[4] = {97, 98, 99};
)";
  const std::string print = R"(
  .local .align 8 .b8 values[32];
  .param .b64 format;
  .param .b64 list;
  .param .b32 result;
  mov.u64 %rd4, values;
  cvta.local.u64 %rd4, %rd4;
  neg.s32 %r1, %r0;
  st.local.u32 [values], %r1;
  mov.f64 %fd1, 0d4004000000000000;
  st.local.f64 [values+8], %fd1;
  mov.u64 %rd5, 0x123456789a;
  st.local.u64 [values+16], %rd5;
  mov.u64 %rd6, word;
  cvta.global.u64 %rd6, %rd6;
  st.local.u64 [values+24], %rd6;
  mov.u64 %rd7, text;
  st.param.b64 [format], %rd7;
  st.param.b64 [list], %rd4;
  call (result), vprintf, (format, list);
  ld.param.b32 %r2, [result];
  st.global.u32 [%rd2], %r2;
)";
  Ran ran = run_kernel(entry_text(print, before), {.block = {2}}, 2);
  expect_clean(ran);
  EXPECT_EQ(ran.outcome.output, "t=0   2.5 123456789a abc%\nt=-1   2.5 123456789a abc%\n");
  EXPECT_EQ(ran.out, (std::vector<uint32_t>{4, 4}));
  const Ran failed = run_kernel(entry_text(failed_assertion("word", "%rd6"), before), {}, 1);
  ASSERT_EQ(failed.outcome.faults.size(), 1u);
  EXPECT_EQ(failed.outcome.faults[0].message, "assertion 'abc' failed in abc, abc:77");
}

// vprintf and __assertfail load texts and arguments as the kernel's own loads do.
TEST(Control, PrintfReadsOnlyTheMemoryOfItsLaunch) {
  const std::string before = kBuiltins + R"(.global .align 8 .b8 number[3] = {37, 100, 0};
.global .align 8 .b8 word[3] = {37, 115, 0};
.global .align 8 .b8 open[2] = {97, 98};
.global .align 8 .u64 nowhere = 0xffffffffffffff;
)";
  const auto fault_of = [&](const std::string& format, const std::string& values, uint32_t checks) {
    const Ran ran = run_kernel(entry_text(fmt::format(R"(
  .param .b64 format;
  .param .b64 list;
  .param .b32 result;
  mov.u64 %rd4, {};
  st.param.b64 [format], %rd4;
  mov.u64 %rd5, {};
  st.param.b64 [list], %rd5;
  call (result), vprintf, (format, list);
)",
                                                      format, values),
                                          before),
                               {}, 1, {}, {.checks = checks});
    EXPECT_TRUE(ran.outcome.output.empty() || ran.outcome.faults.empty());
    return ran.outcome.faults.empty() ? std::string() : ran.outcome.faults[0].message;
  };
  EXPECT_EQ(fault_of("number", "nowhere", kCheckStandard), "");
  EXPECT_EQ(fault_of("0", "nowhere", kCheckStandard), "1-byte load at 0x0 goes through a null pointer");
  EXPECT_EQ(fault_of("number", "0", kCheckStandard), "4-byte load at 0x0 goes through a null pointer");
  EXPECT_EQ(fault_of("word", "nowhere", kCheckStandard), "1-byte load at 0xffffffffffffff is outside of every object");
  EXPECT_THAT(fault_of("open", "nowhere", kCheckStandard), HasSubstr("is outside of every object"));
  EXPECT_EQ(fault_of("0", "0", kCheckNone), "");  // as other loads without checks

  const Ran failed = run_kernel(entry_text(failed_assertion("number", "16"), before), {}, 1);
  ASSERT_EQ(failed.outcome.faults.size(), 1u);
  EXPECT_EQ(failed.outcome.faults[0].message, "1-byte load at 0x10 goes through a null pointer");
}

// Only the address of a function calls it, and only by its own prototype.
TEST(Control, AChangedAddressOfAFunctionCallsNone) {
  const auto fault_of = [](const std::string& function, int addend) {
    const Ran ran = run_kernel(entry_text(fmt::format(R"(
  .param .b32 q;
  .param .b32 p;
  mov.u64 %rd4, {};
  add.u64 %rd4, %rd4, {};
shape: .callprototype (.param .b32 _) _ (.param .b32 _);
  st.param.b32 [p], 5;
  call (q), %rd4, (p), shape;
  ld.param.b32 %r2, [q];
  st.global.u32 [%rd2], %r2;
)",
                                                      function, addend),
                                          R"(
.func (.param .b32 r) same(.param .b32 x) { st.param.b32 [r], 1; ret; }
.func (.param .b32 r) more(.param .b32 x, .param .b32 y) { st.param.b32 [r], 1; ret; }
.func none(.param .b32 x) { ret; }
.func (.param .b32 r) large(.param .align 16 .b8 x[256]) { st.param.b32 [r], 1; ret; }
)"),
                               {}, 1);
    return ran.outcome.faults.empty() ? std::string() : ran.outcome.faults[0].message;
  };
  EXPECT_EQ(fault_of("same", 0), "");
  for (const int addend : {1, -1, 8, 16})
    EXPECT_THAT(fault_of("same", addend), HasSubstr("is not the address of a function"));
  EXPECT_THAT(fault_of("0", 0), HasSubstr("is not the address of a function"));
  for (const std::string name : {"more", "none", "large"})
    EXPECT_EQ(fault_of(name, 0), "'" + name + "' is called through a prototype that is not its own");
}

// The warps of one block record which one came last. A schedule tries several orders, and the same ones when it is
// repeated.
TEST(Control, SchedulesTryDifferentOrders) {
  const std::string text = entry_text(
      "  and.b32 %r1, %r0, 31;\n  setp.ne.u32 %p1, %r1, 0;\n  @%p1 bra end;\n  mov.u32 %r2, 0;\nloop:\n  add.u32 %r2, "
      "%r2, 1;\n  setp.lt.u32 %p1, %r2, 40;\n  @%p1 bra loop;\n  mov.u32 %r3, %warpid;\n  mov.u32 %r4, %ctaid.x;\n  "
      "mad.lo.u32 %r3, %r4, 8, %r3;\n  atom.global.exch.b32 %r5, [%rd0], %r3;\nend:\n");
  auto winners = [&](uint64_t first_seed, bool adversarial) {
    std::set<uint32_t> found;
    for (uint64_t seed = first_seed; seed < first_seed + 12; ++seed) {
      const LaunchOptions options{
          .schedule_seed = first_seed ? seed : 0, .adversarial = adversarial, .max_steps = 1'000'000};
      const LaunchShape shape{.grid = {2}, .block = {256}};
      const Ran once = run_kernel(text, shape, 1, {0}, options), again = run_kernel(text, shape, 1, {0}, options);
      EXPECT_EQ(once.out, again.out);
      found.insert(once.out.at(0));
    }
    return found;
  };
  EXPECT_EQ(winners(0, false), std::set<uint32_t>{15});
  EXPECT_GT(winners(1, false).size(), 3u);
  const auto adverse = winners(1, true);
  EXPECT_GT(adverse.size(), 3u);
  EXPECT_LT(*adverse.rbegin(), 8u);  // block 0 comes last
}

// "register + constant" as a value, which ptxas accepts.
TEST(Control, ARegisterWithAnOffsetIsASum) {
  const Ran ran = run_kernel(entry_text("  mov.u32 %r1, 40;\n  mov.u64 %rd5, -3;\n  st.global.u32 [%rd0], %r1 + 2;\n  "
                                        "st.global.u64 [%rd0+8], %rd5 + 1;\n"),
                             {.block = {1}}, 4);
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  EXPECT_EQ(ran.out[0], 42u);
  EXPECT_EQ(ran.out[2], 0xfffffffeu);
  EXPECT_EQ(ran.out[3], 0xffffffffu);
}

// Neighbouring seeds give different orders: each of two warps goes first about half the time.
TEST(Control, EitherOfTwoWarpsGoesFirst) {
  const std::string text = entry_text(
      "  and.b32 %r1, %r0, 31;\n  setp.ne.u32 %p1, %r1, 0;\n  @%p1 bra end;\n  mov.u32 %r3, %warpid;\n"
      "  add.u32 %r3, %r3, 1;\n  atom.global.cas.b32 %r5, [%rd1], 0, %r3;\n  "
      "setp.eq.u32 %p1, %r5, 0;\n  @%p1 st.global.u32 [%rd0], %r3;\nend:\n");
  for (const bool adversarial : {false, true}) {
    unsigned first = 0;
    for (uint64_t seed = 1; seed <= 64; ++seed) {
      const Ran ran = run_kernel(text, {.block = {64}}, 1, {0}, {.schedule_seed = seed, .adversarial = adversarial});
      first += ran.out.at(0) == 1;
    }
    EXPECT_GT(first, 20u) << adversarial;
    EXPECT_LT(first, 44u) << adversarial;
  }
}

// The barrier of grid.sync() in cooperative_groups: arrive at a word of the grid's workspace and wait until all have.
TEST(Control, BlocksMeetAtAGridBarrier) {
  const std::string text = entry_text(R"(
  mov.u32 %r1, %envreg2;
  mov.u32 %r2, %envreg1;
  cvt.u64.u32 %rd4, %r1;
  cvt.u64.u32 %rd5, %r2;
  bfi.b64 %rd4, %rd5, %rd4, 32, 32;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %nctaid.x;
  mul.wide.u32 %rd6, %r3, 4;
  add.u64 %rd6, %rd0, %rd6;
  add.u32 %r5, %r3, 100;
  st.global.u32 [%rd6], %r5;
  atom.add.release.gpu.global.u32 %r6, [%rd4], 1;
wait:
  ld.acquire.gpu.global.u32 %r6, [%rd4];
  setp.lt.u32 %p1, %r6, %r4;
  @%p1 bra wait;
  sub.u32 %r7, %r4, %r3;
  sub.u32 %r7, %r7, 1;
  mul.wide.u32 %rd7, %r7, 4;
  add.u64 %rd7, %rd0, %rd7;
  ld.global.u32 %r8, [%rd7];
  st.global.u32 [%rd6+64], %r8;
)");
  for (const bool adversarial : {false, true})
    for (uint64_t seed = adversarial; seed < 3; ++seed) {
      const Ran ran = run_kernel(text, {.grid = {8}}, 32, {},
                                 {.schedule_seed = seed, .adversarial = adversarial, .max_steps = 10'000'000});
      ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
      for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(ran.out[16 + i], 107 - i);
    }
}

TEST(Control, ThreadsGiveTheSameResult) {
  const std::string text = entry_text(R"(
  mov.u32 %r1, %ctaid.x;
  mad.lo.u32 %r2, %r1, 64, %r0;
  mul.wide.u32 %rd4, %r2, 4;
  add.u64 %rd4, %rd0, %rd4;
  mul.lo.u32 %r3, %r2, %r2;
  st.global.u32 [%rd4], %r3;
  red.global.add.u32 [%rd1], 1;
)");
  Ran one = run_kernel(text, {.grid = {50}, .block = {64}}, 3200, {0});
  Ran many = run_kernel(text, {.grid = {50}, .block = {64}}, 3200, {0}, {.max_steps = 1'000'000, .threads = 4});
  expect_clean(one);
  expect_clean(many);
  EXPECT_EQ(one.out, many.out);
  EXPECT_EQ(one.outcome.statistics.thread_instructions, many.outcome.statistics.thread_instructions);
}

// Lanes leave a loop one after the other and call a function, each in a frame of its own if the schedule lets the first
// run ahead. Its aligned barrier is one instruction, which all lanes reach.
TEST(Control, LanesOfSeveralCallsMeetAtAnAlignedBarrier) {
  const std::string function = ".func meet() {\n  bar.sync 0;\n  ret;\n}\n";
  auto body = [](const std::string& call) {
    return "  and.b32 %r1, %r0, 7;\n  mov.u32 %r2, 0;\nL:\n  add.u32 %r2, %r2, 1;\n  setp.lt.u32 %p1, %r2, %r1;\n"
           "  @%p1 bra L;\n  setp.ne.u32 %p2, %r0, 3;\n" +
           call + "  st.global.u32 [%rd2], %r2;\n";
  };
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const LaunchOptions options{.schedule_seed = seed, .adversarial = seed % 2 == 0, .max_steps = 1'000'000};
    const Ran clean = run_kernel(entry_text(body("  call meet, ();\n"), function), {.block = {64}}, 64, {}, options);
    EXPECT_TRUE(clean.outcome.ok()) << seed << render(clean.outcome, "test.ptx");
    // One lane is at another barrier instruction.
    const Ran divergent = run_kernel(entry_text(body("  @%p2 call meet, ();\n  @!%p2 bar.sync 0;\n"), function),
                                     {.block = {64}}, 64, {}, options);
    ASSERT_FALSE(divergent.outcome.ok()) << seed;
    EXPECT_EQ(divergent.outcome.faults[0].kind, FaultKind::barrier_divergence) << render(divergent.outcome, "test.ptx");
  }
}

// Special registers that had 16 bits in PTX 1.x can be read with 16 bits.
TEST(Control, ThreadNumbersOf16Bits) {
  const Ran ran =
      run_kernel(entry_text("  mov.v4.u16 {%rs1, %rs2, %rs3, %rs4}, %tid;\n  mov.u16 %rs5, %ntid.y;\n"
                            "  mov.b32 %r4, {%rs1, %rs2};\n  mov.b32 %r5, {%rs3, %rs5};\n"
                            "  mov.u32 %r6, %tid.y;\n  mad.lo.u32 %r6, %r6, 4, %r0;\n  mul.wide.u32 %rd5, %r6, 8;\n"
                            "  add.u64 %rd5, %rd0, %rd5;\n  st.global.v2.u32 [%rd5], {%r4, %r5};\n"),
                 {.block = {4, 3}}, 24);
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  for (uint32_t i = 0; i < 12; ++i) {
    EXPECT_EQ(ran.out[2 * i], i % 4 | i / 4 << 16);
    EXPECT_EQ(ran.out[2 * i + 1], 3u << 16);
  }
}

}  // namespace
}  // namespace ptxkit::emulator
