// Constants of XXH32. Source: xxhash_spec.md of the xxHash project.
#pragma once

#include <cstdint>

namespace ptxkit::kernels {

inline constexpr uint32_t kXxh32Primes[] = {0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1};

}  // namespace ptxkit::kernels
