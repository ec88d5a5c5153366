// The operation behind a value: the defining instruction with its sources decoded.
//
// The analyses (value domain, affine forms, uniformity, evaluation for one thread) all use this decoding, so they
// interpret PTX's operand kinds alike.
#pragma once

#include "analyzer/flow/ssa.hpp"

namespace ptxkit::flow {

struct Source {
  enum class Kind : uint8_t { none, constant, value, variable, special, function } kind = Kind::none;
  uint32_t id = kNone;    // ValueId, VariableId, SpecialRegister
  uint8_t component = 0;  // 'x' 'y' 'z' of a special register
  bool negated = false;   // !p
  uint64_t constant = 0;  // of a constant; the byte offset of a variable
};

Source source_of(const Ssa& ssa, uint32_t pool_index);

// The base of an address operand as a source; the displacement is Operand::value.
Source address_base(const Ssa& ssa, uint32_t pool_index);

struct Operation {
  const ptx::Instruction* instruction = nullptr;
  unsigned width = 0;  // bits of the written register; 1 for a predicate
  unsigned part = 0;   // index of the register in a written vector or pair
  unsigned parts = 1;
  uint32_t first_source = 0;  // operand pool index of the first operand after the destination
  unsigned source_count = 0;
};

// Precondition: the value is a result.
Operation operation_of(const Ssa& ssa, ValueId id);

unsigned width_of(const Ssa& ssa, ValueId id);  // bits of its register; 1 for a predicate

}  // namespace ptxkit::flow
