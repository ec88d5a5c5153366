// The exit code of `ptx-debug analyze --falsify` (with --differential for F084) for every fixture. A fixture states it
// in its last line: `//! exit 2`. The rule's own findings determine the smallest code that the line may state; findings
// of other rules may raise it.
#include <algorithm>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/evidence/evidence.hpp"
#include "runtime/launch/differential.hpp"
#include "support/file.hpp"

namespace ptxkit::report {
namespace {

namespace fs = std::filesystem;

struct Fixture {
  std::string rule, name, path;
};

void PrintTo(const Fixture& fixture, std::ostream* out) { *out << fixture.path; }

std::vector<Fixture> fixtures(const char* root) {
  std::vector<Fixture> found;
  for (const auto& folder : fs::directory_iterator(root))
    for (const auto& file : fs::directory_iterator(folder.path()))
      found.push_back({folder.path().filename().string(), file.path().stem().string(), file.path().string()});
  std::ranges::sort(found, {}, &Fixture::path);
  return found;
}

FileAnalysis analyzed(const Fixture& fixture) {
  AnalysisOptions options;
  options.rules.evidence = &rules::shipped_evidence();
  if (fixture.rule == "F084")
    options.rules.differential = [](const ptx::Module& module, ptx::FunctionId kernel) {
      return compare_schedules(module, kernel, nullptr);
    };
  return analyze(read_file(fixture.path).value_or(""), fixture.path, options);
}

// The exit code that the table of docs/ptx-debug.md demands for the findings of one rule.
int demanded_exit_code(const FileAnalysis& file, const std::string& rule) {
  int code = 0;
  for (const KernelAnalysis& kernel : file.kernels) {
    for (const RuleVerdict& verdict : kernel.verdicts) {
      if (verdict.rule->id != rule) continue;
      for (const rules::Finding& finding : verdict.result.findings) {
        const int demanded = finding.severity == rules::Severity::critical ? 3
                             : finding.severity != rules::Severity::high   ? 0
                             : finding.tier == rules::Tier::proved         ? 2
                             : finding.tier == rules::Tier::likely         ? 1
                                                                           : 0;
        code = std::max(code, demanded);
      }
    }
  }
  return code;
}

class FixtureExit : public testing::TestWithParam<Fixture> {};

TEST_P(FixtureExit, IsTheCodeThatItStates) {
  const FileAnalysis file = analyzed(GetParam());
  const std::string stated = "//! exit " + std::to_string(rules::exit_code(file.status));
  const std::string text = read_file(GetParam().path).value_or("");
  EXPECT_TRUE(text.ends_with(stated + "\n")) << "expected its last line to be '" << stated << "'";
  EXPECT_GE(rules::exit_code(file.status), demanded_exit_code(file, GetParam().rule));
}

const auto test_name = [](const auto& instance) { return instance.param.rule + "_" + instance.param.name; };
INSTANTIATE_TEST_SUITE_P(Rules, FixtureExit, testing::ValuesIn(fixtures(PTXKIT_FIXTURES)), test_name);

class RefusedFixtureExit : public testing::TestWithParam<Fixture> {};

TEST_P(RefusedFixtureExit, IsTen) { EXPECT_EQ(rules::exit_code(analyzed(GetParam()).status), 10); }

INSTANTIATE_TEST_SUITE_P(Rules, RefusedFixtureExit, testing::ValuesIn(fixtures(PTXKIT_REFUSED_FIXTURES)), test_name);

}  // namespace
}  // namespace ptxkit::report
