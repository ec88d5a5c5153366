// Consistency of the ISA table: its words exist, its rows accept their instructions, and near misses are rejected.
#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/levels.hpp"
#include "analyzer/ptx/next_words.hpp"
#include "fkr_tests/unit/analyzer/ptx/form_sample.hpp"

namespace ptxkit::ptx {
namespace {

std::string name(const Form& form) {
  return std::string(text(form.op)) + " | " + std::string(form.modifiers) + " | " + std::string(form.operands);
}

TEST(IsaTable, EveryWordIsInAVocabulary) {
  for (const Form& form : all_forms()) {
    for (const std::string_view slot : slots_of(form)) {
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
      // The target may be newer than the form: "sm_75" needs version 6.3.
      for (const Diagnostic& diagnostic : result.diagnostics) {
        if (diagnostic.kind == DiagnosticKind::target_needs_version) continue;
        ADD_FAILURE() << name(form) << "\n" << sample.instruction << "\n" << render(result.module, diagnostic);
      }
    }
  }
}

// The spelling up to a dot is followed by its next word, at the sample's level.
TEST(NextWords, HasEachWordOfEveryForm) {
  for (const Form& form : all_forms()) {
    for (unsigned variant = 0; variant < 2; ++variant) {
      const Sample sample = make_sample(form, variant);
      const Opcode opcode = read_opcode(sample.spelling);
      const TargetLevel* target = find_target(sample.target);
      ASSERT_NE(target, nullptr) << sample.target;
      for (size_t i = 0; i < opcode.words.size(); ++i) {
        const std::span<const OpcodeWord> before(opcode.words.data(), i);
        std::string word(opcode.words[i].text);
        if (opcode.words[i].word.kind == Word::Kind::modifier &&
            static_cast<Mod>(opcode.words[i].word.id) == Mod::shape && word.starts_with("m64n"))
          word = "m64n8" + word.substr(word.find('k'));  // any number
        const auto words = next_words(opcode.op, before, sample.version, {target->sm, target->suffix});
        EXPECT_NE(std::ranges::find(words, word), words.end()) << name(form) << "\n" << sample.spelling << " ." << word;
      }
    }
  }
}

std::vector<std::string> after(std::string_view spelling, unsigned version, TargetName target) {
  const Opcode opcode = read_opcode(spelling);
  return next_words(opcode.op, opcode.words, version, target);
}

using Words = std::vector<std::string>;

TEST(NextWords, AreThoseOfTheTable) {
  EXPECT_EQ(after("bra", 80, {80, 0}), (Words{"uni"}));
  EXPECT_EQ(after("mad.wide", 80, {80, 0}), (Words{"u16", "u32", "s16", "s32"}));
  EXPECT_EQ(after("setp.ge", 80, {80, 0}).front(), "u16");
  EXPECT_EQ(after("add.s32", 80, {80, 0}), (Words{"sat", "cc"}));
  EXPECT_TRUE(after("add.s32.sat", 80, {80, 0}).empty());
  EXPECT_TRUE(after("no_opcode", 80, {80, 0}).empty());
}

// Types stand in the order of their slots, words of the name before all others.
TEST(NextWords, KeepTheOrder) {
  const auto has = [](const Words& words, std::string_view word) {
    return std::ranges::find(words, word) != words.end();
  };
  EXPECT_TRUE(has(after("mul", 80, {80, 0}), "wide"));
  EXPECT_FALSE(has(after("mul.u32", 80, {80, 0}), "wide"));
  EXPECT_TRUE(has(after("cp", 80, {90, 0}), "async"));
  EXPECT_FALSE(has(after("cp", 80, {90, 0}), "global"));
  EXPECT_TRUE(has(after("cp.async", 80, {90, 0}), "ca"));
}

TEST(NextWords, AreThoseOfVersionAndTarget) {
  const auto has = [](const Words& words, std::string_view word) {
    return std::ranges::find(words, word) != words.end();
  };
  EXPECT_TRUE(has(after("ld", 60, {70, 0}), "acquire"));
  EXPECT_FALSE(has(after("ld", 50, {70, 0}), "acquire"));
  EXPECT_FALSE(has(after("ld", 60, {60, 0}), "acquire"));
  EXPECT_TRUE(has(after("ld", 0, {0, 0}), "acquire"));
  EXPECT_TRUE(after("wgmma", 80, {90, 0}).empty());
  EXPECT_TRUE(has(after("wgmma", 80, {90, 'a'}), "mma_async"));
}

// An instruction with additional operands is rejected.
TEST(IsaTable, OneOperandMoreIsRefused) {
  for (const Form& form : all_forms()) {
    if (form.op == Op::call) continue;
    Sample sample = make_sample(form, 1);
    std::string& text = sample.instruction;
    text.insert(text.size() - 1, form.operands.empty() ? " %w1, %w2" : ", %w1, %p1, %w2, {%w1, %w2}");
    const ParseResult result = parse(make_module(sample), "sample.ptx");
    bool refused = false;
    for (const Diagnostic& diagnostic : result.diagnostics)
      refused |= diagnostic.kind != DiagnosticKind::target_needs_version;
    EXPECT_TRUE(refused) << name(form) << "\n" << text;
  }
}

// Variants of the instruction with one register of the next narrower type: the mistake closest to a valid instruction.
std::vector<std::string> narrower_neighbours(const std::string& instruction) {
  static constexpr std::string_view kTypes = "qldwfhbp", kNarrower = "lwfhhppw";
  std::vector<std::string> result;
  for (size_t at = instruction.find('%'); at != std::string::npos; at = instruction.find('%', at + 1)) {
    const size_t type = kTypes.find(instruction[at + 1]);
    if (type == std::string::npos) continue;  // special registers such as %tid
    std::string one = instruction;
    one[at + 1] = kNarrower[type];
    const bool is_address = at > 0 && instruction[at - 1] == '[';
    if (is_address) one[at + 1] = instruction[at + 1] == 'w' ? 'h' : 'd';  // a 32-bit address register may be valid too
    if (one[at + 1] == 'p') one.replace(at, one.find_first_not_of("0123456789", at + 2) - at, "%p1");
    result.push_back(std::move(one));
  }
  return result;
}

TEST(IsaTable, ARegisterOfTheNextNarrowerTypeIsRefused) {
  size_t forms = 0, neighbours = 0;
  for (const Form& form : all_forms()) {
    bool any = false;
    if (form.op == Op::isspacep) continue;  // a 32-bit address is valid too
    Sample sample = make_sample(form, 1);
    for (std::string& neighbour : narrower_neighbours(sample.instruction)) {
      sample.instruction = std::move(neighbour);
      const ParseResult result = parse(make_module(sample), "sample.ptx");
      bool refused = false;
      for (const Diagnostic& diagnostic : result.diagnostics)
        refused |= diagnostic.kind != DiagnosticKind::target_needs_version;
      EXPECT_TRUE(refused) << name(form) << "\n" << sample.instruction;
      ++neighbours;
      any = true;
    }
    forms += any;
  }
  EXPECT_GT(forms, all_forms().size() * 9 / 10);
  RecordProperty("neighbours", static_cast<int>(neighbours));
}

// Removes the last operand of each instruction; a few are then other forms.
TEST(IsaTable, OneOperandLessIsRefused) {
  size_t others = 0;
  for (const Form& form : all_forms()) {
    if (form.operands.empty() || form.op == Op::call) continue;
    Sample sample = make_sample(form, 0);  // without optional operands
    std::string& text = sample.instruction;
    int depth = 0;
    size_t cut = text.find(' ');
    if (cut == std::string::npos) continue;
    for (size_t i = cut; i < text.size(); ++i) {
      if (text[i] == '{' || text[i] == '[') ++depth;
      if (text[i] == '}' || text[i] == ']') --depth;
      if (text[i] == ',' && depth == 0) cut = i;
    }
    text = text.substr(0, cut) + ";";
    const ParseResult result = parse(make_module(sample), "sample.ptx");
    bool refused = false;
    for (const Diagnostic& diagnostic : result.diagnostics)
      refused |= diagnostic.kind != DiagnosticKind::target_needs_version;
    const auto index = static_cast<uint32_t>(&form - all_forms().data());
    const auto& instructions = result.module.functions.back().instructions;
    const bool is_another = std::ranges::none_of(instructions, [&](const Instruction& i) { return i.form == index; });
    EXPECT_TRUE(refused || is_another) << name(form) << "\n" << text;
    others += !refused;
  }
  EXPECT_LT(others, 40u);
}

// The exceptions of the tests above leave no gap: every form except calls has a rejected neighbour, one register or
// operand away.
TEST(IsaTable, EveryFormHasARefusedNeighbour) {
  for (const Form& form : all_forms()) {
    if (form.op == Op::call) continue;  // its operands depend on the function
    const Sample good = make_sample(form, 1);
    std::vector<std::string> neighbours = narrower_neighbours(good.instruction);
    neighbours.push_back(good.instruction);
    neighbours.back().insert(neighbours.back().size() - 1,
                             form.operands.empty() ? " %w1" : ", %w1, %p1, %w2, {%w1, %w2}");
    const bool any = std::ranges::any_of(neighbours, [&](const std::string& neighbour) {
      Sample sample = good;
      sample.instruction = neighbour;
      const ParseResult result = parse(make_module(sample), "sample.ptx");
      return std::ranges::any_of(result.diagnostics, [](const Diagnostic& diagnostic) {
        return diagnostic.kind != DiagnosticKind::target_needs_version;
      });
    });
    EXPECT_TRUE(any) << name(form) << "\n" << good.instruction;
  }
}

// Each purpose names one operand of a form. Only sources in order of use may share one.
TEST(IsaTable, OperandsOfAFormAreToldApart) {
  std::set<Purpose> met;
  for (const Form& form : all_forms()) {
    const Family of = family(form.op);
    const bool has_order = of == Family::arithmetic || of == Family::comparison || of == Family::conversion ||
                           of == Family::video || of == Family::warp;
    for (unsigned variant = 0; variant < 8; ++variant) {
      std::set<Purpose> here;
      for (const MatchedOperand& each : match_sample(form, make_sample(form, variant))) {
        const bool is_new = here.insert(each.spec.purpose).second;
        const bool is_source = each.spec.purpose == Purpose::source || each.spec.purpose == Purpose::predicate;
        EXPECT_TRUE(is_new || (has_order && is_source)) << name(form) << ": " << text(each.spec.purpose);
      }
      met.insert(here.begin(), here.end());
    }
  }
#define PURPOSE(name) EXPECT_TRUE(met.contains(Purpose::name)) << #name;
#include "analyzer/ptx/purposes.def"
#undef PURPOSE
}

TEST(IsaTable, RowsSayWhichOperandsAreWritten) {
  struct Case {
    Op op;
    std::string_view words;  // the modifiers of the rows begin with these words
    unsigned count;
  };
  for (const Case& each : {Case{Op::add, "", 1},
                           {Op::st, "", 0},
                           {Op::red, "", 0},
                           {Op::cp, "", 0},
                           {Op::bra, "", 0},
                           {Op::setp, "", 1},
                           {Op::tex, "", 1},
                           {Op::sust, "", 0},
                           {Op::vadd, "", 1},
                           {Op::bar, ".red", 1},
                           {Op::bar, ".sync", 0},
                           {Op::mbarrier, ".test_wait", 1},
                           {Op::mbarrier, ".init", 0},
                           {Op::wmma, ".load", 1},
                           {Op::wmma, ".store", 0},
                           {Op::wgmma, ".mma_async", 1},
                           {Op::wgmma, ".fence", 0},
                           {Op::tcgen05, ".st", 0},
                           {Op::tcgen05, ".ld .sync", 1},
                           {Op::tcgen05, ".ld .red", 2}}) {
    unsigned found = 0;
    for (const Form& form : forms_of(each.op)) {
      if (!form.modifiers.starts_with(each.words)) continue;
      ++found;
      EXPECT_EQ(form.destination_count, each.count) << name(form);
    }
    EXPECT_GT(found, 0u) << text(each.op) << each.words;
  }
}

TEST(IsaTable, VersionsBelowTheFormsAreRefused) {
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
