// The kernels of typed rANS on the emulator with every check: the bytes of the reference, and damaged items.
#include <gtest/gtest.h>

#include "fkr_tests/cases/transforms.hpp"
#include "fkr_tests/cases/typed_arrays.hpp"
#include "fkr_tests/emulated/lz4_batches.hpp"

namespace ptxkit::testing {
namespace {

using kernels::BatchStatus;
using kernels::TypedLayout;

BatchOptions options_of(TypedLayout layout, std::string_view build = "release") {
  BatchOptions options;
  options.coding = static_cast<library::Coding>(layout);
  options.build = build;
  options.typed_blocks = 5;
  return options;
}

std::vector<BatchCase> cases_of(const std::vector<Bytes>& items) {
  std::vector<BatchCase> cases;
  for (const Bytes& item : items) cases.push_back({.bytes = item});
  return cases;
}

// Encodes and decodes on the emulator, and compares both with the reference.
void expect_bytes_of_reference(const std::vector<Bytes>& inputs, const BatchOptions& options) {
  const auto layout = static_cast<TypedLayout>(options.coding);
  const BatchRan encoded = compress_batch(cases_of(inputs), options);
  ASSERT_EQ(encoded.report, "");
  ASSERT_FALSE(encoded.claims_too_much);
  std::vector<BatchCase> coded;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_EQ(encoded.statuses[i], 0u) << inputs[i].size();
    const Bytes expected = typed_coded(inputs[i], layout);
    ASSERT_EQ(encoded.sizes[i], expected.size()) << inputs[i].size();
    const auto difference = std::mismatch(expected.begin(), expected.end(), encoded.outputs[i].begin());
    ASSERT_TRUE(difference.first == expected.end()) << "item of " << inputs[i].size() << " bytes, byte "
                                                    << difference.first - expected.begin() << " of " << expected.size();
    coded.push_back({.bytes = expected, .capacity = inputs[i].size()});
  }
  const BatchRan decoded = decompress_batch(coded, options);
  ASSERT_EQ(decoded.report, "");
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_EQ(decoded.statuses[i], 0u) << inputs[i].size();
    const auto difference = std::mismatch(inputs[i].begin(), inputs[i].end(), decoded.outputs[i].begin());
    ASSERT_TRUE(difference.first == inputs[i].end())
        << "item of " << inputs[i].size() << " bytes, byte " << difference.first - inputs[i].begin();
  }
}

class TypedKernels : public ::testing::TestWithParam<NamedLayout> {};
INSTANTIATE_TEST_SUITE_P(Layouts, TypedKernels, ::testing::ValuesIn(kNamedLayouts),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(TypedKernels, BytesOfTheReference) {
  expect_bytes_of_reference(typed_inputs(GetParam().layout), options_of(GetParam().layout));
}

TEST_P(TypedKernels, BytesOfTheReferenceInADebugBuild) {
  const uint32_t element_bytes = kernels::typed_shape(GetParam().layout).element_bytes;
  std::vector<Bytes> inputs;
  for (const size_t size : {0u, 5u, 128u * element_bytes + 3, 8192u * element_bytes + 128u * element_bytes}) {
    inputs.push_back(weight_bytes(size, GetParam().layout, 3));
  }
  expect_bytes_of_reference(inputs, options_of(GetParam().layout, "debug"));
}

// What the reference says of a damaged item, and its bytes.
TEST_P(TypedKernels, DamagedItems) {
  const TypedLayout layout = GetParam().layout;
  std::mt19937 random(static_cast<uint32_t>(layout));
  const Bytes raw = weight_bytes(size_t{1000} * kernels::typed_shape(layout).element_bytes + 5, layout, 6),
              good = typed_coded(raw, layout);
  std::vector<BatchCase> items;
  for (int i = 0; i < 150; ++i) {
    Bytes bad = good;
    damage(bad, random);
    items.push_back({.bytes = bad, .capacity = raw.size()});
  }
  for (size_t size = 0; size < good.size(); size += 1 + size / 16) {
    items.push_back(
        {.bytes = Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(size)), .capacity = raw.size()});
  }
  const BatchRan ran = decompress_batch(items, options_of(layout));
  ASSERT_EQ(ran.report, "");
  ASSERT_FALSE(ran.claims_too_much);
  for (size_t i = 0; i < items.size(); ++i) {
    Bytes expected(raw.size());
    const auto outcome = kernels::typed_decode_reference(items[i].bytes, expected);
    expected.resize(outcome.size_bytes);
    ASSERT_EQ(ran.statuses[i], static_cast<uint32_t>(outcome.status)) << i;
    ASSERT_EQ(ran.sizes[i], outcome.size_bytes) << i;
    ASSERT_TRUE(ran.outputs[i] == expected) << i;
  }
}

// Several blocks say of the same item that it is damaged.
TEST(TypedKernels, ItemsWithSeveralDamagedMembers) {
  const Bytes raw = weight_bytes(size_t{3} * kernels::kTypedMember + 9, TypedLayout::bytes, 6);
  Bytes coded = typed_coded(raw, TypedLayout::bytes);
  const size_t begin = kernels::typed_plan(raw.size(), TypedLayout::bytes).coded_at;
  for (size_t at = begin + 600; at < coded.size(); at += 5000) coded[at] ^= 0xFF;
  const BatchRan ran = decompress_batch({{.bytes = coded, .capacity = raw.size()}}, options_of(TypedLayout::bytes));
  EXPECT_EQ(ran.report, "");
  EXPECT_EQ(ran.statuses, std::vector{static_cast<uint32_t>(BatchStatus::cannot_decompress)});
  EXPECT_EQ(ran.sizes, std::vector<uint64_t>{0});
}

TEST(TypedKernels, ItemsThatCannotBe) {
  const Bytes raw = weight_bytes(3000, TypedLayout::bfloat16, 1), good = typed_coded(raw, TypedLayout::bfloat16);
  BatchOptions options = options_of(TypedLayout::bfloat16);
  options.max_input_bytes = 3000;
  std::vector<BatchCase> items = {{.bytes = raw},
                                  {.bytes = raw, .claimed_bytes = 3001},
                                  {.bytes = raw, .misalignment = 8},
                                  {.bytes = raw, .is_null = true},
                                  {.bytes = raw, .is_room_null = true},
                                  {.bytes = raw, .claimed_bytes = ~uint64_t{0}}};
  const auto status = [](BatchStatus value) { return static_cast<uint32_t>(value); };
  BatchRan ran = compress_batch(items, options);
  EXPECT_EQ(ran.report, "");
  EXPECT_EQ(ran.statuses, (std::vector{status(BatchStatus::ok), status(BatchStatus::too_large),
                                       status(BatchStatus::misaligned), status(BatchStatus::invalid_value),
                                       status(BatchStatus::invalid_value), status(BatchStatus::too_large)}));
  for (BatchCase& item : items) {
    item.bytes = good;
    item.capacity = raw.size();
    item.claimed_bytes = {};
  }
  items[1].capacity = raw.size() - 1;
  items[5].claimed_bytes = uint64_t{1} << 40;
  ran = decompress_batch(items, options);
  EXPECT_EQ(ran.report, "");
  EXPECT_EQ(ran.statuses, (std::vector{status(BatchStatus::ok), status(BatchStatus::output_too_small),
                                       status(BatchStatus::misaligned), status(BatchStatus::invalid_value),
                                       status(BatchStatus::invalid_value), status(BatchStatus::too_large)}));
  EXPECT_TRUE(ran.outputs[0] == raw);
}

TEST(TypedKernels, SizesAndStatusesMayBeLeftOut) {
  const Bytes raw = weight_bytes(3000, TypedLayout::bfloat16, 1), good = typed_coded(raw, TypedLayout::bfloat16);
  BatchOptions options = options_of(TypedLayout::bfloat16);
  options.with_sizes = options.with_statuses = false;
  const BatchRan ran = decompress_batch({{.bytes = good, .capacity = raw.size()}}, options);
  EXPECT_EQ(ran.report, "");
  EXPECT_TRUE(ran.outputs[0] == raw);
}

}  // namespace
}  // namespace ptxkit::testing
