// Lists the compressed blocks of Zstandard frames, with a warp for each item, so that all of them can be read at once:
// where each lies, where the tables are that it repeats, and where its literals and its sequences go.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/warp_item.hpp"
#include "kernels/zstd/zstd_decode_batch.hpp"
#include "kernels/zstd/zstd_decode_walk.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition zstd_batch_index() {
  return define_zstd_decode_kernel(
      KernelSpec{.name = std::string(kZstdBatchIndex),
                 .block = kZstdBatchIndexShape.block_threads,
                 .budget = {.registers = 48, .shared_bytes = 0, .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kWarpLanes} / kZstdBlockBytes, .note = "one warp an item"}},
      [](Kernel& k, const ZstdDecodeArguments& arguments) {
        const WarpU32 number = item_of_warp<kZstdBatchIndexShape>(k, arguments.item_count);
        const ZstdDecodeItem item(k, arguments, number);
        mark_warp(k, Mark::item, item.size);
        ZstdOutcome outcome(k);
        item.check(outcome);
        WarpVar count(k, 0);
        const BlockU32 literal_room = zstd_literal_room(arguments.max_output_bytes);
        const BlockU32 sequence_room = zstd_sequence_room(arguments.max_output_bytes);
        ZstdWalk walk(k, item.source(), item.size, outcome);
        const auto nothing = [] {};
        const auto take = [&](const ZstdBlock& block, const ZstdSections& sections) {
          k.if_(block.type == static_cast<u32>(ZstdBlockType::compressed), [&] {
            const WarpBool fits = (*count < arguments.blocks_per_item) &
                                  (sections.literals.bytes() <= literal_room - block.literal_place) &
                                  (sections.count() <= sequence_room - block.sequence_place);
            k.if_(fits, [&] {
               k.once_per_warp([&] {
                 const WarpU32 index = *count * arguments.item_count + number;
                 const auto record = arguments.blocks.at(times<8>(zext<u64>(index))).within(8);
                 record.store_vector(std::array<WarpU32, 4>{block.begin, walk.max_block_bytes(), block.literal_place,
                                                            block.sequence_place});
                 record.template at<4>().store_vector(
                     std::array<WarpU32, 4>{block.tree_at, block.table_at[0], block.table_at[1], block.table_at[2]});
               });
               count += 1;
             }).else_([&] {
              count = k.constant(kZstdNotListed);
              outcome.fail_if(k.constant(true), BatchStatus::too_large);  // ends the walk
            });
          });
        };
        k.if_(outcome.is_ok(), [&] { walk.run(nothing, take, nothing); });
        mark_warp(k, Mark::status, *count);
        k.once_per_warp([&] { arguments.block_counts.within(arguments.item_count).at(number).store(*count); });
      });
}

}  // namespace ptxkit::kernels
