#include "analyzer/ptx/agreement.hpp"

#include <algorithm>
#include <string>

namespace ptxkit::ptx {

bool is_integer(Type type) { return kind(type) == TypeKind::unsigned_int || kind(type) == TypeKind::signed_int; }
bool is_bits(Type type) { return kind(type) == TypeKind::bits; }

namespace {

bool is_pair_of_floats(Type type) { return type == Type::f16x2 || type == Type::bf16x2 || type == Type::f32x2; }
bool is_pair_of_integers(Type type) { return type == Type::u16x2 || type == Type::s16x2; }

// Narrow and packed floats are held in registers of bits; narrow ones also in registers of integers.
bool type_kinds_agree(const OperandSpec& spec, Type have) {
  const Type wanted = spec.type;
  if (is_bits(wanted) || is_bits(have) || wanted == have) return true;
  if (have == Type::f16x2) return is_pair_of_integers(wanted) || (is_integer(wanted) && !spec.exact);
  if (!is_integer(have)) return false;
  const bool is_narrow = kind(wanted) == TypeKind::packed && !is_pair_of_floats(wanted) && !is_pair_of_integers(wanted);
  return is_integer(wanted) || is_narrow;
}

}  // namespace

bool types_agree(const OperandSpec& wanted, Type have) {
  if (wanted.type == Type::none) return true;
  const unsigned wanted_bits = bit_width(wanted.type), have_bits = bit_width(have);
  if (wanted_bits == have_bits) return type_kinds_agree(wanted, have);
  if (!wanted.relaxed || have_bits < wanted_bits) return false;
  // A float register has the width of its float. Of wider integers or bits the low part counts.
  return kind(have) != TypeKind::floating ? type_kinds_agree(wanted, have) : is_bits(wanted.type);
}

Type bits_of(unsigned width) {
  switch (width) {
    case 8:
      return Type::b8;
    case 16:
      return Type::b16;
    case 32:
      return Type::b32;
    case 64:
      return Type::b64;
    case 128:
      return Type::b128;
    default:
      return Type::none;
  }
}

bool reads_memory(const Instruction& instruction, const OperandSpec& spec) {
  const bool is_asynchronous = spec.relaxed;  // st.async, red.async
  switch (instruction.op) {
    case Op::ld:
    case Op::ldu:
    case Op::ldmatrix:
    case Op::mbarrier:
    case Op::stmatrix:
    case Op::wmma:
      return true;
    case Op::st:
      return !is_asynchronous || spec.space == Space::generic;
    case Op::red:
      return is_asynchronous;
    case Op::multimem:
      return instruction.spelling.find(".st") != std::string_view::npos;
    case Op::createpolicy:
    case Op::tcgen05:
      return true;
    default:
      return false;
  }
}

bool is_float(OperandKind kind) { return kind == OperandKind::float32 || kind == OperandKind::float64; }

bool is_matrix(Op op) {
  return op == Op::mma || op == Op::wmma || op == Op::wgmma || op == Op::ldmatrix || op == Op::stmatrix;
}

bool reads_special(const OperandSpec& element, const Operand& operand) {
  const auto special = static_cast<SpecialRegister>(operand.id);
  return element.role == Role::constant_or_source && bit_width(type(special)) == bit_width(element.type) &&
         (!is_vector(special) || operand.component != 0);
}

bool takes_braces(const Instruction& instruction, const OperandSpec& spec) {
  switch (instruction.op) {
    case Op::ld:
    case Op::ldu:
    case Op::st:
    case Op::suld:
    case Op::sust:
    case Op::mma:
      return true;
    case Op::multimem:
      return !is_integer(spec.type) && !is_bits(spec.type);
    case Op::txq:
      return spec.role == Role::constant_or_source;
    case Op::tex:
      return !spec.is_late;
    case Op::mov:
      return is_bits(instruction.type());
    case Op::abs:
    case Op::add:
    case Op::fma:
    case Op::max:
    case Op::min:
    case Op::mul:
    case Op::neg:
    case Op::sub:
      return spec.type == Type::bf16 || spec.type == Type::bf16x2;
    default:
      return false;
  }
}

bool accepts_part_or_sum(const Instruction& instruction, unsigned target_sm, const OperandSpec& spec,
                         const Operand& operand) {
  const bool is_part = operand.component != 0 && operand.component != 's';
  const bool is_sum = operand.component == 0 && operand.value != 0;
  const bool is_source = spec.role == Role::constant_or_source;
  const bool is_old = target_sm != 0 && target_sm < 90;
  const auto has = [&](std::string_view word) { return instruction.spelling.find(word) != std::string_view::npos; };
  switch (instruction.op) {
    case Op::shfl:
    case Op::redux:
      return !is_old || !has(".sync") || (!is_part && !is_sum);
    case Op::match:
    case Op::vote:
      return !is_old || !is_source || !has(".sync") || (!is_part && !is_sum);
    case Op::barrier:
      return !is_old || !is_source || has(".aligned") || (!is_part && !is_sum);
    case Op::stackrestore:
      return !is_sum;
    case Op::tcgen05:  // the descriptor of an instruction
      return !has(".mma") || !is_source || spec.type != Type::u32 || ((!is_part || has(".sp")) && !is_sum);
    default:
      break;
  }
  // Opcodes are sorted by name.
  if (instruction.op < Op::vabsdiff || instruction.op > Op::vsub4) return true;
  // The last source of a scalar video instruction may be a sum.
  return !is_part && !(is_sum && (spec.selector != Selector::none || spec.role == Role::source));
}

bool reaches(Op op, Space space) {
  if (op == Op::mbarrier) return space == Space::shared;
  if (op == Op::prefetchu) return space == Space::global;
  return space == Space::global || space == Space::shared || space == Space::local;
}

// A selector's text is packed into a number, first character lowest.
bool names_parts(Selector selector, uint64_t packed) {
  std::string text;
  for (; packed != 0; packed >>= 8) text += static_cast<char>(packed & 0xff);
  const std::string_view digits = std::string_view(text).substr(1);
  const auto all_below = [&](char end) {
    return std::all_of(digits.begin(), digits.end(), [end](char c) { return c >= '0' && c < end; });
  };
  const bool falls = std::adjacent_find(digits.begin(), digits.end(), std::less_equal<>()) == digits.end();
  switch (selector) {
    case Selector::part:
      return digits.size() == 1 && all_below(text[0] == 'b' ? '4' : '2');
    case Selector::halves:
      return text[0] == 'h' && digits.size() == 2 && all_below('4');
    case Selector::bytes:
      return text[0] == 'b' && digits.size() == 4 && all_below('8');
    case Selector::half_mask:
      return text[0] == 'h' && !digits.empty() && falls && all_below('2');
    case Selector::byte_mask:
      return text[0] == 'b' && !digits.empty() && falls && all_below('4');
    case Selector::none:
      break;
  }
  return false;
}

std::string_view parts_of(Selector selector) {
  switch (selector) {
    case Selector::part:
      return ".b0 to .b3, .h0 or .h1";
    case Selector::halves:
      return "two halves, .h00 to .h33";
    case Selector::bytes:
      return "four bytes, .b0000 to .b7777";
    case Selector::half_mask:
      return ".h0, .h1 or .h10";
    case Selector::byte_mask:
      return "bytes from the highest down, .b3210 or some of them";
    case Selector::none:
      break;
  }
  return "nothing";
}

}  // namespace ptxkit::ptx
