// ptxas as a second opinion, if it is installed.
#pragma once

#include <string>

namespace ptxkit::testing {

bool has_ptxas();

// ptxas's messages when it assembles `ptx` for sm_`sm`; empty if there are none.
std::string assemble(const std::string& ptx, unsigned sm);

}  // namespace ptxkit::testing
