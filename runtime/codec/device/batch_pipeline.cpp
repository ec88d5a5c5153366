#include "runtime/codec/device/batch_pipeline.hpp"

#include <algorithm>
#include <utility>

#include "kernels/abi.hpp"
#include "runtime/driver/context.hpp"

namespace ptxkit::codec {
namespace {

using Encode = BatchEncodeRegions;
using Decode = BatchDecodeRegions;

constexpr RegionName kEncodeRegions[] = {
    {"raw"}, {"raw addresses"}, {"raw sizes"}, {"coded", true}, {"coded addresses"}, {"coded sizes"}, {"statuses"}};
constexpr RegionName kDecodeRegions[] = {{"coded"},         {"coded addresses"}, {"coded sizes"}, {"raw"},
                                         {"raw addresses"}, {"raw rooms"},       {"raw sizes"},   {"statuses"}};
static_assert(std::size(kEncodeRegions) == Encode::first_own && std::size(kDecodeRegions) == Decode::first_own);

constexpr size_t aligned(size_t bytes) {
  return (bytes + kernels::kStrideUnitBytes - 1) / kernels::kStrideUnitBytes * kernels::kStrideUnitBytes;
}

std::vector<RegionName> joined(std::span<const RegionName> common, std::span<const RegionName> own) {
  std::vector<RegionName> all(common.begin(), common.end());
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

}  // namespace

BatchPipeline::BatchPipeline(Machine& machine, Executor& executor, std::span<const RegionName> encode_own,
                             std::span<const RegionName> decode_own)
    : machine_(machine),
      executor_(executor),
      encode_regions_(joined(kEncodeRegions, encode_own)),
      decode_regions_(joined(kDecodeRegions, decode_own)),
      encoded_(machine.queue_count()),
      raw_strides_(machine.queue_count()) {}

Result<LaunchPlan> BatchPipeline::plan_encoding(uint32_t count, size_t raw_stride) {
  std::vector<KernelCall> calls = encode_calls(count, raw_stride);
  calls.front().uploads = {Encode::raw, Encode::raw_at, Encode::raw_sizes, Encode::coded_at};
  calls.back().downloads = {Encode::coded_sizes, Encode::statuses};
  return costs_.plan(encode_regions_, std::move(calls));
}

Result<LaunchPlan> BatchPipeline::plan_decoding(const BatchDecodeSizes& sizes) {
  std::vector<KernelCall> calls = decode_calls(sizes);
  calls.front().uploads = {Decode::coded, Decode::coded_at, Decode::coded_sizes, Decode::raw_at, Decode::raw_rooms};
  calls.back().downloads = {Decode::raw_sizes, Decode::statuses};
  return costs_.plan(decode_regions_, std::move(calls));
}

Result<LaunchPlan> BatchPipeline::encoding_plan(uint32_t block_count, size_t block_bytes, MatchSearch) {
  return plan_encoding(block_count, aligned(block_bytes));
}
Result<LaunchPlan> BatchPipeline::decoding_plan(uint32_t block_count, size_t block_bytes) {
  return plan_decoding({block_count, block_count * block_bytes, block_bytes});
}

size_t BatchPipeline::encoded_at_once(size_t block_bytes) {
  return blocks_at_once(machine_, block_bytes, encoding_plan(1, block_bytes, MatchSearch::chains));
}
size_t BatchPipeline::decoded_at_once(size_t block_bytes) {
  return blocks_at_once(machine_, block_bytes, decoding_plan(1, block_bytes));
}

Steps<BlockToEncode> BatchPipeline::encoding(MatchSearch) {
  return {[this](unsigned queue, auto blocks) { return begin_encoding(queue, blocks); },
          [this](unsigned queue, auto blocks) { return fetch_items(queue, blocks); },
          [this](unsigned queue, auto blocks) { return take_blocks(queue, blocks); }};
}
Steps<BlockToDecode> BatchPipeline::decoding() {
  return {[this](unsigned queue, auto blocks) { return begin_decoding(queue, blocks); },
          [this](unsigned queue, auto blocks) { return collect_raw(queue, blocks); }};
}

Result<void> BatchPipeline::begin_encoding(unsigned queue, std::span<const BlockToEncode> blocks) {
  if (auto possible = check_encoding(); !possible) return possible;
  const auto count = static_cast<uint32_t>(blocks.size());
  const size_t raw_stride = aligned(largest_raw_bytes(blocks));
  const auto plan = plan_encoding(count, raw_stride);
  if (!plan) return tl::unexpected(plan.error());
  if (auto arranged = arrange_blocks(machine_, queue, plan->regions); !arranged) return arranged;
  const size_t coded_stride = plan->regions[Encode::coded].size_bytes / count;
  encoded_[queue] = {.coded_stride = coded_stride};
  const MutableBytes all_raw = machine_.host(queue, Encode::raw);
  executor_.for_each(count, [&](size_t i, unsigned) {
    const MutableBytes room = all_raw.subspan(i * raw_stride, raw_stride);
    std::fill(std::copy(blocks[i].raw.begin(), blocks[i].raw.end(), room.begin()), room.end(), uint8_t{0});
    wide(queue, Encode::raw_at)[i] = machine_.address(queue, Encode::raw) + i * raw_stride;
    wide(queue, Encode::raw_sizes)[i] = blocks[i].raw.size();
    wide(queue, Encode::coded_at)[i] = machine_.address(queue, Encode::coded) + i * coded_stride;
  });
  return codec::run(machine_, queue, plan->calls);
}

Result<void> BatchPipeline::fetch_items(unsigned queue, std::span<BlockToEncode> blocks) {
  auto& [coded_stride, fetched, begins] = encoded_[queue];
  for (size_t i = 0; i < blocks.size(); ++i) {
    const uint64_t size = wide(queue, Encode::coded_sizes)[i];
    if (!is_ok(queue, Encode::statuses, i) || size > coded_stride) return refused_block(machine_);
    begins.push_back(fetched.size_bytes());
    fetched.add(Encode::coded, i * coded_stride, size);
  }
  begins.push_back(fetched.size_bytes());
  return fetched.download(machine_, queue);
}

Result<void> BatchPipeline::take_blocks(unsigned queue, std::span<BlockToEncode> blocks) {
  const auto& [coded_stride, fetched, begins] = encoded_[queue];
  std::vector<char> good(blocks.size());
  executor_.for_each(blocks.size(), [&](size_t i, unsigned) {
    good[i] = take_block(fetched.bytes().subspan(begins[i], begins[i + 1] - begins[i]), blocks[i]);
  });
  encoded_[queue] = {};
  return std::ranges::all_of(good, [](char each) { return each != 0; }) ? Result<void>() : refused_block(machine_);
}

Result<void> BatchPipeline::begin_decoding(unsigned queue, std::span<const BlockToDecode> blocks) {
  BatchDecodeSizes sizes{.items = blocks.size()};
  std::vector<size_t> begins;
  for (const BlockToDecode& block : blocks) {
    begins.push_back(sizes.coded_bytes);
    sizes.coded_bytes += block.coded.size();
    sizes.largest_raw_bytes = std::max(sizes.largest_raw_bytes, block.raw.size());
  }
  const auto plan = plan_decoding(sizes);
  if (!plan) return tl::unexpected(plan.error());
  if (auto arranged = arrange_blocks(machine_, queue, plan->regions); !arranged) return arranged;
  const size_t raw_stride = raw_strides_[queue] = sizes.largest_raw_bytes;
  const MutableBytes all_coded = machine_.host(queue, Decode::coded);
  executor_.for_each(blocks.size(), [&](size_t i, unsigned) {
    const BlockToDecode& block = blocks[i];
    std::copy(block.coded.begin(), block.coded.end(), all_coded.begin() + static_cast<ptrdiff_t>(begins[i]));
    wide(queue, Decode::coded_at)[i] = machine_.address(queue, Decode::coded) + begins[i];
    wide(queue, Decode::coded_sizes)[i] = block.coded.size();
    wide(queue, Decode::raw_at)[i] = machine_.address(queue, Decode::raw) + i * raw_stride;
    wide(queue, Decode::raw_rooms)[i] = block.raw.size();
  });
  return codec::run(machine_, queue, plan->calls).and_then([&] {
    std::vector<driver::Rows> rows;
    for (size_t i = 0; i < blocks.size(); ++i) rows.push_back({i * raw_stride, raw_stride, blocks[i].raw.size(), 1});
    return machine_.download_rows(queue, Decode::raw, rows);
  });
}

Result<void> BatchPipeline::collect_raw(unsigned queue, std::span<BlockToDecode> blocks) {
  const Bytes all_raw = machine_.host(queue, Decode::raw);
  executor_.for_each(blocks.size(), [&](size_t i, unsigned) {
    BlockToDecode& to = blocks[i];
    to.good = is_ok(queue, Decode::statuses, i) && wide(queue, Decode::raw_sizes)[i] == to.raw.size();
    const Bytes raw = all_raw.subspan(i * raw_strides_[queue], to.raw.size());
    if (to.good) std::copy(raw.begin(), raw.end(), to.raw.begin());
  });
  return {};
}

bool BatchPipeline::is_ok(unsigned queue, size_t statuses, size_t i) {
  return host_array<uint32_t>(machine_, queue, statuses)[i] == static_cast<uint32_t>(kernels::BatchStatus::ok);
}

}  // namespace ptxkit::codec
