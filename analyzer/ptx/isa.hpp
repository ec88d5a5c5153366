// The ISA table: which modifiers, types and operands each opcode takes, from which PTX version and on which targets.
//
// One row is one form. It says what ptxas accepts, in two small languages that are read where a spelling is first met
// (a file has few spellings), so that starting a program costs nothing and a row stays one line.
//
// Modifiers: slots separated by blanks. `.rn` is that word; `.{rn|rz}` one of several; `[.ftz]` may be left out,
// `[.acquire .cta]` both or none;
// `.$rnd` names a set of isa.cpp; a '*' inside a word stands for digits (m64n*k16). Types, state spaces and other words
// of one class fill their slots in the order written; see word_order.hpp for the order of the others.
//
// Operands: items separated by commas, each a role and what narrows it. Roles:
//   d   destination register; D the same, or `_`
//   r   source register; a a register or constant; A the same, or `_` beside one that is none
//   S   all components of a special register, %tid
//   e   as a, or a special register; s what mov reads: that, or the address of a variable or function
//   i   integer constant
//   B   as b, where ptxas takes it and the ISA has no such operand
//   b   predicate, `!p` or a constant; p predicate or `!p`; q predicate destination, Q or `_`
//   m   address in the instruction's space (m0, m1: its first, second space)
//   n   the same, 32 bits wide or 64 even if the space is generic
//   t   address in tensor memory; t~ in any 32 bits
//   o   a texture, sampler or surface in brackets, by name or by a 64-bit register that holds its handle
//   v   register or variable; g register or constant that is a generic address
//   L   label; T branch table; C call; _ the sink alone
//   w   destination, x source of a video instruction, with a selector of a byte or half; w2 x2 of two halves, w4 x4 of
//       four bytes (x2 and x4 no constant); w has none beside a second operation
//   z   what a texture compares depths with, where coordinates are floats
// Lists: {r*4} four of them in braces, {r*2+} two, or four; {r/a*4} the first of them as `r`, the others as `a`;
//   r*v as many as .vN says, without braces where it says nothing; {r*d} as many as the Nd word says, {r*d-2} two less;
//   {r*n/2} half the n of the shape; {r*x} {r*2x} {r*4x} by the xN word; a|b a pair, a|b? a pair or only a;
//   [m, {a*2}] an address with more in its brackets.
// What an item is for stands before it, "barrier=m0", where its role does not say it: purposes.def.
// What narrows an item: :u32 that type, of which no register of two halves is one; :0 :1 :2 the first, second, third
//   type written, :w twice the width, else the last type; ~ a wider register will do (not beside .bf16 and .bf16x2);
//   ? it may be left out; @word only with that modifier; - it may be negated; ! from version 4.3 and sm_30 on, as z is;
//   (0..15) (1..) (4|8|16) (24..256/8) bounds of a constant; (t) a multiple of the warp size.
//
// Targets: "90" that one and later, "10-13" a range, "90a" exactly, "100f" its family; a list is separated by commas.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "analyzer/ptx/names.hpp"

namespace ptxkit::ptx {

struct Form {
  Op op;
  std::string_view modifiers, operands;
  uint8_t version;  // first one, times ten: 80
  std::string_view targets;
  uint8_t last_version = 255;
  // Leading operands that are written: items with the role of a destination. Of a call, whose operands no row names, 0.
  uint8_t destination_count = 0;
};

// The next of a row's operand items, which `rest` loses: "policy=a:u64@L2::cache_hint".
constexpr std::string_view next_item(std::string_view& rest) {
  size_t end = 0;
  for (int depth = 0; end < rest.size() && (depth > 0 || rest[end] != ','); ++end) {
    if (rest[end] == '{' || rest[end] == '[' || rest[end] == '(') ++depth;
    if (rest[end] == '}' || rest[end] == ']' || rest[end] == ')') --depth;
  }
  std::string_view item = rest.substr(0, end);
  rest.remove_prefix(end < rest.size() ? end + 1 : end);
  while (item.starts_with(' ')) item.remove_prefix(1);
  return item;
}

std::span<const Form> all_forms();
std::span<const Form> forms_of(Op op);

// One word of an opcode.
struct OpcodeWord {
  std::string_view text;
  Word word;
};

// What stands before the operands, "ld.shared.v2.u32", in its parts.
struct Opcode {
  Op op = Op::unknown;
  std::vector<OpcodeWord> words;
};
Opcode read_opcode(std::string_view spelling);

// How well a spelling's words fit a form; both counts are 0 where they fit.
struct ModifierMatch {
  unsigned unclaimed_count = 0, missing_count = 0;
  std::string_view first_unclaimed;  // a word that the form does not take
  std::string_view first_missing;    // a slot that no word fills, as the form has it: ".{rn|rz}"
  bool fits() const { return unclaimed_count == 0 && missing_count == 0; }
};
ModifierMatch match_modifiers(const Form& form, std::span<const OpcodeWord> words);

// The alternatives of a slot such as ".{rn|rz}", ".$rnd" or "[.ftz]".
std::vector<std::string_view> slot_alternatives(std::string_view slot);

struct TargetName {
  uint32_t sm = 0;
  char suffix = 0;
};
bool runs_on(std::string_view targets, TargetName target);

// What words need beside what the form needs: each row of which a spelling has all words. `op` is unknown for any.
struct WordLevel {
  Op op = Op::unknown;
  bool any_other = false;  // every opcode but `op`
  std::string_view words;  // separated by blanks
  uint8_t version = 0;     // times ten
  std::string_view targets;
};
std::span<const WordLevel> word_levels();
bool applies(const WordLevel& level, Op op, std::span<const OpcodeWord> words);

enum class Role : uint8_t {
  destination,
  source,
  constant_or_source,
  special,
  special_or_source,
  mov_source,
  integer,
  predicate_or_constant,
  predicate,
  predicate_destination,
  address,
  tensor_memory,
  variable_or_register,
  generic_address,
  label,
  table,
  call,
  sink,
  vector,
  pair,
  address_with_more,
  opaque
};

// What an operand is for.
enum class Purpose : uint8_t {
#define PURPOSE(name) name,
#include "analyzer/ptx/purposes.def"
#undef PURPOSE
};
std::string_view text(Purpose purpose);

// Which parts of a register a video instruction reads, `.b0` to `.b3`, `.h0`, `.h1`, or of two registers as if they
// were one, `.h10`, `.b7610`; and which parts of its destination it writes, from the highest down: `.h1`, `.b310`.
enum class Selector : uint8_t { none, part, halves, bytes, half_mask, byte_mask };

// One item of a form's operands, with types and counts filled in for one spelling.
struct OperandSpec {
  Role role = Role::sink;
  char letter = 0;  // as the table has the role
  Purpose purpose = Purpose::source;
  Type type = Type::none;
  Space space = Space::generic;  // of an address
  bool relaxed = false;          // a wider register will do; of an address: any width
  bool exact = false;            // the type is the operand's own and not one of the instruction's
  bool optional = false;
  bool may_sink = false;
  Selector selector = Selector::none;
  bool may_negate = false;                    // -%r1
  bool pair_optional = false;                 // a pair: the second half may be missing
  bool is_late = false;                       // from version 4.3 and sm_30 on
  bool padded = false;                        // a vector of `count` elements or of a larger power of two
  uint16_t multiple_of = 1;                   // a constant
  uint16_t count = 0;                         // of a vector
  uint16_t first_child = 0, child_count = 0;  // indices into the same vector as this spec
  bool bounded = false;
  int64_t low = 0, high = 0;
  uint64_t allowed = 0;  // bit n: the constant n, where not 0
};

// What the emulator does not run: instructions of `op` that have all the words, and an operand of the role, if one is
// named. It refuses these and no others, with `what` as the reason.
struct Unemulated {
  Op op;
  std::string_view words;  // separated by blanks, each one of several: "im2col|im2col_no_offs"
  char letter;             // a role as the table has it; 0 for any operands
  std::string_view what;
};
std::span<const Unemulated> unemulated();
// The row of an instruction with these words and operands, of which `roles` has the letters; null where it runs.
const Unemulated* find_unemulated(Op op, std::span<const OpcodeWord> words, std::string_view roles);

// What a spelling gives an item.
struct FormContext {
  std::span<const OpcodeWord> words;
  std::span<const Type> types;
  Space space = Space::generic, second_space = Space::generic;
  unsigned vector = 1;
};

// Appends the items of `form` to `pool`, top-level ones together and last; returns the index of the first of them.
// Items of modifiers that the spelling lacks are left out.
size_t compile_operands(const Form& form, const FormContext& context, std::vector<OperandSpec>& pool);

}  // namespace ptxkit::ptx
