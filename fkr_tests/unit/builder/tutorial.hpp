// The kernels of docs/tutorial.md. tutorial_test.cpp compares the two texts.
#pragma once

#include "builder/dsl.hpp"

namespace ptxkit::tutorial {

dsl::KernelDefinition add_one();
dsl::KernelDefinition count_newlines();
dsl::KernelDefinition reverse_tiles();
dsl::KernelDefinition hash_words();

}  // namespace ptxkit::tutorial
