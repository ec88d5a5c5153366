// What became of items of framings `frame` and `hdf5`, with a warp for each item. An item whose blocks all came out
// good and as large as lz4_batch_index took them to be is checked against its size and its content checksum. Any other
// item is decoded here, one block after another: items of several frames, of blocks that depend on each other or are
// not full, of more blocks than the index has room for, and those with a fault, of which the first is the status.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_batch.hpp"
#include "kernels/lz4/lz4_batch_framed.hpp"
#include "kernels/lz4/lz4_batch_walk.hpp"
#include "kernels/lz4/lz4_decoder.hpp"
#include "kernels/lz4/xxh32.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;

// The item's raw bytes by those of its blocks, or kBlockNotDecoded if they do not make an item.
WarpU32 sum_of_blocks(Kernel& k, const FramedArguments& arguments, const WarpU32& number, const LayoutReader& layout) {
  const WarpU32 count = layout.block_count(), first_block = number * arguments.blocks_per_item;
  WarpVar last_bytes(k, 0), faults(k, 0);
  k.range(k.constant<u32>(0), count, kWarpLanes, [&](const auto& first) {
    const LaneU32 index = first + k.lane(), safe = min(index, count - 1);
    const LaneU32 raw_bytes = arguments.block_raw_bytes.at(first_block + safe).load();
    const LaneBool is_last = safe == count - 1;
    faults |= ballot((raw_bytes == kBlockNotDecoded) | (!is_last & (raw_bytes != layout.block_bytes())));
    last_bytes = shuffle(raw_bytes, (count - 1) % kWarpLanes);
  });
  const WarpU32 sum = (count - 1) * layout.block_bytes() + *last_bytes;
  const WarpBool is_good = (*faults == 0) & ((sum == layout.raw_bytes()) | !layout.is_exact());
  return select(is_good, sum, k.constant(kBlockNotDecoded));
}

// The checksum of `size` bytes of output against the one at `checksum_at`.
void check_content(Kernel& k, const FramedItem& item, const WarpU32& begin, const WarpU32& size,
                   const WarpU32& checksum_at, BatchOutcome<Rate::warp>& outcome) {
  const WarpU32 checksum = xxh32_of(k, item.destination().at(begin), size);
  outcome.fail_if(checksum != item.source().at(checksum_at).template load_bytewise<u32>(), BatchStatus::bad_checksum);
}

// Decodes an item and returns its raw bytes.
template <u32 kWarps>
WarpU32 decode_item(Kernel& k, const FramedArguments& arguments, const FramedItem& item,
                    BatchOutcome<Rate::warp>& outcome) {
  WarpVar raw_bytes(k, 0), frame_begin(k, 0);
  ItemWalk walk(k, item.source(), item.size, arguments.framing, outcome);
  const WarpBool is_hdf5 = arguments.framing == static_cast<u32>(BatchFraming::hdf5);
  const auto take = [&](const ItemWalk::Block& block) {
    const WarpU32 left = item.capacity - *raw_bytes;
    const WarpU32 history_begin = select(walk.is_independent(), *raw_bytes, *frame_begin);
    const WarpU32 decoded = decode_framed_block<kWarps>(
        k,
        FramedBlock{.source = item.source().at(block.begin),
                    .coded_bytes = block.coded_bytes,
                    .is_raw = block.is_raw,
                    .has_checksum = walk.has_block_checksums(),
                    .history = item.destination().at(history_begin),
                    .history_bytes = *raw_bytes - history_begin,
                    .most_raw_bytes = min(block.most_raw_bytes, left),
                    .overrun_status =
                        select(left < block.most_raw_bytes, k.constant(static_cast<u32>(BatchStatus::output_too_small)),
                               k.constant(static_cast<u32>(BatchStatus::cannot_decompress)))},
        outcome);
    outcome.fail_if(is_hdf5 & (decoded != block.most_raw_bytes), BatchStatus::cannot_decompress);
    raw_bytes += decoded;
  };
  const auto end = [&] {
    const WarpU32 size = *raw_bytes - *frame_begin;
    outcome.fail_if(walk.has_stated_bytes() & (zext<u64>(size) != walk.stated_bytes()), BatchStatus::cannot_decompress);
    k.if_(walk.has_checksum() & outcome.is_ok(),
          [&] { check_content(k, item, *frame_begin, size, walk.position(), outcome); });
  };
  walk.run([&] { frame_begin = *raw_bytes; }, take, end);
  return *raw_bytes;
}

}  // namespace

KernelDefinition lz4_batch_finish() {
  constexpr u32 kWarps = kLz4DecompressShape.items_per_block;
  return define_framed_kernel(
      KernelSpec{.name = std::string(kLz4BatchFinish),
                 .block = kLz4DecompressShape.block_threads,
                 // Few warps work long here, so registers are no concern.
                 .budget = {.registers = 96, .shared_bytes = BlockDecoder::shared_bytes(kWarps), .spill_bytes = 64},
                 .cost = {.threads_per_element = double{kWarpLanes} / kMaxChunkBytes, .note = "one warp an item"}},
      [](Kernel& k, const FramedArguments& arguments) {
        const WarpU32 number = item_of_warp<kLz4DecompressShape>(k, arguments.item_count);
        const LayoutReader layout(arguments, number);
        const FramedItem item(arguments, number);
        mark_warp(k, Mark::item, item.size);
        BatchOutcome<Rate::warp> outcome(k);
        outcome.fail_with(layout.status() != static_cast<u32>(BatchStatus::ok), layout.status());
        WarpVar raw_bytes(k, kBlockNotDecoded);
        k.if_(layout.block_count() != 0, [&] { raw_bytes = sum_of_blocks(k, arguments, number, layout); });
        k.if_((*raw_bytes != kBlockNotDecoded) & (layout.checksum_at() != 0),
              [&] { check_content(k, item, k.constant<u32>(0), *raw_bytes, layout.checksum_at(), outcome); });
        k.if_((*raw_bytes == kBlockNotDecoded) & outcome.is_ok(),
              [&] { raw_bytes = decode_item<kWarps>(k, arguments, item, outcome); });
        mark_warp(k, Mark::status, outcome.status());
        k.once_per_warp([&] {
          k.if_(arguments.output_bytes.address() != 0, [&] {
            arguments.output_bytes.within(arguments.item_count)
                .at(number)
                .store(zext<u64>(select(outcome.is_ok(), *raw_bytes, 0)));
          });
          k.if_(arguments.statuses.address() != 0,
                [&] { arguments.statuses.within(arguments.item_count).at(number).store(outcome.status()); });
        });
      });
}

}  // namespace ptxkit::kernels
