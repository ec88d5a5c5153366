// What the kernel `zero_page` computes, stated for one item.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/abi.hpp"

namespace ptxkit::kernels {

// Whether every byte is zero; true of nothing at all.
bool is_zero(std::span<const uint8_t> bytes);

// PageFlag::zero or PageFlag::compressed (some byte is not zero).
PageFlag zero_page_reference(std::span<const uint8_t> bytes);

}  // namespace ptxkit::kernels
