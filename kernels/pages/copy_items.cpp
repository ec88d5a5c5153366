// Copies items from one buffer to the same offsets of another, a warp at a time. Either buffer may be page-locked
// memory of the host: accesses of 16 bytes a lane fill the bus however many items there are. A few warps fill it, too,
// so that a launch may have fewer warps than items: each takes every grid-th.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition copy_items() {
  return define(KernelSpec{.name = std::string(kCopyItems),
                           .block = kCopyItemsShape.block_threads,
                           .budget = {.registers = 40},
                           .cost = {.threads_per_element = double{kWarpLanes} / kMaxPageBytes,
                                    .buffers = {{"src", N}, {"offsets", 8}, {"sizes", 4}, {"dst", N}},
                                    .note = "one warp an item, of 4096 bytes or more"}},
                [](Kernel& k, Arg<"src", Ptr<read_only, u8, kStrideUnitBytes>> src,
                   Arg<"offsets", Ptr<read_only, u64>> offsets, Arg<"sizes", Ptr<read_only, u32>> sizes,
                   Arg<"dst", Ptr<global, u8, kStrideUnitBytes>> dst, Arg<"item_count", u32> item_count) {
                  const WarpU32 warp = k.block() * kCopyItemsShape.items_per_block + k.warp();
                  k.range(warp, item_count, k.grid() * kCopyItemsShape.items_per_block, [&](const WarpU32& item) {
                    const auto offset = offsets.within(item_count).at(item).load();
                    const WarpU32 size = sizes.within(item_count).at(item).load();
                    mark_warp(k, Mark::item, size);
                    const auto from = src.at(offset).within(size);
                    const auto to = dst.at(offset).within(size);
                    // Both addresses are a multiple of 16 after as many bytes.
                    const WarpU32 head = min(size, (0 - trunc<u32>(offset)) & (kStrideUnitBytes - 1));
                    for_each_lane(k, head, [&](const LaneU32& i) { to.at(i).store(from.at(i).load()); });
                    copy_raw(k, from.at(head).template align_down<kStrideUnitBytes>(),
                             to.at(head).template align_down<kStrideUnitBytes>(), size - head);
                  });
                  mark_warp(k, Mark::status, item_count);
                });
}

}  // namespace ptxkit::kernels
