// Which registers an operand accepts: their types and, in video instructions, their parts.
//
// Types agree as in ptxas (PTX ISA 9.0, 9.4): the widths are equal, and either side is untyped bits, or both are
// integers, or both are the same float. Loads, stores and conversions accept wider registers, but no float wider than
// the instruction's type. A .f16x2 register is a 32-bit integer too, except for operands whose integer type is
// independent of the instruction's, such as the count of a shift.
#pragma once

#include <cstdint>
#include <string_view>

#include "analyzer/ptx/isa.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::ptx {

bool is_integer(Type type);
bool is_bits(Type type);
Type bits_of(unsigned width);  // .none where there is no such type

bool types_agree(const OperandSpec& wanted, Type have);

bool is_float(OperandKind kind);
bool is_matrix(Op op);

// Whether a generic address may point to a variable in `space`.
bool reaches(Op op, Space space);
// Whether the instruction accesses memory, for which ptxas rejects textures and surfaces. Other instructions accept
// their addresses.
bool reads_memory(const Instruction& instruction, const OperandSpec& spec);
// Whether an element of a source list may be this special register. Outside of lists it is not an operand.
bool reads_special(const OperandSpec& element, const Operand& operand);
// Whether one register in braces is accepted like the register itself.
bool takes_braces(const Instruction& instruction, const OperandSpec& spec);
// False where ptxas expands the instruction into others, whose text has no place for `%v.x` or `%r1+4`.
bool accepts_part_or_sum(const Instruction& instruction, unsigned target_sm, const OperandSpec& spec,
                         const Operand& operand);

// `packed` is the text of a selector, first character lowest, as in Operand::value.
bool names_parts(Selector selector, uint64_t packed);
std::string_view parts_of(Selector selector);  // description in words

}  // namespace ptxkit::ptx
