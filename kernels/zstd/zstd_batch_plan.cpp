// Lays out the frames of a batch, with a warp for each item: where each block goes, the frame's header, its length.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/warp_item.hpp"
#include "kernels/zstd/zstd_batch.hpp"
#include "kernels/zstd/zstd_format.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

// Writes the header of a frame of `size` bytes, and returns its length.
template <class Room>
WarpU32 store_header(Kernel& k, const Room& to, const WarpU32& size) {
  const WarpU32 lane_format = select(size < 65536 + 256, k.constant<u32>(1), 2);
  const WarpU32 format = select(size < 256, 0, lane_format);
  const WarpU32 is_single = zext<u32>(size <= kZstdWindowBytes), size_at = 6 - is_single;
  const WarpU32 length = size_at + shift_left(1, format);
  const LaneU32 i = k.lane();
  const WarpU32 stored = select(format == 1, size - 256, size);
  const LaneU32 magic = k.constant(u32{kZstdMagic}) >> min(i, 3) * 8;
  const LaneU32 behind = select(i == 4, format << 6 | is_single << 5, kZstdWindowDescriptor);
  const LaneU32 size_byte = stored >> (i - size_at) % 4 * 8;
  k.if_(i < length, [&] { to.at(i).store(trunc<u8>(select(i < 4, magic, select(i < size_at, behind, size_byte)))); });
  return length;
}

}  // namespace

KernelDefinition zstd_batch_plan() {
  return define_zstd_batch_kernel(
      KernelSpec{.name = std::string(kZstdBatchPlan),
                 .block = kZstdBatchPlanShape.block_threads,
                 .budget = {.registers = 40, .shared_bytes = 0, .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kWarpLanes} / kZstdBlockBytes, .note = "one warp an item"}},
      [](Kernel& k, const ZstdBatchArguments& arguments) {
        const WarpU32 number = item_of_warp<kZstdBatchPlanShape>(k, arguments.item_count);
        const ZstdBatchItem<Rate::warp> item(k, arguments, number);
        mark_warp(k, Mark::item, item.size());
        WarpVar length(k, 0);
        k.if_(item.is_ok(), [&] {
          length = store_header(k, item.output(), item.size());
          const WarpU32 first_block = number * arguments.blocks_per_item;
          k.range(0, item.block_count(), kWarpLanes, [&](const WarpU32& first) {
            const LaneU32 index = first + k.lane();
            Var<u32, Rate::thread> bytes(k, 0);
            k.if_(index < item.block_count(), [&] {
              const auto form = ZstdBlockForm<Rate::thread>::of(arguments, first_block + index, item.block_size(index));
              bytes = form.content_bytes + kZstdBlockHeaderBytes;
            });
            const LaneU32 sum = inclusive_sum(*bytes);
            k.if_(index < item.block_count(),
                  [&] { arguments.places.at(first_block + index).store(*length + sum - *bytes); });
            length += shuffle(sum, kWarpLanes - 1);
          });
        });
        mark_warp(k, Mark::status, item.status());
        k.once_per_warp([&] {
          arguments.output_bytes.within(arguments.item_count).at(number).store(zext<u64>(*length));
          k.if_(arguments.statuses.address() != 0,
                [&] { arguments.statuses.within(arguments.item_count).at(number).store(item.status()); });
        });
      });
}

}  // namespace ptxkit::kernels
