// Placement of a module's variables: global memory, the constant bank, shared memory of each entry, frames.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ptx/tree.hpp"
#include "runtime/emulator/core/image.hpp"

namespace ptxkit::emulator {

// Offset of every variable in its own space, by ptx::VariableId. Global: a device address; .local and the .param of
// functions: in the frame; parameters of entries: in the parameter buffer. The offsets of shared variables differ by
// entry: see SharedLayout::places.
struct Layout {
  std::vector<uint64_t> offset;
  std::vector<bool> placed;
};

// Places all variables and initialises .global and .const ones. `only`: the kernel that alone gets an entry; empty:
// all. Appends "file:line:column: ..." lines to `errors`.
Layout place_variables(Memory& memory, ProgramImage& image, std::string_view only, std::vector<std::string>& errors);

// Bytes that the system reserves at the start of a CTA's shared memory on a device of compute capability `sm`. The
// first object of a kernel follows them.
uint64_t reserved_shared_bytes(uint32_t sm);

// Whether a variable lies in a function's frame: .local, and .param of calls and of .func.
bool lives_in_frame(const ptx::Module& module, const ptx::Variable& variable);

std::string located(const ptx::Module& module, ptx::Offset at, const std::string& message);

}  // namespace ptxkit::emulator
