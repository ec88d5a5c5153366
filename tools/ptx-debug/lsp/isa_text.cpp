#include "tools/ptx-debug/lsp/isa_text.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "analyzer/ptx/isa.hpp"
#include "analyzer/ptx/next_words.hpp"
#include "support/plural.hpp"

namespace ptxkit::lsp {
namespace {

// Of an opcode whose words fit no row.
constexpr size_t kMostForms = 12;

// "sm_70 and later", "sm_90a only".
std::string targets_text(std::string_view targets) {
  std::string text;
  while (!targets.empty()) {
    const std::string_view one = targets.substr(0, targets.find(','));
    targets.remove_prefix(std::min(targets.size(), one.size() + 1));
    if (!text.empty()) text += ", ";
    const size_t dash = one.find('-');
    const char last = one.back();
    if (dash != one.npos) {
      text += fmt::format("sm_{} to sm_{}", one.substr(0, dash), one.substr(dash + 1));
    } else if (last == 'a') {
      text += fmt::format("sm_{} only", one);
    } else if (last == 'f') {
      text += fmt::format("the family of sm_{}", one);
    } else {
      text += fmt::format("sm_{} and later", one);
    }
  }
  return text;
}

// "ld[.weak][.{const|global}].{u32|u64}"; the sets of the table are written out.
std::string syntax(const ptx::Form& form) {
  std::string out(text(form.op));
  for (const std::string_view slot : ptx::slots_of(form)) {
    const auto words = ptx::slot_alternatives(slot);
    const std::string list = words.size() == 1 ? std::string(words[0]) : fmt::format("{{{}}}", fmt::join(words, "|"));
    out += fmt::format("{}.{}{}", slot.starts_with('[') ? "[" : "", list, slot.ends_with(']') ? "]" : "");
  }
  return out;
}

std::string_view role_text(ptx::Role role) {
  switch (role) {
    case ptx::Role::destination:
    case ptx::Role::source:
      return "register";
    case ptx::Role::constant_or_source:
      return "register or constant";
    case ptx::Role::special:
      return "special register";
    case ptx::Role::special_or_source:
      return "register, special register or constant";
    case ptx::Role::mov_source:
      return "register, constant, special register, or name of a variable or function";
    case ptx::Role::integer:
      return "integer constant";
    case ptx::Role::predicate_or_constant:
      return "predicate or constant";
    case ptx::Role::predicate:
    case ptx::Role::predicate_destination:
      return "predicate";
    case ptx::Role::address:
      return "address in brackets";
    case ptx::Role::tensor_memory:
      return "address in tensor memory";
    case ptx::Role::variable_or_register:
      return "register or variable";
    case ptx::Role::generic_address:
      return "register or constant with a generic address";
    case ptx::Role::label:
      return "label";
    case ptx::Role::table:
      return "branch table";
    case ptx::Role::call:
      return "results, function and arguments";
    case ptx::Role::sink:
      return "`_`";
    case ptx::Role::vector:
      return "vector";
    case ptx::Role::pair:
      return "pair";
    case ptx::Role::address_with_more:
      return "address with more in its brackets";
    case ptx::Role::opaque:
      return "texture, sampler or surface";
  }
  return "";
}

std::string operand_text(const std::vector<ptx::OperandSpec>& pool, const ptx::OperandSpec& spec) {
  std::string out = fmt::format("{}: ", text(spec.purpose));
  std::ranges::replace(out, '_', ' ');
  const bool has_type = spec.type != ptx::Type::none && spec.role != ptx::Role::address &&
                        spec.role != ptx::Role::predicate && spec.role != ptx::Role::predicate_destination &&
                        spec.role != ptx::Role::predicate_or_constant && spec.role != ptx::Role::integer &&
                        spec.role != ptx::Role::label && spec.role != ptx::Role::table &&
                        spec.role != ptx::Role::call && spec.role != ptx::Role::pair && spec.role != ptx::Role::sink;
  if (has_type) out += fmt::format("`.{}` ", text(spec.type));
  if (spec.role == ptx::Role::vector) {
    out += fmt::format("vector of {}", plural(static_cast<size_t>(spec.count), "element"));
  } else if (spec.role == ptx::Role::pair && spec.child_count > 0) {
    out += fmt::format("pair of a {}", role_text(pool[spec.first_child].role));
  } else {
    out += role_text(spec.role);
  }
  if (spec.role == ptx::Role::address && spec.space != ptx::Space::generic)
    out += fmt::format(", `.{}`", text(spec.space));
  if (spec.relaxed && spec.role == ptx::Role::destination) out += ", or a wider one";
  if (spec.bounded) {
    out += spec.high == INT64_MAX ? fmt::format(", {} and more", spec.low)
                                  : fmt::format(", {} to {}", spec.low, spec.high);
  }
  if (spec.optional) out += ", may be left out";
  return out;
}

// The first version and the targets of a form with these words.
std::string level_text(const ptx::Form& form, std::span<const ptx::OpcodeWord> words) {
  unsigned version = form.version;
  std::string targets = targets_text(form.targets);
  for (const ptx::WordLevel& level : ptx::word_levels()) {
    if (!ptx::applies(level, form.op, words)) continue;
    version = std::max<unsigned>(version, level.version);
    if (const std::string more = targets_text(level.targets); more != targets) targets += "; its words: " + more;
  }
  std::string out = fmt::format("PTX {}.{} and later", version / 10, version % 10);
  if (form.last_version != 255) out += fmt::format(", up to {}.{}", form.last_version / 10, form.last_version % 10);
  return fmt::format("{}; {}", out, targets);
}

std::string_view kind_text(const ptx::Word& word) {
  switch (word.kind) {
    case ptx::Word::Kind::type:
      return "type";
    case ptx::Word::Kind::space:
      return "state space";
    case ptx::Word::Kind::vector:
      return "number of elements";
    case ptx::Word::Kind::modifier:
      return "modifier";
    case ptx::Word::Kind::unknown:
      break;
  }
  return "unknown word";
}

// About one word of an opcode: its kind, and what could stand in its place.
std::string word_text(const ptx::Form* form, const ptx::OpcodeWord& word) {
  std::string out = fmt::format("`.{}`: {}", word.text, kind_text(word.word));
  if (word.word.kind == ptx::Word::Kind::type)
    out +=
        fmt::format(" of {}", plural(static_cast<size_t>(ptx::bit_width(static_cast<ptx::Type>(word.word.id))), "bit"));
  if (form == nullptr) return out;
  for (const std::string_view slot : ptx::slots_of(*form)) {
    const auto words = ptx::slot_alternatives(slot);
    if (std::ranges::find(words, word.text) == words.end()) continue;
    if (words.size() > 1) out += fmt::format("; one of `.{}`", fmt::join(words, "` `."));
    if (slot.starts_with('[')) out += "; may be left out";
    break;
  }
  return out;
}

}  // namespace

std::string opcode_text(const ptx::Instruction& instruction, ptx::Offset offset) {
  const ptx::Opcode opcode = ptx::read_opcode(instruction.spelling);
  const ptx::Form* const form = instruction.form == ptx::kNone ? nullptr : &ptx::all_forms()[instruction.form];
  std::string out;
  for (const ptx::OpcodeWord& word : opcode.words) {
    const auto begin =
        static_cast<ptx::Offset>(instruction.opcode_at + (word.text.data() - instruction.spelling.data()));
    if (offset >= begin && offset <= begin + word.text.size()) {
      out = word_text(form, word) + "\n\n";
      break;
    }
  }
  if (opcode.op == ptx::Op::unknown) return out + fmt::format("`{}` is no opcode", instruction.spelling);
  out += fmt::format("**{}** ({})\n\n", text(opcode.op), ptx::family_name(opcode.op));
  if (form == nullptr) {
    const auto forms = ptx::forms_of(opcode.op);
    out += fmt::format("These words and operands fit no row of the ISA table. It has {}:\n\n```ptx\n",
                       plural(forms.size(), "row"));
    for (const ptx::Form& each : forms.first(std::min(forms.size(), kMostForms))) out += syntax(each) + "\n";
    return out + (forms.size() > kMostForms ? "…\n```" : "```");
  }
  out += fmt::format("```ptx\n{}\n```\n\n", syntax(*form));
  const ptx::FormContext context{opcode.words, std::span(instruction.types, instruction.type_count), instruction.space,
                                 instruction.second_space, instruction.vector};
  std::vector<ptx::OperandSpec> pool;
  for (size_t i = ptx::compile_operands(*form, context, pool); i < pool.size(); ++i)
    out += fmt::format("- {}\n", operand_text(pool, pool[i]));
  return out + fmt::format("\n{}", level_text(*form, opcode.words));
}

std::string special_text(ptx::SpecialRegister special) {
  const unsigned version = ptx::first_version(special);
  return fmt::format("**{}**: special register, `.{}`{}\n\nPTX {}.{} and later; sm_{} and later", text(special),
                     text(ptx::type(special)), ptx::is_vector(special) ? ", components x, y, z" : "", version / 10,
                     version % 10, ptx::first_target(special));
}

}  // namespace ptxkit::lsp
