// What instructions do, as facts.hpp tells it.
#include "analyzer/ptx/facts.hpp"

#include <algorithm>
#include <ranges>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/isa.hpp"
#include "analyzer/ptx/validate.hpp"
#include "fkr_tests/unit/analyzer/ptx/form_sample.hpp"

namespace ptxkit::ptx {
namespace {

// The operand that is for something is the one that the validator matches with it, in every form and variant.
TEST(Facts, OperandsAreThoseOfTheRow) {
  size_t count = 0;
  for (const Form& form : all_forms()) {
    if (form.op == Op::call || form.op == Op::tex || form.op == Op::tld4) continue;  // two may be left out
    for (unsigned variant = 0; variant < 8; ++variant) {
      const Sample sample = make_sample(form, variant);
      const ParseResult parsed = parse(make_module(sample), "form.ptx");
      if (!parsed.diagnostics.empty()) continue;
      const Function& function = parsed.module.functions.back();
      const auto found = std::ranges::find(function.instructions, form.op, &Instruction::op);
      ASSERT_NE(found, function.instructions.end());
      if (is_cta_barrier(function, *found)) {
        EXPECT_EQ(is_whole_cta_barrier(function, *found), !operand_of(function, *found, Purpose::threads))
            << sample.instruction;
      }
      std::set<Purpose> seen;
      for (const MatchedOperand& each : match_sample(all_forms()[found->form], sample)) {
        const auto operands = function.operands(*found);
        const auto own = std::ranges::find(operands, each.operand.at, &Operand::at);
        if (own == operands.end() || !seen.insert(each.spec.purpose).second) continue;
        const auto said = operand_of(function, *found, each.spec.purpose);
        ASSERT_TRUE(said) << sample.instruction << " " << text(each.spec.purpose);
        EXPECT_EQ(*said, found->first_operand + static_cast<uint32_t>(own - operands.begin()))
            << sample.instruction << " " << text(each.spec.purpose);
        ++count;
      }
    }
  }
  EXPECT_GT(count, 10000u);
}

Facts facts_of_text(const std::string& instruction) {
  const ParseResult parsed = parse(
      ".version 9.0\n.target sm_90a\n.address_size 64\n.entry k() {\n.reg .pred %p<9>; .reg .b32 %r<9>; "
      ".reg .b64 %l<9>; .reg .f32 %f<9>;\n" +
          instruction + "\nret;\n}\n",
      "facts.ptx");
  for (const Diagnostic& each : parsed.diagnostics) ADD_FAILURE() << render(parsed.module, each);
  const Function& function = parsed.module.functions.back();
  return facts_of(function, function.instructions.front());
}

TEST(Facts, BarriersHaveALevelAndAnAction) {
  using Level = Barrier::Level;
  using Action = Barrier::Action;
  const auto is = [](const std::string& text, Level level, Action action) {
    const Barrier barrier = facts_of_text(text).barrier;
    return barrier.level == level && barrier.action == action;
  };
  EXPECT_TRUE(is("bar.sync 0;", Level::cta, Action::wait));
  EXPECT_TRUE(is("bar.arrive 0, 64;", Level::cta, Action::arrive));
  EXPECT_TRUE(is("barrier.cta.red.popc.aligned.u32 %r1, 0, %p1;", Level::cta, Action::reduce));
  EXPECT_TRUE(is("bar.warp.sync -1;", Level::warp, Action::wait));
  EXPECT_TRUE(is("barrier.cluster.arrive.release;", Level::cluster, Action::arrive));
  EXPECT_TRUE(is("barrier.cluster.wait;", Level::cluster, Action::wait));
}

TEST(Facts, CopiesSayWhatTheyCompleteAndWrite) {
  using Step = Asynchronous::Step;
  using Completion = Asynchronous::Completion;
  const auto is = [](const std::string& text, Step step, Completion completion, bool global, bool shared) {
    const Facts facts = facts_of_text(text);
    return facts.asynchronous.step == step && facts.asynchronous.completion == completion &&
           facts.writes_global_elsewhere == global && facts.writes_shared_elsewhere == shared;
  };
  EXPECT_TRUE(is("cp.async.ca.shared.global [%r1], [%l1], 4;", Step::copy, Completion::group, false, false));
  EXPECT_TRUE(is("cp.async.wait_all;", Step::wait, Completion::group, false, false));
  EXPECT_TRUE(is("cp.async.bulk.commit_group;", Step::commit, Completion::bulk_group, false, false));
  EXPECT_TRUE(is("cp.async.mbarrier.arrive.shared.b64 [%r1];", Step::arrive, Completion::mbarrier, false, false));
  EXPECT_TRUE(is("cp.async.bulk.mbarrier::complete_tx::bytes.shared::cluster.global [%r1], [%l1], 16, [%r2];",
                 Step::copy, Completion::mbarrier, false, true));
  EXPECT_TRUE(is("cp.async.bulk.bulk_group.global.shared::cta [%l1], [%r1], 16;", Step::copy, Completion::bulk_group,
                 true, false));
  EXPECT_TRUE(is("cp.async.bulk.prefetch.L2.global [%l1], 16;", Step::prefetch, Completion::none, false, false));
  EXPECT_TRUE(is("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];", Step::copy,
                 Completion::mbarrier, false, true));
  EXPECT_TRUE(is("multimem.red.add.global.u32 [%l1], %r1;", Step::none, Completion::none, true, false));
}

TEST(Facts, AFenceHasAKindAndAScope) {
  const auto is = [](const std::string& text, Fence fence, Scope scope) {
    const Facts facts = facts_of_text(text);
    return facts.fence == fence && facts.scope == scope;
  };
  EXPECT_TRUE(is("membar.gl;", Fence::memory, Scope::gpu));
  EXPECT_TRUE(is("fence.sys.acq_rel;", Fence::memory, Scope::sys));
  EXPECT_TRUE(is("fence.proxy.async;", Fence::proxy, Scope::none));
  EXPECT_TRUE(is("fence.mbarrier_init.release.cluster;", Fence::mbarrier_init, Scope::cluster));
  EXPECT_TRUE(is("fence.acquire.sync_restrict::shared::cluster.cluster;", Fence::one_space, Scope::cluster));
}

// lo and hi name a comparison of setp, and a half of a product.
TEST(Facts, ModifiersAreInterpretedByOpcode) {
  EXPECT_EQ(facts_of_text("setp.hi.u32 %p1, %r1, %r2;").comparison, Comparison::hi);
  EXPECT_EQ(facts_of_text("setp.u32.and.lt %p1, %r1, %r2, %p2;").comparison, Comparison::lt);
  EXPECT_EQ(facts_of_text("mul.hi.u32 %r1, %r2, %r3;").comparison, Comparison::none);
  EXPECT_EQ(facts_of_text("mul.hi.u32 %r1, %r2, %r3;").product, Product::high);
  EXPECT_EQ(facts_of_text("mad.wide.u32 %l1, %r2, %r3, %l4;").product, Product::wide);
}

}  // namespace
}  // namespace ptxkit::ptx
