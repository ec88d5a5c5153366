// The ISA table against itself: its words exist, its rows are accepted, and what is next to them is not.
#include <gtest/gtest.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/levels.hpp"
#include "fkr_tests/unit/ptx/form_sample.hpp"

namespace ptxkit::ptx {
namespace {

std::string name(const Form& form) {
  return std::string(text(form.op)) + " | " + std::string(form.modifiers) + " | " + std::string(form.operands);
}

TEST(IsaTable, EveryWordIsInAVocabulary) {
  for (const Form& form : all_forms()) {
    for (std::string_view rest = form.modifiers; !rest.empty();) {
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
      const std::string_view slot = rest.substr(0, rest.find(' '));
      if (slot.empty()) break;
      rest.remove_prefix(slot.size());
      for (const std::string_view word : slot_alternatives(slot)) {
        std::string plain(word);
        if (const size_t star = plain.find('*'); star != std::string::npos) plain.replace(star, 1, "8");
        EXPECT_NE(find_word(plain).kind, Word::Kind::unknown) << "'" << plain << "' in " << name(form);
      }
    }
    EXPECT_TRUE(is_known_version(form.version / 10, form.version % 10)) << name(form);
  }
}

TEST(IsaTable, EveryOpcodeHasAForm) {
  for (uint16_t i = 0; i < static_cast<uint16_t>(Op::unknown); ++i) {
    EXPECT_FALSE(forms_of(static_cast<Op>(i)).empty()) << text(static_cast<Op>(i));
  }
}

TEST(IsaTable, EveryFormIsAccepted) {
  for (const Form& form : all_forms()) {
    for (unsigned variant = 0; variant < 4; ++variant) {
      const Sample sample = make_sample(form, variant);
      const ParseResult result = parse(make_module(sample), "sample.ptx");
      // The target may be younger than the form: "sm_75" is known from version 6.3 on.
      for (const Diagnostic& diagnostic : result.diagnostics) {
        if (diagnostic.kind == DiagnosticKind::target_needs_version) continue;
        ADD_FAILURE() << name(form) << "\n" << sample.instruction << "\n" << render(result.module, diagnostic);
      }
    }
  }
}

// One operand more, and one less where operands are needed, is refused.
TEST(IsaTable, OneOperandMoreIsRefused) {
  for (const Form& form : all_forms()) {
    if (form.operands.find("...") != std::string_view::npos || form.op == Op::call) continue;
    Sample sample = make_sample(form, 1);
    std::string& text = sample.instruction;
    text.insert(text.size() - 1, form.operands.empty() ? " %w1, %w2" : ", %w1, %p1, %w2, {%w1, %w2}");
    const ParseResult result = parse(make_module(sample), "sample.ptx");
    bool refused = false;
    for (const Diagnostic& diagnostic : result.diagnostics) refused |= diagnostic.kind != DiagnosticKind::target_needs_version;
    EXPECT_TRUE(refused) << name(form) << "\n" << text;
  }
}

TEST(IsaTable, NextToTheLevelIsRefused) {
  for (const Form& form : all_forms()) {
    if (form.version == 10) continue;
    Sample sample = make_sample(form, 0);
    sample.version = form.version % 10 == 0 ? 15 : form.version - 1u;
    if (sample.version >= form.version) continue;
    const ParseResult result = parse(make_module(sample), "sample.ptx");
    EXPECT_FALSE(result.diagnostics.empty()) << name(form);
  }
}

TEST(IsaTable, TargetsAreReadAsListsRangesAndFamilies) {
  EXPECT_TRUE(runs_on("80", {90, 'a'}));
  EXPECT_FALSE(runs_on("80", {75, 0}));
  EXPECT_TRUE(runs_on("10-13", {13, 0}));
  EXPECT_FALSE(runs_on("10-13", {20, 0}));
  EXPECT_TRUE(runs_on("90a,100f", {103, 'f'}));
  EXPECT_TRUE(runs_on("90a,100f", {103, 'a'}));
  EXPECT_FALSE(runs_on("90a,100f", {100, 0}));
  EXPECT_FALSE(runs_on("100f", {120, 'f'}));
}

}  // namespace
}  // namespace ptxkit::ptx
