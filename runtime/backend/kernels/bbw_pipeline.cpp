// The codec bbw as kernels: a CTA a block from the sort to the zero runs, then a CTA a section of what they left.
#include <algorithm>

#include "kernels/bwt/abi.hpp"
#include "kernels/bwt/zero_runs_reference.hpp"
#include "kernels/entropy/rans_format.hpp"
#include "runtime/backend/kernels/block_pipeline.hpp"
#include "runtime/backend/kernels/kernel_call.hpp"
#include "runtime/codec/bbw_block.hpp"
#include "runtime/codec/coded_stream.hpp"

namespace ptxkit::codec {
namespace {

using kernels::StreamStatus;
using kernels::TransformOutcome;

// Six queues of so many blocks are what an H200 holds of a sort's CTAs.
constexpr std::size_t kGroupBlocks = 44;

constexpr std::size_t round_up(std::size_t bytes) {
  return (bytes + kernels::kStrideUnitBytes - 1) / kernels::kStrideUnitBytes * kernels::kStrideUnitBytes;
}
std::uint32_t in_units(std::size_t stride_bytes) {
  return static_cast<std::uint32_t>(stride_bytes / kernels::kStrideUnitBytes);
}
std::size_t sections_of(std::size_t run_bytes) { return (run_bytes + kBbwSectionBytes - 1) / kBbwSectionBytes; }

// What every item of a launch has room for.
struct Strides {
  std::uint32_t raw_bytes;  // of the largest block

  std::size_t raw() const { return round_up(raw_bytes); }
  std::size_t block() const { return round_up(kernels::bwt_block_bytes(raw_bytes)); }
  std::size_t runs() const { return kernels::zero_runs_bound(raw_bytes); }
};

// Regions of an encoding, in the order of the arrangement.
enum EncodeRegion : std::size_t {
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
std::vector<Region> encode_regions(std::size_t count, Strides strides) {
  const std::size_t n = strides.raw_bytes, words = 4 * count, offsets = 8 * count;
  const std::size_t sections = count * sections_of(strides.runs());
  return {{"raw", count * strides.raw()},
          {"raw sizes", words},
          {"bwt blocks", count * strides.block()},
          {"bwt block sizes", words},
          {"bwt statuses", words},
          {"sort scratch", words * kernels::bwt_rank_scratch_words(n), nullptr, true},
          {"column offsets", offsets},
          {"places", count * n, nullptr, true},
          {"place offsets", offsets},
          {"place sizes", words},
          {"place statuses", words},
          {"zero runs", count * strides.runs()},
          {"zero run offsets", offsets},
          {"zero run rooms", words},
          {"zero run sizes", words},
          {"zero run statuses", words},
          {"section offsets", 8 * sections},
          {"section sizes", 4 * sections},
          {"coded sections", count * strides.runs()},
          {"coded offsets", 8 * sections},
          {"coded sizes", 4 * sections},
          {"coded statuses", 4 * sections}};
}

enum DecodeRegion : std::size_t {
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
std::vector<Region> decode_regions(std::size_t count, Strides strides, std::size_t coded_bytes, std::size_t run_bytes,
                                   std::size_t sections) {
  const std::size_t n = strides.raw_bytes, words = 4 * count, offsets = 8 * count;
  return {{"coded blocks", coded_bytes},
          {"coded offsets", 8 * sections},
          {"coded sizes", 4 * sections},
          {"zero runs", run_bytes},
          {"section offsets", 8 * sections},
          {"section rooms", 4 * sections},
          {"section sizes", 4 * sections},
          {"section statuses", 4 * sections},
          {"zero run offsets", offsets},
          {"zero run sizes", words},
          {"places", count * n, nullptr, true},
          {"place offsets", offsets},
          {"rooms", words},
          {"place sizes", words},
          {"place statuses", words},
          {"bwt blocks", count * strides.block()},
          {"column offsets", offsets},
          {"column sizes", words},
          {"column statuses", words},
          {"bwt block sizes", words},
          {"raw", count * strides.raw()},
          {"raw sizes", words},
          {"raw statuses", words},
          {"inverse scratch", words * kernels::bwt_inverse_scratch_words(n), nullptr, true}};
}

// A coded block, taken apart: the sections of its zero runs, one after another.
struct CodedBlock {
  struct Section {
    Bytes content;
    std::size_t raw_bytes;
    bool is_coded;
  };
  std::size_t index;  // in its group
  std::size_t run_bytes = 0;
  std::size_t first_coded_section = 0, coded_at = 0, runs_at = 0;  // in the regions of the group
  std::vector<Section> sections = {};
};

// False where the headers contradict each other, so that there is nothing to decode.
bool take_apart(const BlockToDecode& block, CodedBlock& apart) {
  const auto n = static_cast<std::uint32_t>(block.raw.size());
  std::size_t at = kernels::bwt_column_at(n);
  if (block.coded.size() < at + 4) return false;
  apart.run_bytes = read_u32(&block.coded[at]);
  at += 4;
  if (apart.run_bytes > kernels::zero_runs_bound(n)) return false;
  for (std::size_t from = 0; from < apart.run_bytes; from += kBbwSectionBytes) {
    const std::size_t size = std::min(kBbwSectionBytes, apart.run_bytes - from);
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
      : machine_(machine), executor_(executor), apart_(machine.queue_count()) {}

  std::size_t encoded_at_once(std::size_t block_bytes) const override {
    const std::size_t of_one = memory_bytes_of(encode_regions(1, {static_cast<std::uint32_t>(block_bytes)}));
    return std::clamp<std::size_t>(machine_.queue_memory_bytes() / of_one, 1, kGroupBlocks);
  }
  // It takes less.
  std::size_t decoded_at_once(std::size_t block_bytes) const override { return encoded_at_once(block_bytes); }

  Result<void> begin_encoding(unsigned queue, std::span<const BlockToEncode> blocks) override {
    using namespace kernels;
    const Strides strides = strides_of(blocks);
    const auto count = static_cast<std::uint32_t>(blocks.size());
    if (auto arranged = arrange_blocks(machine_, queue, encode_regions(count, strides)); !arranged) return arranged;
    executor_.for_each(count, [&](std::size_t i, unsigned) {
      const auto n = static_cast<std::uint32_t>(blocks[i].raw.size());
      const MutableBytes raw = machine_.host(queue, kRaw).subspan(i * strides.raw(), strides.raw());
      std::fill(std::copy(blocks[i].raw.begin(), blocks[i].raw.end(), raw.begin()), raw.end(), std::uint8_t{0});
      words(queue, kRawSizes)[i] = n;
      offsets(queue, kColumnsAt)[i] = i * strides.block() + bwt_column_at(n);
      offsets(queue, kPlacesAt)[i] = i * strides.raw_bytes;
      offsets(queue, kRunsAt)[i] = i * strides.runs();
      words(queue, kRunsRooms)[i] = zero_runs_bound(n);
    });
    KernelCall sort = {kBwtRank,
                       count,
                       kBwtSortThreads,
                       {kRaw, kRawSizes},
                       {buffer(kRaw), buffer(kRawSizes), buffer(kBlocks), buffer(kBlockSizes), buffer(kBlockStatuses),
                        buffer(kSortScratch), number(in_units(strides.raw())), number(in_units(strides.block())),
                        number(strides.raw_bytes)},
                       {kBlockStatuses}};
    KernelCall move =
        transform_call(kMtfEncode, count, kColumnThreads,
                       {kBlocks, kColumnsAt, kRawSizes, kPlaces, kPlacesAt, kRawSizes, kPlacesSizes, kPlacesStatuses});
    move.uploads = {kColumnsAt, kPlacesAt};
    KernelCall runs =
        transform_call(kZeroRunsEncode, count, kColumnThreads,
                       {kPlaces, kPlacesAt, kPlacesSizes, kRuns, kRunsAt, kRunsRooms, kRunsSizes, kRunsStatuses});
    runs.uploads = {kRunsAt, kRunsRooms};
    runs.downloads = {kRunsSizes, kRunsStatuses};
    const KernelCall calls[] = {std::move(sort), std::move(move), std::move(runs)};
    return codec::run(machine_, queue, calls);
  }

  Result<void> fetch_coded(unsigned queue, std::span<BlockToEncode> blocks) override {
    const Strides strides = strides_of(blocks);
    std::uint32_t sections = 0;
    std::size_t run_bytes = 0, longest = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::size_t size = words(queue, kRunsSizes)[i];
      if (!is_ok(queue, kBlockStatuses, i) || !is_ok(queue, kRunsStatuses, i) || size > strides.runs()) {
        return fail("a kernel refused a block that is within its limits", machine_.description(),
                    "use --backend cpu, and report this as a bug");
      }
      for (std::size_t at = 0; at < size; at += kBbwSectionBytes, ++sections) {
        const std::size_t bytes = std::min(kBbwSectionBytes, size - at);
        offsets(queue, kSectionsAt)[sections] = i * strides.runs() + at;
        offsets(queue, kCodedAt)[sections] = run_bytes;
        // A section that grows is stored raw: it needs no more room.
        words(queue, kSectionSizes)[sections] = static_cast<std::uint32_t>(bytes);
        run_bytes += bytes;
      }
      longest = std::max(longest, size);
    }
    const std::uint32_t options[] = {kBbwSectionOptions.scale_bits, kBbwSectionOptions.chunk_bits};
    KernelCall call = transform_call(
        kernels::kRansWarpEncode, sections, 32,
        {kRuns, kSectionsAt, kSectionSizes, kCoded, kCodedAt, kSectionSizes, kCodedSizes, kCodedStatuses}, options);
    call.uploads = {kSectionsAt, kSectionSizes, kCodedAt};
    call.downloads = {kCodedSizes, kCodedStatuses};
    if (auto done = codec::run(machine_, queue, {&call, 1}); !done) return done;
    const auto rows = [&](std::size_t region, const driver::Rows& some) {
      return machine_.download_rows(queue, region, {&some, 1});
    };
    return rows(kCoded, {0, run_bytes, run_bytes, 1})
        .and_then([&] { return rows(kRuns, {0, strides.runs(), longest, blocks.size()}); })
        .and_then([&] {
          return rows(kBlocks, {0, strides.block(), kernels::bwt_column_at(strides.raw_bytes), blocks.size()});
        });
  }

  Result<void> collect_coded(unsigned queue, std::span<BlockToEncode> blocks) override {
    const Strides strides = strides_of(std::span<const BlockToEncode>(blocks));
    const Bytes coded_sections = machine_.host(queue, kCoded);
    std::vector<std::size_t> first_sections(blocks.size() + 1, 0);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      first_sections[i + 1] = first_sections[i] + sections_of(words(queue, kRunsSizes)[i]);
    }
    executor_.for_each(blocks.size(), [&](std::size_t i, unsigned) {
      std::size_t section = first_sections[i];
      const auto column_at = kernels::bwt_column_at(static_cast<std::uint32_t>(blocks[i].raw.size()));
      const Bytes block = Bytes(machine_.host(queue, kBlocks)).subspan(i * strides.block(), column_at);
      const Bytes runs = Bytes(machine_.host(queue, kRuns)).subspan(i * strides.runs(), words(queue, kRunsSizes)[i]);
      std::vector<std::uint8_t>& coded = blocks[i].coded;
      coded.assign(block.begin(), block.end());
      append_u32(coded, static_cast<std::uint32_t>(runs.size()));
      for (std::size_t at = 0; at < runs.size(); at += kBbwSectionBytes, ++section) {
        const Bytes raw = runs.subspan(at, std::min(kBbwSectionBytes, runs.size() - at));
        append_stream(coded, raw, [&](Bytes, MutableBytes room) {
          const std::uint32_t size = words(queue, kCodedSizes)[section];
          const Bytes content = coded_sections.subspan(offsets(queue, kCodedAt)[section], room.size());
          std::copy_n(content.begin(), std::min<std::size_t>(size, room.size()), room.begin());
          return TransformOutcome{static_cast<StreamStatus>(words(queue, kCodedStatuses)[section]), size};
        });
      }
      if (coded.size() >= blocks[i].raw.size()) coded.clear();
    });
    return {};
  }

  Result<void> begin_decoding(unsigned queue, std::span<const BlockToDecode> blocks) override {
    using namespace kernels;
    std::vector<CodedBlock>& apart = apart_[queue];
    apart.clear();
    Strides strides{0};
    std::size_t coded_bytes = 0, run_bytes = 0;
    std::uint32_t sections = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      CodedBlock block{i};
      if (!take_apart(blocks[i], block)) continue;
      strides.raw_bytes = std::max(strides.raw_bytes, static_cast<std::uint32_t>(blocks[i].raw.size()));
      block.first_coded_section = sections;
      block.coded_at = coded_bytes;
      block.runs_at = run_bytes;
      run_bytes += block.run_bytes;
      for (const auto& section : block.sections) {
        coded_bytes += section.is_coded ? section.content.size() : 0;
        sections += section.is_coded ? 1 : 0;
      }
      apart.push_back(std::move(block));
    }
    if (apart.empty()) return {};
    const auto count = static_cast<std::uint32_t>(apart.size());
    const auto regions = decode_regions(count, strides, coded_bytes, run_bytes, sections);
    if (auto arranged = arrange_blocks(machine_, queue, regions); !arranged) return arranged;
    lay_out(queue, blocks, strides);

    std::vector<KernelCall> calls;
    if (sections != 0) {
      calls.push_back(transform_call(kRansWarpDecode, sections, 32 * kRansDecodeWarps,
                                     {kFromCoded, kFromAt, kFromSizes, kToRuns, kToSectionsAt, kToSectionRooms,
                                      kToSectionSizes, kToSectionStatuses}));
      calls.back().uploads = {kFromCoded, kFromAt, kFromSizes, kToSectionsAt, kToSectionRooms};
      calls.back().downloads = {kToSectionSizes, kToSectionStatuses};
    }
    // Sections that are stored raw are among what goes up here.
    if (auto copied = machine_.upload(queue, kToRuns); !copied) return copied;
    calls.push_back(transform_call(
        kZeroRunsDecode, count, kColumnThreads,
        {kToRuns, kToRunsAt, kToRunsSizes, kToPlaces, kToPlacesAt, kToRooms, kToPlacesSizes, kToPlacesStatuses}));
    calls.back().uploads = {kToRunsAt, kToRunsSizes, kToPlacesAt, kToRooms};
    calls.back().downloads = {kToPlacesSizes};
    // Of a block whose zero runs are damaged, no places.
    calls.push_back(transform_call(kMtfDecode, count, kColumnThreads,
                                   {kToPlaces, kToPlacesAt, kToPlacesSizes, kToBlocks, kToColumnsAt, kToRooms,
                                    kToColumnSizes, kToColumnStatuses}));
    calls.back().uploads = {kToBlocks, kToColumnsAt};
    calls.push_back({kBwtInverse,
                     count,
                     kBwtInverseThreads,
                     {kToBlockSizes},
                     {buffer(kToBlocks), buffer(kToBlockSizes), buffer(kToRaw), buffer(kToRawSizes),
                      buffer(kToRawStatuses), buffer(kInverseScratch), number(in_units(strides.block())),
                      number(in_units(strides.raw())), number(strides.raw_bytes)},
                     {kToRaw, kToRawSizes, kToRawStatuses}});
    return codec::run(machine_, queue, calls);
  }

  Result<void> collect_raw(unsigned queue, std::span<BlockToDecode> blocks) override {
    executor_.for_each(apart_[queue].size(), [&](std::size_t i, unsigned) {
      const CodedBlock& block = apart_[queue][i];
      BlockToDecode& to = blocks[block.index];
      to.good = is_ok(queue, kToRawStatuses, i) && words(queue, kToRawSizes)[i] == to.raw.size() &&
                words(queue, kToPlacesSizes)[i] == to.raw.size();
      std::size_t section = block.first_coded_section;
      for (const auto& part : block.sections) {
        if (!part.is_coded) continue;
        to.good = to.good && is_ok(queue, kToSectionStatuses, section) &&
                  words(queue, kToSectionSizes)[section] == part.raw_bytes;
        ++section;
      }
      const std::size_t stride = machine_.host(queue, kToRaw).size() / apart_[queue].size();
      const Bytes raw = Bytes(machine_.host(queue, kToRaw)).subspan(i * stride, to.raw.size());
      if (to.good) std::copy(raw.begin(), raw.end(), to.raw.begin());
    });
    return {};
  }

 private:
  static Strides strides_of(std::span<const BlockToEncode> blocks) {
    std::size_t largest = 0;
    for (const BlockToEncode& block : blocks) largest = std::max(largest, block.raw.size());
    return {static_cast<std::uint32_t>(largest)};
  }
  std::uint32_t* words(unsigned queue, std::size_t region) {
    return host_array<std::uint32_t>(machine_, queue, region);
  }
  std::uint64_t* offsets(unsigned queue, std::size_t region) {
    return host_array<std::uint64_t>(machine_, queue, region);
  }
  bool is_ok(unsigned queue, std::size_t statuses, std::size_t i) {
    return words(queue, statuses)[i] == static_cast<std::uint32_t>(StreamStatus::ok);
  }

  // What a decoding begins with, into the host sides of its regions.
  void lay_out(unsigned queue, std::span<const BlockToDecode> blocks, Strides strides) {
    executor_.for_each(apart_[queue].size(), [&](std::size_t i, unsigned) {
      const CodedBlock& block = apart_[queue][i];
      const auto n = static_cast<std::uint32_t>(blocks[block.index].raw.size());
      std::size_t coded_at = block.coded_at, runs_at = block.runs_at, section = block.first_coded_section;
      words(queue, kToRooms)[i] = n;
      words(queue, kToRunsSizes)[i] = static_cast<std::uint32_t>(block.run_bytes);
      words(queue, kToBlockSizes)[i] = kernels::bwt_block_bytes(n);
      offsets(queue, kToRunsAt)[i] = runs_at;
      offsets(queue, kToPlacesAt)[i] = i * strides.raw_bytes;
      offsets(queue, kToColumnsAt)[i] = i * strides.block() + kernels::bwt_column_at(n);
      const MutableBytes to = machine_.host(queue, kToBlocks).subspan(i * strides.block(), strides.block());
      const Bytes rows = blocks[block.index].coded.first(kernels::bwt_column_at(n));
      std::fill(std::copy(rows.begin(), rows.end(), to.begin()), to.end(), std::uint8_t{0});
      for (const auto& part : block.sections) {
        const MutableBytes room = machine_.host(queue, part.is_coded ? kFromCoded : kToRuns);
        const std::size_t at = part.is_coded ? coded_at : runs_at;
        std::copy(part.content.begin(), part.content.end(), room.begin() + static_cast<std::ptrdiff_t>(at));
        if (part.is_coded) {
          offsets(queue, kFromAt)[section] = coded_at;
          words(queue, kFromSizes)[section] = static_cast<std::uint32_t>(part.content.size());
          offsets(queue, kToSectionsAt)[section] = runs_at;
          words(queue, kToSectionRooms)[section] = static_cast<std::uint32_t>(part.raw_bytes);
          coded_at += part.content.size();
          ++section;
        }
        runs_at += part.raw_bytes;
      }
    });
  }

  Machine& machine_;
  Executor& executor_;
  std::vector<std::vector<CodedBlock>> apart_;  // what each queue decodes
};

}  // namespace

std::unique_ptr<BlockPipeline> make_bbw_pipeline(Machine& machine, Executor& executor) {
  return std::make_unique<BbwPipeline>(machine, executor);
}

}  // namespace ptxkit::codec
