// Instruction forms of memory and synchronisation as programs, made from the ISA table: loads, stores, atomics of every
// space, type, scope and order, asynchronous copies, mbarriers, barriers. A GPU must give the emulator's result bit for
// bit.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ptx/names.hpp"
#include "support/result.hpp"

namespace ptxkit::testing {

// Instructions of one row of the table in one entry `memory(in, out, block)`, for a cluster of two CTAs.
struct MemoryCase {
  std::string name;  // "atom [.$sem] [.$scope] ... .b32 (D, m, a), part 2"
  std::vector<std::string> instructions;
  std::string ptx;
  uint32_t threads = 32;  // of each CTA
  std::vector<uint8_t> in;

  size_t section_bytes() const { return in.size() / instructions.size(); }  // in `in` and in `out`
};

// The opcodes that have cases, and the cases of one opcode.
std::span<const ptx::Op> memory_ops();
std::vector<MemoryCase> memory_cases(ptx::Op op);

// The contents of the third parameter.
std::vector<uint8_t> memory_parameter();

// `out` after a run on the emulator with every check. A fault is an error.
Result<std::vector<uint8_t>> emulate_memory(const MemoryCase& each);

// The reason why the emulator's bits of an instruction differ permanently from an H200's; empty if they must be equal.
std::string_view memory_exception(std::string_view instruction);

// Six digits for each instruction: a hash of its bytes, as it is recorded for an H200.
std::string memory_hashes(const MemoryCase& each, std::span<const uint8_t> out);

}  // namespace ptxkit::testing
