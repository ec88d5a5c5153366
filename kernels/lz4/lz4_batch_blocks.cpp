// Decodes the blocks that lz4_batch_index listed, with a warp for each block of each item.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_batch.hpp"
#include "kernels/lz4/lz4_batch_framed.hpp"
#include "kernels/lz4/lz4_decoder.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition lz4_batch_blocks() {
  constexpr u32 kWarps = kLz4DecompressShape.items_per_block;
  return define_framed_kernel(
      KernelSpec{.name = std::string(kLz4BatchBlocks),
                 .block = kLz4DecompressShape.block_threads,
                 .budget = {.registers = 64, .shared_bytes = BlockDecoder::shared_bytes(kWarps), .spill_bytes = 8},
                 .cost = {.threads_per_element = double{kWarpLanes} / kMaxChunkBytes,
                          .note = "one warp a block; N is the decoded size, in blocks of 64 KiB"}},
      [](Kernel& k, const FramedArguments& arguments) {
        const WarpU32 number = item_of_warp<kLz4DecompressShape>(k, arguments.item_count * arguments.blocks_per_item);
        const WarpU32 item_number = number / arguments.blocks_per_item,
                      index = number - item_number * arguments.blocks_per_item;
        const LayoutReader layout(arguments, item_number);
        k.return_if(index >= layout.block_count());
        const FramedItem item(arguments, item_number);
        // Written before this launch.
        const auto record =
            at_address<read_only, u32>(arguments.blocks.at(times<2>(zext<u64>(number))).within(2).address())
                .align_down<4>();
        const WarpU32 begin = record.load(), field = record.template at<1>().load();
        const WarpU32 coded = field & ~kBlockIsRaw, place = index * layout.block_bytes();
        const WarpU32 most = min(layout.raw_bytes() - place, layout.block_bytes());
        mark_warp(k, Mark::item, coded);
        BatchOutcome<Rate::warp> outcome(k);
        const WarpU32 raw_bytes = decode_framed_block<kWarps>(
            k,
            FramedBlock{.source = item.source().at(begin),
                        .coded_bytes = coded,
                        .is_raw = field >= kBlockIsRaw,
                        .has_checksum = layout.has_block_checksums(),
                        .history = item.destination().at(place).within(most),
                        .history_bytes = k.constant<u32>(0),
                        .most_raw_bytes = most,
                        .overrun_status = k.constant(static_cast<u32>(BatchStatus::cannot_decompress))},
            outcome);
        mark_warp(k, Mark::status, outcome.status());
        k.once_per_warp([&] {
          arguments.block_raw_bytes.at(number).store(select(outcome.is_ok(), raw_bytes, k.constant(kBlockNotDecoded)));
        });
      });
}

}  // namespace ptxkit::kernels
