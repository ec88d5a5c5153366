// Zstandard as kernels. Encoding: an item of a batch is a range, and of its frame the blocks are taken. Decoding: an
// item is a frame. The kernels take the addresses of items in arrays.
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/abi.hpp"
#include "kernels/zstd/zstd_decode_format.hpp"
#include "kernels/zstd/zstd_format.hpp"
#include "runtime/codec/device/block_pipeline.hpp"
#include "runtime/codec/device/declared_costs.hpp"
#include "runtime/codec/format/zstd_frame.hpp"

namespace ptxkit::codec {
namespace {

using kernels::BatchStatus;

constexpr size_t aligned(size_t bytes) {
  return (bytes + kernels::kStrideUnitBytes - 1) / kernels::kStrideUnitBytes * kernels::kStrideUnitBytes;
}
constexpr size_t divided_up(size_t count, size_t by) { return (count + by - 1) / by; }

// Regions of an encoding, in the order in which they are arranged.
enum EncodeRegion : size_t {
  kRaw,
  kRawAt,
  kRawSizes,
  kFrames,
  kFramesAt,
  kFrameSizes,
  kFrameStatuses,
  kBlocks,
  kBlockSizes,
  kMatches,
  kMatchCounts,
  kLiterals,
  kLiteralCounts,
  kLiteralsAt,
  kSequences,
  kSequenceSizes,
  kListsAt,
  kSectionsAt,
  kSectionRooms,
  kSectionStatuses,
  kLiteralSections,
  kLiteralSectionSizes,
  kSequenceSections,
  kSequenceSectionSizes,
  kPlaces,
};
constexpr RegionName kEncodeRegions[] = {{"raw"},
                                         {"raw addresses"},
                                         {"raw sizes"},
                                         {"frames", true},
                                         {"frame addresses"},
                                         {"frame sizes"},
                                         {"frame statuses"},
                                         {"blocks", true},
                                         {"block sizes", true},
                                         {"matches", true},
                                         {"match counts", true},
                                         {"literals", true},
                                         {"literal counts", true},
                                         {"literal offsets", true},
                                         {"sequences", true},
                                         {"sequence sizes", true},
                                         {"list offsets", true},
                                         {"section offsets", true},
                                         {"section rooms", true},
                                         {"section statuses", true},
                                         {"literal sections", true},
                                         {"literal section sizes", true},
                                         {"sequence sections", true},
                                         {"sequence section sizes", true},
                                         {"places", true}};

enum DecodeRegion : size_t {
  kFromCoded,
  kFromAt,
  kFromSizes,
  kToRaw,
  kToAt,
  kToRooms,
  kToSizes,
  kToStatuses,
  kToLiterals,
  kToSequences,
  kListedCounts,
  kListed,
  kLiteralStates,
  kBlockStates,
};
constexpr RegionName kDecodeRegions[] = {{"coded"},
                                         {"coded addresses"},
                                         {"coded sizes"},
                                         {"raw"},
                                         {"raw addresses"},
                                         {"raw rooms"},
                                         {"raw sizes"},
                                         {"raw statuses"},
                                         {"literals", true},
                                         {"sequences", true},
                                         {"block counts", true},
                                         {"blocks", true},
                                         {"literal states", true},
                                         {"block states", true}};

// Totals of a group to decode.
struct DecodeSizes {
  size_t frames = 0, coded_bytes = 0, largest_raw_bytes = 0;
};

class ZstdPipeline final : public BlockPipeline {
 public:
  ZstdPipeline(Machine& machine, Executor& executor, const ZstdCoding& coding)
      : machine_(machine),
        executor_(executor),
        coding_(coding),
        encoded_(machine.queue_count()),
        raw_strides_(machine.queue_count()) {}

  Result<LaunchPlan> encoding_plan(uint32_t block_count, size_t block_bytes, MatchSearch) override {
    return costs_.plan(kEncodeRegions, encode_calls(block_count, aligned(block_bytes)));
  }
  Result<LaunchPlan> decoding_plan(uint32_t block_count, size_t block_bytes) override {
    return costs_.plan(kDecodeRegions, decode_calls({block_count, block_count * block_bytes, block_bytes}));
  }
  size_t encoded_at_once(size_t block_bytes) override {
    return at_once(block_bytes, encoding_plan(1, block_bytes, MatchSearch::chains));
  }
  size_t decoded_at_once(size_t block_bytes) override { return at_once(block_bytes, decoding_plan(1, block_bytes)); }

  Steps<BlockToEncode> encoding(MatchSearch) override {
    return {[this](unsigned queue, auto ranges) { return begin_encoding(queue, ranges); },
            [this](unsigned queue, auto ranges) { return fetch_frames(queue, ranges); },
            [this](unsigned queue, auto ranges) { return take_blocks(queue, ranges); }};
  }
  Steps<BlockToDecode> decoding() override {
    return {[this](unsigned queue, auto frames) { return begin_decoding(queue, frames); },
            [this](unsigned queue, auto frames) { return collect_raw(queue, frames); }};
  }

 private:
  // As many blocks as one launch should carry and a queue can hold, if one block has this plan. Without a plan the
  // answer is 1, and beginning a group reports the error.
  size_t at_once(size_t block_bytes, const Result<LaunchPlan>& of_one) const {
    const size_t wanted = machine_.slice_bytes() / std::max<size_t>(block_bytes, 1);
    const size_t fitting = of_one ? machine_.queue_memory_bytes() / memory_bytes_of(of_one->regions) : 1;
    return std::max<size_t>(1, std::min(wanted, fitting));
  }

  std::vector<KernelCall> encode_calls(uint32_t count, size_t raw_stride) const {
    using namespace kernels;
    const auto per_item = static_cast<uint32_t>(std::max<size_t>(1, divided_up(raw_stride, kZstdBlockBytes)));
    const uint32_t blocks = count * per_item;
    const auto of_batch = [&](std::string_view kernel, uint32_t launched, const LaunchShape& shape) {
      return KernelCall{kernel,
                        {count * raw_stride, count},
                        static_cast<uint32_t>(divided_up(launched, shape.items_per_block)),
                        shape.block_threads,
                        {},
                        {buffer(kRawAt), buffer(kRawSizes), buffer(kFramesAt), buffer(kFrameSizes),
                         buffer(kFrameStatuses), buffer(kBlocks), buffer(kBlockSizes), buffer(kLiteralsAt),
                         buffer(kListsAt), buffer(kSectionsAt), buffer(kSectionRooms), buffer(kLiteralSections),
                         buffer(kLiteralSectionSizes), buffer(kSequenceSections), buffer(kSequenceSectionSizes),
                         buffer(kPlaces), number(static_cast<uint32_t>(raw_stride)), number(per_item), number(count)},
                        {},
                        {{kRaw, "inputs[]"}, {kFrames, "outputs[]"}}};
    };
    const auto of_blocks = [&](std::string_view kernel, const LaunchShape& shape, std::vector<CallArgument> arguments) {
      arguments.push_back(number(blocks));
      return KernelCall{
          kernel, {uint64_t{blocks} * kZstdBlockBytes, blocks}, blocks, shape.block_threads, {}, std::move(arguments),
          {}};
    };
    const auto section = [&](std::string_view kernel, uint64_t src_bytes, const TransformRegions& regions) {
      return transform_call(kernel, {blocks * src_bytes, blocks}, kZstdChooseShape.block_threads, regions);
    };
    std::vector<KernelCall> calls = {
        of_batch(kZstdBatchSplit, blocks, kZstdBatchSplitShape),
        of_blocks(coding_.level == 1 ? kZstdMatch : kZstdMatchHigh, kZstdMatchShape,
                  {buffer(kBlocks), buffer(kBlockSizes), buffer(kMatches), buffer(kMatchCounts)}),
        of_blocks(kZstdChoose, kZstdChooseShape,
                  {buffer(kBlocks), buffer(kBlockSizes), buffer(kMatches), buffer(kMatchCounts), buffer(kLiterals),
                   buffer(kLiteralCounts), buffer(kSequences), buffer(kSequenceSizes)}),
        section(kZstdLiterals, kZstdBlockBytes,
                {kLiterals, kLiteralsAt, kLiteralCounts, kLiteralSections, kSectionsAt, kSectionRooms,
                 kLiteralSectionSizes, kSectionStatuses}),
        section(kZstdSequences, kZstdListBytes,
                {kSequences, kListsAt, kSequenceSizes, kSequenceSections, kSectionsAt, kSectionRooms,
                 kSequenceSectionSizes, kSectionStatuses}),
        of_batch(kZstdBatchPlan, count, kZstdBatchPlanShape),
        of_batch(kZstdBatchJoin, blocks, kZstdBatchJoinShape),
    };
    calls.front().uploads = {kRaw, kRawAt, kRawSizes, kFramesAt};
    calls.back().downloads = {kFrameSizes, kFrameStatuses};
    return calls;
  }

  std::vector<KernelCall> decode_calls(const DecodeSizes& sizes) const {
    using namespace kernels;
    const auto count = static_cast<uint32_t>(sizes.frames);
    const auto per_item =
        static_cast<uint32_t>(std::max<size_t>(1, divided_up(sizes.largest_raw_bytes, kZstdBlockBytes)));
    const auto call = [&](std::string_view kernel, uint32_t launched, const LaunchShape& shape) {
      return KernelCall{kernel,
                        {count * sizes.largest_raw_bytes, count, sizes.coded_bytes},
                        static_cast<uint32_t>(divided_up(launched, shape.items_per_block)),
                        shape.block_threads,
                        {},
                        {buffer(kFromAt), buffer(kFromSizes), buffer(kToAt), buffer(kToRooms), buffer(kToSizes),
                         buffer(kToStatuses), buffer(kToLiterals), buffer(kToSequences), buffer(kListedCounts),
                         buffer(kListed), buffer(kLiteralStates), buffer(kBlockStates),
                         number(static_cast<uint32_t>(sizes.largest_raw_bytes)), number(per_item), number(count)},
                        {},
                        {{kFromCoded, "inputs[]"}, {kToRaw, "outputs[]"}}};
    };
    std::vector<KernelCall> calls = {call(kZstdBatchIndex, count, kZstdBatchIndexShape),
                                     call(kZstdBatchReadLiterals, count * per_item, kZstdDecodeShape),
                                     call(kZstdBatchReadSequences, count * per_item, kZstdReadSequencesShape),
                                     call(kZstdBatchExecute, count, kZstdDecodeShape),
                                     call(kZstdBatchDecompress, count, kZstdDecodeShape)};
    calls.front().uploads = {kFromCoded, kFromAt, kFromSizes, kToAt, kToRooms};
    calls.back().downloads = {kToSizes, kToStatuses};
    return calls;
  }

  Result<void> begin_encoding(unsigned queue, std::span<const BlockToEncode> ranges) {
    if (!has_kernels(coding_)) return fail("there are no kernels for this level of Zstandard", machine_.description());
    const auto count = static_cast<uint32_t>(ranges.size());
    const size_t raw_stride = aligned(largest_raw_bytes(ranges));
    const auto plan = costs_.plan(kEncodeRegions, encode_calls(count, raw_stride));
    if (!plan) return tl::unexpected(plan.error());
    if (auto arranged = arrange_blocks(machine_, queue, plan->regions); !arranged) return arranged;
    const size_t frame_stride = plan->regions[kFrames].size_bytes / count;
    encoded_[queue] = {.frame_stride = frame_stride};
    const MutableBytes all_raw = machine_.host(queue, kRaw);
    executor_.for_each(count, [&](size_t i, unsigned) {
      const MutableBytes room = all_raw.subspan(i * raw_stride, raw_stride);
      std::fill(std::copy(ranges[i].raw.begin(), ranges[i].raw.end(), room.begin()), room.end(), uint8_t{0});
      wide(queue, kRawAt)[i] = machine_.address(queue, kRaw) + i * raw_stride;
      wide(queue, kRawSizes)[i] = ranges[i].raw.size();
      wide(queue, kFramesAt)[i] = machine_.address(queue, kFrames) + i * frame_stride;
    });
    return codec::run(machine_, queue, plan->calls);
  }

  Result<void> fetch_frames(unsigned queue, std::span<BlockToEncode> ranges) {
    auto& [frame_stride, fetched, begins] = encoded_[queue];
    for (size_t i = 0; i < ranges.size(); ++i) {
      const uint64_t size = wide(queue, kFrameSizes)[i];
      if (!is_ok(queue, kFrameStatuses, i) || size > frame_stride) return refused();
      begins.push_back(fetched.size_bytes());
      fetched.add(kFrames, i * frame_stride, size);
    }
    begins.push_back(fetched.size_bytes());
    return fetched.download(machine_, queue);
  }

  // The frame's header goes, and with it the mark of the last block.
  Result<void> take_blocks(unsigned queue, std::span<BlockToEncode> ranges) {
    const auto& [frame_stride, fetched, begins] = encoded_[queue];
    std::vector<char> good(ranges.size());
    executor_.for_each(ranges.size(), [&](size_t i, unsigned) {
      const Bytes frame = fetched.bytes().subspan(begins[i], begins[i + 1] - begins[i]);
      const auto header = format::parse_zstd_header(frame);
      good[i] = header && header->content_bytes == ranges[i].raw.size();
      if (good[i] == 0) return;
      const Bytes blocks = frame.subspan(header->header_bytes);
      ranges[i].coded.assign(blocks.begin(), blocks.end());
      good[i] = format::unmark_last_zstd_block(ranges[i].coded);
    });
    encoded_[queue] = {};
    return std::all_of(good.begin(), good.end(), [](char each) { return each != 0; }) ? Result<void>() : refused();
  }

  tl::unexpected<Error> refused() const {
    return fail("a kernel refused a block that is within its limits", machine_.description(),
                "use --backend cpu, and report this as a bug");
  }

  Result<void> begin_decoding(unsigned queue, std::span<const BlockToDecode> frames) {
    DecodeSizes sizes;
    for (const BlockToDecode& frame : frames) {
      ++sizes.frames;
      sizes.coded_bytes += frame.coded.size();
      sizes.largest_raw_bytes = std::max(sizes.largest_raw_bytes, frame.raw.size());
    }
    const auto plan = costs_.plan(kDecodeRegions, decode_calls(sizes));
    if (!plan) return tl::unexpected(plan.error());
    if (auto arranged = arrange_blocks(machine_, queue, plan->regions); !arranged) return arranged;
    const size_t raw_stride = raw_strides_[queue] = sizes.largest_raw_bytes;
    const MutableBytes all_coded = machine_.host(queue, kFromCoded);
    std::vector<size_t> begins;
    for (size_t i = 0, at = 0; i < frames.size(); at += frames[i++].coded.size()) begins.push_back(at);
    executor_.for_each(frames.size(), [&](size_t i, unsigned) {
      const BlockToDecode& frame = frames[i];
      std::copy(frame.coded.begin(), frame.coded.end(), all_coded.begin() + static_cast<ptrdiff_t>(begins[i]));
      wide(queue, kFromAt)[i] = machine_.address(queue, kFromCoded) + begins[i];
      wide(queue, kFromSizes)[i] = frame.coded.size();
      wide(queue, kToAt)[i] = machine_.address(queue, kToRaw) + i * raw_stride;
      wide(queue, kToRooms)[i] = frame.raw.size();
    });
    return codec::run(machine_, queue, plan->calls).and_then([&] {
      std::vector<driver::Rows> rows;
      for (size_t i = 0; i < frames.size(); ++i) rows.push_back({i * raw_stride, raw_stride, frames[i].raw.size(), 1});
      return machine_.download_rows(queue, kToRaw, rows);
    });
  }

  Result<void> collect_raw(unsigned queue, std::span<BlockToDecode> frames) {
    const Bytes all_raw = machine_.host(queue, kToRaw);
    executor_.for_each(frames.size(), [&](size_t i, unsigned) {
      BlockToDecode& to = frames[i];
      to.good = is_ok(queue, kToStatuses, i) && wide(queue, kToSizes)[i] == to.raw.size();
      const Bytes raw = all_raw.subspan(i * raw_strides_[queue], to.raw.size());
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
  ZstdCoding coding_;
  DeclaredCosts costs_{machine_};
  struct EncodedGroup {
    size_t frame_stride = 0;
    Fetched fetched = {};
    std::vector<size_t> begins = {};  // of the frames in `fetched`, and where the last one ends
  };
  std::vector<EncodedGroup> encoded_;  // the ranges that each queue encodes
  std::vector<size_t> raw_strides_;    // of the frames that each queue decodes
};

}  // namespace

std::unique_ptr<BlockPipeline> make_zstd_pipeline(Machine& machine, Executor& executor, const ZstdCoding& coding) {
  return std::make_unique<ZstdPipeline>(machine, executor, coding);
}

}  // namespace ptxkit::codec
