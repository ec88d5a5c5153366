#include "kernels/kernels.hpp"

namespace ptxkit::kernels {

std::vector<dsl::KernelDefinition> all_kernels() {
  return {fse_decode(),          fse_encode(),        huffman_decode(),   huffman_encode(),
          lz4_compress_chunk(),  lz4_compress_page(), lz4_decompress(),   rans_chunked_decode(),
          rans_chunked_encode(), rans_warp_decode(),  rans_warp_encode(), zero_page()};
}

}  // namespace ptxkit::kernels
