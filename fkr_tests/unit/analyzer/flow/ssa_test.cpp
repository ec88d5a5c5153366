// Values and phis of small kernels.
#include <gtest/gtest.h>

#include "fkr_tests/unit/analyzer/flow/kernel.hpp"

namespace ptxkit::flow {
namespace {

size_t phi_count(const Kernel& k) {
  size_t count = 0;
  for (const Value& value : k.ssa.values()) count += value.kind == Value::Kind::phi;
  return count;
}

TEST(Ssa, StraightCodeHasNoPhi) {
  const Kernel k("mov.u32 %r1, 1;\nadd.u32 %r1, %r1, 1;\nst.shared.u32 [s], %r1;\nret;");
  EXPECT_EQ(phi_count(k), 0u);
  const ValueId last = k.value("%r1");
  EXPECT_EQ(k.domain.fact(last).low, 2u);
  ASSERT_EQ(k.ssa.uses(last).size(), 1u);
  EXPECT_EQ(k.ssa.uses(last)[0].kind, Use::Kind::operand);
}

TEST(Ssa, AJoinOfTwoDefinitionsIsAPhiWhereItIsRead) {
  const Kernel k(R"(
    ld.param.u32 %r9, [n];
    setp.eq.u32 %p1, %r9, 0;
    mov.u32 %r1, 4;
    mov.u32 %r2, 4;
    @%p1 bra join;
    mov.u32 %r1, 12;
    mov.u32 %r2, 12;
  join:
    st.shared.u32 [s], %r1;
    ret;)");
  EXPECT_EQ(phi_count(k), 1u) << "%r2 is not read after the join";
  const ValueId phi = k.ssa.phis(k.block_at("join"))[0];
  EXPECT_EQ(k.domain.fact(phi).bits.low_value() & 7, 4u);
  EXPECT_EQ(k.domain.fact(phi).low, 4u);
  EXPECT_EQ(k.domain.fact(phi).high, 12u);
}

TEST(Ssa, AGuardedDefinitionKeepsTheOldValue) {
  const Kernel k(R"(
    ld.param.u32 %r9, [n];
    setp.eq.u32 %p1, %r9, 0;
    mov.u32 %r1, 4;
    @%p1 mov.u32 %r1, 8;
    st.shared.u32 [s], %r1;
    ret;)");
  const ValueId guarded = k.value("%r1");
  ASSERT_NE(k.ssa.value(guarded).old, kNone);
  EXPECT_EQ(k.domain.fact(guarded).bits.trailing_zeros(), 2u);
  EXPECT_EQ(k.domain.fact(k.ssa.value(guarded).old).low, 4u);
}

// A variable for each of n loops in each other gives n * n phis.
TEST(Ssa, MorePhisThanTheBudgetAreNotPlaced) {
  auto nest = [](unsigned loops) {
    std::string before = ".reg .b32 %x<2000>;\n", inside, after;
    for (unsigned i = 0; i < loops; ++i) {
      const std::string number = std::to_string(i), x = "%x" + number;
      before += "mov.u32 " + x + ", 0;\n";
      inside += "L" + number + ":\nadd.u32 %r1, %r1, 1;\n";
      after = "add.u32 " + x + ", " + x + ", 1;\nsetp.lt.u32 %p1, " + x + ", 9;\n@%p1 bra L" + number + ";\n" + after;
    }
    return before + inside + after + "ret;";
  };
  const Kernel few(nest(100)), many(nest(1500));
  EXPECT_TRUE(few.ssa.is_complete());
  EXPECT_GE(phi_count(few), 100u * 100 / 2);
  EXPECT_FALSE(many.ssa.is_complete());
  EXPECT_EQ(phi_count(many), 0u);
}

TEST(Ssa, AReadBeforeAnyDefinitionIsUndefined) {
  const Kernel k("st.shared.u32 [s], %r1;\nret;");
  ASSERT_EQ(k.ssa.size(), 1u);
  EXPECT_EQ(k.ssa.value(0).kind, Value::Kind::undefined);
}

TEST(Ssa, OneDefinitionThatDoesNotReachEveryUseGetsAPhi) {
  const Kernel k(R"(
    ld.param.u32 %r9, [n];
    setp.eq.u32 %p1, %r9, 0;
    @%p1 bra join;
    mov.u32 %r1, 4;
  join:
    st.shared.u32 [s], %r1;
    ret;)");
  ASSERT_EQ(phi_count(k), 1u);
  bool has_undefined = false;
  for (const ValueId argument : k.ssa.arguments(k.ssa.phis(k.block_at("join"))[0]))
    has_undefined = has_undefined || k.ssa.value(argument).kind == Value::Kind::undefined;
  EXPECT_TRUE(has_undefined);
}

TEST(Forms, AnInductionVariableIsStartPlusStepTimesIteration) {
  Kernel k(R"(
    mov.u32 %r3, %tid.x;
    shl.b32 %r1, %r3, 2;
    mov.u32 %r2, s;
    add.u32 %r1, %r1, %r2;
  loop:
    st.shared.u32 [%r1], %r3;
    add.u32 %r1, %r1, 256;
    setp.lt.u32 %p1, %r1, 2048;
    @%p1 bra loop;
    ret;)");
  ptx::Access store;
  for (ptx::InstructionId id = 0; id < k.function.instructions.size(); ++id)
    if (const ptx::Accesses found = ptx::accesses_of(k.function, id); found.count) store = found.items[0];
  const Form form = k.forms.expand(k.forms.address(store));
  EXPECT_NE(form.base, kNoBase);
  ASSERT_EQ(form.terms.size(), 2u);
  int64_t tid = 0, iteration = 0;
  for (const Term& term : form.terms)
    (k.forms.atom(term.atom).kind == Atom::Kind::iteration ? iteration : tid) = term.coefficient;
  EXPECT_EQ(tid, 4);
  EXPECT_EQ(iteration, 256);
  EXPECT_EQ(k.forms.residue(form, 8), (std::pair<unsigned, uint64_t>{2, 0}));
}

TEST(Uniformity, OfWhatTwoTargetsOfATableWrite) {
  const Kernel k(R"(
    mov.u32 %r1, %tid.x;
    and.b32 %r1, %r1, 3;
    table: .branchtargets END, ONE, TWO, END;
    brx.idx %r1, table;
  ONE:
    mov.u32 %r2, 1;
    bra JOIN;
  TWO:
    mov.u32 %r2, 2;
  JOIN:
    add.u32 %r3, %r2, 1;
  END:
    ret;)");
  const UniformityAnalysis uniformity(k.domain, k.post_dominators);
  EXPECT_EQ(uniformity.of(k.value("%r3")), Uniformity::divergent);
}

TEST(Uniformity, OfWarpNumbersAndAnswersOfBarriers) {
  const std::string body =
      "mov.u32 %r0, %tid.x;\nsetp.lt.u32 %p1, %r0, 9;\nmov.u32 %r1, %warpid;\n"
      "bar.red.popc.u32 %r2, 0, %p1;\nmov.u32 %r3, %smid;\nmov.u32 %r4, %clock;\nret;";
  const Kernel two_warps(body), one_warp(body, ".reqntid 32, 1, 1");
  const UniformityAnalysis of_two(two_warps.domain, two_warps.post_dominators);
  const UniformityAnalysis of_one(one_warp.domain, one_warp.post_dominators);
  EXPECT_EQ(of_two.of(two_warps.value("%r1")), Uniformity::warp);
  EXPECT_EQ(of_one.of(one_warp.value("%r1")), Uniformity::uniform);
  EXPECT_EQ(of_two.of(two_warps.value("%r2")), Uniformity::uniform);
  EXPECT_EQ(of_two.of(two_warps.value("%r3")), Uniformity::uniform);
  EXPECT_EQ(of_two.of(two_warps.value("%r4")), Uniformity::divergent);
}

TEST(Uniformity, FollowsThreadsMemoryAndJoins) {
  const Kernel k(R"(
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    shr.u32 %r3, %r1, 5;
    ld.param.u64 %rd1, [p];
    ld.global.u32 %r4, [%rd1];
    setp.eq.u32 %p1, %r1, 3;
    mov.u32 %r5, 1;
    @%p1 bra join;
    mov.u32 %r5, 2;
  join:
    add.u32 %r6, %r5, %r2;
    vote.sync.ballot.b32 %r7, %p1, 0xffffffff;
    st.shared.u32 [s], %r6;
    ret;)");
  const UniformityAnalysis uniformity(k.domain, k.post_dominators);
  EXPECT_EQ(uniformity.of(k.value("%r1")), Uniformity::divergent);
  EXPECT_EQ(uniformity.of(k.value("%r2")), Uniformity::uniform);
  EXPECT_EQ(uniformity.of(k.value("%r3")), Uniformity::warp);
  EXPECT_EQ(uniformity.of(k.value("%r4")), Uniformity::loaded);
  EXPECT_EQ(uniformity.of(k.value("%r6")), Uniformity::divergent) << "which constant depends on the way";
  EXPECT_EQ(uniformity.of(k.value("%r7")), Uniformity::warp);
}

}  // namespace
}  // namespace ptxkit::flow
