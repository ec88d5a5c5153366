// Every kernel of the project (kernels.def), as definitions in the DSL.
#pragma once

#include <vector>

#include "builder/define.hpp"

namespace ptxkit::kernels {

#define KERNEL(name, room) dsl::KernelDefinition name();
#include "kernels/kernels.def"

// All of them, by name.
std::vector<dsl::KernelDefinition> all_kernels();

}  // namespace ptxkit::kernels
