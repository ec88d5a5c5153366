// The matches of blocks, as lz4_parse_reference lists them: the chunk compressors of kernels/lz4 with a writer that
// stores sequences, with a CTA for each block.
#include <string>
#include <string_view>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_chunk_compressor.hpp"
#include "kernels/lz4/lz4_high_compressor.hpp"
#include "kernels/lz4/lz4_segments.hpp"
#include "kernels/lz4/lz4_sequence_writer.hpp"
#include "kernels/warp_item.hpp"
#include "kernels/zstd/zstd_format.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

static_assert(kZstdMatchShape.block_threads == kChunkThreads);

using Block = SegmentedMatches<SequenceWriter>;

template <class Compressor>
KernelDefinition define_match(std::string_view name, u32 min_blocks) {
  return define(
      KernelSpec{
          .name = std::string(name),
          .block = kChunkThreads,
          .min_blocks = min_blocks,
          .budget = {.registers = 64, .shared_bytes = ChunkArrays<Compressor>::kBytes, .spill_bytes = 64},
          .cost = {.threads_per_element = double{kChunkThreads} / kMaxChunkBytes,
                   .buffers = {{"blocks", 8}, {"block_bytes", 4}, {"matches", kZstdListBytes}, {"match_counts", 4}},
                   .note = "one CTA a block"}},
      [](Kernel& k, Arg<"blocks", Ptr<read_only, u64>> blocks, Arg<"block_bytes", Ptr<read_only, u32>> block_bytes,
         Arg<"matches", Ptr<global, u32, 8>> matches, Arg<"match_counts", Ptr<global, u32>> match_counts,
         Arg<"block_count", u32> block_count) {
        const ChunkArrays<Compressor> arrays(k);
        const BlockU32 index = k.block();
        k.return_if(index >= block_count);
        const BlockU32 size = min(block_bytes.within(block_count).at(index).load(), kZstdBlockBytes);
        mark_block(k, Mark::item, size);
        const ItemSource src = at_address<read_only, u8, kStrideUnitBytes>(blocks.within(block_count).at(index).load())
                                   .template within<kStrideUnitBytes>(size);
        constexpr u32 kWords = kZstdListBytes / sizeof(u32);
        const auto list = matches.at(times<kWords>(zext<u64>(index))).within(kWords);
        arrays.clear_table(k);
        k.barrier();
        const ChunkWorkspace workspace = arrays.workspace();
        Block block(k, src, size, list, workspace);
        Compressor(k, src, size, block, workspace).compress(size == 0);
        mark_block(k, Mark::status, block.size_bytes());
        k.once_per_block([&] { match_counts.within(block_count).at(index).store(block.size_bytes()); });
      });
}

}  // namespace

KernelDefinition zstd_match() {
  return define_match<ChunkCompressor<Block>>(kZstdMatch, ChunkCompressor<Block>::kMinBlocks);
}

KernelDefinition zstd_match_high() { return define_match<HighCompressor<Block>>(kZstdMatchHigh, 4); }

}  // namespace ptxkit::kernels
