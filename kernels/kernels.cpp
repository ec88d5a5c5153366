#include "kernels/kernels.hpp"

namespace ptxkit::kernels {

std::vector<dsl::KernelDefinition> all_kernels() {
  return {bwt_bitonic(),        bwt_inverse(),         bwt_radix(),           bwt_rank(),         demux_count(),
          demux_scatter(),      fse_decode(),          fse_encode(),          huffman_decode(),   huffman_encode(),
          lz4_compress_chunk(), lz4_compress_high(),   lz4_compress_page(),   lz4_decompress(),   lz4_encode_page(),
          lz4_match_page(),     lz77_batch(),          lz77_decode(),         lz77_hash(),        lz77_lazy(),
          lz77_link(),          lz77_per_position(),   lz77_table(),          lz77_topk(),        mtf_decode(),
          mtf_encode(),         rans_chunked_decode(), rans_chunked_encode(), rans_warp_decode(), rans_warp_encode(),
          zero_page(),          zero_runs_decode(),    zero_runs_encode()};
}

}  // namespace ptxkit::kernels
