// The matches of items, as lz4_parse_reference lists them with a window of 32 KiB: the chunk compressors of kernels/lz4
// with a writer that stores sequences, with a CTA for each item.
#include <string>
#include <string_view>

#include "kernels/abi.hpp"
#include "kernels/deflate/deflate_encode_batch.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_chunk_compressor.hpp"
#include "kernels/lz4/lz4_high_compressor.hpp"
#include "kernels/lz4/lz4_segments.hpp"
#include "kernels/lz4/lz4_sequence_writer.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

static_assert(kDeflateMatchShape.block_threads == kChunkThreads);

using Matches = SegmentedMatches<SequenceWriter>;

template <class Compressor>
KernelDefinition define_match(std::string_view name) {
  return define_deflate_batch_kernel(
      KernelSpec{.name = std::string(name),
                 .block = kChunkThreads,
                 .min_blocks = 4,
                 .budget = {.registers = 64, .shared_bytes = ChunkArrays<Compressor>::kBytes, .spill_bytes = 96},
                 .cost = {.threads_per_element = double{kChunkThreads} / kMaxChunkBytes, .note = "one CTA an item"}},
      [](Kernel& k, const DeflateBatchArguments& arguments) {
        const ChunkArrays<Compressor> arrays(k);
        const BlockU32 index = k.block();
        k.return_if(index >= arguments.item_count);
        const DeflateBatchItem item(k, arguments, index);
        const BlockU32 size = select(item.is_ok(), item.size(), 0);
        mark_block(k, Mark::item, size);
        arrays.clear_table(k);
        k.barrier();
        const ChunkWorkspace workspace = arrays.workspace();
        const ItemSource src = item.source();
        Matches matches(k, src, size, arguments.matches_of(index), workspace);
        Compressor(k, src, size, matches, workspace).compress(size == 0);
        mark_block(k, Mark::status, matches.size_bytes());
        k.once_per_block(
            [&] { arguments.match_counts.within(arguments.item_count).at(index).store(matches.size_bytes()); });
      });
}

}  // namespace

KernelDefinition deflate_match() { return define_match<ChunkCompressor<Matches, kDeflateWindowBytes>>(kDeflateMatch); }

KernelDefinition deflate_match_high() {
  return define_match<HighCompressor<Matches, kDeflateWindowBytes>>(kDeflateMatchHigh);
}

}  // namespace ptxkit::kernels
