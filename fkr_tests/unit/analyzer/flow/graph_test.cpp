// Blocks, dominators, post-dominators and loops of small kernels of known shape.
#include <gtest/gtest.h>

#include "fkr_tests/unit/analyzer/flow/kernel.hpp"

namespace ptxkit::flow {
namespace {

TEST(Graph, ADiamondJoins) {
  const Kernel k(R"(
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra right;
    mov.u32 %r2, 1;
    bra join;
  right:
    mov.u32 %r2, 2;
  join:
    ret;)");
  const BlockId right = k.block_at("right"), join = k.block_at("join");
  ASSERT_EQ(k.graph.size(), 4u);
  EXPECT_EQ(k.graph.successors(0).size(), 2u);
  EXPECT_EQ(k.graph.successors(0)[0], right) << "the branch's target comes first";
  EXPECT_EQ(k.graph.predecessors(join).size(), 2u);
  EXPECT_EQ(k.dominators.parent(join), 0u);
  EXPECT_EQ(k.post_dominators.parent(0), join);
  EXPECT_TRUE(k.dominators.dominates(0, right));
  EXPECT_FALSE(k.dominators.dominates(right, join));
  EXPECT_TRUE(k.loops.all().empty());
}

TEST(Graph, AGuardedReturnFallsThrough) {
  const Kernel k("setp.eq.u32 %p1, %r1, 0;\n@%p1 ret;\nmov.u32 %r2, 1;\nret;");
  ASSERT_EQ(k.graph.size(), 2u);
  EXPECT_TRUE(k.graph.block(0).exits);
  EXPECT_EQ(k.graph.successors(0).size(), 1u);
  EXPECT_EQ(k.post_dominators.parent(0), k.graph.size()) << "the virtual exit";
}

TEST(Graph, CodeAfterABranchIsUnreachable) {
  const Kernel k("bra end;\nmov.u32 %r2, 1;\nend:\nret;");
  ASSERT_EQ(k.graph.size(), 3u);
  EXPECT_FALSE(k.graph.is_reachable(1));
  EXPECT_FALSE(k.dominators.is_in_tree(1));
}

TEST(Graph, RunningOffTheEndIsNoted) {
  const Kernel k("mov.u32 %r2, 1;");
  EXPECT_TRUE(k.graph.block(0).falls_through_end);
}

TEST(Loops, NestAndContain) {
  const Kernel k(R"(
    mov.u32 %r1, 0;
  outer:
    mov.u32 %r2, 0;
  inner:
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, 4;
    @%p1 bra inner;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p2, %r1, 4;
    @%p2 bra outer;
  other:
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p3, %r1, 9;
    @%p3 bra other;
    ret;)");
  ASSERT_EQ(k.loops.all().size(), 3u);
  const LoopId inner = k.loops.innermost(k.block_at("inner"));
  const LoopId outer = k.loops.loop(inner).parent;
  ASSERT_NE(outer, kNone);
  EXPECT_EQ(k.loops.loop(inner).depth, 2u);
  EXPECT_EQ(k.loops.loop(outer).header, k.block_at("outer"));
  EXPECT_TRUE(k.loops.contains(outer, k.block_at("inner")));
  EXPECT_FALSE(k.loops.contains(inner, k.block_at("outer")));
  EXPECT_FALSE(k.loops.contains(outer, k.block_at("other")));
  EXPECT_TRUE(k.loops.is_back_edge(k.block_at("inner"), k.block_at("inner")));
  EXPECT_FALSE(k.loops.is_irreducible());
}

TEST(Loops, TwoEntriesAreIrreducible) {
  const Kernel k(R"(
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra second;
  first:
    add.u32 %r1, %r1, 1;
  second:
    add.u32 %r1, %r1, 2;
    setp.lt.u32 %p2, %r1, 9;
    @%p2 bra first;
    ret;)");
  EXPECT_TRUE(k.loops.is_irreducible());
}

TEST(PostDominators, AnEndlessLoopStillHasOne) {
  const Kernel k("loop:\nadd.u32 %r1, %r1, 1;\nbra loop;");
  EXPECT_TRUE(k.post_dominators.is_in_tree(0));
}

TEST(Loops, LastIterationOfACountedLoop) {
  Kernel k(R"(
    mov.u32 %r1, 0;
  loop:
    setp.ge.u32 %p1, %r1, 10;
    @%p1 bra done;
  body:
    add.u32 %r1, %r1, 2;
    bra loop;
  done:
    ret;)");
  const LoopId loop = k.loops.innermost(k.block_at("loop"));
  EXPECT_EQ(last_iteration(k.forms, k.dominators, loop, k.block_at("body")), 4);
  EXPECT_EQ(last_iteration(k.forms, k.dominators, loop, k.block_at("loop")), 5);
}

}  // namespace
}  // namespace ptxkit::flow
