// One launch of an embedded kernel on the GPU of the device tests, in the form that tests for several machines use.
#pragma once

#include <string_view>
#include <vector>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/kernel_argument.hpp"

namespace ptxkit::testing {

// A Launch. Uninitialised buffers are filled with a pattern.
std::vector<Bytes> launch(std::string_view name, uint32_t grid, uint32_t block_threads,
                          const std::vector<KernelArgument>& arguments);
double last_seconds();  // of the last launch, the kernel only

}  // namespace ptxkit::testing
