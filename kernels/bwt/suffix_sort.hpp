// The order of all suffixes of a text, in linear time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ptxkit::kernels {

// Returns the positions of the suffixes of `text` in ascending order of the suffixes. A suffix is smaller than one of
// which it is a prefix. The empty suffix is not included. `text` has fewer than 2^31 bytes.
std::vector<uint32_t> sort_suffixes(std::span<const uint8_t> text);

}  // namespace ptxkit::kernels
