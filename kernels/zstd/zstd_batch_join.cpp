// Writes the blocks of a batch where zstd_batch_plan laid them out, with a CTA for each block.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_batch.hpp"
#include "kernels/warp_item.hpp"
#include "kernels/zstd/zstd_batch.hpp"
#include "kernels/zstd/zstd_format.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition zstd_batch_join() {
  return define_zstd_batch_kernel(
      KernelSpec{.name = std::string(kZstdBatchJoin),
                 .block = kZstdBatchJoinShape.block_threads,
                 .budget = {.registers = 40, .shared_bytes = 0, .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kZstdBatchJoinShape.block_threads} / kZstdBlockBytes,
                          .note = "one CTA a block"}},
      [](Kernel& k, const ZstdBatchArguments& arguments) {
        const BlockU32 item_number = k.block() / arguments.blocks_per_item,
                       index = k.block() - item_number * arguments.blocks_per_item;
        k.return_if(item_number >= arguments.item_count);
        const ZstdBatchItem<Rate::block> item(k, arguments, item_number);
        k.return_if((!item.is_ok()) | (index >= item.block_count()));
        const BlockU32 size = item.block_size(index);
        mark_block(k, Mark::item, size);
        const BlockU32 number = k.block();
        const auto form = ZstdBlockForm<Rate::block>::of(arguments, number, size);
        // The places were written before this launch.
        const BlockU32 place = at_address<read_only, u32>(arguments.places.at(number).address()).align_down<4>().load();
        const auto output = item.output().at(place);
        const auto content = output.at<kZstdBlockHeaderBytes>();
        const auto threads = threads_of(k);
        const BlockU32 type = select(form.is_run, static_cast<u32>(ZstdBlockType::rle),
                                     select(form.is_compressed, k.constant(static_cast<u32>(ZstdBlockType::compressed)),
                                            static_cast<u32>(ZstdBlockType::raw)));
        const BlockU32 header = zext<u32>(index == item.block_count() - 1) | type << 1 |
                                select(form.is_compressed, form.content_bytes, size) << 3;
        k.if_(k.thread() < kZstdBlockHeaderBytes,
              [&] { output.at(k.thread()).store(trunc<u8>(header >> k.thread() * 8)); });
        k.if_(form.is_compressed, [&] {
           const auto at = zext<u64>(number) * kZstdSectionBytes;
           copy_bytes(k, threads, arguments.literal_sections.at(at).within(form.literal_bytes), content,
                      form.literal_bytes);
           copy_bytes(k, threads, arguments.sequence_sections.at(at).within(form.sequence_bytes),
                      content.at(form.literal_bytes), form.sequence_bytes);
         }).else_([&] {
          const auto source = at_address<read_only, u8>(item.input() + zext<u64>(index) * kZstdBlockBytes).within(size);
          copy_bytes(k, threads, source, content, form.content_bytes);
        });
        mark_block(k, Mark::status, form.content_bytes);
      });
}

}  // namespace ptxkit::kernels
