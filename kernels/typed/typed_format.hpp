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

// Launches of a batch, whose items lie anywhere in device memory, as those of LZ4 (kernels/abi.hpp).
inline constexpr LaunchShape kTypedEncodeShape{.block_threads = 32 * kTypedParts, .items_per_block = 1};
inline constexpr LaunchShape kTypedJoinShape{.block_threads = 128, .items_per_block = 1};
inline constexpr LaunchShape kTypedBeginShape{.block_threads = 128, .items_per_block = 4};
inline constexpr LaunchShape kTypedDecodeShape{.block_threads = 32 * kTypedParts, .items_per_block = 1};

// Parameters of the kernels that encode: `typed_encode`, then `typed_join`, each for item_count * members_per_item.
// Item i is the input_bytes[i] bytes at inputs[i] and is encoded at outputs[i], where typed_bound(input_bytes[i],
// layout) bytes may be written. Both addresses are multiples of kTypedAlignment. Coded plane c of member m of item i is
// number n = (i * members_per_item + m) * coded planes + c: it is kept in slot n, and coded_units[n] is its size in
// kTypedAlignment bytes.
struct TypedEncodeParameters {
  uint64_t inputs;            // const u64*, addresses
  uint64_t input_bytes;       // const u64*
  uint64_t outputs;           // const u64*, addresses
  uint64_t output_bytes;      // u64*
  uint64_t statuses;          // u32*, BatchStatus, or null
  uint64_t coded_units;       // u32*
  uint64_t slots;             // u8*, 16-byte aligned, kTypedMember for each coded plane
  uint32_t max_input_bytes;   // at most kMaxBatchRawBytes; a larger item is an error of that item
  uint32_t members_per_item;  // of an item of max_input_bytes; at least 1
  uint32_t layout;            // TypedLayout
  uint32_t item_count;
};

// Parameters of the kernels that decode: `typed_begin` for item_count, then `typed_decode` for item_count *
// blocks_per_item CTAs, of which each takes every blocks_per_item-th member of its item. Item i is the input_bytes[i]
// bytes at inputs[i] and is decoded into at most output_capacities[i] bytes at outputs[i]; both addresses are multiples
// of kTypedAlignment. No byte outside these two ranges is read or written.
struct TypedDecodeParameters {
  uint64_t inputs;             // const u64*, addresses
  uint64_t input_bytes;        // const u64*
  uint64_t outputs;            // const u64*, addresses
  uint64_t output_capacities;  // const u64*
  uint64_t output_bytes;       // u64*, or null
  uint64_t statuses;           // u32*, BatchStatus, or null
  uint32_t blocks_per_item;
  uint32_t item_count;
};

}  // namespace ptxkit::kernels
