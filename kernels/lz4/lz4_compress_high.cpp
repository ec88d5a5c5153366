// LZ4 compression of chunks at a higher ratio, with a CTA for each chunk (lz4_high_compressor.hpp).
#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_high_compressor.hpp"
#include "kernels/lz4/lz4_segments.hpp"

namespace ptxkit::kernels {

dsl::KernelDefinition lz4_compress_high() {
  return define_chunk_compressor<HighCompressor<SegmentedBlock>>(kLz4CompressHigh, {.registers = 64, .spill_bytes = 0},
                                                                 4);
}

}  // namespace ptxkit::kernels
