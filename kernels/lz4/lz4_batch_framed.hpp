// What the kernels that decompress items of framings `frame` and `hdf5` share: the parameters
// (Lz4BatchFramedParameters), an item as its arrays describe it, and what lz4_batch_index found out about it.
#pragma once

#include "kernels/lz4/lz4_batch_walk.hpp"
#include "kernels/lz4/lz4_decoder.hpp"

namespace ptxkit::kernels {

// The parameters of a batch, in order.
struct FramedArguments {
  dsl::Ptr<dsl::read_only, dsl::u64> inputs, input_bytes, outputs, output_capacities;
  dsl::Ptr<dsl::global, dsl::u64> output_bytes;
  dsl::Ptr<dsl::global, dsl::u32> statuses, layouts, blocks, block_raw_bytes;
  BlockU32 blocks_per_item, framing, item_count;
};

// Defines a kernel with those parameters; body(k, arguments) writes it.
template <class Body>
dsl::KernelDefinition define_framed_kernel(dsl::KernelSpec spec, const Body& body) {
  using namespace dsl;
  spec.cost.buffers = {{"inputs", 8},
                       {"input_bytes", 8},
                       {"outputs", 8},
                       {"output_capacities", 8},
                       {"output_bytes", 8},
                       {"statuses", 4},
                       {"layouts", sizeof(Lz4BatchLayout)},
                       {"blocks", N / kMaxChunkBytes * sizeof(Lz4BatchBlock)},
                       {"block_raw_bytes", N / kMaxChunkBytes * 4}};
  return define(
      std::move(spec),
      [body](Kernel& k, Arg<"inputs", Ptr<read_only, u64>> inputs, Arg<"input_bytes", Ptr<read_only, u64>> input_bytes,
             Arg<"outputs", Ptr<read_only, u64>> outputs,
             Arg<"output_capacities", Ptr<read_only, u64>> output_capacities,
             Arg<"output_bytes", Ptr<global, u64>> output_bytes, Arg<"statuses", Ptr<global, u32>> statuses,
             Arg<"layouts", Ptr<global, u32>> layouts, Arg<"blocks", Ptr<global, u32>> blocks,
             Arg<"block_raw_bytes", Ptr<global, u32>> block_raw_bytes, Arg<"blocks_per_item", u32> blocks_per_item,
             Arg<"framing", u32> framing, Arg<"item_count", u32> item_count) {
        body(k, FramedArguments{inputs, input_bytes, outputs, output_capacities, output_bytes, statuses, layouts,
                                blocks, block_raw_bytes, blocks_per_item, framing, item_count});
      });
}

// An item as its arrays describe it.
struct FramedItem {
  FramedItem(const FramedArguments& arguments, const WarpU32& number)
      : input(of_item(arguments, arguments.inputs, number)),
        coded(of_item(arguments, arguments.input_bytes, number)),
        output(of_item(arguments, arguments.outputs, number)),
        room(of_item(arguments, arguments.output_capacities, number)),
        size(dsl::trunc<dsl::u32>(dsl::min(coded, kMaxBatchCodedBytes))),
        capacity(dsl::trunc<dsl::u32>(dsl::min(room, kMaxBatchRawBytes))) {}

  void check(BatchOutcome<dsl::Rate::warp>& outcome) const {
    outcome.fail_if(((input == 0) & (coded != 0)) | ((output == 0) & (room != 0)), BatchStatus::invalid_value);
    outcome.fail_if(coded > kMaxBatchCodedBytes, BatchStatus::too_large);
  }
  auto source() const { return dsl::at_address<dsl::read_only, dsl::u8>(input).within(size); }
  auto destination() const { return dsl::at_address<dsl::global, dsl::u8>(output).within(capacity); }

  WarpU64 input, coded, output, room;
  WarpU32 size, capacity;  // within the limits

 private:
  template <class Array>
  static WarpU64 of_item(const FramedArguments& arguments, const Array& array, const WarpU32& number) {
    return array.within(arguments.item_count).at(number).load();
  }
};

// The words of Lz4BatchLayout of item `number`, as lz4_batch_index writes them and later launches read them.
inline auto layout_of(const FramedArguments& arguments, const WarpU32& number) {
  constexpr uint32_t kWords = sizeof(Lz4BatchLayout) / 4;
  return arguments.layouts.at(dsl::zext<dsl::u64>(number) * kWords).within(kWords);
}
class LayoutReader {
 public:
  LayoutReader(const FramedArguments& arguments, const WarpU32& number)
      : words_(dsl::at_address<dsl::read_only, dsl::u32>(layout_of(arguments, number).address())
                   .template align_down<4>()) {}
  template <uint32_t kWord>
  WarpU32 word() const {
    return words_.template at<kWord>().load();
  }
  WarpU32 status() const { return word<0>(); }
  WarpU32 block_count() const { return word<1>(); }
  WarpU32 block_bytes() const { return word<2>(); }
  WarpU32 raw_bytes() const { return word<3>(); }
  WarpBool is_exact() const { return (word<4>() & kLayoutIsExact) != 0; }
  WarpBool has_block_checksums() const { return (word<4>() & kLayoutHasBlockChecksums) != 0; }
  WarpU32 checksum_at() const { return word<5>(); }

 private:
  decltype(dsl::at_address<dsl::read_only, dsl::u32>(std::declval<WarpU64>()).template align_down<4>()) words_;
};

// A block of a frame or chunk, as a warp decodes it.
struct FramedBlock {
  ItemWalk::Source source;  // behind the block's header, in the item
  WarpU32 coded_bytes;
  WarpBool is_raw, has_checksum;
  BlockDecoder::Room history;  // where the output begins that its matches may repeat
  WarpU32 history_bytes;       // the block is decoded behind them
  WarpU32 most_raw_bytes;
  WarpU32 overrun_status;  // BatchStatus if it becomes more
};

// Decodes a block and returns its raw bytes. It fails the outcome if the block is not good.
template <uint32_t kWarps>
WarpU32 decode_framed_block(dsl::Kernel& k, const FramedBlock& block, BatchOutcome<dsl::Rate::warp>& outcome) {
  using namespace dsl;
  const WarpU32& coded = block.coded_bytes;
  WarpVar raw_bytes(k, 0);
  k.if_(block.has_checksum, [&] {
    const WarpU32 checksum = xxh32_of(k, block.source, coded);
    outcome.fail_if(checksum != block.source.at(coded).template load_bytewise<u32>(), BatchStatus::bad_checksum);
  });
  outcome.fail_with(block.is_raw & (coded > block.most_raw_bytes), block.overrun_status);
  k.if_(outcome.is_ok(), [&] {
    k.if_(block.is_raw, [&] {
       copy_bytes(k, lanes_of(k), block.source.within(coded), block.history.at(block.history_bytes), coded);
       k.sync_warp();
       raw_bytes = coded;
     }).else_([&] {
      BlockDecoder decoder(k, block.source.within(coded), coded, block.history,
                           block.history_bytes + block.most_raw_bytes, BlockDecoder::workspace<kWarps>(k),
                           {.is_large = true});
      decoder.begin_at(block.history_bytes);
      decoder.decode();
      outcome.fail_with(decoder.status() == static_cast<u32>(Lz4Status::output_overrun), block.overrun_status);
      outcome.fail_if(decoder.status() != static_cast<u32>(Lz4Status::ok), BatchStatus::cannot_decompress);
      raw_bytes = decoder.size_bytes() - block.history_bytes;
    });
  });
  return *raw_bytes;
}

}  // namespace ptxkit::kernels
