// Lists the blocks of a batch for the kernels that encode them, with a thread for each block.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/warp_item.hpp"
#include "kernels/zstd/zstd_batch.hpp"
#include "kernels/zstd/zstd_format.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition zstd_batch_split() {
  return define_zstd_batch_kernel(
      KernelSpec{.name = std::string(kZstdBatchSplit),
                 .block = kZstdBatchSplitShape.block_threads,
                 .budget = {.registers = 32, .shared_bytes = 0, .spill_bytes = 0},
                 .cost = {.threads_per_element = 1.0 / kZstdBlockBytes, .note = "one thread a block"}},
      [](Kernel& k, const ZstdBatchArguments& arguments) {
        const BlockU32 count = arguments.item_count * arguments.blocks_per_item;
        const LaneU32 number = k.block() * kZstdBatchSplitShape.items_per_block + k.thread();
        mark_block(k, Mark::item, count);
        k.if_(number < count, [&] {
          const LaneU32 item_number = number / arguments.blocks_per_item;
          const LaneU32 index = number - item_number * arguments.blocks_per_item;
          const ZstdBatchItem<Rate::thread> item(k, arguments, item_number);
          const LaneBool exists = item.is_ok() & (index < item.block_count());
          const auto wide = zext<u64>(number);
          arguments.blocks.within(count).at(number).store(item.input() + zext<u64>(index) * kZstdBlockBytes);
          arguments.block_bytes.within(count).at(number).store(select(exists, item.block_size(index), 0));
          arguments.literal_offsets.within(count).at(number).store(wide * kZstdBlockBytes);
          arguments.list_offsets.within(count).at(number).store(wide * kZstdListBytes);
          arguments.section_offsets.within(count).at(number).store(wide * kZstdSectionBytes);
          arguments.section_capacities.within(count).at(number).store(k.constant(u32{kZstdSectionBytes}));
        });
        mark_block(k, Mark::status, k.constant<u32>(0));
      });
}

}  // namespace ptxkit::kernels
