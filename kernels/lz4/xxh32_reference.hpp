// Scalar reference of xxh32_of.
#pragma once

#include <cstdint>
#include <span>

namespace ptxkit::kernels {

uint32_t xxh32_reference(std::span<const uint8_t> bytes);

}  // namespace ptxkit::kernels
