// What the kernels that decode batches share: the parameters (ZstdDecodeParameters), and an item as they describe it.
#pragma once

#include <utility>

#include "kernels/lz4/lz4_batch.hpp"
#include "kernels/zstd/zstd_decode_format.hpp"

namespace ptxkit::kernels {

using ZstdSource = dsl::Ptr<dsl::read_only, dsl::u8, 1, dsl::Rate::warp>;
using ZstdRoom = dsl::Ptr<dsl::global, dsl::u8, 1, dsl::Rate::warp>;
using ZstdSequences = dsl::Ptr<dsl::global, dsl::u32, 8, dsl::Rate::warp>;
using ZstdOutcome = BatchOutcome<dsl::Rate::warp>;

// The parameters of a batch, in order. Those that one kernel writes and another reads are writable for all.
struct ZstdDecodeArguments {
  dsl::Ptr<dsl::read_only, dsl::u64> inputs, input_bytes, outputs, output_capacities;
  dsl::Ptr<dsl::global, dsl::u64> output_bytes;
  dsl::Ptr<dsl::global, dsl::u32> statuses;
  dsl::Ptr<dsl::global, dsl::u8> literals;
  dsl::Ptr<dsl::global, dsl::u32, 8> sequences;
  dsl::Ptr<dsl::global, dsl::u32> block_counts;
  dsl::Ptr<dsl::global, dsl::u32, 16> blocks;
  dsl::Ptr<dsl::global, dsl::u32> literal_states;
  dsl::Ptr<dsl::global, dsl::u32, 16> block_states;
  BlockU32 max_output_bytes, blocks_per_item, item_count;
};

// Defines a kernel with those parameters; body(k, arguments) writes it.
template <class Body>
dsl::KernelDefinition define_zstd_decode_kernel(dsl::KernelSpec spec, const Body& body) {
  using namespace dsl;
  constexpr u32 kBlock = kZstdBlockBytes;
  spec.cost.buffers = {{"inputs", 8},
                       {"inputs[]", M},
                       {"input_bytes", 8},
                       {"outputs", 8},
                       {"outputs[]", N},
                       {"output_capacities", 8},
                       {"output_bytes", 8},
                       {"statuses", 4},
                       {"literals", N},
                       {"sequences", N / 3 * 8 + 8},
                       {"block_counts", 4},
                       {"blocks", N / kBlock * sizeof(ZstdBlockRecord)},
                       {"literal_states", N / kBlock * 4},
                       {"block_states", N / kBlock * sizeof(ZstdBlockState)}};
  return define(
      std::move(spec),
      [body](Kernel& k, Arg<"inputs", Ptr<read_only, u64>> inputs, Arg<"input_bytes", Ptr<read_only, u64>> input_bytes,
             Arg<"outputs", Ptr<read_only, u64>> outputs,
             Arg<"output_capacities", Ptr<read_only, u64>> output_capacities,
             Arg<"output_bytes", Ptr<global, u64>> output_bytes, Arg<"statuses", Ptr<global, u32>> statuses,
             Arg<"literals", Ptr<global, u8>> literals, Arg<"sequences", Ptr<global, u32, 8>> sequences,
             Arg<"block_counts", Ptr<global, u32>> block_counts, Arg<"blocks", Ptr<global, u32, 16>> blocks,
             Arg<"literal_states", Ptr<global, u32>> literal_states,
             Arg<"block_states", Ptr<global, u32, 16>> block_states, Arg<"max_output_bytes", u32> max_output_bytes,
             Arg<"blocks_per_item", u32> blocks_per_item, Arg<"item_count", u32> item_count) {
        body(k, ZstdDecodeArguments{inputs, input_bytes, outputs, output_capacities, output_bytes, statuses, literals,
                                    sequences, block_counts, blocks, literal_states, block_states, max_output_bytes,
                                    blocks_per_item, item_count});
      });
}

// What an earlier launch wrote, at element `index` of records of `Words` words.
template <dsl::u32 Words, class Pointer>
auto written_zstd_record(const Pointer& array, const WarpU32& index) {
  using namespace dsl;
  return at_address<read_only, u32>(array.at(times<Words>(zext<u64>(index))).address())
      .template align_down<Words % 4 == 0 ? 16 : 4>();
}

// An item as its arrays describe it.
struct ZstdDecodeItem {
  ZstdDecodeItem(dsl::Kernel& k, const ZstdDecodeArguments& arguments, const WarpU32& number)
      : input(of_item(arguments, arguments.inputs, number)),
        coded(of_item(arguments, arguments.input_bytes, number)),
        output(of_item(arguments, arguments.outputs, number)),
        room(of_item(arguments, arguments.output_capacities, number)),
        size(dsl::trunc<dsl::u32>(dsl::min(coded, kMaxBatchCodedBytes))),
        capacity(dsl::trunc<dsl::u32>(dsl::min(room, dsl::zext<dsl::u64>(arguments.max_output_bytes)))),
        overrun_status(dsl::select(room > dsl::zext<dsl::u64>(arguments.max_output_bytes),
                                   k.constant(static_cast<uint32_t>(BatchStatus::too_large)),
                                   static_cast<uint32_t>(BatchStatus::output_too_small))) {}

  void check(ZstdOutcome& outcome) const {
    outcome.fail_if(((input == 0) & (coded != 0)) | ((output == 0) & (room != 0)), BatchStatus::invalid_value);
    outcome.fail_if(coded > kMaxBatchCodedBytes, BatchStatus::too_large);
  }
  ZstdSource source() const { return dsl::at_address<dsl::read_only, dsl::u8>(input).within(size); }
  ZstdRoom destination() const { return dsl::at_address<dsl::global, dsl::u8>(output).within(capacity); }

  WarpU64 input, coded, output, room;
  WarpU32 size, capacity;  // within the limits
  WarpU32 overrun_status;  // BatchStatus if it decodes to more than `capacity`

 private:
  template <class Array>
  static WarpU64 of_item(const ZstdDecodeArguments& arguments, const Array& array, const WarpU32& number) {
    return array.within(arguments.item_count).at(number).load();
  }
};

// An item's temporary memory.
struct ZstdScratch {
  ZstdScratch(const ZstdDecodeArguments& arguments, const WarpU32& number)
      : literal_room(zstd_literal_room(arguments.max_output_bytes)),
        sequence_room(zstd_sequence_room(arguments.max_output_bytes)),
        literals(arguments.literals.at(dsl::zext<dsl::u64>(number) * dsl::zext<dsl::u64>(literal_room))
                     .within(literal_room)),
        sequences(
            arguments.sequences.at(dsl::times<2>(dsl::zext<dsl::u64>(number) * dsl::zext<dsl::u64>(sequence_room)))
                .within(sequence_room * 2)) {}

  BlockU32 literal_room, sequence_room;
  ZstdRoom literals;
  ZstdSequences sequences;
};

}  // namespace ptxkit::kernels
