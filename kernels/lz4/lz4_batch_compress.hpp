// What the compressors of batches share with the kernels that join chunks: the parameters (Lz4BatchCompressParameters),
// and what they say of an item.
//
// An item of at most kMaxChunkBytes whose framing is at most a header (`is_direct`) is encoded into its room and is
// done then. Any other is cut into chunks of kMaxChunkBytes, each of which is encoded into a slot of its own and
// described by a record; lz4_batch_plan and lz4_batch_join make the item of them.
#pragma once

#include "kernels/lz4/lz4_batch.hpp"

namespace ptxkit::kernels {

// The parameters of a batch, in order.
struct BatchArguments {
  dsl::Ptr<dsl::read_only, dsl::u64> inputs, input_bytes, outputs;
  dsl::Ptr<dsl::global, dsl::u64> output_bytes;
  dsl::Ptr<dsl::global, dsl::u32> statuses;
  dsl::Ptr<dsl::global, dsl::u32, 16> records;
  dsl::Ptr<dsl::global, dsl::u8, 16> slots;
  BlockU32 max_input_bytes, chunks_per_item, framing, item_count;

  BatchArguments with_framing(const BlockU32& other) const {
    return {inputs, input_bytes,     outputs,         output_bytes, statuses,  records,
            slots,  max_input_bytes, chunks_per_item, other,        item_count};
  }
};

// Defines a kernel with those parameters; body(k, arguments) writes it.
template <class Body>
dsl::KernelDefinition define_batch_kernel(dsl::KernelSpec spec, const Body& body) {
  using namespace dsl;
  spec.cost.buffers = {{"inputs", 8},
                       {"input_bytes", 8},
                       {"outputs", 8},
                       {"output_bytes", 8},
                       {"statuses", 4},
                       {"chunk_records", N / kMaxChunkBytes * sizeof(Lz4BatchRecord)},
                       {"slots", N / kMaxChunkBytes * kMaxChunkBytes}};
  return define(std::move(spec),
                [body](Kernel& k, Arg<"inputs", Ptr<read_only, u64>> inputs,
                       Arg<"input_bytes", Ptr<read_only, u64>> input_bytes, Arg<"outputs", Ptr<read_only, u64>> outputs,
                       Arg<"output_bytes", Ptr<global, u64>> output_bytes, Arg<"statuses", Ptr<global, u32>> statuses,
                       Arg<"chunk_records", Ptr<global, u32, 16>> records, Arg<"slots", Ptr<global, u8, 16>> slots,
                       Arg<"max_input_bytes", u32> max_input_bytes, Arg<"chunks_per_item", u32> chunks_per_item,
                       Arg<"framing", u32> framing, Arg<"item_count", u32> item_count) {
                  body(k, BatchArguments{inputs, input_bytes, outputs, output_bytes, statuses, records, slots,
                                         max_input_bytes, chunks_per_item, framing, item_count});
                });
}

// An item as its arrays describe it, in a warp or in a CTA.
template <dsl::Rate R>
class BatchInput {
 public:
  using U32 = dsl::Expr<dsl::u32, R>;
  using U64 = dsl::Expr<dsl::u64, R>;
  using Bool = dsl::Expr<bool, R>;

  BatchInput(dsl::Kernel& k, const BatchArguments& arguments, const U32& item)
      : k_(k),
        arguments_(arguments),
        item_(item),
        input_(of_item(arguments.inputs)),
        bytes_(of_item(arguments.input_bytes)),
        output_(of_item(arguments.outputs)),
        outcome_(k) {
    outcome_.fail_if(is_too_large(), BatchStatus::too_large);
    outcome_.fail_if(((input_ == 0) & (bytes_ != 0)) | (output_ == 0), BatchStatus::invalid_value);
    const U32 low_bits = dsl::trunc<dsl::u32>(input_) & (kStrideUnitBytes - 1);
    outcome_.fail_if((bytes_ != 0) & (low_bits != 0), BatchStatus::misaligned);
  }

  Bool is_ok() const { return outcome_.is_ok(); }
  U32 status() const { return outcome_.status(); }
  Bool is_too_large() const { return bytes_ > dsl::zext<dsl::u64>(arguments_.max_input_bytes); }
  // The following are meaningless for an item that is too large.
  U32 size() const { return dsl::trunc<dsl::u32>(bytes_); }
  Bool has_blocks() const { return arguments_.framing >= static_cast<uint32_t>(BatchFraming::frame); }
  Bool is_frame() const { return arguments_.framing == static_cast<uint32_t>(BatchFraming::frame); }
  Bool is_direct() const { return (size() <= kMaxChunkBytes) & !has_blocks(); }
  U32 chunk_count() const { return (size() + (kMaxChunkBytes - 1)) / kMaxChunkBytes; }

  // The bytes before an item's block, in a framing of one block.
  U32 header_bytes() const {
    return select(arguments_.framing == static_cast<uint32_t>(BatchFraming::numcodecs), constant(4), constant(0));
  }
  // Writes them. One thread calls it.
  void store_header() const {
    k_.if_(header_bytes() != 0, [&] {
      dsl::unrolled<4>(
          [&](auto i) { output().at(i).store(dsl::trunc<dsl::u8>(size() >> constant(8 * decltype(i)::value))); });
    });
  }
  // Where the item is written, header and all.
  auto output() const { return dsl::at_address<dsl::global, dsl::u8>(output_); }

  // The `count` bytes of a chunk. The item's address must be aligned.
  auto source(const U32& chunk, const U32& count) const {
    return dsl::at_address<dsl::read_only, dsl::u8, kStrideUnitBytes>(input_)
        .at(dsl::times<kMaxChunkBytes>(dsl::zext<dsl::u64>(chunk)))
        .template within<kStrideUnitBytes>(count);
  }
  // Where a chunk is encoded: in the item's room, or in the chunk's slot.
  auto room(const U32& chunk) const {
    using namespace dsl;
    return at_address<global, u8>(select(is_direct(), output_ + zext<u64>(header_bytes()), slot_address(chunk)));
  }
  template <class Chunk>
  auto slot_address(const Chunk& chunk) const {
    const BlockU32 slot_bytes = dsl::min(lz4_batch_slot_bytes(arguments_.max_input_bytes), kMaxChunkBytes);
    return arguments_.slots.address() + dsl::zext<dsl::u64>(index_of(chunk)) * dsl::zext<dsl::u64>(slot_bytes);
  }

  // A chunk's record, word by word as in Lz4BatchRecord.
  template <class Chunk>
  auto record(const Chunk& chunk) const {
    constexpr uint32_t kWords = sizeof(Lz4BatchRecord) / 4;
    return arguments_.records.at(dsl::times<kWords>(dsl::zext<dsl::u64>(index_of(chunk)))).within(kWords);
  }
  // Writes what a compressor knows of a chunk. One thread calls it.
  template <class Value>
  void store_encoding(const U32& chunk, const Value& coded_bytes, const Value& last_literal_count) const {
    record(chunk).store(coded_bytes);
    record(chunk).template at<1>().store(last_literal_count);
  }

  // Writes what became of the item. One thread calls it.
  template <class Value>
  void store_result(const Value& coded_bytes) const {
    using namespace dsl;
    arguments_.output_bytes.within(arguments_.item_count).at(item_).store(zext<u64>(select(is_ok(), coded_bytes, 0)));
    k_.if_(arguments_.statuses.address() != 0,
           [&] { arguments_.statuses.within(arguments_.item_count).at(item_).store(status()); });
  }

 private:
  template <class Array>
  U64 of_item(const Array& array) const {
    return array.within(arguments_.item_count).at(item_).load();
  }
  U32 constant(uint32_t value) const { return k_.constant(value); }
  template <class Chunk>
  auto index_of(const Chunk& chunk) const {
    return item_ * arguments_.chunks_per_item + chunk;
  }

  dsl::Kernel& k_;
  const BatchArguments& arguments_;
  U32 item_;
  U64 input_, bytes_, output_;
  BatchOutcome<R> outcome_;
};

}  // namespace ptxkit::kernels
