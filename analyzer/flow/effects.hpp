// What an instruction does to registers and to memory, said once for every analysis.
//
// Which operands are written, the row of the ISA table says that the instruction matched; what memory is touched
// follows from the opcode and the shape of the operands.
#pragma once

#include <optional>

#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::flow {

// Leading operands that are written; a pair or a vector counts as one and may hold several registers. 0 for an
// instruction that the front end refused.
unsigned destination_count(const ptx::Function& function, const ptx::Instruction& instruction);

// Calls visit(pool index, operand, is_written) for every register operand, in order; addresses read their base.
// The guard is not an operand.
template <class Visit>
void for_each_register(const ptx::Function& function, const ptx::Instruction& instruction, Visit&& visit) {
  const unsigned destinations = destination_count(function, instruction);
  auto walk = [&](auto&& self, uint32_t first, uint32_t count, bool written) -> void {
    for (uint32_t i = first; i < first + count; ++i) {
      const ptx::Operand& operand = function.operand_pool[i];
      const bool is_address = operand.kind == ptx::OperandKind::address;
      if (operand.kind == ptx::OperandKind::reg) visit(i, operand, written);
      if (is_address && operand.base == ptx::AddressBase::reg) visit(i, operand, false);
      if (operand.child_count) self(self, operand.first_child, operand.child_count, written && !is_address);
    }
  };
  for (uint32_t i = 0; i < instruction.operand_count; ++i)
    walk(walk, instruction.first_operand + i, 1, i < destinations);
}

using ptx::AccessKind;

// One address through which an instruction touches memory that F051 and its neighbours speak of: ld, st, atom, red and
// the copies and matrix loads that demand an alignment. Parameter space is left out: its addresses are constants.
struct Access {
  ptx::InstructionId instruction = ptx::kNone;
  AccessKind kind = AccessKind::load;
  ptx::Space space = ptx::Space::generic;
  uint32_t width_bytes = 0;    // alignment that the address needs
  uint32_t extent_bytes = 0;   // bytes touched from the address on by this thread; 0 where another thread's row
  uint32_t address = 0;        // index into the operand pool
  uint32_t data = ptx::kNone;  // first data operand, in the operand pool: destination of a load, source of a store
  bool is_plain = true;        // neither volatile nor ordered nor atomic
};

// The accesses of one instruction: none, one, or two (cp.async).
struct Accesses {
  Access items[2];
  unsigned count = 0;
};
Accesses memory_accesses(const ptx::Function& function, ptx::InstructionId id);

bool ends_thread(const ptx::Instruction& instruction);  // ret, exit, trap: no successor when unguarded
bool is_branch(const ptx::Instruction& instruction);    // bra, brx
// A barrier of the CTA: bar.sync, bar.red, barrier.cta.sync, barrier.sync; arrive and warp barriers are not.
bool is_cta_barrier(const ptx::Function& function, const ptx::Instruction& instruction);
// The same that every thread of the CTA must reach: no thread count is given.
bool is_whole_cta_barrier(const ptx::Function& function, const ptx::Instruction& instruction);
// Orders memory among the threads of a warp: bar.warp.sync and every `.sync` collective.
bool is_warp_barrier(const ptx::Function& function, const ptx::Instruction& instruction);

}  // namespace ptxkit::flow
