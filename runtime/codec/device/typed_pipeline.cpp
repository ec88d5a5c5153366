// The codec of planes as kernels: a block is an item of typed rANS, and a CTA codes a member of it. The kernels take
// the addresses of blocks in arrays.
#include <algorithm>
#include <utility>

#include "kernels/abi.hpp"
#include "kernels/typed/typed_format.hpp"
#include "runtime/codec/blocks/typed_block.hpp"
#include "runtime/codec/device/block_pipeline.hpp"
#include "runtime/codec/device/declared_costs.hpp"

namespace ptxkit::codec {
namespace {

using format::PtzCoding;
using kernels::BatchStatus;
using kernels::TypedLayout;

size_t aligned(size_t bytes) { return kernels::typed_aligned(bytes); }

// Regions of an encoding, in the order in which they are arranged.
enum EncodeRegion : size_t {
  kRaw,
  kRawAt,
  kRawSizes,
  kCoded,
  kCodedAt,
  kCodedSizes,
  kCodedStatuses,
  kPlaneUnits,
  kSlots,
};
constexpr RegionName kEncodeRegions[] = {
    {"raw"},         {"raw addresses"},  {"raw sizes"},         {"coded", true},  {"coded addresses"},
    {"coded sizes"}, {"coded statuses"}, {"plane sizes", true}, {"planes", true},
};

enum DecodeRegion : size_t { kFromCoded, kFromAt, kFromSizes, kToRaw, kToAt, kToRooms, kToSizes, kToStatuses };
constexpr RegionName kDecodeRegions[] = {{"coded"},         {"coded addresses"}, {"coded sizes"}, {"raw"},
                                         {"raw addresses"}, {"raw rooms"},       {"raw sizes"},   {"raw statuses"}};

// The room reserved for each block of an encoding, in two forms.
struct Strides {
  size_t raw, coded;
};

// Totals of a group to decode.
struct DecodeSizes {
  size_t blocks = 0, coded_bytes = 0, raw_bytes = 0, largest_raw_bytes = 0;
};

class TypedPipeline final : public BlockPipeline {
 public:
  TypedPipeline(Machine& machine, Executor& executor, const PtzCoding& codec)
      : machine_(machine),
        executor_(executor),
        codec_(codec),
        encoded_(machine.queue_count()),
        opened_(machine.queue_count()) {}

  Result<LaunchPlan> encoding_plan(uint32_t block_count, size_t block_bytes, MatchSearch) override {
    return costs_.plan(kEncodeRegions, encode_calls(block_count, raw_stride_of(block_bytes)));
  }
  Result<LaunchPlan> decoding_plan(uint32_t block_count, size_t block_bytes) override {
    const size_t all_bytes = block_count * aligned(block_bytes);
    return costs_.plan(kDecodeRegions, decode_calls({block_count, all_bytes, all_bytes, block_bytes}));
  }
  size_t encoded_at_once(size_t block_bytes) override {
    return blocks_at_once(machine_, block_bytes, encoding_plan(1, block_bytes, MatchSearch::chains));
  }
  size_t decoded_at_once(size_t block_bytes) override {
    return blocks_at_once(machine_, block_bytes, decoding_plan(1, block_bytes));
  }

  Steps<BlockToEncode> encoding(MatchSearch) override {
    return {[this](unsigned queue, auto blocks) { return begin_encoding(queue, blocks); },
            [this](unsigned queue, auto blocks) { return fetch_coded(queue, blocks); },
            [this](unsigned queue, auto blocks) { return collect_coded(queue, blocks); }};
  }
  Steps<BlockToDecode> decoding() override {
    return {[this](unsigned queue, auto blocks) { return begin_decoding(queue, blocks); },
            [this](unsigned queue, auto blocks) { return collect_raw(queue, blocks); }};
  }

 private:
  TypedLayout layout() const { return layout_of(codec_.elements); }
  uint32_t members_of(size_t raw_bytes) const {
    return static_cast<uint32_t>(std::max<uint64_t>(1, kernels::typed_plan(raw_bytes, layout()).members));
  }
  // Whole members, which is what the encoder's declarations are for.
  size_t raw_stride_of(size_t raw_bytes) const {
    const size_t member_bytes = size_t{kernels::kTypedMember} * kernels::typed_shape(layout()).element_bytes;
    return (raw_bytes + member_bytes - 1) / member_bytes * member_bytes;
  }

  std::vector<KernelCall> encode_calls(uint32_t count, size_t raw_stride) const {
    using namespace kernels;
    const uint32_t members = members_of(raw_stride);
    const auto call = [&](std::string_view kernel, const LaunchShape& shape) {
      return KernelCall{
          kernel,
          {count * raw_stride, count},
          count * members,
          shape.block_threads,
          {},
          {buffer(kRawAt), buffer(kRawSizes), buffer(kCodedAt), buffer(kCodedSizes), buffer(kCodedStatuses),
           buffer(kPlaneUnits), buffer(kSlots), number(static_cast<uint32_t>(raw_stride)), number(members),
           number(static_cast<uint32_t>(layout())), number(count)},
          {},
          {{kRaw, "inputs[]"}, {kCoded, "outputs[]"}}};
    };
    std::vector<KernelCall> calls = {call(kTypedEncode, kTypedEncodeShape), call(kTypedJoin, kTypedJoinShape)};
    calls.front().uploads = {kRaw, kRawAt, kRawSizes, kCodedAt};
    calls.back().downloads = {kCodedSizes, kCodedStatuses};
    return calls;
  }

  std::vector<KernelCall> decode_calls(const DecodeSizes& sizes) const {
    using namespace kernels;
    const auto count = static_cast<uint32_t>(sizes.blocks);
    const uint32_t members = members_of(sizes.largest_raw_bytes);
    const auto call = [&](std::string_view kernel, uint32_t grid_blocks, const LaunchShape& shape) {
      return KernelCall{kernel,
                        {sizes.raw_bytes, count, sizes.coded_bytes},
                        grid_blocks,
                        shape.block_threads,
                        {},
                        {buffer(kFromAt), buffer(kFromSizes), buffer(kToAt), buffer(kToRooms), buffer(kToSizes),
                         buffer(kToStatuses), number(members), number(count)},
                        {},
                        {{kFromCoded, "inputs[]"}, {kToRaw, "outputs[]"}}};
    };
    constexpr uint32_t kBegun = kTypedBeginShape.items_per_block;
    std::vector<KernelCall> calls = {call(kTypedBegin, (count + kBegun - 1) / kBegun, kTypedBeginShape),
                                     call(kTypedDecode, count * members, kTypedDecodeShape)};
    calls.front().uploads = {kFromCoded, kFromAt, kFromSizes, kToAt, kToRooms};
    calls.back().downloads = {kToSizes, kToStatuses};
    return calls;
  }

  Result<void> begin_encoding(unsigned queue, std::span<const BlockToEncode> blocks) {
    const auto count = static_cast<uint32_t>(blocks.size());
    const size_t raw_stride = raw_stride_of(largest_raw_bytes(blocks));
    const auto coded_stride = costs_.bytes(kernels::kTypedEncode, "outputs[]", {raw_stride});
    if (!coded_stride) return tl::unexpected(coded_stride.error());
    encoded_[queue] = {{raw_stride, *coded_stride}};
    const auto plan = costs_.plan(kEncodeRegions, encode_calls(count, raw_stride));
    if (!plan) return tl::unexpected(plan.error());
    if (auto arranged = arrange_blocks(machine_, queue, plan->regions); !arranged) return arranged;
    const MutableBytes all_raw = machine_.host(queue, kRaw);
    executor_.for_each(count, [&](size_t i, unsigned) {
      const MutableBytes room = all_raw.subspan(i * raw_stride, raw_stride);
      std::fill(std::copy(blocks[i].raw.begin(), blocks[i].raw.end(), room.begin()), room.end(), uint8_t{0});
      wide(queue, kRawAt)[i] = machine_.address(queue, kRaw) + i * raw_stride;
      wide(queue, kRawSizes)[i] = blocks[i].raw.size();
      wide(queue, kCodedAt)[i] = machine_.address(queue, kCoded) + i * *coded_stride;
    });
    return codec::run(machine_, queue, plan->calls);
  }

  // Downloads nothing of a block that does not shrink.
  Result<void> fetch_coded(unsigned queue, std::span<BlockToEncode> blocks) {
    auto& [strides, fetched, begins] = encoded_[queue];
    for (size_t i = 0; i < blocks.size(); ++i) {
      const uint64_t size = wide(queue, kCodedSizes)[i];
      if (!is_ok(queue, kCodedStatuses, i) || size > strides.coded) return refused_block(machine_);
      begins.push_back(fetched.size_bytes());
      blocks[i].coded.resize(size < blocks[i].raw.size() ? size : 0);
      fetched.add(kCoded, i * strides.coded, blocks[i].coded.size());
    }
    return fetched.download(machine_, queue);
  }

  Result<void> collect_coded(unsigned queue, std::span<BlockToEncode> blocks) {
    const auto& [strides, fetched, begins] = encoded_[queue];
    executor_.for_each(blocks.size(), [&](size_t i, unsigned) {
      std::vector<uint8_t>& coded = blocks[i].coded;
      const Bytes from = fetched.bytes().subspan(coded.empty() ? 0 : begins[i], coded.size());
      std::copy(from.begin(), from.end(), coded.begin());
    });
    encoded_[queue] = {};
    return {};
  }

  Result<void> begin_decoding(unsigned queue, std::span<const BlockToDecode> blocks) {
    std::vector<OpenedBlock>& opened = opened_[queue];
    opened.clear();
    DecodeSizes sizes;
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (!opens_as_typed_block(codec_.elements, blocks[i].coded, blocks[i].raw.size())) continue;
      opened.push_back({i, sizes.coded_bytes, sizes.raw_bytes});
      ++sizes.blocks;
      sizes.coded_bytes += aligned(blocks[i].coded.size());
      sizes.raw_bytes += aligned(blocks[i].raw.size());
      sizes.largest_raw_bytes = std::max(sizes.largest_raw_bytes, blocks[i].raw.size());
    }
    if (opened.empty()) return {};
    const auto plan = costs_.plan(kDecodeRegions, decode_calls(sizes));
    if (!plan) return tl::unexpected(plan.error());
    if (auto arranged = arrange_blocks(machine_, queue, plan->regions); !arranged) return arranged;
    const MutableBytes all_coded = machine_.host(queue, kFromCoded);
    executor_.for_each(opened.size(), [&](size_t i, unsigned) {
      const BlockToDecode& block = blocks[opened[i].index];
      const MutableBytes room = all_coded.subspan(opened[i].coded_at, aligned(block.coded.size()));
      std::fill(std::copy(block.coded.begin(), block.coded.end(), room.begin()), room.end(), uint8_t{0});
      wide(queue, kFromAt)[i] = machine_.address(queue, kFromCoded) + opened[i].coded_at;
      wide(queue, kFromSizes)[i] = block.coded.size();
      wide(queue, kToAt)[i] = machine_.address(queue, kToRaw) + opened[i].raw_at;
      wide(queue, kToRooms)[i] = block.raw.size();
    });
    return codec::run(machine_, queue, plan->calls).and_then([&] {
      const driver::Rows all{0, sizes.raw_bytes, sizes.raw_bytes, 1};
      return machine_.download_rows(queue, kToRaw, {&all, 1});
    });
  }

  Result<void> collect_raw(unsigned queue, std::span<BlockToDecode> blocks) {
    const Bytes all_raw = opened_[queue].empty() ? Bytes() : Bytes(machine_.host(queue, kToRaw));
    executor_.for_each(opened_[queue].size(), [&](size_t i, unsigned) {
      const OpenedBlock& block = opened_[queue][i];
      BlockToDecode& to = blocks[block.index];
      to.good = is_ok(queue, kToStatuses, i) && wide(queue, kToSizes)[i] == to.raw.size();
      const Bytes raw = all_raw.subspan(block.raw_at, to.raw.size());
      if (to.good) std::copy(raw.begin(), raw.end(), to.raw.begin());
    });
    return {};
  }

  uint64_t* wide(unsigned queue, size_t region) { return host_array<uint64_t>(machine_, queue, region); }
  bool is_ok(unsigned queue, size_t statuses, size_t i) {
    return host_array<uint32_t>(machine_, queue, statuses)[i] == static_cast<uint32_t>(BatchStatus::ok);
  }

  Machine& machine_;
  Executor& executor_;
  PtzCoding codec_;
  DeclaredCosts costs_{machine_};
  struct EncodedGroup {
    Strides strides = {};
    Fetched fetched = {};
    std::vector<size_t> begins = {};  // for each block: its first byte in `fetched`
  };
  std::vector<EncodedGroup> encoded_;  // the blocks that each queue encodes
  struct OpenedBlock {
    size_t index;  // in its group
    size_t coded_at, raw_at;
  };
  std::vector<std::vector<OpenedBlock>> opened_;  // the blocks that each queue decodes
};

}  // namespace

std::unique_ptr<BlockPipeline> make_typed_pipeline(Machine& machine, Executor& executor, const PtzCoding& codec) {
  return std::make_unique<TypedPipeline>(machine, executor, codec);
}

}  // namespace ptxkit::codec
