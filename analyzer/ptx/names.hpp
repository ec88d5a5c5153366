// The closed vocabularies of PTX: scalar types, state spaces, special registers, opcodes, modifiers.
// Enumerators are spelled as in PTX with '_' for '.' and '::'; the .def files have the exact text.
// Source: PTX ISA 9.0, chapters 5 (state spaces, types), 9 (instructions), 10 (special registers).
#pragma once

#include <cstdint>
#include <string_view>

namespace ptxkit::ptx {

enum class Type : uint8_t {
#define PTX_TYPE(id, text, bits) id,
#include "analyzer/ptx/types.def"
#undef PTX_TYPE
};

enum class TypeKind : uint8_t { none, bits, unsigned_int, signed_int, floating, predicate, packed, opaque };

std::string_view text(Type type);  // "u32"
unsigned bit_width(Type type);     // 32; pred is 1, opaque types are 64, none is 0
inline unsigned byte_width(Type type) { return (bit_width(type) + 7) / 8; }
TypeKind kind(Type type);

// `shared` is shared::cta, as in PTX. `generic` is the space of an instruction that names none.
enum class Space : uint8_t { generic, reg, sreg, constant, global, local, param, shared, shared_cluster, tex };
std::string_view text(Space space);  // "shared::cluster"; "" for generic

enum class SpecialRegister : uint8_t {
#define PTX_SPECIAL(id, text, type, vector, version, sm) id,
#include "analyzer/ptx/special_registers.def"
#undef PTX_SPECIAL
  none,
};
std::string_view text(SpecialRegister special);  // "%tid"
Type type(SpecialRegister special);
bool is_vector(SpecialRegister special);          // %tid has .x .y .z
unsigned first_version(SpecialRegister special);  // first PTX version, times ten: 78
unsigned first_target(SpecialRegister special);   // first target, 90 for sm_90

// The first word of an instruction: ld, mad, shfl, wgmma, ...; `unknown` for words that are not in the ISA table.
enum class Op : uint16_t {
#define PTX_OP(id, text, family) id,
#include "analyzer/ptx/opcodes.def"
#undef PTX_OP
  unknown,
};
std::string_view text(Op op);

// Groups of instructions; the emulator decodes one family at a time.
enum class Family : uint8_t {
  address,     // conversion of addresses between state spaces
  arithmetic,  // on registers: integers, floating point, logic, shifts, selection
  atomic,
  barrier,
  cluster,
  comparison,
  control,
  conversion,
  copy,  // asynchronous
  fence,
  hint,  // no effect on values
  matrix,
  mbarrier,
  memory,
  move,
  multimem,
  policy,
  stack,
  texture,  // textures and surfaces
  video,
  warp,  // between lanes of a warp
};
Family family(Op op);  // precondition: not Op::unknown
std::string_view family_name(Op op);

// The words after the opcode that are neither type, state space nor vector width: sync, wide, rn, volatile, eq, ... All
// words `mNnNkN` are `shape`; see shape() in tree.hpp for their numbers.
enum class Mod : uint16_t {
#define PTX_MOD(id, text) id,
#include "analyzer/ptx/modifiers.def"
#undef PTX_MOD
  unknown,
};

// A matrix shape: m16n8k16, or m8n8 with k == 0.
struct Shape {
  uint16_t m = 0, n = 0, k = 0;
  bool operator==(const Shape&) const = default;
};

// The meaning of one word between the dots of an opcode, or after the dot of a declaration.
struct Word {
  enum class Kind : uint8_t { unknown, type, space, vector, modifier } kind = Kind::unknown;
  uint16_t id = 0;  // value of Type, Space or Mod, or the vector width 2, 4 or 8
  Shape shape;      // of Mod::shape
  bool operator==(const Word&) const = default;
};

// Conversions of text to values; the text has no leading dot.
Word find_word(std::string_view text);
Op find_op(std::string_view text);                    // Op::unknown if there is none
SpecialRegister find_special(std::string_view text);  // takes "%tid"; SpecialRegister::none if there is none
Type find_type(std::string_view text);                // Type::none if there is none

// FNV-1a, the hash of every name table of the front end.
constexpr uint32_t hash_text(std::string_view text, uint32_t seed = 2166136261u) {
  for (const char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 16777619u;
  return seed;
}

}  // namespace ptxkit::ptx
