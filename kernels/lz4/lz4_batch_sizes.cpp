// The decoded sizes of the items of a batch, with a warp for each item: from the headers where the framing has
// some, otherwise by following the sequences of the block as the decoder does, without writing.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_batch.hpp"
#include "kernels/lz4/lz4_batch_walk.hpp"
#include "kernels/lz4/lz4_decoder.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition lz4_batch_sizes() {
  constexpr u32 kWarps = kLz4DecompressShape.items_per_block;
  return define(
      KernelSpec{
          .name = std::string(kLz4BatchSizes),
          .block = kLz4DecompressShape.block_threads,
          .budget = {.registers = 64, .shared_bytes = BlockDecoder::shared_bytes(kWarps, false), .spill_bytes = 8},
          .cost = {.threads_per_element = double{kWarpLanes} / kMaxPageBytes,
                   .buffers = {{"inputs", 8}, {"input_bytes", 8}, {"output_bytes", 8}, {"statuses", 4}},
                   .note = "one warp an item; N is the decoded size, in items of 4096 bytes or more"}},
      [](Kernel& k, Arg<"inputs", Ptr<read_only, u64>> inputs, Arg<"input_bytes", Ptr<read_only, u64>> input_bytes,
         Arg<"output_bytes", Ptr<global, u64>> output_bytes, Arg<"statuses", Ptr<global, u32>> statuses,
         Arg<"framing", u32> framing, Arg<"item_count", u32> item_count) {
        const WarpU32 item = item_of_warp<kLz4DecompressShape>(k, item_count);
        const WarpU64 input = inputs.within(item_count).at(item).load(),
                      coded = input_bytes.within(item_count).at(item).load();
        const WarpU32 size = trunc<u32>(min(coded, kMaxBatchCodedBytes));
        mark_warp(k, Mark::item, size);
        BatchOutcome<Rate::warp> outcome(k);
        outcome.fail_if((input == 0) & (coded != 0), BatchStatus::invalid_value);
        outcome.fail_if(coded > kMaxBatchCodedBytes, BatchStatus::too_large);
        const auto source = at_address<read_only, u8>(input).within(size);
        Var<u64, Rate::warp> decoded(k, 0);
        k.if_(outcome.is_ok(), [&] {
          k.if_(framing == static_cast<u32>(BatchFraming::raw), [&] {
            BlockDecoder decoder(k, source, size, at_address<global, u8>(input), k.constant(kMaxBatchRawBytes),
                                 BlockDecoder::workspace_without_sources<kWarps>(k),
                                 {.is_large = true, .writes = false});
            decoder.decode();
            outcome.fail_if(decoder.status() != static_cast<u32>(Lz4Status::ok), BatchStatus::cannot_decompress);
            decoded = zext<u64>(decoder.size_bytes());
          });
          k.if_(framing == static_cast<u32>(BatchFraming::numcodecs), [&] {
            outcome.fail_if(size < 4, BatchStatus::cannot_decompress);
            k.if_(outcome.is_ok(), [&] { decoded = zext<u64>(source.template load_bytewise<u32>()); });
          });
          k.if_(framing >= static_cast<u32>(BatchFraming::frame), [&] {
            ItemWalk walk(k, source, size, framing, outcome);
            WarpVar is_stated(k, 1), is_too_large(k, 0);
            const auto begin = [&] {
              is_stated &= zext<u32>(walk.has_stated_bytes());
              decoded += select(walk.has_stated_bytes(), walk.stated_bytes(), 0);
              is_too_large |= zext<u32>(walk.has_stated_bytes() & (*decoded < walk.stated_bytes()));
            };
            walk.run(begin, [](const auto&) {}, [] {});
            outcome.fail_if(*is_stated == 0, BatchStatus::unsupported);
            outcome.fail_if(*is_too_large != 0, BatchStatus::cannot_decompress);
          });
        });
        mark_warp(k, Mark::status, outcome.status());
        k.once_per_warp([&] {
          output_bytes.within(item_count).at(item).store(select(outcome.is_ok(), *decoded, 0));
          k.if_(statuses.address() != 0, [&] { statuses.within(item_count).at(item).store(outcome.status()); });
        });
      });
}

}  // namespace ptxkit::kernels
