#include "runtime/library/batch_launches.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "kernels/typed/typed_format.hpp"
#include "kernels/zstd/zstd_decode_format.hpp"

namespace ptxkit::library {
namespace {

using driver::LaunchArgument;
using kernels::BatchFraming;
using kernels::BatchStatus;

static_assert(static_cast<uint32_t>(Framing::numcodecs) == static_cast<uint32_t>(BatchFraming::numcodecs) &&
              static_cast<uint32_t>(Framing::frame) == static_cast<uint32_t>(BatchFraming::frame) &&
              static_cast<uint32_t>(Framing::hdf5) == static_cast<uint32_t>(BatchFraming::hdf5));
static_assert(static_cast<int32_t>(ItemOutcome::unsupported) == static_cast<int32_t>(BatchStatus::unsupported) &&
              static_cast<int32_t>(ItemOutcome::bad_checksum) == static_cast<int32_t>(BatchStatus::bad_checksum));
static_assert(static_cast<int32_t>(ItemOutcome::invalid_value) == static_cast<int32_t>(BatchStatus::invalid_value) &&
              static_cast<int32_t>(ItemOutcome::cannot_decompress) ==
                  static_cast<int32_t>(BatchStatus::cannot_decompress) &&
              static_cast<int32_t>(ItemOutcome::output_too_small) ==
                  static_cast<int32_t>(BatchStatus::output_too_small) &&
              static_cast<int32_t>(ItemOutcome::misaligned) == static_cast<int32_t>(BatchStatus::misaligned) &&
              static_cast<int32_t>(ItemOutcome::too_large) == static_cast<int32_t>(BatchStatus::too_large));

static_assert(static_cast<uint32_t>(Coding::bytes) == static_cast<uint32_t>(kernels::TypedLayout::bytes) &&
              static_cast<uint32_t>(Coding::bfloat16) == static_cast<uint32_t>(kernels::TypedLayout::bfloat16) &&
              static_cast<uint32_t>(Coding::stride8) == static_cast<uint32_t>(kernels::TypedLayout::stride8));

struct Array {
  const char* name;
  DeviceAddress address;
  uint32_t element_bytes;
  bool may_be_null = false;
};

constexpr uint64_t kMostItems = std::numeric_limits<int32_t>::max();

Result<void> check(uint64_t item_count, Framing framing, std::initializer_list<Array> arrays) {
  if (item_count > kMostItems) {
    return fail(fmt::format("item_count: expected at most {}, found {}", kMostItems, item_count), {},
                "cut the batch in several");
  }
  if (static_cast<uint32_t>(framing) > static_cast<uint32_t>(Framing::hdf5)) {
    return fail(fmt::format("framing: expected 0 to 3, found {}", static_cast<uint32_t>(framing)));
  }
  if (item_count == 0) return {};
  for (const Array& array : arrays) {
    if (array.address == 0 && !array.may_be_null) {
      return fail(fmt::format("{}: expected an array in device memory, found null", array.name), {},
                  "pass one element for each item");
    }
    if (array.address % array.element_bytes != 0) {
      return fail(fmt::format("{}: expected an address aligned to {} bytes, found {:#x}", array.name,
                              array.element_bytes, array.address));
    }
  }
  return {};
}

BatchLaunch launch(std::string_view kernel, const kernels::LaunchShape& shape, uint64_t item_count,
                   std::vector<LaunchArgument> arguments) {
  const auto count = static_cast<uint32_t>(item_count);
  return {kernel, shape, shape.grid_blocks(count), std::move(arguments)};
}

// Temporary memory that is there, or what is wrong with it.
Result<void> check_temp(DeviceAddress temp, size_t temp_bytes, size_t needed) {
  if (needed == 0) return {};
  if (temp == 0 || temp_bytes < needed) {
    return fail(fmt::format("temp: expected {} bytes, found {} at {:#x}", needed, temp_bytes, temp), {},
                "see DeviceBatches::requirements");
  }
  if (temp % kernels::kStrideUnitBytes != 0) {
    return fail(
        fmt::format("temp: expected an address aligned to {} bytes, found {:#x}", kernels::kStrideUnitBytes, temp));
  }
  return {};
}

// The parts of temporary memory: a record, then a slot, for each chunk of each item, if an item may have several
// chunks or has blocks.
struct Temp {
  uint64_t chunks_per_item = 1;
  size_t record_bytes = 0, slot_bytes = 0;
};

Result<Temp> temp_of(uint64_t max_input_bytes, uint64_t item_count, Framing framing) {
  if (max_input_bytes > kernels::kMaxBatchRawBytes) {
    return fail(
        fmt::format("max_input_bytes: expected at most {}, found {}", kernels::kMaxBatchRawBytes, max_input_bytes), {},
        "cut the items in several");
  }
  Temp temp;
  if (max_input_bytes <= kernels::kMaxChunkBytes && !has_blocks(framing)) return temp;
  temp.chunks_per_item =
      std::max<uint64_t>((max_input_bytes + kernels::kMaxChunkBytes - 1) / kernels::kMaxChunkBytes, 1);
  if (item_count > kMostItems / temp.chunks_per_item) {
    return fail(fmt::format("expected at most {} chunks of {} bytes, found {} items of {} chunks", kMostItems,
                            kernels::kMaxChunkBytes, item_count, temp.chunks_per_item),
                {}, "cut the batch in several");
  }
  temp.record_bytes = sizeof(kernels::Lz4BatchRecord) * temp.chunks_per_item * item_count;
  const uint64_t slot_bytes =
      std::min<uint64_t>(kernels::lz4_batch_slot_bytes(max_input_bytes), kernels::kMaxChunkBytes);
  temp.slot_bytes = slot_bytes * temp.chunks_per_item * item_count;
  return temp;
}

// Of temporary memory of a decompression: what is known of each item, then of each of its blocks, then their raw sizes.
constexpr size_t kListedBlockBytes = sizeof(kernels::Lz4BatchBlock) + sizeof(uint32_t);

size_t block_lists_bytes(uint64_t max_raw_bytes, uint64_t item_count) {
  const uint64_t blocks = max_raw_bytes / kernels::kMaxChunkBytes + (max_raw_bytes % kernels::kMaxChunkBytes != 0);
  return item_count * (sizeof(kernels::Lz4BatchLayout) + blocks * kListedBlockBytes);
}

Result<std::vector<BatchLaunch>> launches_by_block(const BatchDecompression& batch) {
  const uint64_t count = batch.item_count;
  const size_t layouts_bytes = count * sizeof(kernels::Lz4BatchLayout);
  if (auto is_there = check_temp(batch.temp, batch.temp_bytes, layouts_bytes); !is_there)
    return tl::unexpected(is_there.error());
  const uint64_t blocks_per_item =
      std::min((batch.temp_bytes - layouts_bytes) / count / kListedBlockBytes, kMostItems / count);
  const uint64_t blocks = batch.temp + layouts_bytes;
  const std::vector arguments = {
      LaunchArgument::of_address(batch.inputs),
      LaunchArgument::of_address(batch.input_bytes),
      LaunchArgument::of_address(batch.outputs),
      LaunchArgument::of_address(batch.output_capacities),
      LaunchArgument::of_address(batch.output_bytes),
      LaunchArgument::of_address(batch.statuses),
      LaunchArgument::of_address(batch.temp),
      LaunchArgument::of_address(blocks),
      LaunchArgument::of_address(blocks + count * blocks_per_item * sizeof(kernels::Lz4BatchBlock)),
      LaunchArgument::of(static_cast<uint32_t>(blocks_per_item)),
      LaunchArgument::of(static_cast<uint32_t>(batch.framing)),
      LaunchArgument::of(static_cast<uint32_t>(count))};
  std::vector launches = {launch(kernels::kLz4BatchIndex, kernels::kLz4BatchPlanShape, count, arguments)};
  if (blocks_per_item != 0)
    launches.push_back(
        launch(kernels::kLz4BatchBlocks, kernels::kLz4DecompressShape, count * blocks_per_item, arguments));
  launches.push_back(launch(kernels::kLz4BatchFinish, kernels::kLz4DecompressShape, count, arguments));
  return launches;
}

// Typed rANS.
Result<void> check_coding(Coding coding, Framing framing) {
  if (!kernels::is_typed_layout(static_cast<uint32_t>(coding))) {
    return fail(
        fmt::format("coding: expected 0 to {}, found {}", kernels::kTypedLayouts, static_cast<uint32_t>(coding)));
  }
  if (framing != Framing::raw) return fail("framing: typed rANS has RAW alone");
  return {};
}

// The parts of temporary memory: a size, then a slot, for each coded plane of each member of each item.
struct TypedTemp {
  uint64_t members_per_item = 1;
  size_t size_bytes = 0, slot_bytes = 0;
};

Result<TypedTemp> typed_temp_of(uint64_t max_input_bytes, uint64_t item_count, Coding coding) {
  if (max_input_bytes > kernels::kMaxBatchRawBytes) {
    return fail(
        fmt::format("max_input_bytes: expected at most {}, found {}", kernels::kMaxBatchRawBytes, max_input_bytes), {},
        "cut the items in several");
  }
  const auto layout = static_cast<kernels::TypedLayout>(coding);
  TypedTemp temp;
  temp.members_per_item = std::max<uint64_t>(kernels::typed_plan(max_input_bytes, layout).members, 1);
  const uint64_t planes_per_item = temp.members_per_item * kernels::typed_shape(layout).coded_planes;
  if (item_count > kMostItems / planes_per_item) {
    return fail(fmt::format("expected at most {} coded planes of {} elements, found {} items of {}", kMostItems,
                            kernels::kTypedMember, item_count, planes_per_item),
                {}, "cut the batch in several");
  }
  temp.size_bytes = kernels::typed_aligned(4 * planes_per_item * item_count);
  temp.slot_bytes = kernels::kTypedMember * planes_per_item * item_count;
  return temp;
}

Result<std::vector<BatchLaunch>> typed_launches(const BatchCompression& batch) {
  if (auto good = check_coding(batch.coding, batch.framing); !good) return tl::unexpected(good.error());
  const auto temp = typed_temp_of(batch.max_input_bytes, batch.item_count, batch.coding);
  if (!temp) return tl::unexpected(temp.error());
  if (batch.item_count == 0) return std::vector<BatchLaunch>{};
  if (auto is_there = check_temp(batch.temp, batch.temp_bytes, temp->size_bytes + temp->slot_bytes); !is_there)
    return tl::unexpected(is_there.error());
  const std::vector arguments = {LaunchArgument::of_address(batch.inputs),
                                 LaunchArgument::of_address(batch.input_bytes),
                                 LaunchArgument::of_address(batch.outputs),
                                 LaunchArgument::of_address(batch.output_bytes),
                                 LaunchArgument::of_address(batch.statuses),
                                 LaunchArgument::of_address(batch.temp),
                                 LaunchArgument::of_address(batch.temp + temp->size_bytes),
                                 LaunchArgument::of(static_cast<uint32_t>(batch.max_input_bytes)),
                                 LaunchArgument::of(static_cast<uint32_t>(temp->members_per_item)),
                                 LaunchArgument::of(static_cast<uint32_t>(batch.coding)),
                                 LaunchArgument::of(static_cast<uint32_t>(batch.item_count))};
  const uint64_t members = batch.item_count * temp->members_per_item;
  return std::vector{launch(kernels::kTypedEncode, kernels::kTypedEncodeShape, members, arguments),
                     launch(kernels::kTypedJoin, kernels::kTypedJoinShape, members, arguments)};
}

Result<std::vector<BatchLaunch>> typed_launches(const BatchDecompression& batch, uint64_t typed_blocks) {
  if (auto good = check_coding(batch.coding, batch.framing); !good) return tl::unexpected(good.error());
  const uint64_t blocks_per_item =
      std::min((typed_blocks + batch.item_count - 1) / batch.item_count, kMostItems / batch.item_count);
  const std::vector arguments = {LaunchArgument::of_address(batch.inputs),
                                 LaunchArgument::of_address(batch.input_bytes),
                                 LaunchArgument::of_address(batch.outputs),
                                 LaunchArgument::of_address(batch.output_capacities),
                                 LaunchArgument::of_address(batch.output_bytes),
                                 LaunchArgument::of_address(batch.statuses),
                                 LaunchArgument::of(static_cast<uint32_t>(blocks_per_item)),
                                 LaunchArgument::of(static_cast<uint32_t>(batch.item_count))};
  return std::vector{
      launch(kernels::kTypedBegin, kernels::kTypedBeginShape, batch.item_count, arguments),
      launch(kernels::kTypedDecode, kernels::kTypedDecodeShape, batch.item_count * blocks_per_item, arguments)};
}

// Zstandard: the temporary memory of an item of up to `max_output_bytes`, from the part with the largest alignment on.
struct ZstdTemp {
  explicit ZstdTemp(uint64_t max_output_bytes)
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
  if (const ZstdTemp temp(max_output_bytes); item_count > kMostItems / temp.blocks) {
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
    (ZstdTemp(middle).bytes() <= temp_bytes / item_count ? least : above) = middle;
  }
  return least;
}

Result<std::vector<BatchLaunch>> zstd_launches(const BatchDecompression& batch) {
  const uint64_t count = batch.item_count;
  if (auto is_there = check_temp(batch.temp, batch.temp_bytes, ZstdTemp(0).bytes() * count); !is_there)
    return tl::unexpected(is_there.error());
  const uint64_t max_output_bytes = zstd_max_output_bytes(batch.temp_bytes, count);
  if (auto good = check_zstd(max_output_bytes, count, batch.framing); !good) return tl::unexpected(good.error());
  const ZstdTemp temp(max_output_bytes);
  const uint64_t literals = batch.temp, records = literals + temp.literal_bytes * count,
                 states = records + temp.record_bytes * count, sequences = states + temp.state_bytes * count,
                 literal_states = sequences + temp.sequence_bytes * count,
                 counts = literal_states + temp.literal_state_bytes * count;
  const std::vector arguments = {LaunchArgument::of_address(batch.inputs),
                                 LaunchArgument::of_address(batch.input_bytes),
                                 LaunchArgument::of_address(batch.outputs),
                                 LaunchArgument::of_address(batch.output_capacities),
                                 LaunchArgument::of_address(batch.output_bytes),
                                 LaunchArgument::of_address(batch.statuses),
                                 LaunchArgument::of_address(literals),
                                 LaunchArgument::of_address(sequences),
                                 LaunchArgument::of_address(counts),
                                 LaunchArgument::of_address(records),
                                 LaunchArgument::of_address(literal_states),
                                 LaunchArgument::of_address(states),
                                 LaunchArgument::of(static_cast<uint32_t>(max_output_bytes)),
                                 LaunchArgument::of(static_cast<uint32_t>(temp.blocks)),
                                 LaunchArgument::of(static_cast<uint32_t>(count))};
  const uint64_t blocks = count * temp.blocks;
  return std::vector{launch(kernels::kZstdBatchIndex, kernels::kZstdBatchIndexShape, count, arguments),
                     launch(kernels::kZstdBatchReadLiterals, kernels::kZstdDecodeShape, blocks, arguments),
                     launch(kernels::kZstdBatchReadSequences, kernels::kZstdReadSequencesShape, blocks, arguments),
                     launch(kernels::kZstdBatchExecute, kernels::kZstdDecodeShape, count, arguments),
                     launch(kernels::kZstdBatchDecompress, kernels::kZstdDecodeShape, count, arguments)};
}

}  // namespace

Result<BatchRequirements> DeviceBatches::requirements(uint64_t max_input_bytes, uint64_t item_count, Framing framing,
                                                      Coding coding) {
  if (auto good = check(item_count, framing, {}); !good) return tl::unexpected(good.error());
  if (coding == Coding::zstd) {
    if (auto good = check_zstd(max_input_bytes, item_count, framing); !good) return tl::unexpected(good.error());
    return BatchRequirements{.input_alignment = 1,
                             .output_alignment = 1,
                             .temp_alignment = kernels::kStrideUnitBytes,
                             .temp_bytes = 0,
                             .output_bytes_bound = 0,
                             .decompress_temp_bytes = ZstdTemp(max_input_bytes).bytes() * item_count};
  }
  if (coding != Coding::lz4) {
    if (auto good = check_coding(coding, framing); !good) return tl::unexpected(good.error());
    const auto temp = typed_temp_of(max_input_bytes, item_count, coding);
    if (!temp) return tl::unexpected(temp.error());
    return BatchRequirements{
        .input_alignment = kernels::kTypedAlignment,
        .output_alignment = kernels::kTypedAlignment,
        .temp_alignment = kernels::kTypedAlignment,
        .temp_bytes = temp->size_bytes + temp->slot_bytes,
        .output_bytes_bound = kernels::typed_bound(max_input_bytes, static_cast<kernels::TypedLayout>(coding)),
        .decompress_temp_bytes = 0};
  }
  const auto temp = temp_of(max_input_bytes, item_count, framing);
  if (!temp) return tl::unexpected(temp.error());
  return BatchRequirements{
      .input_alignment = kernels::kStrideUnitBytes,
      .output_alignment = 1,
      .temp_alignment = kernels::kStrideUnitBytes,
      .temp_bytes = temp->record_bytes + temp->slot_bytes,
      .output_bytes_bound = kernels::lz4_batch_bound(max_input_bytes, static_cast<BatchFraming>(framing)),
      .decompress_temp_bytes = has_blocks(framing) ? block_lists_bytes(max_input_bytes, item_count) : 0};
}

Result<std::vector<BatchLaunch>> launches_of(const BatchCompression& batch, uint64_t few_pages) {
  const auto good = check(batch.item_count, batch.framing,
                          {{"inputs", batch.inputs, 8},
                           {"input_bytes", batch.input_bytes, 8},
                           {"outputs", batch.outputs, 8},
                           {"output_bytes", batch.output_bytes, 8},
                           {"statuses", batch.statuses, 4, true}});
  if (!good) return tl::unexpected(good.error());
  if (batch.coding == Coding::zstd) return fail("coding: there is no compress() of Zstandard");
  if (batch.coding != Coding::lz4) return typed_launches(batch);
  const auto temp = temp_of(batch.max_input_bytes, batch.item_count, batch.framing);
  if (!temp) return tl::unexpected(temp.error());
  if (batch.item_count == 0) return std::vector<BatchLaunch>{};
  const size_t needed = temp->record_bytes + temp->slot_bytes;
  if (auto is_there = check_temp(batch.temp, batch.temp_bytes, needed); !is_there)
    return tl::unexpected(is_there.error());
  const uint64_t records = needed == 0 ? 0 : batch.temp;
  const bool by_block =
      batch.max_input_bytes <= kernels::kMaxPageBytes && batch.item_count < few_pages && !has_blocks(batch.framing);
  const std::vector arguments = {
      LaunchArgument::of_address(batch.inputs),
      LaunchArgument::of_address(batch.input_bytes),
      LaunchArgument::of_address(batch.outputs),
      LaunchArgument::of_address(batch.output_bytes),
      LaunchArgument::of_address(batch.statuses),
      LaunchArgument::of_address(records),
      LaunchArgument::of_address(records + temp->record_bytes),
      LaunchArgument::of(static_cast<uint32_t>(batch.max_input_bytes)),
      LaunchArgument::of(static_cast<uint32_t>(temp->chunks_per_item)),
      LaunchArgument::of(static_cast<uint32_t>(batch.framing) | (by_block ? kernels::kBatchPagesByBlock : 0)),
      LaunchArgument::of(static_cast<uint32_t>(batch.item_count))};
  if (by_block) {
    return std::vector{
        launch(kernels::kLz4BatchCompressChunk, kernels::kLz4CompressChunkShape, batch.item_count, arguments)};
  }
  const uint64_t chunk_count = batch.item_count * temp->chunks_per_item;
  std::vector<BatchLaunch> launches = {
      launch(kernels::kLz4BatchCompressPage, kernels::kLz4CompressPageShape, batch.item_count, arguments)};
  if (batch.max_input_bytes > kernels::kMaxPageBytes) {
    launches.push_back(
        launch(kernels::kLz4BatchCompressChunk, kernels::kLz4CompressChunkShape, chunk_count, arguments));
  }
  if (batch.max_input_bytes > kernels::kMaxChunkBytes || has_blocks(batch.framing)) {
    launches.push_back(launch(kernels::kLz4BatchPlan, kernels::kLz4BatchPlanShape, batch.item_count, arguments));
    launches.push_back(launch(kernels::kLz4BatchJoin, kernels::kLz4BatchJoinShape, chunk_count, arguments));
  }
  return launches;
}

Result<std::vector<BatchLaunch>> launches_of(const BatchDecompression& batch, uint64_t typed_blocks) {
  const auto good = check(batch.item_count, batch.framing,
                          {{"inputs", batch.inputs, 8},
                           {"input_bytes", batch.input_bytes, 8},
                           {"outputs", batch.outputs, 8},
                           {"output_capacities", batch.output_capacities, 8},
                           {"output_bytes", batch.output_bytes, 8, true},
                           {"statuses", batch.statuses, 4, true}});
  if (!good) return tl::unexpected(good.error());
  if (batch.item_count == 0) return std::vector<BatchLaunch>{};
  if (batch.coding == Coding::zstd) return zstd_launches(batch);
  if (batch.coding != Coding::lz4) return typed_launches(batch, typed_blocks);
  if (has_blocks(batch.framing)) return launches_by_block(batch);
  return std::vector{
      launch(kernels::kLz4BatchDecompress, kernels::kLz4DecompressShape, batch.item_count,
             {LaunchArgument::of_address(batch.inputs), LaunchArgument::of_address(batch.input_bytes),
              LaunchArgument::of_address(batch.outputs), LaunchArgument::of_address(batch.output_capacities),
              LaunchArgument::of_address(batch.output_bytes), LaunchArgument::of_address(batch.statuses),
              LaunchArgument::of(static_cast<uint32_t>(batch.framing)),
              LaunchArgument::of(static_cast<uint32_t>(batch.item_count))})};
}

Result<std::vector<BatchLaunch>> launches_of(const BatchSizes& batch) {
  const auto good = check(batch.item_count, batch.framing,
                          {{"inputs", batch.inputs, 8},
                           {"input_bytes", batch.input_bytes, 8},
                           {"output_bytes", batch.output_bytes, 8},
                           {"statuses", batch.statuses, 4, true}});
  if (!good) return tl::unexpected(good.error());
  if (batch.item_count == 0) return std::vector<BatchLaunch>{};
  return std::vector{launch(kernels::kLz4BatchSizes, kernels::kLz4DecompressShape, batch.item_count,
                            {LaunchArgument::of_address(batch.inputs), LaunchArgument::of_address(batch.input_bytes),
                             LaunchArgument::of_address(batch.output_bytes), LaunchArgument::of_address(batch.statuses),
                             LaunchArgument::of(static_cast<uint32_t>(batch.framing)),
                             LaunchArgument::of(static_cast<uint32_t>(batch.item_count))})};
}

}  // namespace ptxkit::library
