// Typed rANS by its scalar reference: round trips of every layout, what compresses and what is copied, and that no
// damaged item is read or written outside its bounds.
#include <algorithm>
#include <bit>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "fkr_tests/cases/transforms.hpp"
#include "fkr_tests/cases/typed_arrays.hpp"
#include "kernels/entropy/little_endian.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::typed_coded;
using ptxkit::testing::weight_bytes;

void expect_round_trip(const Bytes& raw, TypedLayout layout) {
  const Bytes coded = typed_coded(raw, layout);
  ASSERT_GE(coded.size(), kTypedHeaderBytes);
  ASSERT_LE(coded.size(), typed_bound(raw.size(), layout));
  Bytes back(raw.size());
  ASSERT_EQ(typed_decode_reference(coded, back), (TypedOutcome{BatchStatus::ok, raw.size()}));
  ASSERT_TRUE(back == raw);
}

TEST(TypedReference, RoundTripsOfEveryLayout) {
  for (const auto& [name, layout] : ptxkit::testing::kNamedLayouts) {
    for (const Bytes& raw : ptxkit::testing::typed_inputs(layout)) {
      SCOPED_TRACE(std::string(name) + ", " + std::to_string(raw.size()));
      expect_round_trip(raw, layout);
    }
  }
}

RC_GTEST_PROP(TypedReference, AnyBytesComeBack, ()) {
  const auto layout = static_cast<TypedLayout>(*rc::gen::inRange<uint32_t>(1, kTypedLayouts + 1));
  const auto some = *rc::gen::arbitrary<Bytes>();
  const auto times = *rc::gen::inRange<size_t>(1, 400);
  Bytes raw;
  for (size_t i = 0; i < times; ++i) raw.insert(raw.end(), some.begin(), some.end());
  const Bytes coded = typed_coded(raw, layout);
  Bytes back(raw.size());
  RC_ASSERT(typed_decode_reference(coded, back) == (TypedOutcome{BatchStatus::ok, raw.size()}));
  RC_ASSERT(back == raw);
}

// The figures of docs/format.md: a split of the exponent as DietGPU has it is 1.476 by its format.
TEST(TypedReference, RatioOfNormalWeights) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0, 0.02f);
  Bytes raw;
  for (size_t i = 0; i < size_t{1} << 19; ++i) {
    auto bits = std::bit_cast<uint32_t>(normal(random));
    bits += 0x7FFF + (bits >> 16 & 1);
    raw.push_back(static_cast<uint8_t>(bits >> 16));
    raw.push_back(static_cast<uint8_t>(bits >> 24));
  }
  const double ratio =
      static_cast<double>(raw.size()) / static_cast<double>(typed_coded(raw, TypedLayout::bfloat16).size());
  EXPECT_GT(ratio, 1.49);
  EXPECT_LT(ratio, 1.52);  // 8 bits and an entropy of 2.55 bits
}

// The first coded plane of an item.
Bytes first_plane(const Bytes& coded, size_t raw_bytes, TypedLayout layout) {
  const size_t at = typed_plan(raw_bytes, layout).coded_at;
  const size_t bytes = size_t{read_u32(coded.data() + kTypedHeaderBytes)} * kTypedAlignment;
  return {coded.begin() + static_cast<ptrdiff_t>(at), coded.begin() + static_cast<ptrdiff_t>(at + bytes)};
}

TEST(TypedReference, PlanesOfOneByteTakeSixteenBytes) {
  const Bytes raw(kTypedMember, 9);
  const Bytes plane = first_plane(typed_coded(raw, TypedLayout::bytes), raw.size(), TypedLayout::bytes);
  Bytes expected(16);
  expected[0] = 9;
  EXPECT_EQ(plane, expected);
}

TEST(TypedReference, PlanesThatDoNotShrinkAreCopied) {
  for (const size_t elements : {kTypedMember, kTypedUnit}) {
    const Bytes raw = ptxkit::testing::random_bytes(elements, 3);
    EXPECT_EQ(first_plane(typed_coded(raw, TypedLayout::bytes), raw.size(), TypedLayout::bytes), raw);
  }
}

// Bytes of a rare value that stand together in front cost more than their place: the words would reach what is not
// coded yet, and the plane is copied though it would shrink.
TEST(TypedReference, WordsThatReachUncodedElementsCopyThePlane) {
  Bytes raw(kTypedMember);
  const Bytes burst = ptxkit::testing::random_bytes(6000, 5);
  std::copy(burst.begin(), burst.end(), raw.end() - 6000);
  EXPECT_LT(first_plane(typed_coded(raw, TypedLayout::bytes), raw.size(), TypedLayout::bytes).size(), raw.size());
  std::fill(raw.end() - 6000, raw.end(), uint8_t{0});
  std::copy(burst.begin(), burst.end(), raw.begin());
  EXPECT_EQ(first_plane(typed_coded(raw, TypedLayout::bytes), raw.size(), TypedLayout::bytes), raw);
}

TEST(TypedReference, FrequenciesSumToTheScale) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    std::array<uint32_t, kSymbols> counts{};
    const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
    const uint32_t total = kTypedUnit * (1 + below(256)), kinds = 2 + below(255);
    const bool is_skewed = random() % 2 == 0;
    uint32_t left = total;
    for (uint32_t s = 0; s < kinds && left > 0; ++s, --left) ++counts[s];
    while (left-- != 0) ++counts[is_skewed && below(7) != 0 ? 0 : below(kinds)];
    const auto frequencies = typed_frequencies(counts, total);
    uint32_t sum = 0;
    for (uint32_t s = 0; s < kSymbols; ++s) {
      sum += frequencies[s];
      ASSERT_EQ(frequencies[s] == 0, counts[s] == 0);
      ASSERT_LT(frequencies[s], kTypedScale);
    }
    ASSERT_EQ(sum, kTypedScale);
  }
}

TEST(TypedReference, RoomsAndItemsThatAreNotEnough) {
  const Bytes raw = weight_bytes(100000, TypedLayout::bfloat16, 1), coded = typed_coded(raw, TypedLayout::bfloat16);
  Bytes room(typed_bound(raw.size(), TypedLayout::bfloat16) - 1), back(raw.size() - 1);
  EXPECT_EQ(typed_encode_reference(raw, room, TypedLayout::bfloat16).status, BatchStatus::output_too_small);
  EXPECT_EQ(typed_decode_reference(coded, back).status, BatchStatus::output_too_small);
  back.resize(raw.size());
  for (size_t size = 0; size < coded.size(); size += 1 + size / 50) {
    const Bytes cut(coded.begin(), coded.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_EQ(typed_decode_reference(cut, back).status, BatchStatus::cannot_decompress) << size;
  }
  Bytes longer = coded;
  longer.push_back(0);
  EXPECT_EQ(typed_decode_reference(longer, back).status, BatchStatus::cannot_decompress);
  for (const auto& [at, status] : {std::pair{0, BatchStatus::cannot_decompress},
                                   {3, BatchStatus::cannot_decompress},
                                   {4, BatchStatus::unsupported},
                                   {5, BatchStatus::unsupported},
                                   {12, BatchStatus::cannot_decompress}}) {
    Bytes bad = coded;
    bad[static_cast<size_t>(at)] ^= 0x80;
    EXPECT_EQ(typed_decode_reference(bad, back).status, status) << at;
  }
}

// Every byte of a coded plane but padding and the low bits of states matters: damage is refused or changes the bytes.
TEST(TypedReference, DamagedItems) {
  size_t refused = 0, decoded = 0;
  for (const auto& [name, layout] : ptxkit::testing::kNamedLayouts) {
    std::mt19937 random(static_cast<uint32_t>(layout));
    const Bytes raw = weight_bytes(size_t{kTypedPart} * typed_shape(layout).element_bytes + 777, layout, 4),
                coded = typed_coded(raw, layout);
    for (int i = 0; i < 300; ++i) {
      Bytes bad = coded;
      ptxkit::testing::damage(bad, random);
      const Bytes exact(bad.begin(), bad.end());  // of exact size, so that a sanitizer notices a read past the end
      Bytes back(raw.size());
      const auto outcome = typed_decode_reference(exact, back);
      ++(outcome.status == BatchStatus::ok ? decoded : refused);
      EXPECT_EQ(outcome.status == BatchStatus::ok, outcome.size_bytes != 0) << name;
    }
  }
  EXPECT_GT(refused, 500u);
  EXPECT_GT(decoded, 100u);  // copied planes have no checksum
}

// A plane that says of itself what no encoder would write.
TEST(TypedReference, TablesAndWordsThatCannotBe) {
  const Bytes raw = weight_bytes(kTypedMember, TypedLayout::bytes, 8), coded = typed_coded(raw, TypedLayout::bytes);
  const size_t plane = typed_plan(raw.size(), TypedLayout::bytes).coded_at;
  Bytes back(raw.size());
  const auto status_with = [&](size_t at, auto change) {
    Bytes bad = coded;
    bad[plane + at] = static_cast<uint8_t>(change(bad[plane + at]));
    return typed_decode_reference(bad, back).status;
  };
  const auto more = [](uint8_t byte) { return byte + 1; };
  EXPECT_EQ(status_with(0, more), BatchStatus::cannot_decompress);  // words of the first part
  EXPECT_EQ(status_with(3, [](uint8_t) { return 0x80; }), BatchStatus::cannot_decompress);
  EXPECT_EQ(status_with(kTypedWordsBytes, [](uint8_t byte) { return byte ^ 1; }), BatchStatus::cannot_decompress);
  EXPECT_EQ(status_with(kTypedWordsBytes + kTableMaskBytes, more), BatchStatus::cannot_decompress);  // a frequency
  Bytes table(coded.begin() + static_cast<ptrdiff_t>(plane + kTypedWordsBytes), coded.end());
  std::array<uint16_t, kSymbols> frequencies;
  ASSERT_EQ(read_table(table, kTypedScale, frequencies), TableRead::good);
  const size_t states = typed_aligned(kTypedWordsBytes + table_bytes(frequencies));
  EXPECT_EQ(status_with(states + 3, [](uint8_t) { return 0x80; }), BatchStatus::cannot_decompress);  // above 2^31
  EXPECT_EQ(status_with(states, more), BatchStatus::cannot_decompress);
}

}  // namespace
}  // namespace ptxkit::kernels
