// Which shared variables an address is derived from. Objects in shared memory touch each other as on a device, so an
// overrun lands in a neighbour: a checked access is held to the variables whose address it was computed from.
#pragma once

#include <map>
#include <vector>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::emulator {

// By where an address operand stands in the text: the shared variables that it may be derived from, ascending. Left out
// where that is not known: an address that was loaded, or computed from several in a way that mixes them.
using Homes = std::map<ptx::Offset, std::vector<ptx::VariableId>>;

// Of everything that `entry` reaches by calls that can be followed (analyzer/flow/inline.hpp).
Homes find_homes(const ptx::Module& module, ptx::FunctionId entry);

}  // namespace ptxkit::emulator
