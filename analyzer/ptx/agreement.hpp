// Which registers an operand takes: their types and, in video instructions, their parts.
//
// Types agree as ptxas has it (PTX ISA 9.0, 9.4): the widths are equal, and either side is untyped bits, or both are
// integers, or both are the same float; loads, stores and conversions take wider registers, but no float wider than the
// instruction's. A register of .f16x2 is an integer of 32 bits too, but not where an instruction has one type of
// integer whatever it is of, as the count of a shift.
#pragma once

#include <cstdint>
#include <string_view>

#include "analyzer/ptx/isa.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::ptx {

bool is_integer(Type type);
bool is_bits(Type type);
Type bits_of(unsigned width);  // .none where there is no such type

bool types_agree(const OperandSpec& wanted, Type have);

bool is_float(OperandKind kind);
bool is_matrix(Op op);

// Whether a generic address may be that of a variable in `space`.
bool reaches(Op op, Space space);
// Whether ptxas keeps the instruction from textures and surfaces; others take the address of one.
bool reads_memory(const Instruction& instruction, const OperandSpec& spec);
// Whether an element of a list that is read may be this special register, which no operand outside of one may be.
bool reads_special(const OperandSpec& element, const Operand& operand);
// Whether one register in braces is as good as the register.
bool takes_braces(const Instruction& instruction, const OperandSpec& spec);
// False where ptxas writes the instruction as others, in text that has no room for `%v.x` or `%r1+4`.
bool takes_part_or_sum(const Instruction& instruction, unsigned target_sm, const OperandSpec& spec,
                       const Operand& operand);

// `packed` is the text of a selector, its first character lowest, as Operand::value has it.
bool names_parts(Selector selector, uint64_t packed);
std::string_view parts_of(Selector selector);  // in words

}  // namespace ptxkit::ptx
