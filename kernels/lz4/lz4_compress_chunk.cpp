// LZ4 compression of chunks with a CTA for each chunk (lz4_chunk_compressor.hpp).
#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_chunk_compressor.hpp"
#include "kernels/lz4/lz4_segments.hpp"

namespace ptxkit::kernels {

dsl::KernelDefinition lz4_compress_chunk() {
  return define_chunk_compressor<ChunkCompressor<SegmentedBlock>>(
      kLz4CompressChunk, {.registers = 64, .spill_bytes = 192}, ChunkCompressor<SegmentedBlock>::kMinBlocks);
}

}  // namespace ptxkit::kernels
