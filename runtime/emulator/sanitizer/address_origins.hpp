// The shared variables that an address is derived from. Objects in shared memory are adjacent as on a device, so an
// overrun lands in a neighbour. A checked access must therefore stay in the variables whose address it was computed
// from.
#pragma once

#include <map>
#include <vector>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::emulator {

// By place of an address operand in the text: the shared variables that it may be derived from, ascending. An operand
// is absent if they are unknown: the address was loaded, or computed from several addresses in a way that mixes them.
using AddressOrigins = std::map<ptx::Offset, std::vector<ptx::VariableId>>;

// Covers all code that `entry` reaches by calls that can be followed (analyzer/flow/inline.hpp).
AddressOrigins find_address_origins(const ptx::Module& module, ptx::FunctionId entry);

}  // namespace ptxkit::emulator
