// Which instructions share a barrier interval.
#include "analyzer/flow/intervals.hpp"

#include <gtest/gtest.h>

#include "fkr_tests/unit/analyzer/flow/kernel.hpp"

namespace ptxkit::flow {
namespace {

struct Marked {
  Kernel kernel;
  std::vector<bool> barriers;
  std::vector<ptx::InstructionId> stores;
  Intervals intervals;

  explicit Marked(const std::string& body)
      : kernel(body),
        barriers(mark(kernel)),
        stores(find_stores(kernel)),
        intervals(kernel.graph, kernel.loops, barriers, 16) {}
  static std::vector<bool> mark(const Kernel& k) {
    std::vector<bool> found;
    for (const auto& instruction : k.function.instructions)
      found.push_back(ptx::is_cta_barrier(k.function, instruction));
    return found;
  }
  static std::vector<ptx::InstructionId> find_stores(const Kernel& k) {
    std::vector<ptx::InstructionId> found;
    for (ptx::InstructionId id = 0; id < k.function.instructions.size(); ++id)
      if (ptx::accesses_of(k.function, id).count) found.push_back(id);
    return found;
  }
  Concurrency between(size_t a, size_t b) const { return intervals.concurrency(stores[a], stores[b]); }
  // Where threads part at every branch, or at none.
  bool can_be_concurrent(size_t a, size_t b, bool part) const {
    return can_be_concurrent(a, b, std::vector<bool>(kernel.graph.size(), part));
  }
  bool can_be_concurrent(size_t a, size_t b, const std::vector<bool>& parts, const std::set<Edge>& closed = {}) const {
    StepBudget steps_left(1000);
    return intervals.can_be_concurrent(stores[a], stores[b], parts, DominatorTree::post_dominators(kernel.graph),
                                       closed, steps_left);
  }
};

TEST(Intervals, ABarrierSeparates) {
  const Marked m("st.shared.u32 [s], %r1;\nbar.sync 0;\nst.shared.u32 [s], %r1;\nst.shared.u32 [s], %r1;\nret;");
  EXPECT_FALSE(m.between(0, 1).any());
  EXPECT_TRUE(m.between(1, 2).same_iteration);
  EXPECT_TRUE(m.between(1, 1).same_iteration) << "two threads at one instruction";
}

TEST(Intervals, ABarrierOnOneSideDoesNot) {
  const Marked m(R"(
    setp.eq.u32 %p1, %r1, 0;
    st.shared.u32 [s], %r1;
    @%p1 bra join;
    bar.sync 0;
  join:
    st.shared.u32 [s], %r1;
    ret;)");
  EXPECT_TRUE(m.between(0, 1).same_iteration);
}

TEST(Intervals, IterationsOverlapWithoutASecondBarrier) {
  const Marked m(R"(
  loop:
    st.shared.u32 [s], %r1;
    bar.sync 0;
    st.shared.u32 [s+4], %r1;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 9;
    @%p1 bra loop;
    ret;)");
  const Concurrency found = m.between(0, 1);
  EXPECT_FALSE(found.same_iteration);
  EXPECT_NE(found.first_is_later, kNone) << "the store before the barrier runs one iteration ahead";
  EXPECT_EQ(found.second_is_later, kNone);
}

TEST(Intervals, SidesOfABranchOverlapOnlyIfThreadsDiverge) {
  const Marked m(R"(
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra other;
    st.shared.u32 [s], %r1;
    bar.sync 0;
    st.shared.u32 [s], %r1;
    ret;
  other:
    st.shared.u32 [s], %r1;
    ret;)");
  EXPECT_TRUE(m.between(0, 2).same_iteration);
  EXPECT_TRUE(m.can_be_concurrent(0, 2, true));
  EXPECT_FALSE(m.can_be_concurrent(0, 2, false));
  EXPECT_FALSE(m.can_be_concurrent(0, 1, true)) << "a barrier";
  StepBudget steps_left(1);
  EXPECT_FALSE(m.intervals.can_be_concurrent(m.stores[0], m.stores[2], std::vector<bool>(m.kernel.graph.size(), true),
                                             m.kernel.post_dominators, {}, steps_left));
  EXPECT_TRUE(steps_left.is_spent()) << "the answer means nothing";
  EXPECT_TRUE(m.can_be_concurrent(1, 1, false));
}

TEST(Intervals, SuccessiveIntervalsOverlap) {
  const Marked m(R"(
  loop:
    st.shared.u32 [s], %r1;
    bar.sync 0;
    st.shared.u32 [s+4], %r1;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 9;
    @%p1 bra loop;
    st.shared.u32 [s+8], %r1;
    ret;)");
  EXPECT_TRUE(m.can_be_concurrent(0, 1, false)) << "round the loop";
  EXPECT_TRUE(m.can_be_concurrent(1, 2, false));
  EXPECT_FALSE(m.can_be_concurrent(0, 2, false)) << "the store after the loop, and that of one more turn";
  EXPECT_TRUE(m.can_be_concurrent(0, 2, true));
}

TEST(Intervals, TwoBarriersInALoopSeparateBothWays) {
  const Marked m(R"(
  loop:
    st.shared.u32 [s], %r1;
    bar.sync 0;
    st.shared.u32 [s+4], %r1;
    bar.sync 0;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 9;
    @%p1 bra loop;
    ret;)");
  EXPECT_FALSE(m.between(0, 1).any());
}

TEST(Intervals, AfterTheJoinThreadsReconverge) {
  const Marked m(R"(
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra join;
    add.u32 %r1, %r1, 1;
  join:
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra other;
    st.shared.u32 [s], %r1;
    bar.sync 0;
  other:
    st.shared.u32 [s], %r1;
    ret;)");
  std::vector<bool> parts(m.kernel.graph.size(), false);
  parts[0] = true;
  EXPECT_FALSE(m.can_be_concurrent(0, 1, parts)) << "they part before the join only";
  parts[2] = true;
  EXPECT_TRUE(m.can_be_concurrent(0, 1, parts));
}

}  // namespace
}  // namespace ptxkit::flow
