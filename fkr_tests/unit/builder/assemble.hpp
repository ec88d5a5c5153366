// ptxas as a second opinion, where there is one.
#pragma once

#include <string>

namespace ptxkit::testing {

bool has_ptxas();

// What ptxas says of `ptx` when it assembles it for sm_`sm`; empty if it has nothing to say.
std::string assemble(const std::string& ptx, unsigned sm);

}  // namespace ptxkit::testing
