// Finds the blocks of items of framings `frame` and `hdf5`, with a warp for each item: a block behind another, since
// only the size of one says where the next begins. Where all blocks but the last have the same raw size, as most
// encoders write them, the place of each in the output is known without decoding any; lz4_batch_blocks then decodes all
// at once, and lz4_batch_finish sees whether that was so.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_batch.hpp"
#include "kernels/lz4/lz4_batch_framed.hpp"
#include "kernels/lz4/lz4_batch_walk.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition lz4_batch_index() {
  return define_framed_kernel(
      KernelSpec{.name = std::string(kLz4BatchIndex),
                 .block = kLz4BatchPlanShape.block_threads,
                 .budget = {.registers = 64, .shared_bytes = 0, .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kWarpLanes} / kMaxChunkBytes, .note = "one warp an item"}},
      [](Kernel& k, const FramedArguments& arguments) {
        const WarpU32 number = item_of_warp<kLz4BatchPlanShape>(k, arguments.item_count);
        const FramedItem item(arguments, number);
        mark_warp(k, Mark::item, item.size);
        BatchOutcome<Rate::warp> outcome(k);
        item.check(outcome);
        // `stated`: the raw bytes that the frames say they have.
        WarpVar block_count(k, 0), frame_count(k, 0), checksum_at(k, 0), stated(k, 0), is_too_small(k, 0);
        WarpVar is_independent(k, 0), is_exact(k, 0), has_block_checksums(k, 0), block_bytes(k, 0);
        k.if_(outcome.is_ok(), [&] {
          ItemWalk walk(k, item.source(), item.size, arguments.framing, outcome);
          const WarpU32 first_block = number * arguments.blocks_per_item;
          const auto begin = [&] {
            frame_count += 1;
            is_independent = zext<u32>(walk.is_independent());
            is_exact = zext<u32>(walk.has_stated_bytes());
            has_block_checksums = zext<u32>(walk.has_block_checksums());
            block_bytes = walk.block_bytes();
            k.if_(walk.has_stated_bytes(), [&] {
              const WarpBool fits = walk.stated_bytes() <= zext<u64>(item.capacity - *stated);
              is_too_small = select(fits, *is_too_small, 1);
              stated += select(fits, trunc<u32>(walk.stated_bytes()), 0);
            });
          };
          const auto take = [&](const ItemWalk::Block& block) {
            k.if_(*block_count < arguments.blocks_per_item, [&] {
              k.once_per_warp([&] {
                const auto record = arguments.blocks.at(times<2>(zext<u64>(first_block + *block_count))).within(2);
                record.store(block.begin);
                record.template at<1>().store(block.coded_bytes | select(block.is_raw, k.constant(kBlockIsRaw), 0));
              });
            });
            block_count += 1;
          };
          walk.run(begin, take, [&] { checksum_at = select(walk.has_checksum(), walk.position(), 0); });
        });
        outcome.fail_if(*is_too_small != 0, BatchStatus::output_too_small);
        const WarpU32 raw_bytes = select(*is_exact != 0, *stated, item.capacity);
        // Each block has a place in the output.
        const WarpBool is_parallel = outcome.is_ok() & (*frame_count == 1) & (*is_independent != 0) &
                                     (*block_count != 0) & (*block_count <= arguments.blocks_per_item) &
                                     (raw_bytes != 0) & (*block_count - 1 <= (raw_bytes - 1) / max(*block_bytes, 1));
        mark_warp(k, Mark::status, outcome.status());
        k.once_per_warp([&] {
          const auto layout = layout_of(arguments, number);
          layout.store(outcome.status());
          layout.template at<1>().store(select(is_parallel, *block_count, 0));
          layout.template at<2>().store(*block_bytes);
          layout.template at<3>().store(raw_bytes);
          layout.template at<4>().store(*is_exact * kLayoutIsExact | *has_block_checksums * kLayoutHasBlockChecksums);
          layout.template at<5>().store(*checksum_at);
        });
      });
}

}  // namespace ptxkit::kernels
