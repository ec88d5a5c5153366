// The misuse that tracing refuses: each error names the place, the second place that causes it, and the remedy.
// The tests count lines, so clang-format is disabled.
// clang-format off
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "builder/dsl.hpp"

namespace ptxkit::dsl {
namespace {

using ::testing::HasSubstr;

using Body = void (*)(Kernel&);

// The error of tracing `body` in a kernel of 64 threads.
std::optional<DslError> refusal(Body body, Variant variant = Variant::release) {
  const KernelDefinition kernel = define({.name = "refused", .block = 64}, [body](Kernel& k) { body(k); });
  try {
    (void)emit_ptx(kernel, {.variant = variant});
  } catch (const DslError& error) {
    return error;
  }
  return std::nullopt;
}

// Expects an error that contains `what` and `remedy`, at `line` because of `other`; both are lines of this file.
void expect_refused(Body body, u32 line, u32 other, const char* what, const char* remedy) {
  const std::optional<DslError> error = refusal(body);
  ASSERT_TRUE(error.has_value()) << "the kernel was accepted";
  EXPECT_THAT(error->what(), HasSubstr(what));
  EXPECT_THAT(error->what(), HasSubstr(remedy));
  EXPECT_EQ(error->where().line(), line) << error->what();
  EXPECT_EQ(error->other().line(), other) << error->what();
  EXPECT_THAT(error->what(), HasSubstr("fkr_tests/unit/builder/refusal_test.cpp:" + std::to_string(line) + ": "));
  EXPECT_THAT(error->what(), HasSubstr("\n  fkr_tests/unit/builder/refusal_test.cpp:" + std::to_string(other) + ": "));
}

TEST(Refusal, BarrierInADivergentBranch) {
  constexpr u32 here = __LINE__;
  const Body body = [](Kernel& k) {
    k.if_(k.lane() == 0,
          [&] {
            k.barrier();
          },
          Where::current());
  };
  expect_refused(body, here + 4, here + 6,
                 "barrier needs every thread of the CTA, but stands inside a divergent branch",
                 "move the barrier out of the branch");
}

TEST(Refusal, BarrierInAWarpLoop) {
  constexpr u32 here = __LINE__;
  const Body body = [](Kernel& k) {
    k.warp_loop([&](auto& loop) {
      k.barrier();
      loop.break_if(k.warp() == 0);
    });
  };
  expect_refused(body, here + 3, here + 2, "barrier needs every thread of the CTA, but stands inside a divergent loop",
                 "move the barrier out of the loop");
}

TEST(Refusal, ShuffleInADivergentBranch) {
  constexpr u32 here = __LINE__;
  const Body body = [](Kernel& k) {
    k.if_(k.lane() < 7, [&] {
      (void)shuffle(k.lane(), 3);
    });
  };
  expect_refused(body, here + 3, here + 2, "shuffle needs every lane of the warp, but stands inside a divergent branch",
                 "make the condition uniform with any, all, ballot or broadcast");
}

TEST(Refusal, CollectivesOfEveryKindInADivergentBranch) {
  constexpr Body bodies[] = {
      [](Kernel& k) { k.if_(k.lane() == 0, [&] { (void)any(k.lane() == 1); }); },
      [](Kernel& k) { k.if_(k.lane() == 0, [&] { (void)all(k.lane() == 1); }); },
      [](Kernel& k) { k.if_(k.lane() == 0, [&] { (void)ballot(k.lane() == 1); }); },
      [](Kernel& k) { k.if_(k.lane() == 0, [&] { (void)match_any(k.lane()); }); },
      [](Kernel& k) { k.if_(k.lane() == 0, [&] { (void)match_all(k.lane()); }); },
      [](Kernel& k) { k.if_(k.lane() == 0, [&] { (void)reduce_add(k.lane()); }); },
      [](Kernel& k) { k.if_(k.lane() == 0, [&] { (void)inclusive_sum(k.lane()); }); },
      [](Kernel& k) { k.if_(k.lane() == 0, [&] { (void)shuffle_up(k.lane(), 1); }); },
      [](Kernel& k) { k.if_(k.lane() == 0, [&] { (void)shuffle_down(k.lane(), 1); }); },
      [](Kernel& k) { k.if_(k.lane() == 0, [&] { (void)shuffle_xor(k.lane(), 1); }); },
      [](Kernel& k) { k.if_(k.lane() == 0, [&] { k.sync_warp(); }); },
      [](Kernel& k) { k.once_per_warp([&] { k.sync_warp(); }); },
      [](Kernel& k) { k.if_(k.lane() == 0, [] {}).else_([&] { k.sync_warp(); }); },
      [](Kernel& k) { k.range(k.lane(), 9, 1, [&](auto) { k.sync_warp(); }); },
      [](Kernel& k) {
        k.thread_loop([&](auto& loop) {
          loop.break_();
          k.sync_warp();
        });
      },
  };
  for (const Body body : bodies) {
    const auto error = refusal(body);
    ASSERT_TRUE(error.has_value()) << "case " << &body - bodies;
    EXPECT_THAT(error->what(), HasSubstr("needs every lane of the warp, but stands inside a divergent"));
  }
}

TEST(Refusal, UniformVariableAssignedInADivergentBranch) {
  constexpr u32 here = __LINE__;
  const Body body = [](Kernel& k) {
    Var<u32, Rate::warp> head(k, 0);
    k.if_(k.lane() == 3, [&] {
      head = 1;
    });
  };
  expect_refused(body, here + 4, here + 3,
                 "assignment to the warp-uniform variable of fkr_tests/unit/builder/refusal_test.cpp",
                 "select the value per lane and make it uniform after the branch");
}

TEST(Refusal, BlockVariableAssignedInAWarpBranch) {
  constexpr u32 here = __LINE__;
  const Body body = [](Kernel& k) {
    Var<u32, Rate::block> head(k, 0);
    k.if_(k.warp() == 1, [&] {
      head += 1;
    });
  };
  expect_refused(body, here + 4, here + 3, "assignment to the block-uniform variable",
                 "declare the variable at Rate::thread");
}

TEST(Refusal, VariableOfTheBranchItselfIsAccepted) {
  EXPECT_FALSE(refusal([](Kernel& k) {
                 k.if_(k.lane() == 3, [&] {
                   Var<u32, Rate::warp> mine(k, 0);
                   mine = 1;
                 });
               }).has_value());
}

TEST(Refusal, BreakOfAWarpLoopInADivergentBranch) {
  constexpr u32 here = __LINE__;
  const Body body = [](Kernel& k) {
    k.warp_loop([&](auto& loop) {
      k.if_(k.lane() == 0, [&] {
        loop.break_();
      });
    });
  };
  expect_refused(body, here + 4, here + 3, "break of a warp-uniform loop inside a divergent branch", "use thread_loop");
}

TEST(Refusal, CollectiveAfterSomeLanesReturned) {
  constexpr u32 here = __LINE__;
  const Body body = [](Kernel& k) {
    k.return_if(k.lane() > 7);
    k.sync_warp();
  };
  expect_refused(body, here + 3, here + 2, "sync_warp needs every lane of the warp, but some have left the kernel",
                 "let all threads stay until the last sync_warp");
}

TEST(Refusal, BarrierAfterAWarpReturned) {
  constexpr u32 here = __LINE__;
  const Body body = [](Kernel& k) {
    k.return_if(k.warp() == 1);
    k.sync_warp();
    k.barrier();
  };
  expect_refused(body, here + 4, here + 2, "barrier needs every thread of the CTA, but some have left the kernel",
                 "guard the work");
}

TEST(Refusal, ReturnInALoopThatMeetsItsBarrierAgain) {
  constexpr u32 here = __LINE__;
  const Body body = [](Kernel& k) {
    k.block_loop([&](auto&) {
      k.barrier();
      k.return_if(k.warp() == 1);
    });
  };
  expect_refused(body, here + 4, here + 3, "a return on a warp-uniform condition in a loop that holds a barrier",
                 "leave the loop with break_if on a uniform condition");
}

TEST(Refusal, ValueOfABranchUsedOutside) {
  constexpr u32 here = __LINE__;
  const Body body = [](Kernel& k) {
    std::optional<Expr<u32, Rate::thread>> kept;
    k.if_(k.block() == 0, [&] { kept.emplace(k.lane() + 1); });
    (void)(*kept + 1);
  };
  expect_refused(body, here + 4, here + 3, "a value is used outside of the branch or loop that made it",
                 "keep it in a Var that is declared before the branch");
}

TEST(Refusal, ElseThatDoesNotFollow) {
  constexpr u32 here = __LINE__;
  const Body body = [](Kernel& k) {
    auto branch = k.if_(k.block() == 0, [] {});
    k.sync_warp();
    branch.else_([] {});
  };
  expect_refused(body, here + 4, here + 2, "else_ does not follow its branch", "in one statement");
}

TEST(Refusal, TwoSharedArraysOfOneName) {
  constexpr u32 here = __LINE__;
  const Body body = [](Kernel& k) {
    (void)k.shared<u32, 4, 4>("table");
    (void)k.shared<u32, 4, 4>("table");
  };
  expect_refused(body, here + 3, here + 2, "the shared array 'table' exists already", "give each array its own name");
}

// ptxas refuses a parameter and a variable with the same name.
TEST(Refusal, SharedArrayWithTheNameOfAParameter) {
  constexpr u32 here = __LINE__;
  const KernelDefinition kernel = define({.name = "refused", .block = 64}, [](Kernel& k, Arg<"table", u32>) {
    (void)k.shared<u32, 4, 4>("table");
  });
  try {
    (void)emit_ptx(kernel, {});
    FAIL() << "the kernel was accepted";
  } catch (const DslError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the shared array 'table' has the name of a parameter"));
    EXPECT_THAT(error.what(), HasSubstr("the kernel 'refused' has that parameter"));
    EXPECT_EQ(error.where().line(), here + 2);
    EXPECT_EQ(error.other().line(), here + 1);
  }
}

// The cost block states the budget's shared bytes.
TEST(Refusal, SharedArraysThatAreNotTheBudgetOfAKernelWithACost) {
  const auto words_of = [](u32 shared_bytes, std::vector<Buffer> buffers) -> std::string {
    const KernelDefinition kernel =
        define({.name = "refused", .block = 64, .budget = {.shared_bytes = shared_bytes},
                .cost = {.threads_per_element = 1, .buffers = std::move(buffers)}},
               [](Kernel& k, Arg<"out", Ptr<global, u32>> out) {
                 auto table = k.shared<u32, 128, 4>("table");
                 table.store(k.thread(), k.lane());
                 out.store(table.load(63 - k.thread()));
               });
    try {
      return emit_ptx(kernel, {});
    } catch (const DslError& error) {
      return error.what();
    }
  };
  for (const u32 budget : {0u, 508u, 516u}) {
    const std::string words = words_of(budget, {{"out", 4}});
    EXPECT_THAT(words, HasSubstr("the shared arrays of refused take 512 bytes, its budget has " + std::to_string(budget)));
    EXPECT_THAT(words, HasSubstr("declare .budget.shared_bytes = 512"));
  }
  EXPECT_THAT(words_of(512, {{"out", 4}}), HasSubstr("//   local_mem: 512\n"));
  EXPECT_THAT(words_of(0, {}), HasSubstr(".visible .entry"));
}

TEST(Refusal, LiteralThatDoesNotFitWhereOnlyTracingKnows) {
  const auto error = refusal([](Kernel& k) { (void)select(k.lane() == 0, trunc<u8>(k.lane()), 256); });
  ASSERT_TRUE(error.has_value());
  EXPECT_THAT(error->what(), HasSubstr("the literal does not fit u8"));
}

TEST(Refusal, OrdersThatAnOperationDoesNotHave) {
  const auto order_of_load = refusal([](Kernel& k) {
    (void)atomic_load(k.shared<u32, 4, 4>("x").data(), Order::release, Scope::cta);
  });
  ASSERT_TRUE(order_of_load.has_value());
  EXPECT_THAT(order_of_load->what(), HasSubstr("an atomic load is relaxed or acquire"));
  const auto order_of_store = refusal([](Kernel& k) {
    atomic_store(k.shared<u32, 4, 4>("x").data(), 1, Order::acquire, Scope::cta);
  });
  ASSERT_TRUE(order_of_store.has_value());
  EXPECT_THAT(order_of_store->what(), HasSubstr("an atomic store is relaxed or release"));
  const auto order_without_result = refusal([](Kernel& k) {
    atomic_max_if(k.lane() < 4, k.shared<u32, 4, 4>("x").data(), 1, Order::acq_rel, Scope::cta);
  });
  ASSERT_TRUE(order_without_result.has_value());
  EXPECT_THAT(order_without_result->what(), HasSubstr("an atomic without a result is relaxed or release"));
  const auto relaxed_fence = refusal([](Kernel& k) { k.fence(Order::relaxed, Scope::gpu); });
  ASSERT_TRUE(relaxed_fence.has_value());
  EXPECT_THAT(relaxed_fence->what(), HasSubstr("a relaxed fence orders nothing"));
}

TEST(Refusal, SpecificationsThatNoLaunchSatisfies) {
  const auto nothing = [](Kernel&) {};
  EXPECT_THROW((void)define({.name = "Bad-Name", .block = 32}, nothing), DslError);
  EXPECT_THROW((void)define({.name = "", .block = 32}, nothing), DslError);
  EXPECT_THROW((void)define({.name = "k", .block = 33}, nothing), DslError);
  EXPECT_THROW((void)define({.name = "k", .block = 2048}, nothing), DslError);
  EXPECT_THROW((void)define({.name = "k", .block = 0}, nothing), DslError);
}

TEST(Refusal, OptionsThatDoNotExist) {
  const auto kernel = define({.name = "k", .block = 32}, [](Kernel&) {});
  EXPECT_THROW((void)emit_ptx(kernel, {.sm = 60}), DslError);
  EXPECT_THROW((void)emit_ptx(kernel, {.debug_records = 100}), DslError);
}

TEST(Refusal, SizesThatTheCostGrammarLacks) {
  EXPECT_EQ((N + N / 4096 * 16 + M * 2 + 3 + 4).text(), "N+N/4096*16+M*2+7");
  for (const SizeExpr& size : {N * 2, N + 1, N + M, N / 2, SizeExpr(8)}) EXPECT_THROW((void)(size / 2), DslError);
  EXPECT_THROW((void)(N / 0), DslError);
  EXPECT_THROW((void)(N + N / 2 + N / 3 + N / 4 + M), DslError);
}

}  // namespace
}  // namespace ptxkit::dsl
