#include "runtime/codec/blocks/typed_block.hpp"

#include <algorithm>
#include <array>

#include "kernels/abi.hpp"
#include "kernels/entropy/frequencies_reference.hpp"
#include "kernels/typed/typed_reference.hpp"
#include "runtime/codec/blocks/coded_stream.hpp"

namespace ptxkit::codec {
namespace {

using format::Bytes;
using format::Elements;
using format::MutableBytes;
using kernels::BatchStatus;
using kernels::TypedLayout;

static_assert(static_cast<uint8_t>(Elements::bytes) == static_cast<uint8_t>(TypedLayout::bytes) &&
              static_cast<uint8_t>(Elements::float16) == static_cast<uint8_t>(TypedLayout::float16) &&
              static_cast<uint8_t>(Elements::bfloat16) == static_cast<uint8_t>(TypedLayout::bfloat16) &&
              static_cast<uint8_t>(Elements::float32) == static_cast<uint8_t>(TypedLayout::float32) &&
              static_cast<uint8_t>(Elements::stride2) == static_cast<uint8_t>(TypedLayout::stride2) &&
              static_cast<uint8_t>(Elements::stride4) == static_cast<uint8_t>(TypedLayout::stride4) &&
              static_cast<uint8_t>(Elements::stride8) == kernels::kTypedLayouts);

// The bytes of a coded plane of `elements` that are no words; more than there are if the plane is damaged.
size_t table_bytes_of(Bytes plane, size_t elements) {
  std::array<uint16_t, kernels::kSymbols> frequencies;
  if (plane.size() < kernels::kTypedWordsBytes ||
      kernels::read_table(plane.subspan(kernels::kTypedWordsBytes), kernels::kTypedScale, frequencies) !=
          kernels::TableRead::good) {
    return plane.size() + 1;
  }
  const size_t parts = (elements + kernels::kTypedPart - 1) / kernels::kTypedPart;
  return kernels::typed_aligned(kernels::kTypedWordsBytes + kernels::table_bytes(frequencies)) +
         parts * kernels::kTypedStatesBytes;
}

}  // namespace

TypedLayout layout_of(Elements elements) { return static_cast<TypedLayout>(elements); }

std::vector<uint8_t> encode_typed_block(Elements elements, Bytes raw) {
  std::vector<uint8_t> coded(kernels::typed_bound(raw.size(), layout_of(elements)));
  const kernels::TypedOutcome outcome = kernels::typed_encode_reference(raw, coded, layout_of(elements));
  coded.resize(outcome.status == BatchStatus::ok && outcome.size_bytes < raw.size() ? outcome.size_bytes : 0);
  coded.shrink_to_fit();
  return coded;
}

bool opens_as_typed_block(Elements elements, Bytes coded, size_t raw_bytes) {
  kernels::TypedItem item;
  return kernels::open_typed(coded, item) == BatchStatus::ok && item.layout == layout_of(elements) &&
         item.raw_bytes == raw_bytes;
}

bool decode_typed_block(Elements elements, Bytes coded, MutableBytes raw) {
  return opens_as_typed_block(elements, coded, raw.size()) &&
         kernels::typed_decode_reference(coded, raw) == kernels::TypedOutcome{BatchStatus::ok, raw.size()};
}

bool add_typed_block(Elements elements, Bytes block, size_t raw_bytes, Budget& budget) {
  if (!opens_as_typed_block(elements, block, raw_bytes)) return false;
  const kernels::TypedPlan plan = kernels::typed_plan(raw_bytes, layout_of(elements));
  const kernels::TypedShape shape = kernels::typed_shape(layout_of(elements));
  budget[Part::container] += plan.copied_at;
  budget[Part::stored] += plan.coded_at - plan.copied_at;
  const Bytes coded = block.subspan(plan.coded_at);
  size_t begin = 0, left = plan.units * kernels::kTypedUnit;
  for (uint64_t entry = 0; entry < plan.members * shape.coded_planes; ++entry) {
    const size_t end = size_t{read_u32(&block[kernels::kTypedHeaderBytes + 4 * entry])} * kernels::kTypedAlignment;
    if (end < begin || end > coded.size()) return false;
    const Bytes plane = coded.subspan(begin, end - begin);
    const size_t of_member = std::min<size_t>(left, kernels::kTypedMember);
    if (plane.size() == of_member) {
      budget[Part::stored] += plane.size();
    } else {
      const size_t tables = plane.size() == kernels::kTypedAlignment ? 0 : table_bytes_of(plane, of_member);
      if (tables > plane.size()) return false;
      budget[Part::tables] += tables;
      budget[Part::planes] += plane.size() - tables;
    }
    begin = end;
    if ((entry + 1) % shape.coded_planes == 0) left -= of_member;
  }
  return begin == coded.size();
}

}  // namespace ptxkit::codec
