// The door to Z3: what it answers, what bounds it, and what happens where there is none.
#include "analyzer/prove/solver.hpp"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/prove/query.hpp"

namespace ptxkit::prove {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kSteps = 1'000'000;

TEST(Solver, AnswersWithAModel) {
  const auto solver = Solver::open();
  ASSERT_TRUE(solver) << solver.error().message();
  EXPECT_THAT((*solver)->version(), ::testing::StartsWith("4."));
  Query query(100);
  const Term x = query.symbol("x", 32, 0);
  query.require(query.test("=", query.apply("bvmul", 32, {x, Query::constant(3, 32)}), Query::constant(21, 32)));
  const Reply reply = (*solver)->ask(query.text(), kSteps);
  ASSERT_EQ(reply.kind, Reply::Kind::satisfiable);
  EXPECT_EQ(reply.model.at("x") * 3 & 0xffffffff, 21u);
  EXPECT_GT(reply.steps, 0u);
  query.require(query.test("=", query.part(x, 0, 1), Query::constant(0, 1)));
  EXPECT_EQ((*solver)->ask(query.text(), kSteps).kind, Reply::Kind::unsatisfiable);
}

TEST(Solver, EndsAtItsLimitAndAnswersAlike) {
  const auto solver = Solver::open();
  ASSERT_TRUE(solver) << solver.error().message();
  Query query(100);
  // A product of two primes of 31 bits.
  const Term x = query.symbol("x", 64, 0), y = query.symbol("y", 64, 0);
  query.require(query.test("=", query.apply("bvmul", 64, {x, y}), Query::constant(4611685975477714963, 64)));
  for (const Term& factor : {x, y}) {
    query.require(query.test("bvugt", factor, Query::constant(1, 64)));
    query.require(query.test("bvult", factor, Query::constant(1ull << 32, 64)));
  }
  const Reply first = (*solver)->ask(query.text(), 20'000);
  EXPECT_EQ(first.kind, Reply::Kind::unknown);
  EXPECT_LT(first.steps, 10'000'000u);
  EXPECT_EQ((*solver)->ask(query.text(), 20'000).steps, first.steps);
}

TEST(Solver, TextThatIsNoQuestionIsUnknown) {
  const auto solver = Solver::open();
  ASSERT_TRUE(solver) << solver.error().message();
  for (const char* text : {"(assert", "(assert (= x #b1))", "(declare-const x Nothing)"})
    EXPECT_EQ((*solver)->ask(text, kSteps).kind, Reply::Kind::unknown) << text;
}

TEST(Solver, IsOptional) {
  ::setenv("PTXKIT_LIBZ3", "/nowhere/libz3.so.4", 1);
  const auto none = Solver::open();
  ::setenv("PTXKIT_LIBZ3", "libc.so.6", 1);
  const auto other = Solver::open();
  ::unsetenv("PTXKIT_LIBZ3");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message(), HasSubstr("no Z3: /nowhere/libz3.so.4"));
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message(), HasSubstr("the library lacks functions that are needed: Z3_mk_config"));
}

}  // namespace
}  // namespace ptxkit::prove
