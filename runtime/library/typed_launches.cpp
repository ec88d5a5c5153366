// Typed rANS in device memory.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "kernels/abi.hpp"
#include "kernels/typed/typed_format.hpp"
#include "runtime/library/coding_launches.hpp"

namespace ptxkit::library {
namespace {

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

}  // namespace

Launches typed_launches(const BatchCompression& batch) {
  const auto temp = typed_temp_of(batch.max_input_bytes, batch.item_count, batch.coding);
  if (!temp) return tl::unexpected(temp.error());
  const auto arguments =
      arguments_of(batch, {address(batch.temp), address(batch.temp + temp->size_bytes), number(batch.max_input_bytes),
                           number(temp->members_per_item), number(batch.coding), number(batch.item_count)});
  const uint64_t members = batch.item_count * temp->members_per_item;
  return std::vector{launch(kernels::kTypedEncode, kernels::kTypedEncodeShape, members, arguments),
                     launch(kernels::kTypedJoin, kernels::kTypedJoinShape, members, arguments)};
}

Launches typed_launches(const BatchDecompression& batch, uint64_t typed_blocks) {
  if (auto good = check_coding(batch.coding, batch.framing); !good) return tl::unexpected(good.error());
  const uint64_t blocks_per_item =
      std::min((typed_blocks + batch.item_count - 1) / batch.item_count, kMostItems / batch.item_count);
  const auto arguments = arguments_of(batch, {number(blocks_per_item), number(batch.item_count)});
  return std::vector{
      launch(kernels::kTypedBegin, kernels::kTypedBeginShape, batch.item_count, arguments),
      launch(kernels::kTypedDecode, kernels::kTypedDecodeShape, batch.item_count * blocks_per_item, arguments)};
}

Result<BatchRequirements> typed_requirements(uint64_t max_input_bytes, uint64_t item_count, Framing framing,
                                             Coding coding) {
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

}  // namespace ptxkit::library
