// Every kernel of the project (kernels.def), as DSL definitions.
#pragma once

#include <vector>

#include "builder/define.hpp"

namespace ptxkit::kernels {

#define KERNEL(name, room) dsl::KernelDefinition name();
#include "kernels/kernels.def"

// All kernels, sorted by name.
std::vector<dsl::KernelDefinition> all_kernels();

}  // namespace ptxkit::kernels
