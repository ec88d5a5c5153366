#include "kernels/kernels.hpp"

namespace ptxkit::kernels {

std::vector<dsl::KernelDefinition> all_kernels() {
  return {
#define KERNEL(name, room) name(),
#include "kernels/kernels.def"
  };
}

}  // namespace ptxkit::kernels
