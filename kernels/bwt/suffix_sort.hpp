// The order of all suffixes of a text, in linear time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ptxkit::kernels {

// Where the suffixes of `text` begin, in ascending order of the suffixes; a suffix is smaller than what it is a prefix
// of. The empty suffix is not among them. Fewer than 2^31 bytes.
std::vector<uint32_t> sort_suffixes(std::span<const uint8_t> text);

}  // namespace ptxkit::kernels
