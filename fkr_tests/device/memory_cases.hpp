// Instruction forms of memory and synchronisation as programs, made from the ISA table: loads, stores, atomics of every
// space, type, scope and order, asynchronous copies, mbarriers, barriers. What the emulator makes of each a GPU must
// make bit for bit.
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

  size_t section_bytes() const { return in.size() / instructions.size(); }  // of `in` and of `out`
};

// The opcodes that have cases, and those of one.
std::span<const ptx::Op> memory_ops();
std::vector<MemoryCase> memory_cases(ptx::Op op);

// What goes in as the third parameter.
std::vector<uint8_t> memory_parameter();

// `out` after the emulator has run it, with every check: a fault is an error.
Result<std::vector<uint8_t>> emulate_memory(const MemoryCase& each);

// Why the emulator's bits of an instruction differ from an H200's and stay so; empty where they may not.
std::string_view memory_exception(std::string_view instruction);

// Six digits for each instruction: what is recorded of an H200's bytes.
std::string memory_hashes(const MemoryCase& each, std::span<const uint8_t> out);

}  // namespace ptxkit::testing
