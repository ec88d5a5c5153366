// Tests of findings replayed on generated launches, with a witness that is right, wrong, or not reached.
#include "runtime/launch/replay.hpp"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/flow/launch.hpp"
#include "analyzer/ptx/diagnostic.hpp"

namespace ptxkit {
namespace {

using ::testing::HasSubstr;
using Outcome = rules::Replay::Outcome;

// Thread t loads word t of a shared array of 256 bytes in line 14 and stores it in line 16.
constexpr std::string_view kAligned = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry kernel(.param .u64 .ptr .global .align 16 out, .param .u32 count)
.reqntid 64, 1, 1
{
    .reg .pred %p; .reg .b32 %t, %at, %value, %count; .reg .b64 %out, %offset; .shared .align 16 .b8 words[256];
    mov.u32 %t, %tid.x;
    ld.param.u32 %count, [count];
    shl.b32 %at, %t, 2;
    mov.u32 %value, words;
    add.u32 %at, %at, %value;
    st.shared.u32 [%at], %t;
    ld.shared.u32 %value, [%at];
    ld.param.u64 %out, [out]; mul.wide.u32 %offset, %t, 4; add.u64 %out, %out, %offset;
    st.global.u32 [%out], %value;
    setp.ne.u32 %p, %count, 0x12345678;
    @%p bra done;
    ld.shared.u32 %value, [%at];
done:
    ret;
}
)";
constexpr uint32_t kStoreLine = 13, kLoadLine = 14, kHiddenLine = 19;

struct Kernel {
  ptx::ParseResult parsed;
  explicit Kernel(std::string_view text) : parsed(ptx::parse(std::string(text), "kernel.ptx")) {
    EXPECT_TRUE(parsed.diagnostics.empty());
  }
  const ptx::Function& function() const { return parsed.module.functions.back(); }
  ptx::FunctionId id() const { return static_cast<ptx::FunctionId>(parsed.module.functions.size() - 1); }
  ptx::InstructionId in_line(uint32_t line) const {
    for (ptx::InstructionId i = 0; i < function().instructions.size(); ++i)
      if (parsed.module.position(function().instructions[i].at).line == line) return i;
    ADD_FAILURE() << "no instruction in line " << line;
    return 0;
  }
  rules::Finding finding(uint32_t line, rules::Witness witness) const {
    rules::Finding finding;
    finding.instruction = in_line(line);
    finding.at = function().instructions[finding.instruction].at;
    finding.severity = rules::Severity::critical;
    finding.witness = std::move(witness);
    return finding;
  }
  rules::Replay replayed(std::string_view rule, const rules::Finding& finding) const {
    return replay(parsed.module, id(), nullptr, rule, finding);
  }
};

rules::Witness thread(uint32_t x) {
  rules::Witness witness;
  witness.tid[0] = x;
  witness.tid[1] = witness.tid[2] = 0;
  return witness;
}

rules::Witness at(rules::Witness witness, uint64_t address) {
  witness.address = address;
  return witness;
}

TEST(Replay, AWitnessThatRunsCleanIsRefuted) {
  const Kernel kernel(kAligned);
  const auto replay = kernel.replayed("F051", kernel.finding(kLoadLine, at(thread(5), 20)));
  EXPECT_EQ(replay.outcome, Outcome::refuted) << replay.what;
  EXPECT_EQ(replay.what, "30 launches ran clean although its thread reached its line as the witness says");
}

TEST(Replay, AnotherAddressThreadOrIterationIsNotTheWitness) {
  const Kernel kernel(kAligned);
  auto second_turn = at(thread(5), 20);
  second_turn.iteration = 1;
  for (const rules::Witness& witness : {at(thread(5), 21), at(thread(6), 20), at(thread(200), 20), second_turn}) {
    const auto replay = kernel.replayed("F051", kernel.finding(kLoadLine, witness));
    EXPECT_EQ(replay.outcome, Outcome::reached) << replay.what;
    EXPECT_THAT(replay.what, HasSubstr("its line was reached, but not as the witness says"));
  }
}

TEST(Replay, AWitnessThatNamesNothingCannotBeRefuted) {
  const Kernel kernel(kAligned);
  EXPECT_EQ(kernel.replayed("F051", kernel.finding(kLoadLine, {})).outcome, Outcome::reached);
}

TEST(Replay, OnlyLaunchesWithTheWitnessBytesCount) {
  const Kernel kernel(kAligned);
  auto witness = at(thread(5), 20);
  witness.loaded_byte = 3;
  const auto replay = kernel.replayed("F051", kernel.finding(kLoadLine, witness));
  EXPECT_EQ(replay.outcome, Outcome::refuted);
  EXPECT_THAT(replay.what, HasSubstr("15 launches")) << "those whose buffers hold what the witness loads";
}

TEST(Replay, ALineThatNoLaunchReachesIsUnreached) {
  const Kernel kernel(kAligned);
  const auto replay = kernel.replayed("F051", kernel.finding(kHiddenLine, at(thread(5), 20)));
  EXPECT_EQ(replay.outcome, Outcome::unreached);
  EXPECT_THAT(replay.what, HasSubstr("none reached its line"));
}

// The store of thread 5 and the load of thread 5 or 6: of one byte, or of two.
TEST(Replay, ARaceIsRefutedWhereBothThreadsComeToOneByte) {
  const Kernel kernel(kAligned);
  for (const uint32_t other : {5u, 6u}) {
    auto witness = at(thread(5), 20);
    witness.other_tid[0] = other;
    witness.other_tid[1] = witness.other_tid[2] = 0;
    rules::Finding finding = kernel.finding(kLoadLine, witness);
    finding.path.push_back({kernel.function().instructions[kernel.in_line(kStoreLine)].at, "the other access"});
    EXPECT_EQ(kernel.replayed("F036", finding).outcome, other == 5 ? Outcome::refuted : Outcome::reached);
  }
}

TEST(Replay, AWaitIsRefutedOnlyWhereTheOtherThreadStaysAway) {
  std::string text(kAligned);
  text.replace(text.find("    st.shared.u32"), 4, "    bar.sync 0; ");
  const Kernel kernel(text);
  auto witness = thread(5);
  witness.other_tid[0] = 6;
  EXPECT_EQ(kernel.replayed("F038", kernel.finding(kStoreLine, witness)).outcome, Outcome::reached) << "it comes too";
  witness.other_tid[0] = 200;
  EXPECT_EQ(kernel.replayed("F038", kernel.finding(kStoreLine, witness)).outcome, Outcome::refuted);
}

// The upper warp jumps over a barrier and ends: the lower one waits for threads that have left.
TEST(Replay, AThreadThatLeavesBeforeABarrierIsTheOneThatDoesNotCome) {
  std::string text(kAligned);
  text.replace(text.find("    st.shared.u32"), 4, "setp.gt.u32 %p, %t, 31; @%p bra.uni over; bar.sync 0; over: ");
  const Kernel kernel(text);
  auto witness = thread(5);
  witness.other_tid[0] = 40;
  for (const std::string_view rule : {"F038", "F039", "F045"}) {
    const auto replay = kernel.replayed(rule, kernel.finding(kStoreLine, witness));
    EXPECT_EQ(replay.outcome, Outcome::confirmed) << rule << ": " << replay.what;
    EXPECT_THAT(replay.what, HasSubstr("a thread of the CTA left before this barrier"));
  }
  EXPECT_NE(kernel.replayed("F036", kernel.finding(kStoreLine, witness)).outcome, Outcome::confirmed);
  // F039 names the branch, here in a line of its own: the thread that the fault shows waiting must be one of its two.
  EXPECT_NE(kernel.replayed("F038", kernel.finding(kStoreLine - 1, witness)).outcome, Outcome::confirmed);
  EXPECT_NE(kernel.replayed("F039", kernel.finding(kStoreLine - 1, witness)).outcome, Outcome::confirmed)
      << "the one that the emulator names is thread 0";
  witness.tid[0] = 0;
  EXPECT_EQ(kernel.replayed("F039", kernel.finding(kStoreLine - 1, witness)).outcome, Outcome::confirmed);
  EXPECT_NE(kernel.replayed("F038", kernel.finding(kStoreLine - 1, witness)).outcome, Outcome::confirmed);
}

// Reads word 20,000 of a buffer that is generated with 64 KiB; then the fault.
TEST(Replay, ABufferThatALaunchLeavesGrows) {
  std::string text(kAligned);
  text.replace(text.find("    st.global.u32"), 4,
               "    ld.global.u32 %value, [%out+80000]; ld.shared.u32 %value, [%at+2]; ");
  const Kernel kernel(text);
  const auto finding = kernel.finding(16, thread(0));
  const auto replay = kernel.replayed("F051", finding);
  EXPECT_EQ(replay.outcome, Outcome::confirmed);
  EXPECT_THAT(replay.what, ::testing::Not(HasSubstr("past another fault")));
  EXPECT_THAT(kernel.replayed("F054", finding).what, HasSubstr("is outside of every object")) << "bounds stay";
  // A size that a launch file promises does not change.
  flow::LaunchFacts facts;
  facts.parameters["out"].size_bytes = 256;
  const auto promised = ptxkit::replay(kernel.parsed.module, kernel.id(), &facts, "F051", finding);
  EXPECT_EQ(promised.outcome, Outcome::confirmed);
  EXPECT_THAT(promised.what, HasSubstr("past another fault in line 16: 4-byte load"));
}

}  // namespace
}  // namespace ptxkit
