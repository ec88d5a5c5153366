// Zstandard in device memory.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "kernels/abi.hpp"
#include "kernels/zstd/zstd_decode_format.hpp"
#include "kernels/zstd/zstd_format.hpp"
#include "runtime/library/coding_launches.hpp"

namespace ptxkit::library {
namespace {

// Zstandard: the temporary memory of an item of up to `max_output_bytes`, from the part with the largest alignment on.
struct ZstdDecodeTemp {
  explicit ZstdDecodeTemp(uint64_t max_output_bytes)
      : blocks(kernels::zstd_blocks_per_item(max_output_bytes)),
        literal_bytes(kernels::zstd_literal_room(max_output_bytes)),
        record_bytes(blocks * sizeof(kernels::ZstdBlockRecord)),
        state_bytes(blocks * sizeof(kernels::ZstdBlockState)),
        sequence_bytes(kernels::zstd_sequence_room(max_output_bytes) * kernels::kZstdSequenceBytes),
        literal_state_bytes(blocks * sizeof(uint32_t)) {}

  uint64_t bytes() const {
    return literal_bytes + record_bytes + state_bytes + sequence_bytes + literal_state_bytes + sizeof(uint32_t);
  }

  uint64_t blocks;
  uint64_t literal_bytes, record_bytes, state_bytes, sequence_bytes, literal_state_bytes;
};

Result<void> check_zstd(uint64_t max_output_bytes, uint64_t item_count, Framing framing) {
  if (framing != Framing::frame) return fail("framing: Zstandard has FRAME alone");
  if (max_output_bytes > kernels::kZstdMaxItemBytes) {
    return fail(fmt::format("max_input_bytes: expected at most {} of Zstandard, found {}", kernels::kZstdMaxItemBytes,
                            max_output_bytes),
                {}, "cut the items in several");
  }
  if (const ZstdDecodeTemp temp(max_output_bytes); item_count > kMostItems / temp.blocks) {
    return fail(
        fmt::format("expected at most {} blocks of 16 KiB, found {} items of {}", kMostItems, item_count, temp.blocks),
        {}, "cut the batch in several");
  }
  return {};
}

// The largest size of an item for which `temp_bytes` suffices; 0 if there is none.
uint64_t zstd_max_output_bytes(size_t temp_bytes, uint64_t item_count) {
  uint64_t least = 0, above = uint64_t{kernels::kZstdMaxItemBytes} + 1;
  while (above - least > 1) {
    const uint64_t middle = least + (above - least) / 2;
    (ZstdDecodeTemp(middle).bytes() <= temp_bytes / item_count ? least : above) = middle;
  }
  return least;
}

// What encoding takes of temporary memory: for each block its matches, literals and sequences, and both sections.
struct ZstdEncodeTemp {
  ZstdEncodeTemp(DeviceAddress begin, uint64_t blocks) : parts(begin) {
    const auto array = [&](uint64_t bytes_of_block) { return parts.take(blocks * bytes_of_block); };
    matches = array(kernels::kZstdListBytes);
    sequences = array(kernels::kZstdListBytes);
    literals = array(kernels::kZstdBlockBytes);
    literal_sections = array(kernels::kZstdSectionBytes);
    sequence_sections = array(kernels::kZstdSectionBytes);
    for (DeviceAddress* const address : {&block_addresses, &literal_offsets, &list_offsets, &section_offsets}) {
      *address = array(sizeof(uint64_t));
    }
    for (DeviceAddress* const counts :
         {&block_bytes, &match_counts, &literal_counts, &sequence_bytes, &literal_section_bytes,
          &sequence_section_bytes, &section_capacities, &section_statuses, &places}) {
      *counts = array(sizeof(uint32_t));
    }
  }
  static uint64_t bytes(uint64_t blocks) { return ZstdEncodeTemp(0, blocks).parts.end; }

  TempParts parts;
  DeviceAddress matches = 0, sequences = 0, literals = 0, literal_sections = 0, sequence_sections = 0;
  DeviceAddress block_addresses = 0, literal_offsets = 0, list_offsets = 0, section_offsets = 0;
  DeviceAddress block_bytes = 0, match_counts = 0, literal_counts = 0, sequence_bytes = 0, literal_section_bytes = 0,
                sequence_section_bytes = 0, section_capacities = 0, section_statuses = 0, places = 0;
};

uint64_t encoded_blocks_per_item(uint64_t max_input_bytes) {
  return std::max<uint64_t>(1, (max_input_bytes + kernels::kZstdBlockBytes - 1) / kernels::kZstdBlockBytes);
}

// The launches for the items of a round.
void add_zstd_round(const BatchCompression& round, std::vector<BatchLaunch>& launches) {
  using namespace kernels;
  const uint64_t count = round.item_count, per_item = encoded_blocks_per_item(round.max_input_bytes),
                 blocks = count * per_item;
  const ZstdEncodeTemp temp(round.temp, blocks);
  const auto of_batch =
      arguments_of(round, {address(temp.block_addresses), address(temp.block_bytes), address(temp.literal_offsets),
                           address(temp.list_offsets), address(temp.section_offsets), address(temp.section_capacities),
                           address(temp.literal_sections), address(temp.literal_section_bytes),
                           address(temp.sequence_sections), address(temp.sequence_section_bytes), address(temp.places),
                           number(round.max_input_bytes), number(per_item), number(count)});
  const auto section = [&](DeviceAddress src, DeviceAddress offsets, DeviceAddress sizes, DeviceAddress dst,
                           DeviceAddress dst_sizes) {
    return std::vector{address(src),
                       address(offsets),
                       address(sizes),
                       address(dst),
                       address(temp.section_offsets),
                       address(temp.section_capacities),
                       address(dst_sizes),
                       address(temp.section_statuses),
                       number(blocks)};
  };
  launches.push_back(launch(kZstdBatchSplit, kZstdBatchSplitShape, blocks, of_batch));
  launches.push_back(launch(round.is_fast ? kZstdMatch : kZstdMatchHigh, kZstdMatchShape, blocks,
                            {address(temp.block_addresses), address(temp.block_bytes), address(temp.matches),
                             address(temp.match_counts), number(blocks)}));
  launches.push_back(launch(kZstdChoose, kZstdChooseShape, blocks,
                            {address(temp.block_addresses), address(temp.block_bytes), address(temp.matches),
                             address(temp.match_counts), address(temp.literals), address(temp.literal_counts),
                             address(temp.sequences), address(temp.sequence_bytes), number(blocks)}));
  launches.push_back(launch(kZstdLiterals, kZstdChooseShape, blocks,
                            section(temp.literals, temp.literal_offsets, temp.literal_counts, temp.literal_sections,
                                    temp.literal_section_bytes)));
  launches.push_back(launch(kZstdSequences, kZstdChooseShape, blocks,
                            section(temp.sequences, temp.list_offsets, temp.sequence_bytes, temp.sequence_sections,
                                    temp.sequence_section_bytes)));
  launches.push_back(launch(kZstdBatchPlan, kZstdBatchPlanShape, count, of_batch));
  launches.push_back(launch(kZstdBatchJoin, kZstdBatchJoinShape, blocks, of_batch));
}

}  // namespace

Result<BatchRequirements> zstd_requirements(uint64_t max_input_bytes, uint64_t item_count, Framing framing) {
  if (auto good = check_zstd(max_input_bytes, item_count, framing); !good) return tl::unexpected(good.error());
  const uint64_t per_item = encoded_blocks_per_item(max_input_bytes);
  return BatchRequirements{.input_alignment = kernels::kStrideUnitBytes,
                           .output_alignment = 1,
                           .temp_alignment = kernels::kStrideUnitBytes,
                           .temp_bytes = ZstdEncodeTemp::bytes(items_of_a_round(item_count, per_item) * per_item),
                           .output_bytes_bound = kernels::zstd_batch_bound(max_input_bytes),
                           .decompress_temp_bytes = ZstdDecodeTemp(max_input_bytes).bytes() * item_count};
}

Launches zstd_launches(const BatchCompression& batch) {
  const uint64_t per_item = encoded_blocks_per_item(batch.max_input_bytes);
  return launches_in_rounds(
      batch, [&](uint64_t items) { return ZstdEncodeTemp::bytes(items * per_item); }, add_zstd_round);
}

Launches zstd_launches(const BatchDecompression& batch) {
  const uint64_t count = batch.item_count;
  if (auto is_there = check_temp(batch.temp, batch.temp_bytes, ZstdDecodeTemp(0).bytes() * count); !is_there)
    return tl::unexpected(is_there.error());
  const uint64_t max_output_bytes = zstd_max_output_bytes(batch.temp_bytes, count);
  if (auto good = check_zstd(max_output_bytes, count, batch.framing); !good) return tl::unexpected(good.error());
  const ZstdDecodeTemp temp(max_output_bytes);
  const uint64_t literals = batch.temp, records = literals + temp.literal_bytes * count,
                 states = records + temp.record_bytes * count, sequences = states + temp.state_bytes * count,
                 literal_states = sequences + temp.sequence_bytes * count,
                 counts = literal_states + temp.literal_state_bytes * count;
  const auto arguments = arguments_of(
      batch, {address(literals), address(sequences), address(counts), address(records), address(literal_states),
              address(states), number(max_output_bytes), number(temp.blocks), number(count)});
  const uint64_t blocks = count * temp.blocks;
  return std::vector{launch(kernels::kZstdBatchIndex, kernels::kZstdBatchIndexShape, count, arguments),
                     launch(kernels::kZstdBatchReadLiterals, kernels::kZstdDecodeShape, blocks, arguments),
                     launch(kernels::kZstdBatchReadSequences, kernels::kZstdReadSequencesShape, blocks, arguments),
                     launch(kernels::kZstdBatchExecute, kernels::kZstdDecodeShape, count, arguments),
                     launch(kernels::kZstdBatchDecompress, kernels::kZstdDecodeShape, count, arguments)};
}

}  // namespace ptxkit::library
