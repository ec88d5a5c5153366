// An item of typed rANS that is decoded, as its header and the arrays of the batch describe it (open_typed).
#pragma once

#include "kernels/typed/typed_item.hpp"

namespace ptxkit::kernels {

// The parameters of the kernels that decode, in order.
struct TypedDecodeArguments {
  dsl::Ptr<dsl::read_only, dsl::u64> inputs, input_bytes, outputs, output_capacities;
  dsl::Ptr<dsl::global, dsl::u64> output_bytes;
  dsl::Ptr<dsl::global, dsl::u32> statuses;
  BlockU32 blocks_per_item, item_count;
};

template <class Body>
dsl::KernelDefinition define_typed_decoder(dsl::KernelSpec spec, const Body& body) {
  using namespace dsl;
  spec.cost.buffers = {{"inputs", 8},    {"inputs[]", M},          {"input_bytes", 8},  {"outputs", 8},
                       {"outputs[]", N}, {"output_capacities", 8}, {"output_bytes", 8}, {"statuses", 4}};
  return define(std::move(spec),
                [body](Kernel& k, Arg<"inputs", Ptr<read_only, u64>> inputs,
                       Arg<"input_bytes", Ptr<read_only, u64>> input_bytes, Arg<"outputs", Ptr<read_only, u64>> outputs,
                       Arg<"output_capacities", Ptr<read_only, u64>> output_capacities,
                       Arg<"output_bytes", Ptr<global, u64>> output_bytes, Arg<"statuses", Ptr<global, u32>> statuses,
                       Arg<"blocks_per_item", u32> blocks_per_item, Arg<"item_count", u32> item_count) {
                  body(k, TypedDecodeArguments{inputs, input_bytes, outputs, output_capacities, output_bytes, statuses,
                                               blocks_per_item, item_count});
                });
}

template <dsl::Rate R>
class TypedCoded {
 public:
  using U32 = dsl::Expr<dsl::u32, R>;
  using U64 = dsl::Expr<dsl::u64, R>;
  using Bool = dsl::Expr<bool, R>;

  TypedCoded(dsl::Kernel& k, const TypedDecodeArguments& arguments, const U32& item)
      : k_(k),
        arguments_(arguments),
        item_(item),
        input_(of_item(arguments.inputs)),
        output_(of_item(arguments.outputs)),
        bytes_(of_item(arguments.input_bytes)),
        capacity_(of_item(arguments.output_capacities)),
        outcome_(k),
        layout_(k, 1),
        raw_bytes_(k, 0),
        coded_at_(k, 0) {
    using namespace dsl;
    outcome_.fail_if(((input_ == 0) & (bytes_ != 0)) | ((output_ == 0) & (capacity_ != 0)), BatchStatus::invalid_value);
    outcome_.fail_if(((trunc<u32>(input_) | trunc<u32>(output_)) & (kTypedAlignment - 1)) != 0,
                     BatchStatus::misaligned);
    outcome_.fail_if(bytes_ > u64{kMaxBatchCodedBytes}, BatchStatus::too_large);
    outcome_.fail_if(bytes_ < u64{kTypedHeaderBytes}, BatchStatus::cannot_decompress);
    k.if_(is_ok(), [&] {
      const auto header = source().template as<u32>().template load_vector<4>();
      outcome_.fail_if(header[0] != kTypedMagic, BatchStatus::cannot_decompress);
      outcome_.fail_if(header[1] - 1 >= ptxkit::kernels::kTypedLayouts, BatchStatus::unsupported);
      outcome_.fail_if((header[3] != 0) | (header[2] > kMaxBatchRawBytes), BatchStatus::cannot_decompress);
      layout_ = select(is_ok(), header[1], 1);
      raw_bytes_ = select(is_ok(), header[2], 0);
      const auto shape = layout();
      coded_at_ = shape.coded_at(*raw_bytes_);
      outcome_.fail_if(*coded_at_ > size(), BatchStatus::cannot_decompress);
      outcome_.fail_if(zext<u64>(*raw_bytes_) > capacity_, BatchStatus::output_too_small);
      k.if_(is_ok(), [&] {
        const U32 entries = shape.entries(*raw_bytes_);
        outcome_.fail_if(end_of(entries) != (size() - *coded_at_) / kTypedAlignment, BatchStatus::cannot_decompress);
        outcome_.fail_if((size() - *coded_at_) % kTypedAlignment != 0, BatchStatus::cannot_decompress);
      });
    });
  }

  Bool is_ok() const { return outcome_.is_ok(); }
  U32 status() const { return outcome_.status(); }
  U32 size() const { return dsl::trunc<dsl::u32>(bytes_); }
  TypedLayoutOf<R> layout() const { return TypedLayoutOf<R>(k_, *layout_); }
  U32 raw_bytes() const { return *raw_bytes_; }
  U32 coded_at() const { return *coded_at_; }

  auto source() const { return dsl::at_address<dsl::read_only, dsl::u8, kTypedAlignment>(input_).within(size()); }
  auto room() const { return dsl::at_address<dsl::global, dsl::u8, kTypedAlignment>(output_).within(raw_bytes()); }
  // Where the first `entries` coded planes end, in kTypedAlignment bytes.
  U32 end_of(const U32& entries) const {
    const auto index = source().template as<dsl::u32>().template at<kTypedHeaderBytes / 4 - 1>();
    return select(entries == 0, 0, index.at(entries).load());
  }

  // Writes size and status. One thread calls it.
  template <class Status>
  void store_result(const Status& status) const {
    using namespace dsl;
    const auto is_good = status == static_cast<u32>(BatchStatus::ok);
    k_.if_(arguments_.output_bytes.address() != 0, [&] {
      arguments_.output_bytes.within(arguments_.item_count).at(item_).store(zext<u64>(select(is_good, raw_bytes(), 0)));
    });
    k_.if_(arguments_.statuses.address() != 0,
           [&] { arguments_.statuses.within(arguments_.item_count).at(item_).store(status); });
  }

 private:
  template <class Array>
  U64 of_item(const Array& array) const {
    return array.within(arguments_.item_count).at(item_).load();
  }

  dsl::Kernel& k_;
  const TypedDecodeArguments& arguments_;
  U32 item_;
  U64 input_, output_, bytes_, capacity_;
  BatchOutcome<R> outcome_;
  dsl::Var<dsl::u32, R> layout_, raw_bytes_, coded_at_;
};

}  // namespace ptxkit::kernels
