// What the analyzer finds does not depend on how a program is written: the order of an opcode's words, the names of
// registers and labels, the place of code that control only jumps to.
#include "fkr_tests/property/rewriting.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <ranges>
#include <set>
#include <sstream>
#include <utility>

#include <gtest/gtest.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/evidence/evidence.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/isa.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "fkr_tests/unit/analyzer/ptx/form_sample.hpp"
#include "support/file.hpp"

namespace ptxkit {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBytes = 60'000;  // of a file

std::vector<std::string> files() {
  std::vector<std::string> found;
  for (const char* folder : {"fkr_tests/static/fixtures", "fkr_tests/golden", "fkr_tests/fuzz/corpus",
                             "fkr_tests/cli/ptx-debug/inputs", "fkr_tests/speed/inputs"}) {
    const fs::path root = fs::path(PTXKIT_SOURCE) / folder;
    for (const auto& entry : fs::recursive_directory_iterator(root))
      if (entry.is_regular_file() && entry.file_size() <= kMaxBytes) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

// Where the finding stands in moved code: F036 names the later of two statements, F069 the end of a block, which may
// have got a branch.
bool is_placed_by_order(std::string_view rule) { return rule == "F036" || rule == "F069"; }

// "F047 refuted" of each kernel, and "F047 medium proved: kernel: statement" of each finding.
std::multiset<std::string> findings(const report::FileAnalysis& analysis, bool by_line) {
  std::multiset<std::string> found;
  for (const report::KernelAnalysis& kernel : analysis.kernels)
    for (const report::RuleVerdict& verdict : kernel.verdicts) {
      std::ostringstream line;
      line << verdict.rule->id << " " << kernel.name << " ";
      found.insert(line.str() + "verdict " + std::to_string(static_cast<int>(verdict.result.verdict)));
      for (const rules::Finding& finding : verdict.result.findings) {
        const uint32_t number = analysis.parsed.module.position(finding.at).line;
        std::ostringstream whole;
        whole << line.str() << static_cast<int>(finding.severity) << " " << static_cast<int>(finding.tier) << " ";
        if (by_line)
          whole << number;
        else if (!is_placed_by_order(verdict.rule->id))
          whole << analysis.parsed.module.line(number);
        found.insert(whole.str());
      }
    }
  return found;
}

report::FileAnalysis analyzed(std::string text) {
  report::AnalysisOptions options;
  options.rules.evidence = &rules::shipped_evidence();
  return report::analyze(std::move(text), "same.ptx", options);
}

std::string difference(const std::multiset<std::string>& before, const std::multiset<std::string>& after) {
  std::string text;
  std::vector<std::string> only;
  std::ranges::set_difference(before, after, std::back_inserter(only));
  for (const std::string& each : only) text += "  only as it was: " + each + "\n";
  only.clear();
  std::ranges::set_difference(after, before, std::back_inserter(only));
  for (const std::string& each : only) text += "  only rewritten: " + each + "\n";
  return text;
}

TEST(Rewriting, FindingsAreTheSame) {
  size_t file_count = 0, moved_count = 0;
  std::set<std::string> known;  // texts that differ in the lines of their target alone are analyzed once
  for (const std::string& path : files()) {
    const auto text = read_file(path);
    ASSERT_TRUE(text) << path;
    const size_t head = text->find(".address_size");
    if (head != text->npos && !known.insert(text->substr(head)).second) continue;
    const report::FileAnalysis before = analyzed(*text);
    if (!before.parsed.diagnostics.empty() || before.kernels.empty()) continue;
    ++file_count;
    std::mt19937 random(static_cast<unsigned>(file_count));
    const ptx::Module& module = before.parsed.module;
    const auto by_line = findings(before, true);
    for (std::string other : {rewriting::with_other_orders(module, random),
                              rewriting::with_other_orders(module, random), rewriting::with_other_names(module)}) {
      const std::string copy = other;
      const report::FileAnalysis after = analyzed(std::move(other));
      for (const ptx::Diagnostic& each : after.parsed.diagnostics)
        ADD_FAILURE() << path << "\n" << render(after.parsed.module, each);
      EXPECT_EQ(difference(by_line, findings(after, true)), "") << path << "\n" << copy;
    }
    if (auto moved = rewriting::with_other_places(module, random)) {
      ++moved_count;
      const std::string copy = *moved;
      const report::FileAnalysis after = analyzed(std::move(*moved));
      for (const ptx::Diagnostic& each : after.parsed.diagnostics)
        ADD_FAILURE() << path << "\n" << render(after.parsed.module, each);
      EXPECT_EQ(difference(findings(before, false), findings(after, false)), "") << path << "\n" << copy;
    }
  }
  EXPECT_GT(file_count, 500u);
  EXPECT_GT(moved_count, 40u);
}

// Every form of the ISA table in other orders: taken, as the same form, with the same meaning.
TEST(Rewriting, FactsOfEveryFormAreTheSame) {
  std::mt19937 random(1);
  size_t count = 0;
  for (const ptx::Form& form : ptx::all_forms())
    for (unsigned variant = 0; variant < 2; ++variant) {
      ptx::Sample sample = ptx::make_sample(form, variant);
      const ptx::ParseResult before = ptx::parse(ptx::make_module(sample), "form.ptx");
      if (!before.diagnostics.empty()) continue;
      const auto instruction_of = [&](const ptx::ParseResult& parsed) {
        const auto& all = parsed.module.functions.back().instructions;
        const auto found = std::ranges::find(all, form.op, &ptx::Instruction::op);
        return found != all.end() ? static_cast<ptx::InstructionId>(found - all.begin()) : ptx::kNone;
      };
      const ptx::Function& function = before.module.functions.back();
      const ptx::InstructionId id = instruction_of(before);
      ASSERT_NE(id, ptx::kNone) << sample.instruction;
      const std::string operands = sample.instruction.substr(sample.spelling.size());
      for (const std::string& spelling : rewriting::other_orders(sample.spelling, 6, random)) {
        sample.instruction = spelling + operands;
        const ptx::ParseResult after = ptx::parse(ptx::make_module(sample), "form.ptx");
        for (const ptx::Diagnostic& each : after.diagnostics) ADD_FAILURE() << render(after.module, each);
        if (!after.diagnostics.empty()) continue;
        const ptx::Function& other = after.module.functions.back();
        EXPECT_EQ(function.instructions[id].form, other.instructions[id].form) << sample.instruction;
        EXPECT_TRUE(facts_of(function, function.instructions[id]) == facts_of(other, other.instructions[id]))
            << sample.instruction;
        EXPECT_TRUE(accesses_of(function, id) == accesses_of(other, id)) << sample.instruction;
        ++count;
      }
    }
  EXPECT_GT(count, 2000u);
}

}  // namespace
}  // namespace ptxkit
