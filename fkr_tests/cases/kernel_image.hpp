// The embedded PTX of a kernel, for tests.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "kernels/images.hpp"

namespace ptxkit::testing {

// For compute capability 9.0. Throws if there is none.
inline const kernels::KernelImage& kernel_image(std::string_view name, std::string_view variant = "release") {
  const auto* const image = kernels::find_kernel_variant(name, 9, 0, variant);
  if (image == nullptr) throw std::runtime_error("no image of " + std::string(name));
  return *image;
}

}  // namespace ptxkit::testing
