// Streams of Deflate of any encoder, raw, in zlib or in gzip, which lie anywhere, with a warp for each item.
#include <string>

#include "kernels/deflate/inflate_format.hpp"
#include "kernels/deflate/inflate_item.hpp"
#include "kernels/kernels.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition inflate_batch() {
  constexpr u32 kItemBytes = 65536;
  return define(
      KernelSpec{.name = std::string(kInflateBatch),
                 .block = kInflateShape.block_threads,
                 .budget = {.registers = 136,
                            .shared_bytes = InflateItem::kSharedBytes + InflateOutput::kSharedBytes,
                            .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kWarpLanes} / kItemBytes,
                          .buffers = {{"inputs", 8},
                                      {"inputs[]", M},
                                      {"input_bytes", 8},
                                      {"outputs", 8},
                                      {"outputs[]", N},
                                      {"output_capacities", 8},
                                      {"output_bytes", 8},
                                      {"statuses", 4}},
                          .note = "one warp an item; N is the decoded size, in items of 65536 bytes or more"}},
      [](Kernel& k, Arg<"inputs", Ptr<read_only, u64>> inputs, Arg<"input_bytes", Ptr<read_only, u64>> input_bytes,
         Arg<"outputs", Ptr<read_only, u64>> outputs, Arg<"output_capacities", Ptr<read_only, u64>> output_capacities,
         Arg<"output_bytes", Ptr<global, u64>> output_bytes, Arg<"statuses", Ptr<global, u32>> statuses,
         Arg<"framing", u32> framing, Arg<"item_count", u32> item_count) {
        const WarpU32 number = item_of_warp<kInflateShape>(k, item_count);
        const auto of_item = [&](const auto& array) { return WarpU64(array.within(item_count).at(number).load()); };
        const WarpU64 input = of_item(inputs), coded = of_item(input_bytes);
        const WarpU64 output_at = of_item(outputs), room = of_item(output_capacities);
        const WarpU32 size = trunc<u32>(min(coded, kInflateMaxCodedBytes));
        const WarpU32 capacity = trunc<u32>(min(room, kMaxBatchRawBytes));
        mark_warp(k, Mark::item, size);
        InflateStatus outcome(k);
        outcome.fail_if(((input == 0) & (coded != 0)) | ((output_at == 0) & (room != 0)) |
                            (framing > static_cast<u32>(DeflateFraming::bgzf)),
                        BatchStatus::invalid_value);
        outcome.fail_if(coded > kInflateMaxCodedBytes, BatchStatus::too_large);
        const WarpU32 overrun_status =
            select(room > kMaxBatchRawBytes, k.constant(static_cast<u32>(BatchStatus::too_large)),
                   static_cast<u32>(BatchStatus::output_too_small));
        InflateOutput output(k, at_address<global, u8>(output_at).within(capacity), capacity, overrun_status, outcome);
        InflateItem item(k, at_address<read_only, u8>(input).within(size), size, output, outcome);
        k.if_(outcome.is_ok(), [&] { item.decode(framing); });
        mark_warp(k, Mark::status, outcome.status());
        k.once_per_warp([&] {
          k.if_(output_bytes.address() != 0, [&] {
            output_bytes.within(item_count)
                .at(number)
                .store(zext<u64>(select(outcome.is_ok(), output.size_bytes(), 0)));
          });
          k.if_(statuses.address() != 0, [&] { statuses.within(item_count).at(number).store(outcome.status()); });
        });
      });
}

}  // namespace ptxkit::kernels
