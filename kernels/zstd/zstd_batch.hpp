// What the kernels of batches share: the parameters (ZstdBatchParameters), and what they say of an item and its blocks.
#pragma once

#include "kernels/lz4/lz4_batch.hpp"
#include "kernels/zstd/zstd_format.hpp"

namespace ptxkit::kernels {

// The parameters of a batch, in order. Those that one kernel writes and another reads are writable for all.
struct ZstdBatchArguments {
  dsl::Ptr<dsl::read_only, dsl::u64> inputs, input_bytes, outputs;
  dsl::Ptr<dsl::global, dsl::u64> output_bytes;
  dsl::Ptr<dsl::global, dsl::u32> statuses;
  dsl::Ptr<dsl::global, dsl::u64> blocks;
  dsl::Ptr<dsl::global, dsl::u32> block_bytes;
  dsl::Ptr<dsl::global, dsl::u64> literal_offsets, list_offsets, section_offsets;
  dsl::Ptr<dsl::global, dsl::u32> section_capacities;
  dsl::Ptr<dsl::read_only, dsl::u8> literal_sections;
  dsl::Ptr<dsl::read_only, dsl::u32> literal_section_bytes;
  dsl::Ptr<dsl::read_only, dsl::u8> sequence_sections;
  dsl::Ptr<dsl::read_only, dsl::u32> sequence_section_bytes;
  dsl::Ptr<dsl::global, dsl::u32> places;
  BlockU32 max_input_bytes, blocks_per_item, item_count;
};

// Defines a kernel with those parameters; body(k, arguments) writes it.
template <class Body>
dsl::KernelDefinition define_zstd_batch_kernel(dsl::KernelSpec spec, const Body& body) {
  using namespace dsl;
  constexpr u32 kBlock = kZstdBlockBytes;
  spec.cost.buffers = {{"inputs", 8},
                       {"inputs[]", N / kStrideUnitBytes * kStrideUnitBytes},
                       {"input_bytes", 8},
                       {"outputs", 8},
                       {"outputs[]", N + N / kBlock * 3 + 17},
                       {"output_bytes", 8},
                       {"statuses", 4},
                       {"blocks", N / kBlock * 8},
                       {"block_bytes", N / kBlock * 4},
                       {"literal_offsets", N / kBlock * 8},
                       {"list_offsets", N / kBlock * 8},
                       {"section_offsets", N / kBlock * 8},
                       {"section_capacities", N / kBlock * 4},
                       {"literal_sections", N / kBlock * kZstdSectionBytes},
                       {"literal_section_bytes", N / kBlock * 4},
                       {"sequence_sections", N / kBlock * kZstdSectionBytes},
                       {"sequence_section_bytes", N / kBlock * 4},
                       {"places", N / kBlock * 4}};
  return define(
      std::move(spec),
      [body](Kernel& k, Arg<"inputs", Ptr<read_only, u64>> inputs, Arg<"input_bytes", Ptr<read_only, u64>> input_bytes,
             Arg<"outputs", Ptr<read_only, u64>> outputs, Arg<"output_bytes", Ptr<global, u64>> output_bytes,
             Arg<"statuses", Ptr<global, u32>> statuses, Arg<"blocks", Ptr<global, u64>> blocks,
             Arg<"block_bytes", Ptr<global, u32>> block_bytes, Arg<"literal_offsets", Ptr<global, u64>> literal_offsets,
             Arg<"list_offsets", Ptr<global, u64>> list_offsets,
             Arg<"section_offsets", Ptr<global, u64>> section_offsets,
             Arg<"section_capacities", Ptr<global, u32>> section_capacities,
             Arg<"literal_sections", Ptr<read_only, u8>> literal_sections,
             Arg<"literal_section_bytes", Ptr<read_only, u32>> literal_section_bytes,
             Arg<"sequence_sections", Ptr<read_only, u8>> sequence_sections,
             Arg<"sequence_section_bytes", Ptr<read_only, u32>> sequence_section_bytes,
             Arg<"places", Ptr<global, u32>> places, Arg<"max_input_bytes", u32> max_input_bytes,
             Arg<"blocks_per_item", u32> blocks_per_item, Arg<"item_count", u32> item_count) {
        body(k, ZstdBatchArguments{inputs, input_bytes, outputs, output_bytes, statuses, blocks, block_bytes,
                                   literal_offsets, list_offsets, section_offsets, section_capacities, literal_sections,
                                   literal_section_bytes, sequence_sections, sequence_section_bytes, places,
                                   max_input_bytes, blocks_per_item, item_count});
      });
}

// An item as its arrays describe it.
template <dsl::Rate R>
class ZstdBatchItem {
 public:
  using U32 = dsl::Expr<dsl::u32, R>;
  using U64 = dsl::Expr<dsl::u64, R>;
  using Bool = dsl::Expr<bool, R>;

  ZstdBatchItem(dsl::Kernel& k, const ZstdBatchArguments& arguments, const U32& item)
      : input_(arguments.inputs.within(arguments.item_count).at(item).load()),
        bytes_(arguments.input_bytes.within(arguments.item_count).at(item).load()),
        output_(arguments.outputs.within(arguments.item_count).at(item).load()),
        outcome_(k) {
    const U32 low_bits = dsl::trunc<dsl::u32>(input_) & (kStrideUnitBytes - 1);
    outcome_.fail_if(bytes_ > dsl::zext<dsl::u64>(arguments.max_input_bytes), BatchStatus::too_large);
    outcome_.fail_if(((input_ == 0) & (bytes_ != 0)) | (output_ == 0), BatchStatus::invalid_value);
    outcome_.fail_if((bytes_ != 0) & (low_bits != 0), BatchStatus::misaligned);
  }

  Bool is_ok() const { return outcome_.is_ok(); }
  U32 status() const { return outcome_.status(); }
  U64 input() const { return input_; }
  auto output() const { return dsl::at_address<dsl::global, dsl::u8>(output_); }
  U32 size() const { return dsl::trunc<dsl::u32>(bytes_); }  // of an item that is ok
  // An empty item has one block too.
  U32 block_count() const { return dsl::max((size() + (kZstdBlockBytes - 1)) / kZstdBlockBytes, 1); }
  template <class Index>
  auto block_size(const Index& index) const {
    return dsl::min(size() - index * kZstdBlockBytes, kZstdBlockBytes);
  }

 private:
  U64 input_, bytes_, output_;
  BatchOutcome<R> outcome_;
};

// What becomes of a block of `size` bytes whose sections are known.
template <dsl::Rate R>
struct ZstdBlockForm {
  dsl::Expr<bool, R> is_run, is_compressed;
  dsl::Expr<dsl::u32, R> literal_bytes, sequence_bytes;  // of the sections
  dsl::Expr<dsl::u32, R> content_bytes;                  // behind the header

  // `number`: of the block in the batch.
  template <class Size>
  static ZstdBlockForm of(const ZstdBatchArguments& arguments, const dsl::Expr<dsl::u32, R>& number, const Size& size) {
    using namespace dsl;
    const Expr<u32, R> literals = arguments.literal_section_bytes.at(number).load();
    const Expr<u32, R> sequences = arguments.sequence_section_bytes.at(number).load();
    const auto first = arguments.literal_sections.at(zext<u64>(number) * kZstdSectionBytes).load();
    // A block of one byte has no sequences: none pays.
    const Expr<bool, R> is_run =
        (size != 0) & (sequences == 1) & ((zext<u32>(first) & 3) == static_cast<u32>(ZstdLiteralsType::rle));
    const Expr<bool, R> is_smaller = (literals != 0) & (sequences != 0) & (literals + sequences < size);
    return {is_run, is_smaller & !is_run, literals, sequences,
            select(is_run, 1, select(is_smaller, literals + sequences, size))};
  }
};

}  // namespace ptxkit::kernels
