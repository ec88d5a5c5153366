// LZ4 compression of the chunks of a batch that are larger than a page, with a CTA for each chunk of each item; or,
// with kBatchPagesByBlock, of pages.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_batch.hpp"
#include "kernels/lz4/lz4_batch_compress.hpp"
#include "kernels/lz4/lz4_chunk_compressor.hpp"
#include "kernels/lz4/lz4_format.hpp"
#include "kernels/lz4/lz4_segments.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition lz4_batch_compress_chunk() {
  return define_batch_kernel(
      KernelSpec{
          .name = std::string(kLz4BatchCompressChunk),
          .block = kLz4CompressChunkShape.block_threads,
          .min_blocks = ChunkCompressor<SegmentedBlock>::kMinBlocks,
          .budget = {.registers = 64,
                     .shared_bytes = ChunkArrays<ChunkCompressor<SegmentedBlock>>::kBytes,
                     .spill_bytes = 256},
          .cost = {.threads_per_element = double{kChunkThreads} / kMaxChunkBytes, .note = "one CTA a chunk of 64 KiB"}},
      [](Kernel& k, const BatchArguments& given) {
        const auto takes_pages = (given.framing & kBatchPagesByBlock) != 0;
        const BatchArguments arguments = given.with_framing(given.framing & (kBatchPagesByBlock - 1));
        const ChunkArrays<ChunkCompressor<SegmentedBlock>> arrays(k);
        const BlockU32 index = k.block() / arguments.chunks_per_item,
                       chunk = k.block() - index * arguments.chunks_per_item;
        k.return_if(index >= arguments.item_count);
        const BatchInput<Rate::block> item(k, arguments, index);
        const BlockU32 begin = chunk * kMaxChunkBytes;
        // What lz4_batch_compress_page does, and chunks beyond the item's end.
        k.return_if((!takes_pages) & (item.is_too_large() | (begin >= item.size())));
        const BlockU32 size = min(item.size() - begin, kMaxChunkBytes);
        k.return_if((!takes_pages) & (size <= kMaxPageBytes));
        mark_block(k, Mark::item, size);
        WarpVar coded(k, 0), last_literal_count(k, 0);
        k.if_(item.is_ok(), [&] {
          const auto source = item.source(chunk, size);
          const auto room = item.room(chunk);
          compress_by_cta(
              k, arrays, source, size, room.within(size),
              [&] {
                k.if_(size > kLastMatchStart, [&] {
                   coded = write_zeros(k, threads_of(k), room.within(size), size);
                   last_literal_count = kLastLiterals;
                 }).else_([&] { coded = write_literals(k, threads_of(k), source, room, size); });
              },
              [&](const SegmentedBlock& block) {
                coded = block.size_bytes();
                last_literal_count = block.last_literal_count();
              },
              [&] { k.if_(item.is_direct(), [&] { coded = write_literals(k, threads_of(k), source, room, size); }); });
          k.once_per_block([&] {
            k.if_(item.is_direct(), [&] { item.store_header(); }).else_([&] {
              item.store_encoding(chunk, *coded, *last_literal_count);
            });
          });
        });
        mark_block(k, Mark::status, item.status());
        k.if_(takes_pages | item.is_direct(),
              [&] { k.once_per_block([&] { item.store_result(item.header_bytes() + *coded); }); });
      });
}

}  // namespace ptxkit::kernels
