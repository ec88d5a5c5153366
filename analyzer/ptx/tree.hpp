// The tree of a PTX module: the parser builds it; printing, analyses, emulator and tools read it.
//
// A Module owns the text and everything else. Every name is a view into that text. Every reference between parts is a
// dense 32-bit id (an index into one of the module's or function's vectors), which the parser resolves with PTX's
// scoping rules; consumers never look up names. A function's instructions are one flat vector in program order,
// whatever the nesting of scopes; a label is an index into it. Details that only printing needs (nested braces, order
// of directives) are in `items`.
//
// The sizes of `Instruction` and `Operand` matter: a 30 MB file has a million of them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ptx/names.hpp"

namespace ptxkit::ptx {

inline constexpr uint32_t kNone = 0xffffffff;

using Offset = uint32_t;         // bytes from the start of Module::text
using RegId = uint32_t;          // Function::registers
using VariableId = uint32_t;     // Module::variables (module scope, function scope and parameters alike)
using FunctionId = uint32_t;     // Module::functions
using LabelId = uint32_t;        // Function::labels
using InstructionId = uint32_t;  // Function::instructions
using LocationId = uint32_t;     // Module::locations

struct Position {
  uint32_t line = 0;    // 1-based
  uint32_t column = 0;  // 1-based, in bytes
};

// A `.loc` directive: a line of the original source. `inlined_at` links to the call site.
struct Location {
  uint32_t file = 0;  // number in `.file`; see Module::files
  uint32_t line = 0;
  uint32_t column = 0;
  LocationId inlined_at = kNone;
  std::string_view function_name;  // label of `function_name`; empty: none
};

struct SourceFile {
  uint32_t number = 0;
  std::string_view path;
};

// `.reg .b32 %r<10>;` declares ten registers "%r0".."%r9" from one base; `.reg .pred p;` declares one (count == kNone).
struct RegisterDeclaration {
  std::string_view base;
  uint32_t count = kNone;
  Type type = Type::none;
  uint8_t vector = 1;
  Offset at = 0;  // of the name
};

// A register that some instruction names. Function::registers holds only these, in the order of first use, so that
// `%r<4000000000>` costs nothing and ids stay dense.
struct Register {
  std::string_view base;   // "%r", or the whole name
  uint32_t index = kNone;  // 3 for %r3; kNone for a plain name
  Type type = Type::none;
  uint8_t vector = 1;            // 1, 2, 4, 8
  uint32_t declaration = kNone;  // Function::register_declarations
  Offset declared_at = 0;
  std::string name() const;
};

enum class Linkage : uint8_t { internal, visible, external, weak, common };

// One initialiser element: a number (bit pattern of the element type), or the address of a symbol plus an offset.
struct Initializer {
  enum class Kind : uint8_t { bits, variable, function } kind = Kind::bits;
  bool generic = false;       // generic(symbol)
  uint8_t mask_shift = 0xff;  // 0xff00(symbol) selects byte 1 of the address; 0xff: no mask
  uint32_t id = kNone;        // VariableId or FunctionId
  uint64_t value = 0;         // bit pattern, or byte offset added to the symbol
};

// A variable in any space, or a parameter.
struct Variable {
  std::string_view name;
  Space space = Space::generic;
  Type type = Type::none;  // element type; opaque types for textures, samplers, surfaces
  uint8_t vector = 1;
  Linkage linkage = Linkage::internal;
  bool is_array = false;
  bool is_unsized = false;               // `[]`: extern shared arrays, variadic parameters
  bool is_pointer = false;               // parameter with `.ptr`
  Space pointer_space = Space::generic;  // `.ptr .global`
  uint32_t pointer_align = 0;            // `.ptr .align 16`; 0 without
  uint32_t align = 0;                    // declared or natural alignment, in bytes
  uint64_t size_bytes = 0;               // of the whole variable; 0 where unsized
  uint32_t managed_or_unified = 0;       // bit 0 .attribute(.managed), bit 1 .unified
  uint64_t unified_id[2] = {0, 0};       // of .attribute(.unified(a, b))
  FunctionId function = kNone;           // owner; kNone at module scope
  uint32_t parameter_index = kNone;      // position in the parameter list; kNone otherwise
  std::vector<uint64_t> dimensions;      // 0 for `[]`
  std::vector<Initializer> initializer;  // row-major, missing tail is zero
  Offset declared_at = 0;
};

enum class OperandKind : uint8_t {
  none,
  reg,         // id = RegId; component for `%v.x`
  integer,     // value = 64-bit two's complement
  float32,     // value = bits of 0f...
  float64,     // value = bits of 0d... or of a decimal literal
  symbol,      // id = VariableId: its address (mov.u64 %rd, table), value = byte offset added
  function,    // id = FunctionId: its address, or a call target
  label,       // id = LabelId: a branch target
  special,     // id = SpecialRegister, component for %tid.x
  address,     // [base + value]: see AddressBase; children: further bracket operands ([map, {x, y}]); component 'u':
               // [a].unified
  vector,      // {a, b, c, d}: children
  pair,        // p|q: children, two
  sink,        // `_`
  parameters,  // ( a, b ): argument or result list of a call: children
  prototype,   // id = index into Function::prototypes or branch/call tables: a
               // .callprototype/.calltargets/.branchtargets label
  text,        // a name that could not be resolved; spelled in the source at `at`
};

enum class AddressBase : uint8_t { none, reg, variable, immediate };

struct Operand {
  OperandKind kind = OperandKind::none;
  bool negated = false;                  // !p
  uint8_t component = 0;                 // 0 none, 'x' 'y' 'z' 'w' (also r g b a as x y z w), or 's': a byte or
                                         // half selector of a video instruction (%r1.b0, %r1.h10), its text
                                         // packed into `value`, first character lowest
  AddressBase base = AddressBase::none;  // of an address
  uint32_t id = kNone;
  Offset at = 0;             // where it starts in the text
  uint32_t first_child = 0;  // Function::operand_pool
  uint32_t child_count = 0;
  bool has_offset = false;  // of an address: `[a+0]` as written; unoptimised, ptxas emits an addition for it
  uint64_t value = 0;
};

// `@p`, `@!p`
struct Guard {
  RegId reg = kNone;
  bool negated = false;
  explicit operator bool() const { return reg != kNone; }
};

struct Instruction {
  Op op = Op::unknown;
  Space space = Space::generic;         // first state space among the modifiers; generic without
  Space second_space = Space::generic;  // cvta / cp.async.bulk: the other one
  uint8_t vector = 1;                   // .v2 .v4 .v8
  uint8_t type_count = 0;
  uint8_t modifier_count = 0;
  bool to_space = false;  // cvta.to
  Type types[8] = {};     // in the order written: cvt.f32.s32 has {f32, s32}
  Guard guard;
  Offset at = 0;  // of the guard, or of the opcode
  Offset opcode_at = 0;
  std::string_view spelling;    // whole opcode with modifiers, as written: "ld.shared.v2.u32"
  uint32_t first_modifier = 0;  // Function::modifier_pool, in the order written; types, spaces, .vN left out
  uint32_t first_operand = 0;   // Function::operand_pool
  uint32_t operand_count = 0;
  LocationId location = kNone;  // the `.loc` in force
  uint32_t form = kNone;        // matching row of the ISA table; kNone: rejected

  Type type() const { return type_count ? types[type_count - 1] : Type::none; }  // the last one written
};

struct Label {
  std::string_view name;
  InstructionId target = 0;  // index of the instruction that follows; may equal instructions.size()
  Offset at = 0;
};

// .branchtargets / .calltargets / .callprototype, all written as `name: .xxx ...;`
struct Table {
  enum class Kind : uint8_t { branch_targets, call_targets, call_prototype } kind = Kind::branch_targets;
  std::string_view name;
  std::vector<uint32_t> targets;                // LabelId or FunctionId
  std::vector<VariableId> results, parameters;  // of a prototype
  bool no_return = false;
  Offset at = 0;
};

// Performance and linking directives of a function. Omitted dimensions are 1.
struct FunctionAttributes {
  uint32_t max_ntid[3] = {0, 0, 0};     // .maxntid; 0 without
  uint32_t req_ntid[3] = {0, 0, 0};     // .reqntid
  uint32_t min_ctas_per_sm = 0;         // .minnctapersm
  uint32_t max_registers = 0;           // .maxnreg
  uint32_t req_cluster[3] = {0, 0, 0};  // .reqnctapercluster
  uint32_t max_cluster_rank = 0;        // .maxclusterrank
  uint32_t max_ctas_per_sm = 0;         // .maxnctapersm, deprecated
  bool explicit_cluster = false;
  std::vector<std::string_view> others;  // .pragma and .abi_preserve, as written
  bool blocks_are_clusters = false;
  bool no_return = false;
};

// Order and nesting of the items of a module or a body, for printing and for editing the text. [at, end) is the item's
// own text, including its ';' if it has one; a function's item spans its body.
struct Item {
  enum class Kind : uint8_t {
    instruction,  // id = InstructionId of the first of `count` in a row
    label,        // LabelId
    open_brace,
    close_brace,
    registers,  // index into Function::register_declarations, `count` in one statement
    variable,   // VariableId, `count` in one statement
    location,   // LocationId
    pragma,
    table,         // index into Function::tables
    header,        // .version, .target, .address_size
    file,          // index into Module::files
    section_text,  // .section and old DWARF lines
    function,      // FunctionId: a declaration or the definition
    alias,         // index into Module::aliases
  } kind = Kind::instruction;
  uint32_t id = kNone;
  uint32_t count = 1;
  Offset at = 0, end = 0;
};

// `.alias name, aliasee;`
struct Alias {
  FunctionId alias = kNone, aliasee = kNone;
};

struct Function {
  std::string_view name;
  bool is_entry = false;
  bool has_body = false;
  Linkage linkage = Linkage::internal;
  FunctionAttributes attributes;
  std::vector<VariableId> results;  // of .func
  std::vector<VariableId> parameters;
  std::vector<RegisterDeclaration> register_declarations;
  std::vector<Register> registers;    // registers that some instruction names
  std::vector<VariableId> variables;  // declared in its body: .shared, .local, .param
  std::vector<Label> labels;
  std::vector<Table> tables;
  std::vector<Instruction> instructions;
  std::vector<Operand> operand_pool;
  std::vector<Mod> modifier_pool;
  std::vector<Item> items;
  Offset at = 0, end = 0;  // from the first directive to the closing brace

  std::span<const Operand> operands(const Instruction& instruction) const {
    return {operand_pool.data() + instruction.first_operand, instruction.operand_count};
  }
  std::span<const Operand> children(const Operand& operand) const {
    return {operand_pool.data() + operand.first_child, operand.child_count};
  }
  std::span<const Mod> modifiers(const Instruction& instruction) const {
    return {modifier_pool.data() + instruction.first_modifier, instruction.modifier_count};
  }
  bool has(const Instruction& instruction, Mod mod) const;  // whether `mod` is among the modifiers
};

struct Module {
  std::string path;  // for messages; "-" for standard input
  std::unique_ptr<const std::string> owned_text;
  std::string_view text;  // *owned_text
  uint32_t version_major = 0, version_minor = 0;
  std::string_view target;                       // "sm_90a"
  uint32_t target_sm = 0;                        // 90; 0 where unknown
  char target_suffix = 0;                        // 'a', 'f' or 0
  std::vector<std::string_view> target_options;  // texmode_independent, debug, map_f64_to_f32
  uint32_t address_size = 32;                    // bits
  bool has_address_size = false;                 // the directive was written
  std::vector<SourceFile> files;
  std::vector<Location> locations;
  std::vector<Variable> variables;
  std::vector<Function> functions;  // declarations and definitions; one entry per name
  std::vector<Alias> aliases;
  std::vector<Item> items;             // module level, in order; Kind::instruction is not used here
  std::deque<std::string> made_names;  // names of variables in families such as `.param .b32 x<4>`

  Position position(Offset offset) const;      // binary search in line_starts
  std::string_view line(uint32_t line) const;  // without its line end; empty beyond the last line
  std::vector<Offset> line_starts;             // line_starts[0] == 0

  const SourceFile* file(uint32_t number) const;
};

// The parts of a call instruction; null where absent.
struct CallParts {
  const Operand* results = nullptr;    // OperandKind::parameters
  const Operand* target = nullptr;     // function or reg
  const Operand* arguments = nullptr;  // OperandKind::parameters
  const Operand* prototype = nullptr;  // OperandKind::prototype
};
CallParts call_parts(const Function& function, const Instruction& call);

// The shape among an instruction's modifiers (m16n8k16); zeros where there is none.
Shape shape(const Instruction& instruction);

}  // namespace ptxkit::ptx
