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

const KernelImage* find_image(std::span<const KernelImage> images, std::string_view name, uint32_t major,
                              uint32_t minor, std::string_view variant) {
  const KernelImage* best = nullptr;
  for (const KernelImage& image : images) {
    if (image.name != name || image.variant != variant || target_number(image.target) > major * 10 + minor) continue;
    if (best == nullptr || target_number(image.target) > target_number(best->target)) best = &image;
  }
  return best;
}

}  // namespace ptxkit::kernels
