// What the kernels of the encoder share: the parameters (DeflateBatchParameters), and what they say of an item.
#pragma once

#include <utility>

#include "kernels/deflate/deflate_encode_format.hpp"
#include "kernels/lz4/lz4_batch.hpp"

namespace ptxkit::kernels {

// The parameters of a batch, in order. Those that one kernel writes and another reads are writable for both.
struct DeflateBatchArguments {
  dsl::Ptr<dsl::read_only, dsl::u64> inputs, input_bytes, outputs;
  dsl::Ptr<dsl::global, dsl::u64> output_bytes;
  dsl::Ptr<dsl::global, dsl::u32> statuses;
  dsl::Ptr<dsl::global, dsl::u32, 8> matches;
  dsl::Ptr<dsl::global, dsl::u32> match_counts;
  dsl::Ptr<dsl::global, dsl::u32, 16> tokens;
  BlockU32 max_input_bytes, framing, item_count;

  // The lists of an item, whose room no access leaves in a debug build.
  auto matches_of(const BlockU32& item) const {
    const BlockU32 words = deflate_list_words(max_input_bytes);
    return matches.at(dsl::times<8>(dsl::zext<dsl::u64>(item) * dsl::zext<dsl::u64>(words / 8))).within(words);
  }
  auto tokens_of(const BlockU32& item) const {
    const BlockU32 words = deflate_token_words(max_input_bytes);
    return tokens.at(dsl::times<16>(dsl::zext<dsl::u64>(item) * dsl::zext<dsl::u64>(words / 16))).within(words);
  }
};

// Defines a kernel with those parameters; body(k, arguments) writes it.
template <class Body>
dsl::KernelDefinition define_deflate_batch_kernel(dsl::KernelSpec spec, const Body& body) {
  using namespace dsl;
  spec.cost.buffers = {{"inputs", 8},
                       {"inputs[]", N},
                       {"input_bytes", 8},
                       {"outputs", 8},
                       {"outputs[]", N + (deflate_batch_bound(kMaxChunkBytes, DeflateFraming::bgzf) - kMaxChunkBytes)},
                       {"output_bytes", 8},
                       {"statuses", 4},
                       {"matches", N / kStrideUnitBytes * (2 * kStrideUnitBytes)},
                       {"match_counts", 4},
                       {"tokens", N * 4}};
  return define(std::move(spec),
                [body](Kernel& k, Arg<"inputs", Ptr<read_only, u64>> inputs,
                       Arg<"input_bytes", Ptr<read_only, u64>> input_bytes, Arg<"outputs", Ptr<read_only, u64>> outputs,
                       Arg<"output_bytes", Ptr<global, u64>> output_bytes, Arg<"statuses", Ptr<global, u32>> statuses,
                       Arg<"matches", Ptr<global, u32, 8>> matches, Arg<"match_counts", Ptr<global, u32>> match_counts,
                       Arg<"tokens", Ptr<global, u32, 16>> tokens, Arg<"max_input_bytes", u32> max_input_bytes,
                       Arg<"framing", u32> framing, Arg<"item_count", u32> item_count) {
                  body(k, DeflateBatchArguments{inputs, input_bytes, outputs, output_bytes, statuses, matches,
                                                match_counts, tokens, max_input_bytes, framing, item_count});
                });
}

// An item as its arrays describe it.
class DeflateBatchItem {
 public:
  DeflateBatchItem(dsl::Kernel& k, const DeflateBatchArguments& arguments, const BlockU32& item)
      : input_(arguments.inputs.within(arguments.item_count).at(item).load()),
        bytes_(arguments.input_bytes.within(arguments.item_count).at(item).load()),
        output_(arguments.outputs.within(arguments.item_count).at(item).load()),
        outcome_(k) {
    using namespace dsl;
    const BlockU32 low_bits = trunc<u32>(input_) & (kStrideUnitBytes - 1);
    const BlockU32 of_framing =
        select(arguments.framing == static_cast<u32>(DeflateFraming::bgzf),
               k.constant(deflate_max_item_bytes(DeflateFraming::bgzf)), deflate_max_item_bytes(DeflateFraming::raw));
    outcome_.fail_if(arguments.framing > static_cast<u32>(DeflateFraming::bgzf), BatchStatus::invalid_value);
    outcome_.fail_if(bytes_ > zext<u64>(min(arguments.max_input_bytes, of_framing)), BatchStatus::too_large);
    outcome_.fail_if(((input_ == 0) & (bytes_ != 0)) | (output_ == 0), BatchStatus::invalid_value);
    outcome_.fail_if((bytes_ != 0) & (low_bits != 0), BatchStatus::misaligned);
  }

  auto is_ok() const { return outcome_.is_ok(); }
  BlockU32 status() const { return outcome_.status(); }
  ItemSource source() const {
    return dsl::at_address<dsl::read_only, dsl::u8, kStrideUnitBytes>(input_).template within<kStrideUnitBytes>(size());
  }
  auto output() const { return dsl::at_address<dsl::global, dsl::u8>(output_); }
  BlockU32 size() const { return dsl::trunc<dsl::u32>(bytes_); }  // of an item that is ok

 private:
  dsl::Expr<dsl::u64, dsl::Rate::block> input_, bytes_, output_;
  BatchOutcome<dsl::Rate::block> outcome_;
};

}  // namespace ptxkit::kernels
