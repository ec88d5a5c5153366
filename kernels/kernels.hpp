// Every kernel of the project, as definitions in the DSL.
#pragma once

#include <vector>

#include "builder/define.hpp"

namespace ptxkit::kernels {

dsl::KernelDefinition bwt_bitonic();  // bwt/
dsl::KernelDefinition bwt_inverse();
dsl::KernelDefinition bwt_radix();
dsl::KernelDefinition bwt_rank();
dsl::KernelDefinition demux_count();  // lz77/
dsl::KernelDefinition demux_scatter();
dsl::KernelDefinition fse_decode();  // entropy/
dsl::KernelDefinition fse_encode();
dsl::KernelDefinition huffman_decode();
dsl::KernelDefinition huffman_encode();
dsl::KernelDefinition lz4_compress_chunk();  // lz4/
dsl::KernelDefinition lz4_compress_high();
dsl::KernelDefinition lz4_compress_page();
dsl::KernelDefinition lz4_decompress();
dsl::KernelDefinition lz4_encode_page();
dsl::KernelDefinition lz4_match_page();
dsl::KernelDefinition lz77_batch();  // lz77/
dsl::KernelDefinition lz77_decode();
dsl::KernelDefinition lz77_hash();
dsl::KernelDefinition lz77_lazy();
dsl::KernelDefinition lz77_link();
dsl::KernelDefinition lz77_per_position();
dsl::KernelDefinition lz77_table();
dsl::KernelDefinition lz77_topk();
dsl::KernelDefinition mtf_decode();  // bwt/
dsl::KernelDefinition mtf_encode();
dsl::KernelDefinition rans_chunked_decode();  // entropy/
dsl::KernelDefinition rans_chunked_encode();
dsl::KernelDefinition rans_warp_decode();
dsl::KernelDefinition rans_warp_encode();
dsl::KernelDefinition zero_page();         // pages/zero_page.cpp
dsl::KernelDefinition zero_runs_decode();  // bwt/
dsl::KernelDefinition zero_runs_encode();

// All of them, by name.
std::vector<dsl::KernelDefinition> all_kernels();

}  // namespace ptxkit::kernels
