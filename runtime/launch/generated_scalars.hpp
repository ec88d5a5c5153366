// Values for the scalars of generated launches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyzer/flow/launch.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit {

// Integers that the kernel compares with: next to them it decides differently.
std::vector<uint64_t> compared_constants(const ptx::Function& kernel);

// What is worth trying of a scalar, each once: with a range its ends and, within it, numbers around the constants, the
// threads of the grid and powers of two; without, common sizes and numbers around the constants. `known` may be null.
// The bits of a floating-point type are those of ordinary numbers.
std::vector<uint64_t> scalar_values(ptx::Type type, const flow::ParameterFacts* known,
                                    const std::vector<uint64_t>& constants, uint64_t threads);

// Which of `count` values the scalar at `place` among the kernel's has in the searching launch `search`. In every
// second launch all scalars have the same choice: sizes that belong together; between these each goes its own way. 16
// launches give every scalar each of up to 16 values, and of more 16. Requires: count > 0.
size_t scalar_choice(unsigned search, unsigned place, size_t count);

}  // namespace ptxkit
