// Zstandard as kernels. An item to encode is a range, of whose frame the blocks are taken; an item to decode is a
// frame.
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/abi.hpp"
#include "kernels/zstd/zstd_decode_format.hpp"
#include "kernels/zstd/zstd_format.hpp"
#include "runtime/codec/device/batch_pipeline.hpp"
#include "runtime/codec/format/zstd_frame.hpp"

namespace ptxkit::codec {
namespace {

constexpr size_t divided_up(size_t count, size_t by) { return (count + by - 1) / by; }

struct EncodeRegions : BatchEncodeRegions {
  enum Own : size_t {
    blocks = first_own,
    block_sizes,
    matches,
    match_counts,
    literals,
    literal_counts,
    literals_at,
    sequences,
    sequence_sizes,
    lists_at,
    sections_at,
    section_rooms,
    section_statuses,
    literal_sections,
    literal_section_sizes,
    sequence_sections,
    sequence_section_sizes,
    places
  };
};
constexpr RegionName kEncodeRegions[] = {{"blocks", true},
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

struct DecodeRegions : BatchDecodeRegions {
  enum Own : size_t { literals = first_own, sequences, listed_counts, listed, literal_states, block_states };
};
constexpr RegionName kDecodeRegions[] = {{"literals", true}, {"sequences", true},      {"block counts", true},
                                         {"blocks", true},   {"literal states", true}, {"block states", true}};

class ZstdPipeline final : public BatchPipeline {
 public:
  ZstdPipeline(Machine& machine, Executor& executor, const ZstdCoding& coding)
      : BatchPipeline(machine, executor, kEncodeRegions, kDecodeRegions), coding_(coding) {}

 protected:
  using E = EncodeRegions;
  using D = DecodeRegions;

  std::vector<KernelCall> encode_calls(uint32_t count, size_t raw_stride) const override {
    using namespace kernels;
    const auto per_item = static_cast<uint32_t>(std::max<size_t>(1, divided_up(raw_stride, kZstdBlockBytes)));
    const uint32_t blocks = count * per_item;
    const auto of_batch = [&](std::string_view kernel, uint32_t launched, const LaunchShape& shape) {
      return KernelCall{
          kernel,
          {count * raw_stride, count},
          static_cast<uint32_t>(divided_up(launched, shape.items_per_block)),
          shape.block_threads,
          {},
          {buffer(E::raw_at), buffer(E::raw_sizes), buffer(E::coded_at), buffer(E::coded_sizes), buffer(E::statuses),
           buffer(E::blocks), buffer(E::block_sizes), buffer(E::literals_at), buffer(E::lists_at),
           buffer(E::sections_at), buffer(E::section_rooms), buffer(E::literal_sections),
           buffer(E::literal_section_sizes), buffer(E::sequence_sections), buffer(E::sequence_section_sizes),
           buffer(E::places), number(static_cast<uint32_t>(raw_stride)), number(per_item), number(count)},
          {},
          {{E::raw, "inputs[]"}, {E::coded, "outputs[]"}}};
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
    return {
        of_batch(kZstdBatchSplit, blocks, kZstdBatchSplitShape),
        of_blocks(coding_.level == 1 ? kZstdMatch : kZstdMatchHigh, kZstdMatchShape,
                  {buffer(E::blocks), buffer(E::block_sizes), buffer(E::matches), buffer(E::match_counts)}),
        of_blocks(kZstdChoose, kZstdChooseShape,
                  {buffer(E::blocks), buffer(E::block_sizes), buffer(E::matches), buffer(E::match_counts),
                   buffer(E::literals), buffer(E::literal_counts), buffer(E::sequences), buffer(E::sequence_sizes)}),
        section(kZstdLiterals, kZstdBlockBytes,
                {E::literals, E::literals_at, E::literal_counts, E::literal_sections, E::sections_at, E::section_rooms,
                 E::literal_section_sizes, E::section_statuses}),
        section(kZstdSequences, kZstdListBytes,
                {E::sequences, E::lists_at, E::sequence_sizes, E::sequence_sections, E::sections_at, E::section_rooms,
                 E::sequence_section_sizes, E::section_statuses}),
        of_batch(kZstdBatchPlan, count, kZstdBatchPlanShape),
        of_batch(kZstdBatchJoin, blocks, kZstdBatchJoinShape)};
  }

  std::vector<KernelCall> decode_calls(const BatchDecodeSizes& sizes) const override {
    using namespace kernels;
    const auto count = static_cast<uint32_t>(sizes.items);
    const auto per_item =
        static_cast<uint32_t>(std::max<size_t>(1, divided_up(sizes.largest_raw_bytes, kZstdBlockBytes)));
    const auto call = [&](std::string_view kernel, uint32_t launched, const LaunchShape& shape) {
      return KernelCall{
          kernel,
          {count * sizes.largest_raw_bytes, count, sizes.coded_bytes},
          static_cast<uint32_t>(divided_up(launched, shape.items_per_block)),
          shape.block_threads,
          {},
          {buffer(D::coded_at), buffer(D::coded_sizes), buffer(D::raw_at), buffer(D::raw_rooms), buffer(D::raw_sizes),
           buffer(D::statuses), buffer(D::literals), buffer(D::sequences), buffer(D::listed_counts), buffer(D::listed),
           buffer(D::literal_states), buffer(D::block_states), number(static_cast<uint32_t>(sizes.largest_raw_bytes)),
           number(per_item), number(count)},
          {},
          {{D::coded, "inputs[]"}, {D::raw, "outputs[]"}}};
    };
    return {call(kZstdBatchIndex, count, kZstdBatchIndexShape),
            call(kZstdBatchReadLiterals, count * per_item, kZstdDecodeShape),
            call(kZstdBatchReadSequences, count * per_item, kZstdReadSequencesShape),
            call(kZstdBatchExecute, count, kZstdDecodeShape), call(kZstdBatchDecompress, count, kZstdDecodeShape)};
  }

  // The frame's header goes, and with it the mark of the last block.
  bool take_block(Bytes frame, BlockToEncode& range) const override {
    const auto header = format::parse_zstd_header(frame);
    if (!header || header->content_bytes != range.raw.size()) return false;
    const Bytes blocks = frame.subspan(header->header_bytes);
    range.coded.assign(blocks.begin(), blocks.end());
    return format::unmark_last_zstd_block(range.coded);
  }

  Result<void> check_encoding() const override {
    if (has_kernels(coding_)) return {};
    return fail("there are no kernels for this level of Zstandard", {}, "use --backend cpu, or another level");
  }

 private:
  ZstdCoding coding_;
};

}  // namespace

std::unique_ptr<BlockPipeline> make_zstd_pipeline(Machine& machine, Executor& executor, const ZstdCoding& coding) {
  return std::make_unique<ZstdPipeline>(machine, executor, coding);
}

}  // namespace ptxkit::codec
