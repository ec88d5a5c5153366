// Writes the encodings of items of several chunks as lz4_batch_plan laid them out, with a CTA for each chunk: literals
// from the item, and what is between the first and the last literals of a chunk's encoding from its slot. In a framing
// of blocks, a header and the chunk's encoding or its bytes.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_batch.hpp"
#include "kernels/lz4/lz4_batch_compress.hpp"
#include "kernels/lz4/lz4_block_writer.hpp"
#include "kernels/lz4/lz4_format.hpp"
#include "kernels/lz4/lz4_frame.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition lz4_batch_join() {
  return define_batch_kernel(
      KernelSpec{.name = std::string(kLz4BatchJoin),
                 .block = kLz4BatchJoinShape.block_threads,
                 .budget = {.registers = 64, .shared_bytes = 0, .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kLz4BatchJoinShape.block_threads} / kMaxChunkBytes,
                          .note = "one CTA a chunk of 64 KiB"}},
      [](Kernel& k, const BatchArguments& arguments) {
        const BlockU32 index = k.block() / arguments.chunks_per_item,
                       chunk = k.block() - index * arguments.chunks_per_item;
        k.return_if(index >= arguments.item_count);
        const BatchInput<Rate::block> item(k, arguments, index);
        k.return_if((!item.is_ok()) | item.is_direct() | (chunk >= item.chunk_count()));
        const BlockU32 begin = chunk * kMaxChunkBytes, size = min(item.size() - begin, kMaxChunkBytes);
        mark_block(k, Mark::item, size);
        const auto threads = threads_of(k);
        const auto source = item.source(chunk, size);
        const auto output = item.output().at(item.header_bytes());
        // The records were written before this launch.
        const auto record = at_address<read_only, u32>(item.record(chunk).address()).template align_down<16>();
        const BlockU32 coded = record.load(), last = record.template at<1>().load();
        const auto [leading, body_at, run, shift] = record.template at<4>().template load_vector<4>();
        const auto join_block = [&] {
          const auto block = item.output().at(shift);
          const BlockU32 field = select(coded != 0, coded, size);
          const BlockU32 of_frame = field | select(coded != 0, k.constant<u32>(0), k.constant(kFrameRawBlock));
          const BlockU32 header = select(item.is_frame(), of_frame, prmt(field, 0, k.constant<u32>(0x0123)));
          k.if_(k.thread() < kBlockHeaderBytes,
                [&] { block.at(k.thread()).store(trunc<u8>(header >> k.thread() * 8)); });
          const auto content = block.at(k.constant(kBlockHeaderBytes));
          k.if_(coded != 0, [&] {
             copy_bytes(k, threads, at_address<read_only, u8>(item.slot_address(chunk)).within(coded), content, coded);
           }).else_([&] { copy_bytes(k, threads, source, content, size); });
        };
        const auto join_literals = [&] {
          k.if_(coded != 0, [&] {
             const BlockU32 literal_count = begin + leading - run;
             const auto slot = at_address<read_only, u8>(item.slot_address(chunk)).within(coded);
             const BlockU32 body_begin = extension_size(leading) + 1 + leading;
             const BlockU32 body_end = coded - (extension_size(last) + 1 + last);
             write_literal_length(k, threads, output.at(body_at - literal_count - extension_size(literal_count) - 1),
                                  literal_count, zext<u32>(slot.load()) & kNibbleMax);
             copy_bytes(k, threads, source, output.at(body_at - leading), leading);
             copy_bytes(k, threads, slot.at(body_begin), output.at(body_at), body_end - body_begin);
             copy_bytes(k, threads, source.at(size - last), output.at(begin + size - last + shift), last);
           }).else_([&] { copy_bytes(k, threads, source, output.at(begin + shift), size); });
          k.if_(chunk == item.chunk_count() - 1, [&] {
            const BlockU32 last_run = select(coded != 0, begin + size - last, run);
            const BlockU32 literal_count = item.size() - last_run;
            write_literal_length(k, threads, output.at(last_run + shift - extension_size(literal_count) - 1),
                                 literal_count, k.constant<u32>(0));
          });
          k.if_(chunk == 0, [&] { k.once_per_block([&] { item.store_header(); }); });
        };
        k.if_(item.has_blocks(), join_block).else_(join_literals);
        mark_block(k, Mark::status, coded);
      });
}

}  // namespace ptxkit::kernels
