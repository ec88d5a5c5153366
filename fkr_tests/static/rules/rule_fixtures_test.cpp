// Every rule against programs that it must refute, let pass, or leave open:
// ../fixtures/F0xx/{refuted,survived,undecided}_*.ptx. The texts of ../refused are invalid PTX: the front end's message
// counts for the rule.
//
// The file's name states the verdict. A line that ends in `//! critical` (or another severity) must have a finding of
// that severity. No other line may have one above info. If ptxas is installed, every program is also assembled, so that
// no rule is tested on invalid PTX.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "analyzer/evidence/evidence.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/diagnostics.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/run_rule.hpp"
#include "analyzer/rules/table.hpp"
#include "runtime/launch/differential.hpp"
#include "support/file.hpp"

namespace ptxkit::rules {
namespace {

namespace fs = std::filesystem;

struct Fixture {
  std::string rule, name, path;
  Verdict verdict = Verdict::survived;
  bool is_refused = false;  // rejected by the front end and by ptxas
};

void PrintTo(const Fixture& fixture, std::ostream* out) { *out << fixture.path; }

std::vector<Fixture> fixtures() {
  std::vector<Fixture> found;
  for (const char* root : {PTXKIT_FIXTURES, PTXKIT_REFUSED_FIXTURES})
    for (const auto& folder : fs::directory_iterator(root))
      for (const auto& file : fs::directory_iterator(folder.path())) {
        const std::string name = file.path().stem().string();
        const Verdict verdict = name.starts_with("refuted_")     ? Verdict::refuted
                                : name.starts_with("undecided_") ? Verdict::undecided
                                                                 : Verdict::survived;
        found.push_back({folder.path().filename().string(), name, file.path().string(), verdict,
                         root == std::string_view(PTXKIT_REFUSED_FIXTURES)});
      }
  std::sort(found.begin(), found.end(), [](const Fixture& a, const Fixture& b) { return a.path < b.path; });
  return found;
}

std::string_view name_of(Severity severity) {
  constexpr std::string_view kNames[] = {"info", "low", "medium", "high", "critical"};
  return kNames[static_cast<size_t>(severity)];
}

std::string_view name_of(Verdict verdict) {
  constexpr std::string_view kNames[] = {"survived", "refuted", "undecided", "n/a"};
  return kNames[static_cast<size_t>(verdict)];
}

// Whether a function decides the rule. The front end decides the others, F002 to F020.
bool is_function(std::string_view rule) {
  return std::ranges::any_of(implementations(),
                             [&](const Implementation& implementation) { return implementation.id == rule; });
}

struct Outcome {
  ptx::ParseResult parsed;
  RuleResult result;
};

Outcome run(const std::string& rule, const std::string& text, Profile profile) {
  Outcome run{ptx::parse(text, "fixture.ptx"), {}};
  Options options;
  options.profile = profile;
  options.evidence = &shipped_evidence();
  // The comparison of `--differential`, with the emulator's results in the place of the hardware's.
  options.differential = [](const ptx::Module& module, ptx::FunctionId kernel) {
    return compare_schedules(module, kernel, nullptr);
  };
  ptx::FunctionId entry = ptx::kNone;
  for (ptx::FunctionId id = 0; id < run.parsed.module.functions.size(); ++id)
    if (run.parsed.module.functions[id].is_entry) entry = id;
  if (is_function(rule)) {
    Context context(run.parsed.module, entry, run.parsed.diagnostics, options);
    run.result = run_rule(rule, context);
  } else if (run.parsed.diagnostics.empty()) {
    run.result = survived("the front end refuses nothing");
  }
  return run;
}

// Finds "1 barriers" in a sentence; "lane 1 has" is no count.
bool has_plural_of_one(const std::string& sentence) {
  static const std::regex kOne(R"((?:^|(\S+) )1 (?:[a-z-]+ )?(?!is |has |was |this )[a-z]+[^su \W]s\b)");
  static const std::set<std::string> kNumbered{"barrier", "block",  "iteration", "lane",
                                               "line",    "marker", "thread",    "warp"};
  for (std::sregex_iterator found(sentence.begin(), sentence.end(), kOne), end; found != end; ++found)
    if (!kNumbered.contains((*found)[1].str())) return true;
  return false;
}

class RuleFixture : public testing::TestWithParam<Fixture> {};

TEST_P(RuleFixture, HasTheVerdictOfItsName) {
  const Fixture& fixture = GetParam();
  const auto text = read_file(fixture.path);
  ASSERT_TRUE(text) << text.error().message();
  if (fixture.is_refused) {
    const ptx::ParseResult parsed = ptx::parse(*text, "fixture.ptx");
    ASSERT_EQ(parsed.diagnostics.size(), 1u);
    EXPECT_TRUE(counts_for(fixture.rule, parsed.module, parsed.diagnostics[0])) << parsed.diagnostics[0].message;
    return;
  }
  const Outcome outcome = run(fixture.rule, *text, Profile::root_cause);
  for (const ptx::Diagnostic& diagnostic : outcome.parsed.diagnostics)
    ADD_FAILURE() << ptx::render(outcome.parsed.module, diagnostic);
  EXPECT_EQ(name_of(outcome.result.verdict), name_of(fixture.verdict)) << outcome.result.basis;
  EXPECT_FALSE(outcome.result.basis.empty());
  EXPECT_FALSE(has_plural_of_one(outcome.result.basis)) << outcome.result.basis;

  std::set<std::pair<uint32_t, std::string>> expected, reported;
  for (uint32_t line = 1; line <= outcome.parsed.module.line_starts.size(); ++line) {
    const std::string_view source = outcome.parsed.module.line(line);
    const size_t mark = source.find("//! ");
    if (mark != std::string_view::npos && !source.substr(mark).starts_with("//! exit "))  // read by exit_codes_test.cpp
      expected.emplace(line, std::string(source.substr(mark + 4)));
  }
  for (const Finding& finding : outcome.result.findings) {
    if (finding.instruction == ptx::kNone) continue;
    reported.emplace(outcome.parsed.module.position(finding.at).line, std::string(name_of(finding.severity)));
    if (finding.severity >= Severity::high) {
      EXPECT_NE(finding.tier, Tier::possible) << finding.message;
      EXPECT_FALSE(finding.remedy.empty()) << finding.message;
    }
    EXPECT_FALSE(has_plural_of_one(finding.message)) << finding.message;
    // Lower case, no final period: "expected ..., found ...".
    ASSERT_FALSE(finding.message.empty());
    EXPECT_FALSE(std::isupper(static_cast<unsigned char>(finding.message.front()))) << finding.message;
    EXPECT_NE(finding.message.back(), '.') << finding.message;
  }
  EXPECT_EQ(expected, reported);
}

TEST_P(RuleFixture, IsPtxThatPtxasAccepts) {
  const Fixture& fixture = GetParam();
  if (fixture.name == "refuted_static_size") GTEST_SKIP() << "too much static shared memory is what it shows";
  static const bool has_ptxas = std::system("ptxas --version > /dev/null 2>&1") == 0;
  if (!has_ptxas) GTEST_SKIP() << "ptxas is not installed";
  // Newer assemblers do not support sm_70: replace it by sm_75.
  auto text = read_file(fixture.path);
  ASSERT_TRUE(text);
  if (const size_t at = text->find("sm_70"); at != std::string::npos) text->replace(at, 5, "sm_75");
  const fs::path copy = fs::temp_directory_path() / ("ptxkit_" + std::to_string(getpid()) + ".ptx");
  std::ofstream(copy) << *text;
  const size_t at = text->find("sm_");
  const std::string target =
      at == text->npos ? "sm_75" : text->substr(at, text->find_first_not_of("sm_0123456789a", at) - at);
  const std::string command = "ptxas -arch=" + target + " -o /dev/null " + copy.string() + " 2>/dev/null";
  EXPECT_EQ(std::system(command.c_str()) != 0, fixture.is_refused);
  fs::remove(copy);
}

INSTANTIATE_TEST_SUITE_P(Rules, RuleFixture, testing::ValuesIn(fixtures()),
                         [](const auto& instance) { return instance.param.rule + "_" + instance.param.name; });

// The page of a rule has one more of each, which rule_pages_test runs.
TEST(RuleFixtures, HaveAProgramThatIsRefutedAndOneThatSurvives) {
  std::set<std::pair<std::string, Verdict>> found;
  for (const Fixture& fixture : fixtures()) found.emplace(fixture.rule, fixture.verdict);
  ASSERT_GE(catalogue().size(), 101u);
  for (const RuleInfo& rule : catalogue()) {
    EXPECT_TRUE(found.contains({std::string(rule.id), Verdict::refuted})) << rule.id;
    EXPECT_TRUE(found.contains({std::string(rule.id), Verdict::survived})) << rule.id;
  }
}

TEST(RuleFixtures, AreOfRulesThatExist) {
  std::set<std::string> existing;
  for (const RuleInfo& rule : catalogue()) existing.emplace(rule.id);
  for (const Fixture& fixture : fixtures()) EXPECT_TRUE(existing.contains(fixture.rule)) << fixture.path;
}

// The literal reading of the original catalogue: every site is critical, whatever the analysis proves, and a shuffle
// ends the taint.
TEST(PatternProfile, EverySiteIsCritical) {
  for (const char* name :
       {"F021/survived_aligned", "F081/survived_proved", "F081/survived_bytes", "F082/survived_scaled"}) {
    const auto text = read_file(std::string(PTXKIT_FIXTURES) + "/" + name + ".ptx");
    ASSERT_TRUE(text) << name;
    const Outcome outcome = run(std::string(name).substr(0, 4), *text, Profile::pattern);
    EXPECT_EQ(outcome.result.verdict, Verdict::refuted) << name;
    EXPECT_TRUE(outcome.result.loses_points) << name;
    for (const Finding& finding : outcome.result.findings) EXPECT_EQ(finding.severity, Severity::critical) << name;
  }
}

TEST(PatternProfile, AShuffleEndsTheTaint) {
  const auto text = read_file(std::string(PTXKIT_FIXTURES) + "/F081/refuted_cursor_through_shuffle.ptx");
  ASSERT_TRUE(text);
  EXPECT_EQ(run("F081", *text, Profile::root_cause).result.verdict, Verdict::refuted);
  EXPECT_EQ(run("F081", *text, Profile::pattern).result.verdict, Verdict::survived);
}

TEST(PatternProfile, AValueThatIndexesAGlobalLoadGoesIntoWhatIsLoaded) {
  const std::string text =
      ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 table, .param .u64 out)\n"
      ".reqntid 32, 1, 1\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<6>;\n.shared .align 16 .b8 s[128];\n"
      "ld.param.u64 %rd1, [table];\nld.param.u64 %rd2, [out];\nmov.u32 %r1, s;\nld.shared.u32 %r2, [%r1];\n"
      "mul.wide.u32 %rd3, %r2, 4;\nadd.s64 %rd4, %rd1, %rd3;\nld.global.u32 %r3, [%rd4];\n"
      "st.global.u32 [%rd2], %r3;\nret;\n}\n";
  EXPECT_EQ(run("F081", text, Profile::root_cause).result.verdict, Verdict::survived);
  const Outcome outcome = run("F081", text, Profile::pattern);
  EXPECT_EQ(outcome.result.verdict, Verdict::refuted);
  ASSERT_EQ(outcome.result.findings.size(), 1u);
  EXPECT_EQ(outcome.result.findings[0].severity, Severity::critical);
}

TEST(RootCauseProfile, WithoutEvidenceAProvedSiteIsOpenAndKeepsThePoints) {
  const auto text = read_file(std::string(PTXKIT_FIXTURES) + "/F081/survived_proved.ptx");
  ASSERT_TRUE(text);
  const ptx::ParseResult parsed = ptx::parse(*text, "fixture.ptx");
  const Options options;
  Context context(parsed.module, 0, parsed.diagnostics, options);
  const RuleResult result = run_rule("F081", context);
  EXPECT_EQ(result.verdict, Verdict::undecided);
  EXPECT_FALSE(result.loses_points);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].severity, Severity::info);
  EXPECT_NE(result.basis.find("no evidence covers target"), std::string::npos);
}

// A search that ends early is reported and is no proof: each thread has its own words, but not all pairs are examined.
TEST(Races, APairBeyondTheBudgetIsNamed) {
  auto kernel = [](unsigned stores) {
    std::string text =
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n.reqntid 1024, 1, 1\n{\n"
        ".reg .b32 %r<4>;\n.shared .align 4 .b8 s[4096];\nmov.u32 %r1, %tid.x;\nshl.b32 %r2, %r1, 2;\n"
        "mov.u32 %r3, s;\nadd.u32 %r3, %r3, %r2;\n";
    for (unsigned i = 0; i < stores; ++i) text += "st.shared.u32 [%r3], " + std::to_string(i) + ";\n";
    return text + "ret;\n}\n";
  };
  const Outcome few = run("F036", kernel(100), Profile::root_cause),
                many = run("F036", kernel(120), Profile::root_cause);
  EXPECT_EQ(few.result.verdict, Verdict::survived) << few.result.basis;
  EXPECT_EQ(many.result.verdict, Verdict::undecided);
  EXPECT_NE(many.result.basis.find("not decided: budget"), std::string::npos) << many.result.basis;
}

// Any block may come before any barrier, so what the rules would have to follow grows with the cube of the length.
TEST(Barriers, MoreWaysToBarriersThanTheBudgetAreNamed) {
  constexpr unsigned kBlocks = 800;
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n.shared .align 4 .b8 s[4096];\n.visible .entry k()\n{\n"
      ".reg .pred %p;\n.reg .b32 %r<4>;\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, s;\n";
  for (unsigned i = 0; i < kBlocks; ++i) {
    text += fmt::format(
        "L{}: add.u32 %r3, %r3, %r1;\nadd.u32 %r2, %r2, %r3;\nst.shared.u32 [%r2], %r1;\n"
        "setp.eq.u32 %p, %r3, {};\n@%p bra L{};\nbar.sync 0;\n",
        i, i, (i * 104'729 + 5) % kBlocks);
  }
  const Outcome outcome = run("F038", text + "ret;\n}\n", Profile::root_cause);
  EXPECT_EQ(outcome.result.verdict, Verdict::undecided);
  EXPECT_NE(outcome.result.basis.find("not decided: budget"), std::string::npos) << outcome.result.basis;
}

// A table that many branches share makes a short text with very many edges.
TEST(ControlFlow, MoreEdgesThanTheBudgetLeaveEveryRuleUndecided) {
  auto kernel = [](unsigned labels) {
    std::string table, blocks;
    for (unsigned i = 0; i < labels; ++i) {
      table += fmt::format("{}L{}", i == 0 ? "" : ", ", i);
      blocks += fmt::format("L{}:\n", i);
      if (i % 8 == 0) blocks += "add.u32 %r1, %r1, 1;\nbrx.idx %r1, T;\n";
    }
    return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<2>;\nT: "
           ".branchtargets " +
           table + ";\nmov.u32 %r1, %tid.x;\nbrx.idx %r1, T;\n" + blocks + "ret;\n}\n";
  };
  const auto names_budget = [](const Outcome& outcome) {
    return outcome.result.verdict == Verdict::undecided &&
           outcome.result.basis.find("not decided: budget") != std::string::npos;
  };
  EXPECT_FALSE(names_budget(run("F038", kernel(100), Profile::root_cause)));
  for (const char* rule : {"F038", "F051", "F036"})
    EXPECT_TRUE(names_budget(run(rule, kernel(4000), Profile::root_cause))) << rule;
}

// Not a fixture: current assemblers reject PTX with this directive.
TEST(DeprecatedOpcode, TheDirectiveOfPtx20Too) {
  const std::string head = ".version 2.0\n.target sm_20\n.entry k()\n.maxntid 128\n";
  const Outcome outcome = run("F087", head + ".maxnctapersm 4\n{ ret; }\n", Profile::root_cause);
  EXPECT_EQ(outcome.result.verdict, Verdict::refuted);
  ASSERT_EQ(outcome.result.findings.size(), 1u);
  EXPECT_EQ(outcome.result.findings[0].severity, Severity::medium);
  EXPECT_EQ(outcome.result.findings[0].message, "expected .minnctapersm, found .maxnctapersm, which is deprecated");
  EXPECT_EQ(run("F087", head + ".minnctapersm 4\n{ ret; }\n", Profile::root_cause).result.verdict, Verdict::survived);
}

// Facts that a finding of F051 must state.
TEST(Alignment, AWitnessOfACursorNamesThreadIterationAndAddress) {
  for (const char* name : {"refuted_cursor", "refuted_loaded_cursor", "refuted_cursor_of_steps"}) {
    const auto text = read_file(std::string(PTXKIT_FIXTURES) + "/F051/" + name + ".ptx");
    ASSERT_TRUE(text) << name;
    const Outcome outcome = run("F051", *text, Profile::root_cause);
    ASSERT_FALSE(outcome.result.findings.empty()) << name;
    const auto& witness = outcome.result.findings[0].witness;
    ASSERT_TRUE(witness) << name;
    EXPECT_EQ(witness->tid[0], 0u) << name;
    EXPECT_EQ(witness->iteration, 1u) << name;
    ASSERT_TRUE(witness->address) << name;
    EXPECT_NE(*witness->address % 4, 0u) << name;
  }
}

TEST(Alignment, AnAccessBeyondTheBudgetOfRunsIsNamed) {
  auto kernel = [](unsigned loads) {
    std::string text =
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .f32 x)\n{\n"
        ".reg .pred %p;\n.reg .f32 %f;\n.reg .b32 %r<3>;\n.reg .b64 %rd<4>;\n"
        "ld.param.u64 %rd1, [p];\nld.param.f32 %f, [x];\nmov.u32 %r1, 0;\nagain:\n"
        "cvt.rzi.u64.f32 %rd2, %f;\nadd.u64 %rd3, %rd1, %rd2;\n";
    for (unsigned i = 0; i < loads; ++i)
      text += "ld.global.u32 %r2, [%rd3+" + std::to_string(4 * i) + "];\nst.global.u8 [%rd1], %r2;\n";
    return text + "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p, %r1, 9;\n@%p bra again;\nret;\n}\n";
  };
  auto names_budget = [](const RuleResult& result) {
    return std::any_of(result.findings.begin(), result.findings.end(), [](const Finding& finding) {
      return finding.message.find("not decided: budget") != std::string::npos;
    });
  };
  const Outcome few = run("F051", kernel(24), Profile::root_cause), many = run("F051", kernel(25), Profile::root_cause);
  EXPECT_EQ(few.result.verdict, Verdict::undecided);
  EXPECT_FALSE(names_budget(few.result));
  EXPECT_EQ(many.result.verdict, Verdict::undecided);
  EXPECT_TRUE(names_budget(many.result));
}

TEST(Alignment, AWitnessOfACursorAndTheLaneNamesTwoThreads) {
  const auto text = read_file(std::string(PTXKIT_FIXTURES) + "/F051/refuted_loaded_cursor_and_lane.ptx");
  ASSERT_TRUE(text);
  const Outcome outcome = run("F051", *text, Profile::root_cause);
  ASSERT_EQ(outcome.result.findings.size(), 1u);
  const auto& witness = outcome.result.findings[0].witness;
  ASSERT_TRUE(witness);
  EXPECT_EQ(witness->tid[0], 1u);
  EXPECT_EQ(witness->other_tid[0], 0u);
}

TEST(Alignment, AssumedAlignmentOverridesTheContract) {
  const auto text = read_file(std::string(PTXKIT_FIXTURES) + "/F051/survived_strides.ptx");
  ASSERT_TRUE(text);
  const ptx::ParseResult parsed = ptx::parse(*text, "fixture.ptx");
  Options options;
  options.assume_align_bytes = 4;
  Context context(parsed.module, 0, parsed.diagnostics, options);
  const RuleResult result = run_rule("F051", context);
  EXPECT_EQ(result.verdict, Verdict::undecided) << "a 16-byte store through a pointer that is 4-aligned only";
  EXPECT_TRUE(result.loses_points);
}

}  // namespace
}  // namespace ptxkit::rules
