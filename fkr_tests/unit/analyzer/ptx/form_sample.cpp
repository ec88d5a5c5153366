#include "fkr_tests/unit/analyzer/ptx/form_sample.hpp"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/levels.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/next_words.hpp"
#include "analyzer/ptx/tree.hpp"
#include "support/check.hpp"

namespace ptxkit::ptx {
namespace {

std::string register_of(Type type, bool relaxed, unsigned number) {
  switch (relaxed && bit_width(type) < 16 ? Type::b16 : type) {
    case Type::f32:
      return fmt::format("%f{}", number);
    case Type::f64:
      return fmt::format("%d{}", number);
    case Type::pred:
      return fmt::format("%p{}", number % 8);
    default:
      break;
  }
  switch (bit_width(type)) {
    case 128:
      return fmt::format("%q{}", number);
    case 64:
      return fmt::format("%l{}", number);
    case 32:
      return fmt::format("%w{}", number);
    case 16:
      return fmt::format("%h{}", number);
    default:
      return relaxed ? fmt::format("%h{}", number) : fmt::format("%b{}", number);
  }
}

class OperandWriter {
 public:
  OperandWriter(const std::vector<OperandSpec>& specs, unsigned variant) : specs_(specs), variant_(variant) {}

  std::string write(const OperandSpec& spec) {
    const unsigned number = ++count_ % 300;
    switch (spec.role) {
      case Role::destination:
      case Role::source:
      case Role::constant_or_source:
      case Role::special_or_source:
      case Role::mov_source:
        if (spec.role == Role::constant_or_source && variant_ % 3 == 2 && (spec.bounded || spec.multiple_of == 32)) {
          return spec.multiple_of == 32 ? "64" : std::to_string(spec.low);
        }
        return register_of(spec.type, spec.relaxed, number);
      case Role::special:
        return "%tid";
      case Role::variable_or_register:
      case Role::generic_address:
        return register_of(spec.type == Type::none || spec.role == Role::generic_address ? Type::b64 : spec.type, false,
                           number);
      case Role::integer:
        return std::to_string(spec.bounded ? (spec.low + spec.high) / 2 / 8 * 8 + (spec.high < 8 ? spec.low : 0) : 1);
      case Role::predicate:
        return fmt::format("{}%p{}", variant_ % 2 == 1 ? "!" : "", number % 8);
      case Role::predicate_or_constant:
      case Role::predicate_destination:
        return fmt::format("%p{}", number % 8);
      case Role::address:
        return fmt::format("[%l{}]", number);
      case Role::tensor_memory:
        return fmt::format("[%w{}]", number);
      case Role::label:
        return "END";
      case Role::table:
        return "TABLE";
      case Role::call:
        return "callee, (argument)";
      case Role::sink:
        return "_";
      case Role::vector: {
        const OperandSpec& element = specs_[spec.first_child];
        std::string text = "{";
        for (unsigned i = 0; i < spec.count; ++i) {
          text +=
              (i == 0 ? "" : ", ") + write(i == 0 && spec.child_count == 2 ? specs_[spec.first_child + 1] : element);
        }
        return text + "}";
      }
      case Role::pair: {
        const std::string first = write(specs_[spec.first_child]);
        if (spec.pair_optional && variant_ % 2 == 0) return first;
        return first + "|" + write(specs_[spec.first_child + 1]);
      }
      case Role::opaque:
      case Role::address_with_more: {
        std::string text = fmt::format("[%l{}", number);
        for (unsigned i = 0; i < spec.child_count; ++i) {
          const OperandSpec& child = specs_[spec.first_child + i];
          if (!child.optional || variant_ % 2 == 1) text += ", " + write(child);
        }
        return text + "]";
      }
    }
    return "";
  }

 private:
  const std::vector<OperandSpec>& specs_;
  unsigned variant_;
  unsigned count_ = 0;
};

// Chooses words for the slots of a form.
std::vector<std::string> choose_words(const Form& form, unsigned variant) {
  std::vector<std::string> words;
  unsigned slot_number = 0;
  bool skipping = false;  // inside an optional group [...], which is skipped with its first slot
  for (const std::string_view slot : slots_of(form)) {
    ++slot_number;
    if (slot[0] == '[') skipping = (variant + slot_number) % 2 == 0;
    const bool skip = skipping;
    if (slot.back() == ']') skipping = false;
    if (skip) continue;
    const auto alternatives = slot_alternatives(slot);
    std::string word(alternatives[(variant + (variant > 1 ? slot_number : 0)) % alternatives.size()]);
    const size_t star = word.find('*');
    if (star != std::string::npos) word.replace(star, 1, variant % 2 == 0 ? "16" : "64");
    words.push_back(word);
  }
  return words;
}

// The level that declarations need; older versions and targets do not get them.
struct Level {
  unsigned version = 0;
  unsigned sm = 0;
};

std::string declarations(Level level) {
  return fmt::format(
      ".reg .b8 %b<300>; .reg .b16 %h<300>; .reg .b32 %w<300>; .reg .b64 %l<300>; {}\n"
      ".reg .f32 %f<300>; .reg .f64 %d<300>; .reg .pred %p<8>;\n",
      level.version >= 83 && level.sm >= 70 ? ".reg .b128 %q<300>;" : "");
}

std::string entry(const Sample& sample, unsigned number, Level level) {
  std::string text = fmt::format(".visible .entry k{}()\n{{\n{}", number, declarations(level));
  if (sample.instruction.find("TABLE") != std::string::npos) text += "TABLE: .branchtargets END;\n";
  if (sample.instruction.find("argument") != std::string::npos) {
    text += fmt::format(".{} .b32 argument;\n", level.sm >= 20 ? "param" : "reg");
  }
  return text + sample.instruction + "\nEND:\nret;\n}\n";
}

std::string header(const Sample& sample, Level level) {
  const std::string address_size =
      level.version >= 23 ? fmt::format(".address_size {}\n", sample.narrow_addresses ? 32 : 64) : "";
  return fmt::format(".version {}.{}\n.target {}\n{}.func callee(.{} .b32 a)\n{{\nret;\n}}\n", level.version / 10,
                     level.version % 10, sample.target, address_size, level.sm >= 20 ? "param" : "reg");
}

Level level_of_target(std::string_view target, unsigned version) {
  const TargetLevel* known = find_target(target);
  return {version, known != nullptr ? known->sm : 0u};
}

void raise(Sample& sample, unsigned version, unsigned sm) {
  sample.version = std::max(sample.version, version);
  const TargetLevel* now = find_target(sample.target);
  if (now != nullptr && now->sm < sm) sample.target = fmt::format("sm_{}", sm);
}

// Raises the level where operands need more than the form and its words.
void raise_for_operands(const Form& form, const FormContext& context, std::span<const OperandSpec> specs,
                        Sample& sample) {
  const bool texture = form.op == Op::tex || form.op == Op::tld4;
  const bool generic = context.space == Space::generic;
  for (const OperandSpec& spec : specs) {
    if (spec.is_late) raise(sample, 43, 30);
    if (spec.role == Role::opaque) raise(sample, 31, 20);           // a handle in a register
    if (spec.role == Role::generic_address) raise(sample, 23, 20);  // a 64-bit register
    if (spec.role == Role::address && generic && sample.version < 20) raise(sample, 20, 20);
    if (spec.role == Role::pair && texture && sample.instruction.find('|') != std::string::npos) raise(sample, 71, 60);
  }
}

}  // namespace

Sample make_sample(const Form& form, unsigned variant) {
  const std::vector<std::string> words = choose_words(form, variant);
  std::vector<OpcodeWord> opcode_words;
  std::vector<Type> types;
  FormContext context;
  std::string spelling(text(form.op));
  for (const std::string& word : words) {
    spelling += "." + word;
    const Word known = find_word(word);
    opcode_words.push_back({word, known});
    if (known.kind == Word::Kind::type) types.push_back(static_cast<Type>(known.id));
    if (known.kind == Word::Kind::vector) context.vector = known.id;
    if (known.kind == Word::Kind::space) {
      (context.space == Space::generic ? context.space : context.second_space) = static_cast<Space>(known.id);
    }
  }
  context.words = opcode_words;
  context.types = types;
  std::vector<OperandSpec> specs;
  const size_t first = compile_operands(form, context, specs);
  OperandWriter writer(specs, variant);
  Sample sample;
  std::string operands;
  for (size_t i = first; i < specs.size(); ++i) {
    if (specs[i].optional && variant % 2 == 0) continue;
    operands += (operands.empty() ? " " : ", ") + writer.write(specs[i]);
    sample.operands.push_back(specs[i]);
  }
  sample.instruction = spelling + operands + ";";
  sample.spelling = std::move(spelling);
  const std::string_view targets = form.targets;
  std::string_view one = targets.substr(0, targets.find(','));
  if (const size_t dash = one.find('-'); dash != std::string_view::npos) one = one.substr(dash + 1);
  sample.target = "sm_" + std::string(one);
  sample.version = form.version;
  // Words may need a higher level than the form.
  for (const WordLevel& level : word_levels()) {
    if (!applies(level, form.op, opcode_words)) continue;
    sample.version = std::max<unsigned>(sample.version, level.version);
    const std::string_view needed = level.targets.substr(0, level.targets.find(','));
    const TargetLevel* now = find_target(sample.target);
    const bool runs = now != nullptr && runs_on(level.targets, {now->sm, now->suffix});
    if (!runs) sample.target = "sm_" + std::string(needed);
  }
  raise_for_operands(form, context, specs, sample);
  sample.narrow_addresses = form.op == Op::cvta && types.back() == Type::u32;
  return sample;
}

std::string make_module(const Sample& sample) {
  const Level level = level_of_target(sample.target, sample.version);
  return header(sample, level) + entry(sample, 0, level);
}

std::vector<MatchedOperand> match_sample(const Form& form, const Sample& sample) {
  const std::string text = make_module(sample);
  const ParseResult parsed = parse(text, "sample.ptx");
  const Function& function = parsed.module.functions.back();
  std::vector<MatchedOperand> matches;
  for (Instruction instruction : function.instructions) {
    if (instruction.spelling != sample.spelling) continue;
    instruction.form = static_cast<uint32_t>(&form - all_forms().data());
    Validator validator(parsed.module);
    const Candidate row = validator.row_of(instruction, read_opcode(sample.spelling).words);
    PTXKIT_CHECK(validator.read(function, instruction, row, matches), "a sample does not fit its form");
    break;
  }
  return matches;
}

}  // namespace ptxkit::ptx
