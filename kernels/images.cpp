#include "kernels/images.hpp"

#include <charconv>

namespace ptxkit::kernels {
namespace {

// The number of a target: 90 for "sm_90".
uint32_t target_number(std::string_view target) {
  uint32_t number = 0;
  std::from_chars(target.data() + 3, target.data() + target.size(), number);
  return number;
}

}  // namespace

const KernelImage* find_kernel_variant(std::string_view name, uint32_t major, uint32_t minor,
                                       std::string_view variant) {
  const KernelImage* best = nullptr;
  for (const KernelImage& image : kernel_images()) {
    if (image.name != name || image.variant != variant || target_number(image.target) > major * 10 + minor) continue;
    if (best == nullptr || target_number(image.target) > target_number(best->target)) best = &image;
  }
  return best;
}

const KernelImage* find_kernel_image(std::string_view name, uint32_t major, uint32_t minor) {
  return find_kernel_variant(name, major, minor, "release");
}

}  // namespace ptxkit::kernels
