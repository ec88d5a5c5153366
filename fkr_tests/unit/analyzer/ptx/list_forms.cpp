// Prints instructions generated from the ISA table, one per line: form, version times ten, target, instruction.
// usage: list_forms [VARIANTS]      or: list_forms --opcodes, which prints docs/isa.md
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "fkr_tests/unit/analyzer/ptx/form_sample.hpp"

namespace ptxkit::ptx {
namespace {

// "yes", "no", or the unsupported words.
std::string emulated(Op op) {
  std::string missing;
  for (const Unemulated& row : unemulated()) {
    if (row.op != op) continue;
    if (row.words.empty() && row.letter == 0) return "no";
    missing += fmt::format("{} {}", missing.empty() ? "not" : ",", row.what);
  }
  return missing.empty() ? "yes" : missing;
}

// The purposes of the operands of these forms, in order of first occurrence.
std::string operand_names(std::span<const Form> forms) {
  std::vector<std::string_view> names;
  for (const Form& form : forms) {
    for (unsigned variant = 0; variant < 8; ++variant) {
      for (const MatchedOperand& each : match_sample(form, make_sample(form, variant))) {
        const std::string_view name = text(each.spec.purpose);
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
      }
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

void list_opcodes() {
  fmt::print(
      "# Opcodes of the ISA table\n\n"
      "`{} --opcodes` prints this page out of `analyzer/ptx/isa_*.def`; a test compares the two. A form is a row of "
      "the table: "
      "a\nset of modifiers with one list of operands, the PTX version from which on it is known, and its targets. The "
      "rows "
      "themselves are\nwritten to be read: `analyzer/ptx/isa.hpp` explains their two small languages. {} forms of {} "
      "opcodes.\n\n"
      "Operands are named by what they are for, as the emulator's decoder finds them. It runs what the last column "
      "says;\n`isa_emulated.def` names the rest by its words.\n\n"
      "| opcode | family | forms | first in PTX | on sm | last new in PTX | operands | emulated "
      "|\n|---|---|--:|--:|---|--:|---|---|\n",
      "list_forms", all_forms().size(), static_cast<size_t>(Op::unknown));
  for (uint16_t i = 0; i < static_cast<uint16_t>(Op::unknown); ++i) {
    const auto forms = forms_of(static_cast<Op>(i));
    const auto [oldest, newest] = std::ranges::minmax_element(forms, {}, &Form::version);
    const auto op = static_cast<Op>(i);
    fmt::print("| {} | {} | {} | {}.{} | {} | {}.{} | {} | {} |\n", text(op), family_name(op), forms.size(),
               oldest->version / 10, oldest->version % 10, oldest->targets, newest->version / 10, newest->version % 10,
               operand_names(forms), emulated(op));
  }
}

void list_instructions(unsigned variant_count) {
  for (size_t i = 0; i < all_forms().size(); ++i) {
    std::set<std::string> seen;
    for (unsigned variant = 0; variant < variant_count; ++variant) {
      const Sample sample = make_sample(all_forms()[i], variant);
      if (sample.narrow_addresses || !seen.insert(sample.instruction).second) continue;  // ptxas has 64 bits only
      std::printf("%zu\t%u\t%s\t%s\n", i, sample.version, sample.target.c_str(), sample.instruction.c_str());
    }
  }
}

}  // namespace
}  // namespace ptxkit::ptx

int main(int argc, char** argv) {
  const std::string_view argument = argc > 1 ? argv[1] : "2";
  if (argument == "--opcodes") {
    ptxkit::ptx::list_opcodes();
  } else {
    ptxkit::ptx::list_instructions(static_cast<unsigned>(std::atoi(argument.data())));
  }
}
