// The codec bbw as kernels. One CTA codes a block from the sort to the zero runs, then one CTA codes each section of
// the result.
#include <algorithm>
#include <array>

#include "kernels/bwt/abi.hpp"
#include "kernels/bwt/zero_runs_reference.hpp"
#include "kernels/entropy/rans_format.hpp"
#include "runtime/codec/blocks/bbw_block.hpp"
#include "runtime/codec/blocks/coded_stream.hpp"
#include "runtime/codec/device/block_pipeline.hpp"
#include "runtime/codec/device/declared_costs.hpp"

namespace ptxkit::codec {
namespace {

using kernels::StreamStatus;

// Six queues with this many blocks are twice the number of sort CTAs that an H200 holds at a time, so one half is
// sorted while the other is coded.
constexpr size_t kGroupBlocks = 44;

constexpr size_t round_up(size_t bytes) {
  return (bytes + kernels::kStrideUnitBytes - 1) / kernels::kStrideUnitBytes * kernels::kStrideUnitBytes;
}
// Zeros after a block: a sort reads up to the next multiple of the unit.
constexpr std::array<uint8_t, kernels::kStrideUnitBytes> kZeros{};
uint32_t in_units(size_t stride_bytes) { return static_cast<uint32_t>(stride_bytes / kernels::kStrideUnitBytes); }
size_t sections_of(size_t run_bytes) { return (run_bytes + kBbwSectionBytes - 1) / kBbwSectionBytes; }

// The room reserved for each block in three forms: raw bytes, BWT block, zero runs.
struct Strides {
  size_t raw, block, runs;
};

// Regions of an encoding, in the order in which they are arranged.
enum EncodeRegion : size_t {
  kRaw,
  kRawSizes,
  kBlocks,
  kBlockSizes,
  kBlockStatuses,
  kSortScratch,
  kColumnsAt,
  kPlaces,
  kPlacesAt,
  kPlacesSizes,
  kPlacesStatuses,
  kRuns,
  kRunsAt,
  kRunsRooms,
  kRunsSizes,
  kRunsStatuses,
  kSectionsAt,
  kSectionSizes,
  kCoded,
  kCodedAt,
  kCodedSizes,
  kCodedStatuses
};
constexpr RegionName kEncodeRegions[] = {
    {"raw", true},          {"raw sizes"},       {"bwt blocks", true}, {"bwt block sizes"},      {"bwt statuses"},
    {"sort scratch", true}, {"column offsets"},  {"places", true},     {"place offsets"},        {"place sizes"},
    {"place statuses"},     {"zero runs", true}, {"zero run offsets"}, {"zero run rooms"},       {"zero run sizes"},
    {"zero run statuses"},  {"section offsets"}, {"section sizes"},    {"coded sections", true}, {"coded offsets"},
    {"coded sizes"},        {"coded statuses"}};

enum DecodeRegion : size_t {
  kFromCoded,
  kFromAt,
  kFromSizes,
  kToRuns,
  kToSectionsAt,
  kToSectionRooms,
  kToSectionSizes,
  kToSectionStatuses,
  kToRunsAt,
  kToRunsSizes,
  kToPlaces,
  kToPlacesAt,
  kToRooms,  // of places and columns
  kToPlacesSizes,
  kToPlacesStatuses,
  kToBlocks,
  kToColumnsAt,
  kToColumnSizes,
  kToColumnStatuses,
  kToBlockSizes,
  kToRaw,
  kToRawSizes,
  kToRawStatuses,
  kInverseScratch
};
constexpr RegionName kDecodeRegions[] = {{"coded blocks"},
                                         {"coded offsets"},
                                         {"coded sizes"},
                                         {"zero runs", true},
                                         {"section offsets"},
                                         {"section rooms"},
                                         {"section sizes"},
                                         {"section statuses"},
                                         {"zero run offsets"},
                                         {"zero run sizes"},
                                         {"places", true},
                                         {"place offsets"},
                                         {"rooms"},
                                         {"place sizes"},
                                         {"place statuses"},
                                         {"bwt blocks", true},
                                         {"column offsets"},
                                         {"column sizes"},
                                         {"column statuses"},
                                         {"bwt block sizes"},
                                         {"raw"},
                                         {"raw sizes"},
                                         {"raw statuses"},
                                         {"inverse scratch", true}};

// Totals of a group to decode: of its blocks, and of those of their sections that are coded.
struct DecodeSizes {
  size_t blocks = 0, largest_bytes = 0, coded_sections = 0, coded_bytes = 0, run_bytes = 0;
};

// A parsed coded block, with its sections in order.
struct CodedBlock {
  struct Section {
    Bytes content;
    size_t raw_bytes;
    bool is_coded;
  };
  size_t index;  // in its group
  size_t run_bytes = 0;
  size_t first_coded_section = 0, coded_at = 0, runs_at = 0;  // in the regions of the group
  std::vector<Section> sections = {};
};

// Parses a coded block. False if its headers contradict each other: there is nothing to decode.
bool take_apart(const BlockToDecode& block, CodedBlock& apart) {
  const auto n = static_cast<uint32_t>(block.raw.size());
  size_t at = kernels::bwt_column_at(n);
  if (block.coded.size() < at + 4) return false;
  apart.run_bytes = read_u32(&block.coded[at]);
  at += 4;
  if (apart.run_bytes > kernels::zero_runs_bound(n)) return false;
  for (size_t from = 0; from < apart.run_bytes; from += kBbwSectionBytes) {
    const size_t size = std::min(kBbwSectionBytes, apart.run_bytes - from);
    Bytes content;
    bool is_coded = false;
    if (!find_stream(block.coded, at, size, content, is_coded)) return false;
    apart.sections.push_back({content, size, is_coded});
  }
  return at == block.coded.size();
}

class BbwPipeline final : public BlockPipeline {
 public:
  BbwPipeline(Machine& machine, Executor& executor)
      : machine_(machine), executor_(executor), apart_(machine.queue_count()), groups_(machine.queue_count()) {}

  Result<LaunchPlan> encoding_plan(uint32_t block_count, size_t block_bytes, MatchSearch) override {
    return strides_of(block_bytes).and_then([&](const Strides& strides) {
      return costs_.plan(kEncodeRegions, encode_calls(block_count, strides));
    });
  }
  Result<LaunchPlan> decoding_plan(uint32_t block_count, size_t block_bytes) override {
    return strides_of(block_bytes).and_then([&](const Strides& strides) {
      const DecodeSizes sizes{block_count, block_bytes, block_count * sections_of(strides.runs),
                              block_count * block_bytes, block_count * strides.runs};
      return costs_.plan(kDecodeRegions, decode_calls(sizes, strides.raw, strides.block));
    });
  }
  // If the plan cannot be made the answer is 1; beginning a group then reports the error.
  size_t encoded_at_once(size_t block_bytes) override {
    const auto of_one = encoding_plan(1, block_bytes, MatchSearch::chains);
    if (!of_one) return 1;
    return std::clamp<size_t>(machine_.queue_memory_bytes() / memory_bytes_of(of_one->regions), 1, kGroupBlocks);
  }
  // Decoding needs less memory than encoding.
  size_t decoded_at_once(size_t block_bytes) override { return encoded_at_once(block_bytes); }

  Steps<BlockToEncode> encoding(MatchSearch) override {
    return {[this](unsigned queue, auto blocks) { return begin_encoding(queue, blocks); },
            [this](unsigned queue, auto blocks) { return code_sections(queue, blocks); },
            [this](unsigned queue, auto blocks) { return fetch_coded(queue, blocks); },
            [this](unsigned queue, auto blocks) { return collect_coded(queue, blocks); }};
  }
  Steps<BlockToDecode> decoding() override {
    return {[this](unsigned queue, auto blocks) { return begin_decoding(queue, blocks); },
            [this](unsigned queue, auto blocks) { return collect_raw(queue, blocks); }};
  }

 private:
  Result<Strides> strides_of(size_t largest_bytes) {
    const size_t raw = round_up(largest_bytes);
    const auto block = costs_.bytes(kernels::kBwtRank, "dst", {raw});
    const auto runs = costs_.bytes(kernels::kZeroRunsEncode, "dst", {raw});
    for (const auto* bytes : {&block, &runs}) {
      if (!*bytes) return tl::unexpected(bytes->error());
    }
    return Strides{raw, *block, *runs};
  }

  // The calls from the sort to the zero runs, and the coding of as many sections as the zero runs can have.
  static std::vector<KernelCall> encode_calls(uint32_t count, const Strides& strides) {
    using namespace kernels;
    const LaunchSize size{count * strides.raw, count};
    std::vector<KernelCall> calls;
    calls.push_back({kBwtRank,
                     size,
                     count,
                     kBwtRankThreads,
                     {kRawSizes},
                     {buffer(kRaw), buffer(kRawSizes), buffer(kBlocks), buffer(kBlockSizes), buffer(kBlockStatuses),
                      buffer(kSortScratch), number(in_units(strides.raw)), number(in_units(strides.block)),
                      number(static_cast<uint32_t>(strides.raw))},
                     {kBlockStatuses}});
    calls.push_back(
        transform_call(kMtfEncode, size, kColumnThreads,
                       {kBlocks, kColumnsAt, kRawSizes, kPlaces, kPlacesAt, kRawSizes, kPlacesSizes, kPlacesStatuses}));
    calls.back().uploads = {kColumnsAt, kPlacesAt};
    calls.push_back(
        transform_call(kZeroRunsEncode, size, kColumnThreads,
                       {kPlaces, kPlacesAt, kPlacesSizes, kRuns, kRunsAt, kRunsRooms, kRunsSizes, kRunsStatuses}));
    calls.back().uploads = {kRunsAt, kRunsRooms};
    calls.back().downloads = {kRunsSizes, kRunsStatuses};
    calls.push_back(code_call(count * sections_of(strides.runs), count * strides.runs));
    return calls;
  }
  static KernelCall code_call(size_t sections, size_t run_bytes) {
    const uint32_t options[] = {kBbwSectionOptions.scale_bits, kBbwSectionOptions.chunk_bits};
    KernelCall call = transform_call(
        kernels::kRansWarpEncode, {run_bytes, sections}, 32,
        {kRuns, kSectionsAt, kSectionSizes, kCoded, kCodedAt, kSectionSizes, kCodedSizes, kCodedStatuses}, options);
    call.uploads = {kSectionsAt, kSectionSizes, kCodedAt};
    call.downloads = {kCodedSizes, kCodedStatuses};
    return call;
  }

  Result<void> begin_encoding(unsigned queue, std::span<const BlockToEncode> blocks) {
    using namespace kernels;
    const auto found = strides_of(largest_raw_bytes(blocks));
    if (!found) return tl::unexpected(found.error());
    const Strides& strides = *found;
    groups_[queue] = {strides};
    const auto count = static_cast<uint32_t>(blocks.size());
    const auto plan = costs_.plan(kEncodeRegions, encode_calls(count, strides));
    if (!plan) return tl::unexpected(plan.error());
    if (auto arranged = arrange_blocks(machine_, queue, plan->regions); !arranged) return arranged;
    // Copies directly from the blocks: page-locking as much memory would take longer than everything else.
    std::vector<PartUp> parts;
    for (size_t i = 0; i < count; ++i) {
      const auto n = static_cast<uint32_t>(blocks[i].raw.size());
      parts.push_back({kRaw, i * strides.raw, blocks[i].raw});
      parts.push_back({kRaw, i * strides.raw + n, Bytes(kZeros).first(round_up(n) - n)});
      words(queue, kRawSizes)[i] = n;
      offsets(queue, kColumnsAt)[i] = i * strides.block + bwt_column_at(n);
      offsets(queue, kPlacesAt)[i] = i * strides.raw;
      offsets(queue, kRunsAt)[i] = i * strides.runs;
      words(queue, kRunsRooms)[i] = zero_runs_bound(n);
    }
    if (auto copied = machine_.upload_parts(queue, parts); !copied) return copied;
    return codec::run(machine_, queue, std::span(plan->calls).first(plan->calls.size() - 1));
  }

  // Runs after the lengths of the zero runs are known.
  Result<void> code_sections(unsigned queue, std::span<const BlockToEncode> blocks) {
    const Strides& strides = groups_[queue].strides;
    size_t sections = 0, run_bytes = 0;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const size_t size = words(queue, kRunsSizes)[i];
      if (!is_ok(queue, kBlockStatuses, i) || !is_ok(queue, kRunsStatuses, i) || size > strides.runs)
        return refused_block(machine_);
      for (size_t at = 0; at < size; at += kBbwSectionBytes, ++sections) {
        const size_t bytes = std::min(kBbwSectionBytes, size - at);
        offsets(queue, kSectionsAt)[sections] = i * strides.runs + at;
        offsets(queue, kCodedAt)[sections] = run_bytes;
        // A section that would grow is stored raw, so it needs no more room.
        words(queue, kSectionSizes)[sections] = static_cast<uint32_t>(bytes);
        run_bytes += bytes;
      }
    }
    const KernelCall call = code_call(sections, blocks.size() * strides.runs);
    return codec::run(machine_, queue, {&call, 1});
  }

  // Downloads only the bytes that will be stored, and nothing of a block that does not shrink.
  Result<void> fetch_coded(unsigned queue, std::span<BlockToEncode> blocks) {
    auto& [strides, fetched, begins, first_sections] = groups_[queue];
    size_t first_section = 0;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const size_t column_at = kernels::bwt_column_at(static_cast<uint32_t>(blocks[i].raw.size()));
      const size_t count = sections_of(words(queue, kRunsSizes)[i]);
      size_t stored = column_at + 4;
      for (size_t section = 0; section < count; ++section) {
        stored += 4 + stored_section(queue, first_section + section).size_bytes;
      }
      begins.push_back(fetched.size_bytes());
      first_sections.push_back(first_section);
      blocks[i].coded.resize(stored < blocks[i].raw.size() ? stored : 0);
      if (!blocks[i].coded.empty()) {
        fetched.add(kBlocks, i * strides.block, column_at);
        for (size_t section = first_section; section < first_section + count; ++section) {
          const StoredSection of = stored_section(queue, section);
          fetched.add(of.is_coded ? kCoded : kRuns, offsets(queue, of.is_coded ? kCodedAt : kSectionsAt)[section],
                      of.size_bytes);
        }
      }
      first_section += count;
    }
    return fetched.download(machine_, queue);
  }

  Result<void> collect_coded(unsigned queue, std::span<BlockToEncode> blocks) {
    const auto& [strides, fetched, begins, first_sections] = groups_[queue];
    executor_.for_each(blocks.size(), [&](size_t i, unsigned) {
      std::vector<uint8_t>& coded = blocks[i].coded;
      if (coded.empty()) return;
      const size_t column_at = kernels::bwt_column_at(static_cast<uint32_t>(blocks[i].raw.size()));
      const uint32_t run_bytes = words(queue, kRunsSizes)[i];
      Bytes left = fetched.bytes().subspan(begins[i]);
      const auto take = [&](size_t size_bytes) {
        const Bytes taken = left.first(size_bytes);
        left = left.subspan(size_bytes);
        return taken;
      };
      const Bytes rows = take(column_at);
      coded.assign(rows.begin(), rows.end());
      append_u32(coded, run_bytes);
      for (size_t section = 0; section < sections_of(run_bytes); ++section) {
        const StoredSection of = stored_section(queue, first_sections[i] + section);
        append_stored(coded, take(of.size_bytes), of.is_coded);
      }
    });
    groups_[queue] = {};
    return {};
  }

  static std::vector<KernelCall> decode_calls(const DecodeSizes& sizes, size_t raw_stride, size_t block_stride) {
    using namespace kernels;
    const auto count = static_cast<uint32_t>(sizes.blocks);
    const size_t raw_bytes = count * raw_stride;
    std::vector<KernelCall> calls;
    if (sizes.coded_sections != 0) {
      calls.push_back(transform_call(kRansWarpDecode, {sizes.run_bytes, sizes.coded_sections, sizes.coded_bytes},
                                     32 * kRansDecodeWarps,
                                     {kFromCoded, kFromAt, kFromSizes, kToRuns, kToSectionsAt, kToSectionRooms,
                                      kToSectionSizes, kToSectionStatuses}));
      calls.back().uploads = {kFromCoded, kFromAt, kFromSizes, kToSectionsAt, kToSectionRooms};
      calls.back().downloads = {kToSectionSizes, kToSectionStatuses};
    }
    calls.push_back(transform_call(
        kZeroRunsDecode, {raw_bytes, count, sizes.run_bytes}, kColumnThreads,
        {kToRuns, kToRunsAt, kToRunsSizes, kToPlaces, kToPlacesAt, kToRooms, kToPlacesSizes, kToPlacesStatuses}));
    calls.back().uploads = {kToRunsAt, kToRunsSizes, kToPlacesAt, kToRooms};
    calls.back().downloads = {kToPlacesSizes};
    // Blocks whose zero runs are damaged have no places.
    calls.push_back(transform_call(kMtfDecode, {raw_bytes, count}, kColumnThreads,
                                   {kToPlaces, kToPlacesAt, kToPlacesSizes, kToBlocks, kToColumnsAt, kToRooms,
                                    kToColumnSizes, kToColumnStatuses}));
    calls.back().uploads = {kToColumnsAt};
    calls.push_back({kBwtInverse,
                     {raw_bytes, count},
                     count,
                     kBwtInverseThreads,
                     {kToBlockSizes},
                     {buffer(kToBlocks), buffer(kToBlockSizes), buffer(kToRaw), buffer(kToRawSizes),
                      buffer(kToRawStatuses), buffer(kInverseScratch), number(in_units(block_stride)),
                      number(in_units(raw_stride)), number(static_cast<uint32_t>(raw_stride))},
                     {kToRaw, kToRawSizes, kToRawStatuses}});
    return calls;
  }

  Result<void> begin_decoding(unsigned queue, std::span<const BlockToDecode> blocks) {
    std::vector<CodedBlock>& apart = apart_[queue];
    apart.clear();
    DecodeSizes sizes;
    for (size_t i = 0; i < blocks.size(); ++i) {
      CodedBlock block{i};
      if (!take_apart(blocks[i], block)) continue;
      sizes.largest_bytes = std::max(sizes.largest_bytes, blocks[i].raw.size());
      block.first_coded_section = sizes.coded_sections;
      block.coded_at = sizes.coded_bytes;
      block.runs_at = sizes.run_bytes;
      sizes.run_bytes += block.run_bytes;
      for (const auto& section : block.sections) {
        sizes.coded_bytes += section.is_coded ? section.content.size() : 0;
        sizes.coded_sections += section.is_coded ? 1 : 0;
      }
      apart.push_back(std::move(block));
    }
    if (apart.empty()) return {};
    sizes.blocks = apart.size();
    const size_t raw_stride = round_up(sizes.largest_bytes);
    const auto block_stride = costs_.bytes(kernels::kBwtInverse, "src", {raw_stride});
    if (!block_stride) return tl::unexpected(block_stride.error());
    const auto plan = costs_.plan(kDecodeRegions, decode_calls(sizes, raw_stride, *block_stride));
    if (!plan) return tl::unexpected(plan.error());
    if (auto arranged = arrange_blocks(machine_, queue, plan->regions); !arranged) return arranged;
    return lay_out(queue, blocks, raw_stride, *block_stride).and_then([&] {
      return codec::run(machine_, queue, plan->calls);
    });
  }

  Result<void> collect_raw(unsigned queue, std::span<BlockToDecode> blocks) {
    executor_.for_each(apart_[queue].size(), [&](size_t i, unsigned) {
      const CodedBlock& block = apart_[queue][i];
      BlockToDecode& to = blocks[block.index];
      to.good = is_ok(queue, kToRawStatuses, i) && words(queue, kToRawSizes)[i] == to.raw.size() &&
                words(queue, kToPlacesSizes)[i] == to.raw.size();
      size_t section = block.first_coded_section;
      for (const auto& part : block.sections) {
        if (!part.is_coded) continue;
        to.good = to.good && is_ok(queue, kToSectionStatuses, section) &&
                  words(queue, kToSectionSizes)[section] == part.raw_bytes;
        ++section;
      }
      const size_t stride = machine_.host(queue, kToRaw).size() / apart_[queue].size();
      const Bytes raw = Bytes(machine_.host(queue, kToRaw)).subspan(i * stride, to.raw.size());
      if (to.good) std::copy(raw.begin(), raw.end(), to.raw.begin());
    });
    return {};
  }

  uint32_t* words(unsigned queue, size_t region) { return host_array<uint32_t>(machine_, queue, region); }
  uint64_t* offsets(unsigned queue, size_t region) { return host_array<uint64_t>(machine_, queue, region); }
  bool is_ok(unsigned queue, size_t statuses, size_t i) {
    return words(queue, statuses)[i] == static_cast<uint32_t>(StreamStatus::ok);
  }

  struct StoredSection {
    size_t size_bytes;
    bool is_coded;
  };
  StoredSection stored_section(unsigned queue, size_t section) {
    const uint32_t raw_bytes = words(queue, kSectionSizes)[section], size = words(queue, kCodedSizes)[section];
    const bool is_coded = is_ok(queue, kCodedStatuses, section) && size < raw_bytes;
    return {is_coded ? size : raw_bytes, is_coded};
  }

  // Prepares the regions of a decoding: copies coded sections to the host side of their region, and uploads rows of
  // blocks and raw sections directly from the input.
  Result<void> lay_out(unsigned queue, std::span<const BlockToDecode> blocks, size_t raw_stride, size_t block_stride) {
    const MutableBytes coded_sections = machine_.host(queue, kFromCoded);
    std::vector<PartUp> parts;
    for (size_t i = 0; i < apart_[queue].size(); ++i) {
      const CodedBlock& block = apart_[queue][i];
      const auto n = static_cast<uint32_t>(blocks[block.index].raw.size());
      size_t coded_at = block.coded_at, runs_at = block.runs_at, section = block.first_coded_section;
      words(queue, kToRooms)[i] = n;
      words(queue, kToRunsSizes)[i] = static_cast<uint32_t>(block.run_bytes);
      words(queue, kToBlockSizes)[i] = kernels::bwt_block_bytes(n);
      offsets(queue, kToRunsAt)[i] = runs_at;
      offsets(queue, kToPlacesAt)[i] = i * raw_stride;
      offsets(queue, kToColumnsAt)[i] = i * block_stride + kernels::bwt_column_at(n);
      parts.push_back({kToBlocks, i * block_stride, blocks[block.index].coded.first(kernels::bwt_column_at(n))});
      for (const auto& part : block.sections) {
        if (part.is_coded) {
          offsets(queue, kFromAt)[section] = coded_at;
          words(queue, kFromSizes)[section] = static_cast<uint32_t>(part.content.size());
          offsets(queue, kToSectionsAt)[section] = runs_at;
          words(queue, kToSectionRooms)[section] = static_cast<uint32_t>(part.raw_bytes);
          std::copy(part.content.begin(), part.content.end(), coded_sections.subspan(coded_at).begin());
          coded_at += part.content.size();
          ++section;
        } else {
          parts.push_back({kToRuns, runs_at, part.content});
        }
        runs_at += part.raw_bytes;
      }
    }
    // Damaged sections may yield fewer bytes than announced, but later kernels read zero runs and columns in full
    // length: no stale data may be there.
    for (const size_t region : {kToRuns, kToBlocks}) {
      if (auto cleared = machine_.clear(queue, region); !cleared) return cleared;
    }
    return machine_.upload_parts(queue, parts);
  }

  Machine& machine_;
  Executor& executor_;
  DeclaredCosts costs_{machine_};
  std::vector<std::vector<CodedBlock>> apart_;  // the blocks that each queue decodes
  struct EncodedGroup {
    Strides strides = {};
    Fetched blocks = {};
    std::vector<size_t> begins = {}, first_sections = {};  // for each block
  };
  std::vector<EncodedGroup> groups_;  // the blocks that each queue encodes
};

}  // namespace

std::unique_ptr<BlockPipeline> make_bbw_pipeline(Machine& machine, Executor& executor) {
  return std::make_unique<BbwPipeline>(machine, executor);
}

}  // namespace ptxkit::codec
