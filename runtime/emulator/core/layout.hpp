// Where the variables of a module lie: global memory, the constant bank, shared memory of each entry, frames.
#pragma once

#include <string>
#include <vector>

#include "runtime/emulator/core/image.hpp"

namespace ptxkit::emulator {

// Offset of every variable in its own space (global: a device address; .local and the .param of functions: in the
// frame; parameters of entries: in the parameter buffer). Indexed by ptx::VariableId. Those of shared variables differ
// by entry: SharedLayout::places.
struct Layout {
  std::vector<uint64_t> offset;
  std::vector<bool> placed;
};

// Places everything, initialises .global and .const variables. `errors` gets "file:line:column: ..." lines.
Layout place_variables(Memory& memory, ProgramImage& image, std::vector<std::string>& errors);

// Bytes at the begin of a CTA's shared memory that the system keeps on a device of that compute capability: the first
// object of a kernel lies behind them.
uint64_t reserved_shared_bytes(uint32_t sm);

// Entry of a function's own variables: .local, .param of calls and of .func.
bool lives_in_frame(const ptx::Module& module, const ptx::Variable& variable);

std::string located(const ptx::Module& module, ptx::Offset at, const std::string& message);

}  // namespace ptxkit::emulator
