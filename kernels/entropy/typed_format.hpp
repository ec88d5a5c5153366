// Constants of typed rANS: arrays of numbers whose bytes are split into planes, and rANS of the planes that compress.
// docs/format.md describes the bytes ("Typed arrays"). Source of the coder: J. Duda, "Asymmetric numeral systems",
// arXiv:1311.2540. Source of the split: exponents of floating-point numbers code well, signs and significands do not.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/abi.hpp"

namespace ptxkit::kernels {

inline constexpr std::string_view kTypedEncode = "typed_encode";
inline constexpr std::string_view kTypedJoin = "typed_join";
inline constexpr std::string_view kTypedBegin = "typed_begin";
inline constexpr std::string_view kTypedDecode = "typed_decode";

// How the bytes of an element are split. Values stand in files and are never reused.
enum class TypedLayout : uint8_t {
  bytes = 1,     // int8, and fp8 as e4m3 or e5m2: the byte is coded
  float16 = 2,   // the high byte is coded, the low byte is copied
  bfloat16 = 3,  // the exponent is coded; the byte of sign and significand is copied
  float32 = 4,   // the exponent is coded; the other three bytes are copied
  stride2 = 5,   // elements of two, four or eight bytes: each byte is a plane of its own, and coded
  stride4 = 6,
  stride8 = 7,
};
inline constexpr uint32_t kTypedLayouts = 7;

struct TypedShape {
  uint32_t element_bytes;
  uint32_t coded_planes;  // the highest ones of element_bytes planes; the others are copied
  bool moves_sign;        // the sign is moved behind the exponent of eight bits, which becomes the highest byte
};
constexpr bool is_typed_layout(uint32_t layout) { return layout - 1 < kTypedLayouts; }
constexpr TypedShape typed_shape(TypedLayout layout) {
  switch (layout) {
    case TypedLayout::bytes:
      return {1, 1, false};
    case TypedLayout::float16:
      return {2, 1, false};
    case TypedLayout::bfloat16:
      return {2, 1, true};
    case TypedLayout::float32:
      return {4, 1, true};
    case TypedLayout::stride2:
      return {2, 2, false};
    case TypedLayout::stride4:
      return {4, 4, false};
    case TypedLayout::stride8:
      return {8, 8, false};
  }
  return {1, 1, false};
}

// The header: magic, layout u8, three zeros, raw size u64.
inline constexpr uint32_t kTypedMagic = 0x01617270;  // "pra", then the version
inline constexpr uint32_t kTypedHeaderBytes = 16;
inline constexpr uint32_t kTypedAlignment = 16;  // of items and rooms, and of what lies in an item behind the index

// An item is whole units of kTypedUnit elements, and a tail that is stored as it is. Units are coded in members.
inline constexpr uint32_t kTypedUnit = 128;
inline constexpr uint32_t kTypedMember = 32768;                     // elements of every member but the last
inline constexpr uint32_t kTypedParts = 4;                          // of a member: each has its own states and words
inline constexpr uint32_t kTypedPart = kTypedMember / kTypedParts;  // elements of a part

// A coded plane of a member: kTypedAlignment bytes of which the first is every byte of the plane; or the number of
// words of each part u32, the table (frequencies_reference.hpp), padding to kTypedAlignment, and for each part that is
// not empty 32 states u32, words u16, padding. One of the plane's own size is a copy.
inline constexpr uint32_t kTypedLanes = 32;
inline constexpr uint32_t kTypedWordsBytes = 4 * kTypedParts;
inline constexpr uint32_t kTypedStatesBytes = 4 * kTypedLanes;
inline constexpr uint32_t kTypedScaleBits = 12;
inline constexpr uint32_t kTypedScale = 1u << kTypedScaleBits;  // the sum of the frequencies
// States are in [kTypedLow, kTypedLow << 16), so that a division is a product with a reciprocal of 32 bits and a shift.
inline constexpr uint32_t kTypedLow = 1u << 15;

// The encoder writes the words of a part over the elements that it has coded. Where they would reach those that it has
// not, the plane is copied: before each kTypedUnit elements, 2 * kTypedUnit bytes of words must be free. There are
// kTypedSlackBytes more than elements.
inline constexpr uint32_t kTypedSlackBytes = 640;

// Where the parts of an item of `raw_bytes` are.
struct TypedPlan {
  uint64_t units = 0, members = 0;
  uint64_t copied_at = 0;  // the copied planes of all members
  uint64_t tail_at = 0;
  uint64_t coded_at = 0;  // the coded planes of all members
  uint32_t tail_bytes = 0;
};
constexpr uint64_t typed_aligned(uint64_t bytes) {
  return (bytes + (kTypedAlignment - 1)) & ~uint64_t{kTypedAlignment - 1};
}
constexpr TypedPlan typed_plan(uint64_t raw_bytes, TypedLayout layout) {
  const TypedShape shape = typed_shape(layout);
  TypedPlan plan;
  plan.units = raw_bytes / (kTypedUnit * shape.element_bytes);
  plan.members = (plan.units + kTypedMember / kTypedUnit - 1) / (kTypedMember / kTypedUnit);
  plan.tail_bytes = static_cast<uint32_t>(raw_bytes % (kTypedUnit * shape.element_bytes));
  plan.copied_at = typed_aligned(kTypedHeaderBytes + 4 * plan.members * shape.coded_planes);
  plan.tail_at = plan.copied_at + plan.units * kTypedUnit * (shape.element_bytes - shape.coded_planes);
  plan.coded_at = plan.tail_at + typed_aligned(plan.tail_bytes);
  return plan;
}

// The most that an item of `raw_bytes` takes.
constexpr uint64_t typed_bound(uint64_t raw_bytes, TypedLayout layout) {
  const TypedPlan plan = typed_plan(raw_bytes, layout);
  return plan.coded_at + plan.units * kTypedUnit * typed_shape(layout).coded_planes;
}

}  // namespace ptxkit::kernels
