// Scalar reference of the kernel `zero_page`, for one item.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/abi.hpp"

namespace ptxkit::kernels {

// Whether every byte is zero. True for an empty span.
bool is_zero(std::span<const uint8_t> bytes);

// PageFlag::zero, or PageFlag::compressed if some byte is not zero.
PageFlag zero_page_reference(std::span<const uint8_t> bytes);

}  // namespace ptxkit::kernels
