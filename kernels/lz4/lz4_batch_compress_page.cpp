// LZ4 compression of the pages of a batch, with a warp for each item: of items of at most a page, and of the last chunk
// of larger items if it is at most a page. So an item's bytes are those of the reproducible encoder.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_batch.hpp"
#include "kernels/lz4/lz4_batch_compress.hpp"
#include "kernels/lz4/lz4_block_writer.hpp"
#include "kernels/lz4/lz4_format.hpp"
#include "kernels/lz4/lz4_page.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition lz4_batch_compress_page() {
  constexpr u32 kWarps = kLz4CompressPageShape.items_per_block;
  return define_batch_kernel(
      KernelSpec{.name = std::string(kLz4BatchCompressPage),
                 .block = kLz4CompressPageShape.block_threads,
                 // Up to 72 registers, shared memory is what bounds the CTAs of a multiprocessor.
                 .budget = {.registers = 72, .shared_bytes = kWarps * kPageWorkspaceBytes, .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kWarpLanes} / kMaxPageBytes, .note = "one warp an item"}},
      [](Kernel& k, const BatchArguments& arguments) {
        const BatchInput<Rate::warp> item(k, arguments, item_of_warp<kLz4CompressPageShape>(k, arguments.item_count));
        mark_warp(k, Mark::item, item.size());
        const WarpU32 chunk = max(item.chunk_count(), 1) - 1, size = item.size() - chunk * kMaxChunkBytes;
        WarpVar coded(k, 0), last_literal_count(k, 0);
        k.if_(item.is_ok() & (size <= kMaxPageBytes), [&] {
          const ItemSource source = item.source(chunk, size);
          const BlockRoom room = item.room(chunk);
          const PageWorkspace workspace = page_workspace<kWarps>(k);
          k.if_(stage(k, source, size, workspace.page), [&] {
             k.if_(size > kLastMatchStart, [&] {
               coded = write_zeros(k, lanes_of(k), room.within(size), size);
               last_literal_count = kLastLiterals;
             });
           }).else_([&] {
            PageParser parser(k, size, workspace);
            BlockWriter<Page> writer(k, workspace.page, size, room.within(size));
            parser.for_each_batch([&](const WarpU32& count) { writer.append(workspace.matches, count); });
            writer.finish();
            k.if_(writer.fits(), [&] {
              coded = writer.size_bytes();
              last_literal_count = size - writer.anchor();
            });
          });
          k.if_(item.is_direct(), [&] {
             k.if_(*coded == 0, [&] {
               k.sync_warp();  // the lanes' writes to the block are complete before it is overwritten
               coded = write_literals(k, lanes_of(k), source, room, size);
             });
             k.once_per_warp([&] { item.store_header(); });
           }).else_([&] { k.once_per_warp([&] { item.store_encoding(chunk, *coded, *last_literal_count); }); });
        });
        mark_warp(k, Mark::status, item.status());
        // What became of another item is written by the kernel that completes it.
        k.if_(item.is_too_large() | ((item.size() <= kMaxPageBytes) & !item.has_blocks()),
              [&] { k.once_per_warp([&] { item.store_result(item.header_bytes() + *coded); }); });
      });
}

}  // namespace ptxkit::kernels
