#include "kernels/kernels.hpp"

namespace ptxkit::kernels {

std::vector<dsl::KernelDefinition> all_kernels() {
  return {lz4_compress_chunk(), lz4_compress_page(), lz4_decompress(), zero_page()};
}

}  // namespace ptxkit::kernels
