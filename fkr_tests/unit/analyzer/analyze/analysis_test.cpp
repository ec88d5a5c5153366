// A file checked against the catalogue: which rules have a verdict, and the status of the file.
#include "analyzer/analyze/analysis.hpp"

#include <algorithm>
#include <ranges>

#include <gmock/gmock.h>

#include "analyzer/rules/run_rule.hpp"
#include "analyzer/rules/table.hpp"

namespace ptxkit::report {
namespace {

using rules::Status;
using rules::Verdict;

const std::string kHeader = ".version 8.0\n.target sm_75\n.address_size 64\n";
const std::string kGood = kHeader + ".visible .entry good() { ret; }\n";
const std::string kMisaligned =
    ".visible .entry bad()\n.reqntid 1, 1, 1\n{\n    .shared .align 16 .b8 buffer[64];\n"
    "    st.shared.u32 [buffer+1], 1;\n    ret;\n}\n";

TEST(Analysis, every_rule_has_a_verdict) {
  const FileAnalysis file = analyze(kGood, "good.ptx", {});
  ASSERT_EQ(file.kernels.size(), 1u);
  RuleSet seen;
  for (const RuleVerdict& verdict : file.kernels[0].verdicts) seen.set(index_of(*verdict.rule));
  EXPECT_EQ(seen, all_rules());
  EXPECT_EQ(implemented_rules(), all_rules());
  EXPECT_EQ(file.status, Status::good);
  EXPECT_EQ(file.kernels[0].score.percent(), 100);
}

TEST(Analysis, sets_of_rules_agree_with_the_catalogue) {
  EXPECT_EQ(all_rules().count(), rules::catalogue().size());
  for (const rules::Implementation& rule : rules::implementations()) {
    EXPECT_TRUE(implemented_rules()[index_of(*rules::find_rule(rule.id))]) << rule.id;
    EXPECT_FALSE(front_end_rules()[index_of(*rules::find_rule(rule.id))]) << rule.id;
  }
  EXPECT_TRUE(important_rules()[index_of(*rules::find_rule("F051"))]);
  EXPECT_FALSE(important_rules()[index_of(*rules::find_rule("F052"))]);
  EXPECT_TRUE(front_end_rules()[index_of(*rules::find_rule("F007"))]);
}

TEST(Analysis, only_wanted_rules_run) {
  AnalysisOptions options;
  options.wanted = RuleSet().set(index_of(*rules::find_rule("F051")));
  const FileAnalysis file = analyze(kHeader + kMisaligned, "bad.ptx", options);
  ASSERT_EQ(file.kernels.at(0).verdicts.size(), 1u);
  EXPECT_EQ(file.kernels[0].verdicts[0].rule->id, "F051");
  EXPECT_EQ(file.kernels[0].score.percent(), 0);
  EXPECT_EQ(file.status, Status::critical);
}

TEST(Analysis, the_module_is_as_bad_as_its_worst_kernel) {
  const FileAnalysis file = analyze(kGood + kMisaligned, "two.ptx", {});
  ASSERT_EQ(file.kernels.size(), 2u);
  EXPECT_EQ(file.kernels[0].name, "good");
  EXPECT_EQ(file.kernels[0].score.percent(), 100);
  EXPECT_LT(file.kernels[1].score.percent(), 100);
  EXPECT_EQ(file.score->percent(), file.kernels[1].score.percent());
  EXPECT_EQ(file.status, Status::critical);
  EXPECT_GE(file.critical_count(), 1u);
}

TEST(Analysis, kernels_can_be_chosen_by_name) {
  AnalysisOptions options;
  options.wants_kernel = [](std::string_view name) { return name == "good"; };
  const FileAnalysis file = analyze(kGood + kMisaligned, "two.ptx", options);
  ASSERT_EQ(file.kernels.size(), 1u);
  EXPECT_EQ(file.skipped_kernel_count, 1u);
  EXPECT_EQ(file.status, Status::good);
}

TEST(Analysis, a_text_with_mistakes_has_refuted_and_undecided_rules_and_no_score) {
  const FileAnalysis file = analyze(kHeader + ".visible .entry k() { frobnicate; }\n", "bad.ptx", {});
  EXPECT_EQ(file.status, Status::unparsable);
  EXPECT_FALSE(file.score.has_value());
  ASSERT_EQ(file.kernels.size(), 1u);
  size_t refuted_count = 0;
  for (const RuleVerdict& verdict : file.kernels[0].verdicts) {
    if (verdict.result.verdict == Verdict::refuted) {
      ++refuted_count;
      EXPECT_EQ(verdict.rule->id, "F007");
      EXPECT_FALSE(verdict.result.findings.empty());
    } else {
      EXPECT_EQ(verdict.result.verdict, Verdict::undecided) << verdict.rule->id;
    }
  }
  EXPECT_EQ(refuted_count, 1u);
}

TEST(Analysis, beyond_syntax_and_types_the_front_end_refutes_but_proves_nothing) {
  const size_t space_mismatch = index_of(*rules::find_rule("F030"));
  const auto f030_of = [](const FileAnalysis& file) {
    const auto found = std::ranges::find(file.kernels.at(0).verdicts, rules::find_rule("F030"), &RuleVerdict::rule);
    return found == file.kernels[0].verdicts.end() ? nullptr : &found->result;
  };
  EXPECT_FALSE(front_end_rules()[space_mismatch]);
  const FileAnalysis bad =
      analyze(kHeader + ".visible .entry k() { .shared .b32 x; st.global.u32 [x], 1; ret; }\n", "bad.ptx", {});
  ASSERT_NE(f030_of(bad), nullptr);
  EXPECT_EQ(f030_of(bad)->verdict, Verdict::refuted);
  if (!implemented_rules()[space_mismatch]) {
    EXPECT_EQ(f030_of(analyze(kGood, "good.ptx", {})), nullptr);
  }
}

TEST(Analysis, a_module_without_a_kernel_is_judged_as_a_whole) {
  const FileAnalysis file = analyze(kHeader + ".visible .func helper() { ret; }\n", "lib.ptx", {});
  ASSERT_EQ(file.kernels.size(), 1u);
  EXPECT_EQ(file.kernels[0].function, ptx::kNone);
  EXPECT_EQ(file.kernels[0].verdicts[0].rule->id, "F001");
  EXPECT_EQ(file.kernels[0].verdicts[0].result.verdict, Verdict::refuted);
  EXPECT_GT(file.kernels[0].score.lost, 0u);
}

TEST(Analysis, texts_from_before_address_size_have_64_bit_pointers) {
  const FileAnalysis file = analyze(
      ".version 2.1\n.target sm_20\n.entry k(.param .u64 out)\n{\n    .reg .u32 %t;\n    .reg .u64 %p, %o;\n"
      "    mov.u32 %t, %tid.x;\n    mul.wide.u32 %o, %t, 4;\n    ld.param.u64 %p, [out];\n    add.u64 %p, %p, %o;\n"
      "    st.global.u32 [%p], %t;\n    exit;\n}\n",
      "old.ptx", {});
  ASSERT_TRUE(file.parsed.diagnostics.empty());
  for (const RuleVerdict& verdict : file.kernels.at(0).verdicts) {
    if (verdict.rule->id != "F051") continue;
    EXPECT_EQ(verdict.result.verdict, Verdict::survived) << verdict.result.basis;
  }
}

TEST(Analysis, a_text_of_a_later_version_is_read_and_F002_says_so) {
  const std::string later = ".version 9.4\n.target sm_90a\n.address_size 64\n";
  const FileAnalysis file = analyze(later + ".visible .entry k() { ret; }\n" + std::string(3, '\0'), "later.ptx", {});
  ASSERT_TRUE(file.parsed.diagnostics.empty());
  EXPECT_EQ(file.kernels.at(0).verdicts[1].rule->id, "F002");
  EXPECT_EQ(file.kernels[0].verdicts[1].result.verdict, Verdict::survived);
  EXPECT_EQ(file.kernels[0].verdicts[1].result.basis, "'.version 9.4' is later than 9.0, by which the text was read");
  const FileAnalysis unknown = analyze(later + ".visible .entry k() { frobnicate; ret; }\n", "later.ptx", {});
  ASSERT_EQ(unknown.parsed.diagnostics.size(), 1u);
  EXPECT_EQ(unknown.parsed.diagnostics[0].kind, ptx::DiagnosticKind::unknown_opcode);
}

TEST(Analysis, a_report_is_as_bad_as_its_worst_file) {
  Totals totals;
  totals.add(analyze(kHeader + kMisaligned, "bad.ptx", {}));
  totals.add(analyze(kGood, "good.ptx", {}));
  EXPECT_EQ(totals.status, Status::critical);
  totals.add(analyze("", "empty.ptx", {}));
  EXPECT_EQ(totals.status, Status::unparsable);
  totals.add(unreadable("gone.ptx", Error{"x", "y", "z"}));
  EXPECT_EQ(totals.status, Status::unreadable);
  EXPECT_EQ(totals.file_count, 4u);
  EXPECT_EQ(totals.ran, implemented_rules());
}

}  // namespace
}  // namespace ptxkit::report
