// LZ4 decompression of items that lie anywhere, given by arrays of addresses: a warp for each item (lz4_decoder.hpp).
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_batch.hpp"
#include "kernels/lz4/lz4_decoder.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition lz4_batch_decompress() {
  constexpr u32 kWarps = kLz4DecompressShape.items_per_block;
  return define(
      KernelSpec{.name = std::string(kLz4BatchDecompress),
                 .block = kLz4DecompressShape.block_threads,
                 .budget = {.registers = 64, .shared_bytes = BlockDecoder::shared_bytes(kWarps), .spill_bytes = 8},
                 .cost = {.threads_per_element = double{kWarpLanes} / kMaxPageBytes,
                          .buffers = {{"inputs", 8},
                                      {"input_bytes", 8},
                                      {"outputs", 8},
                                      {"output_capacities", 8},
                                      {"output_bytes", 8},
                                      {"statuses", 4}},
                          .note = "one warp an item; N is the decoded size, in items of 4096 bytes or more"}},
      [](Kernel& k, Arg<"inputs", Ptr<read_only, u64>> inputs, Arg<"input_bytes", Ptr<read_only, u64>> input_bytes,
         Arg<"outputs", Ptr<read_only, u64>> outputs, Arg<"output_capacities", Ptr<read_only, u64>> output_capacities,
         Arg<"output_bytes", Ptr<global, u64>> output_bytes, Arg<"statuses", Ptr<global, u32>> statuses,
         Arg<"framing", u32> framing, Arg<"item_count", u32> item_count) {
        const WarpU32 item = item_of_warp<kLz4DecompressShape>(k, item_count);
        const auto of_item = [&](const auto& array) { return array.within(item_count).at(item).load(); };
        const WarpU64 input = of_item(inputs), coded = of_item(input_bytes), output = of_item(outputs),
                      room = of_item(output_capacities);
        const WarpU32 size = trunc<u32>(min(coded, kMaxBatchCodedBytes));
        mark_warp(k, Mark::item, size);
        // The block has to fill `capacity` if its size stands before it.
        WarpVar begin(k, 0), capacity(k, trunc<u32>(min(room, kMaxBatchRawBytes))), length(k, 0);
        BatchOutcome<Rate::warp> outcome(k);
        outcome.fail_if(((input == 0) & (coded != 0)) | ((output == 0) & (room != 0)), BatchStatus::invalid_value);
        outcome.fail_if(coded > kMaxBatchCodedBytes, BatchStatus::too_large);
        const auto source = at_address<read_only, u8>(input).within(size);
        const WarpBool has_size = framing == static_cast<u32>(BatchFraming::numcodecs);
        k.if_(outcome.is_ok() & has_size, [&] {
          outcome.fail_if(size < 4, BatchStatus::cannot_decompress);
          k.if_(outcome.is_ok(), [&] {
            const WarpU32 raw_bytes = source.template load_bytewise<u32>();
            outcome.fail_if(raw_bytes > *capacity, BatchStatus::output_too_small);
            capacity = min(raw_bytes, *capacity);
            begin = 4;
          });
        });
        k.if_(outcome.is_ok(), [&] {
          const WarpU32 block_bytes = size - *begin;
          BlockDecoder decoder(k, source.at(*begin).within(block_bytes), block_bytes,
                               at_address<global, u8>(output).within(*capacity), *capacity,
                               BlockDecoder::workspace<kWarps>(k), {.is_large = true, .writes = true});
          decoder.decode();
          const WarpBool overrun = decoder.status() == static_cast<u32>(Lz4Status::output_overrun);
          const WarpBool good = decoder.status() == static_cast<u32>(Lz4Status::ok);
          outcome.fail_if(overrun & !has_size, BatchStatus::output_too_small);
          outcome.fail_if((!good) | (has_size & (decoder.size_bytes() != *capacity)), BatchStatus::cannot_decompress);
          length = decoder.size_bytes();
        });
        mark_warp(k, Mark::status, outcome.status());
        k.once_per_warp([&] {
          k.if_(output_bytes.address() != 0, [&] {
            output_bytes.within(item_count).at(item).store(zext<u64>(select(outcome.is_ok(), *length, 0)));
          });
          k.if_(statuses.address() != 0, [&] { statuses.within(item_count).at(item).store(outcome.status()); });
        });
      });
}

}  // namespace ptxkit::kernels
