// Values for the scalars of generated launches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyzer/flow/launch.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit {

// Integers that the kernel compares with: it may decide differently for values next to them.
std::vector<uint64_t> compared_constants(const ptx::Function& kernel);

// Values to try for a scalar, without duplicates. With a known range: its ends and, within it, numbers around the
// constants, the threads of the grid and powers of two. Otherwise: common sizes and numbers around the constants.
// `known` may be null. For floating point types they are the bits of ordinary numbers.
std::vector<uint64_t> scalar_values(ptx::Type type, const flow::ParameterFacts* known,
                                    const std::vector<uint64_t>& constants, uint64_t threads);

// Index of the value, of `count` values, that the scalar at `place` among the kernel's scalars has in the searching
// launch `search`. In every second launch all scalars have the same index, for sizes that belong together; in the
// others each has its own sequence. 16 launches give every scalar each of up to 16 values, or 16 of more. Requires:
// count > 0.
size_t scalar_choice(unsigned search, unsigned place, size_t count);

}  // namespace ptxkit
