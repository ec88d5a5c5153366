// Zstandard frames of any encoder, which lie anywhere, with a warp for each item: one block after another. In a chain
// it takes the items of which zstd_batch_index has not listed the blocks.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/warp_item.hpp"
#include "kernels/zstd/zstd_decode_batch.hpp"
#include "kernels/zstd/zstd_decode_item.hpp"
#include "kernels/zstd/zstd_decode_literals.hpp"
#include "kernels/zstd/zstd_decode_sequences.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition zstd_batch_decompress() {
  return define_zstd_decode_kernel(
      KernelSpec{.name = std::string(kZstdBatchDecompress),
                 .block = kZstdDecodeShape.block_threads,
                 .budget = {.registers = 144,
                            .shared_bytes = ZstdTableBuilder::kSharedBytes + ZstdLiteralsDecoder::kSharedBytes +
                                            ZstdSequencesDecoder<1>::kSharedBytes + ZstdOutput::kSharedBytes,
                            .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kWarpLanes} / kZstdBlockBytes,
                          .note = "one warp an item; N is the decoded size, in items of 65536 bytes or more"}},
      [](Kernel& k, const ZstdDecodeArguments& arguments) {
        const WarpU32 number = item_of_warp<kZstdDecodeShape>(k, arguments.item_count);
        WarpVar is_listed(k, 0);
        k.if_(arguments.blocks_per_item != 0, [&] {
          const WarpU32 count = written_zstd_record<1>(arguments.block_counts, number).load();
          is_listed = zext<u32>(count != kZstdNotListed);
        });
        k.return_if(*is_listed != 0);
        const ZstdDecodeItem item(k, arguments, number);
        const ZstdScratch scratch(arguments, number);
        ZstdTableBuilder builder(k);
        ZstdLiteralsDecoder literals(k, item.source(), builder);
        ZstdSequencesDecoder<1> sequences(k, builder);
        decode_zstd_item(
            k, arguments, number, item,
            [&](const ZstdBlock& block, const ZstdSections& sections, const ZstdWalk& walk, ZstdOutput& output,
                ZstdOutcome& outcome) {
              // What does not fit is more than the item has room for.
              const WarpU32 literal_place = min(block.literal_place, scratch.literal_room);
              const WarpU32 sequence_place = min(block.sequence_place, scratch.sequence_room);
              const ZstdRoom own_literals = scratch.literals.at(literal_place);
              const ZstdSequences own_sequences = scratch.sequences.at(times<2>(sequence_place));
              literals.decode(sections.literals, block.tree_at, own_literals, scratch.literal_room - literal_place);
              sequences.prepare(k.constant<u32>(0), item.source(), item.size, block, sections, walk.max_block_bytes(),
                                own_sequences, scratch.sequence_room - sequence_place);
              sequences.run();
              const WarpBool is_bad = broadcast(zext<u32>(sequences.is_bad())) != 0;
              outcome.fail_if(literals.is_bad() | is_bad, BatchStatus::cannot_decompress);
              const auto& last = sequences.last_offsets();
              const auto of_block = [](const LaneU32& value) { return WarpU32(broadcast(value)); };
              const WarpU32 content_bytes = of_block(sequences.content_bytes());
              const std::array<WarpU32, kZstdRepeatOffsets> last_offsets{of_block(*last[0]), of_block(*last[1]),
                                                                         of_block(*last[2])};
              k.if_(outcome.is_ok(), [&] {
                output.run({own_literals, sections.literals.bytes(), own_sequences, sections.count(), content_bytes,
                            last_offsets, walk.window_bytes()});
              });
            });
      });
}

}  // namespace ptxkit::kernels
