// Tests of what runs on the emulator become findings: by what was made up, and by what the launch facts give.
#include "runtime/launch/observe.hpp"

#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/flow/launch.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "runtime/launch/made_launch.hpp"

namespace ptxkit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Outputs = rules::ObservedRun::Outputs;
using rules::Severity;
using rules::Tier;

constexpr uint64_t kSteps = kMadeLaunches * kMadeSteps;

std::string kernel_text(std::string_view body, std::string_view directives = "") {
  return std::string(R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry kernel(.param .u64 .ptr .global .align 16 out, .param .u64 .ptr .global .align 16 in, .param .u32 n)
)") + std::string(directives) +
         R"(
{
    .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .shared .align 16 .b8 words[4096];
    ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [in]; ld.param.u32 %r10, [n];
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0;
    mul.wide.u32 %rd2, %r3, 4; add.u64 %rd2, %rd0, %rd2;
    mul.wide.u32 %rd3, %r3, 4; add.u64 %rd3, %rd1, %rd3;
)" + std::string(body) +
         "\n    ret;\n}\n";
}

Observations observed(const std::string& text, const flow::LaunchFacts* facts = nullptr) {
  const ptx::ParseResult parsed = ptx::parse(text, "kernel.ptx");
  EXPECT_THAT(parsed.diagnostics, IsEmpty()) << text;
  return observe(parsed.module, static_cast<ptx::FunctionId>(parsed.module.functions.size() - 1), facts, kSteps);
}

flow::LaunchFacts shape(uint32_t grid, uint32_t block) {
  flow::LaunchFacts facts;
  facts.grid[0] = grid;
  facts.block[0] = block;
  return facts;
}

// Every thread stores a word of shared memory and loads that of the thread so many bytes away.
std::string neighbour(unsigned bytes, std::string_view between = "") {
  return R"(
    shl.b32 %r4, %r0, 2; mov.u32 %r5, words; add.u32 %r4, %r4, %r5;
    st.shared.u32 [%r4], %r0;
    )" + std::string(between) +
         "xor.b32 %r6, %r4, " + std::to_string(bytes) + R"(;
    ld.shared.u32 %r7, [%r6];
    st.global.u32 [%rd2], %r7;)";
}

TEST(Observe, ARaceOfAGivenLaunchIsHighAndHasItsCommand) {
  const auto facts = shape(1, 64);
  const Observations found = observed(kernel_text(neighbour(128)), &facts);
  ASSERT_FALSE(found.findings.empty());
  const auto& [rule, is_certain, finding] = found.findings[0];
  EXPECT_EQ(rule, "F036");
  EXPECT_TRUE(is_certain);
  EXPECT_EQ(finding.severity, Severity::high);
  EXPECT_EQ(finding.tier, Tier::observed);
  EXPECT_EQ(finding.command, "--made 0 --schedule in-order");
  EXPECT_THAT(finding.evidence, HasSubstr("seen on the emulator in "));
  ASSERT_TRUE(finding.witness);
  EXPECT_TRUE(finding.witness->tid[0] && finding.witness->other_tid[0]);
  for (const std::string& assumption : finding.assumptions) EXPECT_THAT(assumption, ::testing::Not(HasSubstr("grid")));
}

TEST(Observe, ABarrierBetweenLeavesNothing) {
  const Observations found = observed(kernel_text(neighbour(4, "bar.sync 0; ")));
  for (const auto& each : found.findings) ADD_FAILURE() << each.finding.message;
  EXPECT_EQ(found.run.launch_count, kMadeLaunches);
  EXPECT_EQ(found.run.executed_count, found.run.instruction_count);
  EXPECT_THAT(found.run.unexecuted_lines, IsEmpty());
}

// The barrier comes too early, so that there is one: the block has several warps.
TEST(Observe, ARaceOfEveryMadeUpLaunchIsHigh) {
  const Observations found = observed(kernel_text("bar.sync 0; " + neighbour(4)));
  ASSERT_FALSE(found.findings.empty());
  EXPECT_TRUE(found.findings[0].is_certain);
}

// Every block stores another value to the first word.
constexpr std::string_view kLastBlock = "st.global.u32 [%rd0], %r1;";

TEST(Observe, AStoreOfEveryBlockIsARaceOfTheGrid) {
  const Observations found = observed(kernel_text(kLastBlock));
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_EQ(found.findings[0].rule, "F042");
  EXPECT_EQ(found.findings[0].finding.severity, Severity::high);
  EXPECT_THAT(found.findings[0].finding.assumptions[0], HasSubstr("made up: grid (2, 1, 1), block (128, 1, 1)"));
  const auto one_block = shape(1, 64);
  EXPECT_THAT(observed(kernel_text(kLastBlock), &one_block).findings, IsEmpty());
}

// A race that needs the scalar to be small.
TEST(Observe, WhatAScalarDecidesIsMediumOrANote) {
  const std::string text = kernel_text("setp.gt.u32 %p0, %r10, 99; @%p0 bra done; st.global.u32 [%rd0], %r3; done:");
  const Observations made_up = observed(text);
  ASSERT_EQ(made_up.findings.size(), 1u);
  EXPECT_FALSE(made_up.findings[0].is_certain);
  EXPECT_EQ(made_up.findings[0].finding.severity, Severity::info);
  EXPECT_EQ(made_up.findings[0].finding.tier, Tier::possible);
  auto facts = shape(2, 64);
  const Observations given = observed(text, &facts);
  ASSERT_EQ(given.findings.size(), 1u);
  EXPECT_EQ(given.findings[0].finding.severity, Severity::medium);
  EXPECT_EQ(given.findings[0].finding.tier, Tier::likely);
  EXPECT_THAT(given.findings[0].finding.assumptions, ElementsAre(HasSubstr("made up: n = 64"), HasSubstr("'out'")));
  facts.parameters["n"].low = facts.parameters["n"].high = 50;
  const Observations known = observed(text, &facts);
  ASSERT_EQ(known.findings.size(), 1u);
  EXPECT_EQ(known.findings[0].finding.severity, Severity::high);
}

// An access past a buffer counts where its size is given: 256 threads of words in 512 bytes.
TEST(Observe, BoundsNeedASizeThatIsGiven) {
  const std::string text = kernel_text("st.global.u32 [%rd2], %r3;");
  auto facts = shape(4, 64);
  EXPECT_THAT(observed(text, &facts).findings, IsEmpty());
  facts.parameters["out"].size_bytes = 512;
  const Observations found = observed(text, &facts);
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_EQ(found.findings[0].rule, "F054");
  EXPECT_EQ(found.findings[0].finding.severity, Severity::critical);
}

// Rows of both buffers lie so far apart that those of one would be the other, if it lay right behind.
TEST(Observe, BuffersAreFarApart) {
  const std::string text = kernel_text(R"(
    mul.wide.u32 %rd4, %r1, 66048; mul.wide.u32 %rd5, %r0, 4; add.u64 %rd4, %rd4, %rd5;
    add.u64 %rd5, %rd0, %rd4; add.u64 %rd6, %rd1, %rd4;
    st.global.u32 [%rd5], %r3; st.global.u32 [%rd6], %r0;)");
  for (const uint32_t blocks : {8, 1024}) {
    const auto facts = shape(blocks, 64);
    for (const auto& each : observed(text, &facts).findings) ADD_FAILURE() << each.finding.message;
  }
}

TEST(Observe, AnIndexBelowZeroIsMediumWhateverTheSize) {
  const auto facts = shape(1, 64);
  const Observations found = observed(kernel_text("st.global.u32 [%rd2+-4], %r3;"), &facts);
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_EQ(found.findings[0].rule, "F054");
  EXPECT_EQ(found.findings[0].finding.severity, Severity::medium);
}

// Indices that the host keeps apart are no race, and no access out of bounds.
TEST(Observe, IndicesOfMadeUpMemoryProveNothing) {
  const std::string text = kernel_text(
      "ld.global.u32 %r4, [%rd3]; mul.wide.u32 %rd4, %r4, 4; add.u64 %rd4, %rd0, %rd4; st.global.u32 [%rd4], %r3;");
  for (const auto& each : observed(text).findings)
    EXPECT_EQ(each.finding.severity, Severity::info) << each.finding.message;
}

// A kernel of one warp: it has no barrier, and its shared words lie apart in 32 threads only.
TEST(Observe, AKernelOfOneWarpIsNotAccused) {
  const std::string text = kernel_text(R"(
    and.b32 %r4, %r0, 31; shl.b32 %r4, %r4, 2; mov.u32 %r5, words; add.u32 %r4, %r4, %r5;
    st.shared.u32 [%r4], %r0; ld.shared.u32 %r7, [%r4]; st.global.u32 [%rd2], %r7;)");
  for (const auto& each : observed(text).findings)
    EXPECT_EQ(each.finding.severity, Severity::info) << each.finding.message;
}

// The address of a function is the host's to give.
TEST(Observe, ACallThroughAParameterIsNotAccused) {
  EXPECT_THAT(observed(R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry kernel(.param .u64 callee)
{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [callee];
shape: .callprototype _ ();
    call %rd0, shape;
    ret;
}
)")
                  .findings,
              IsEmpty());
}

TEST(Observe, ABlockThatReadsNoPlaceIsOneThread) {
  EXPECT_THAT(observed(R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry kernel(.param .u64 out)
{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [out];
    st.global.u32 [%rd0], 7;
    ret;
}
)")
                  .findings,
              IsEmpty());
}

TEST(Observe, LinesThatNoLaunchExecutesAreNamed) {
  const Observations found = observed(
      kernel_text("setp.ne.u32 %p0, %r10, 0x12345678; @%p0 bra done;\n trap;\n done: st.global.u32 [%rd2], 1;"));
  EXPECT_EQ(found.run.executed_count + 1, found.run.instruction_count);
  EXPECT_THAT(found.run.unexecuted_lines, ElementsAre(13));
}

TEST(Observe, OutputsAreComparedOverTheContentsOfBuffers) {
  EXPECT_EQ(observed(kernel_text("ld.global.u32 %r4, [%rd3]; st.global.u32 [%rd2], %r4;")).run.outputs,
            Outputs::follow_inputs);
  EXPECT_EQ(observed(kernel_text("st.global.u32 [%rd2], 7;")).run.outputs, Outputs::ignore_inputs);
  EXPECT_EQ(observed(kernel_text("ld.global.u32 %r4, [%rd3];")).run.outputs, Outputs::none_written);
}

TEST(Observe, TheSameTwice) {
  const std::string text = kernel_text(neighbour(128));
  const Observations one = observed(text), other = observed(text);
  ASSERT_EQ(one.findings.size(), other.findings.size());
  for (size_t i = 0; i < one.findings.size(); ++i)
    EXPECT_EQ(one.findings[i].finding.message, other.findings[i].finding.message);
  EXPECT_EQ(one.steps, other.steps);
}

TEST(Observe, ALaunchThatCannotBeMadeSaysWhy) {
  auto facts = shape(1, 2048);
  EXPECT_THAT(observed(kernel_text(kLastBlock), &facts).run.not_run, HasSubstr("block"));
}

}  // namespace
}  // namespace ptxkit
