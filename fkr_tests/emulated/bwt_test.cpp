// The BWT kernels as PTX: the reference's blocks, the order of the suffixes, and the inverse.
#include <gtest/gtest.h>

#include "fkr_tests/cases/bwt_cases.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::BwtKernel;
using ptxkit::testing::Bytes;
using ptxkit::testing::emulator_launch;
using ptxkit::testing::kVariants;

const std::vector<size_t> kShortSizes = {0, 1, 2, 3, 31, 32, 33, 257};
const std::vector<size_t> kLongSizes = {1009, 4097};

void expect_too_large_is_said(BwtKernel sort) {
  sort.reference = [](std::span<const uint8_t> src, std::span<uint8_t> dst) {
    return src.size() > 99 ? TransformOutcome{StreamStatus::item_too_large, 0} : bwt_reference(src, dst);
  };
  for (const auto build : kVariants) {
    const std::vector<Bytes> raws = {Bytes(100, 'x'), Bytes(99, 'x'), Bytes(92, 'x'), Bytes(88, 'x')};
    expect_bwt_as_reference(emulator_launch(build), sort, raws, 99, 96);
  }
}

TEST(BwtRank, AwkwardSizes) {
  for (const auto build : kVariants)
    expect_bwt_blocks(emulator_launch(build), ptxkit::testing::bwt_rank(), ptxkit::testing::bwt_inputs(kShortSizes));
}

TEST(BwtRank, AroundTheEndOfASegment) {
  expect_bwt_blocks(emulator_launch("release"), ptxkit::testing::bwt_rank(),
                    ptxkit::testing::bwt_inputs({4095, 4096, 4097}));
}

TEST(BwtRank, GroupsAroundAWarp) {
  expect_bwt_blocks(emulator_launch("release"), ptxkit::testing::bwt_rank(), ptxkit::testing::grouped_inputs());
}

// Ranks stored in two bytes and in four.
TEST(BwtRank, AroundShortRanks) {
  for (const size_t size : {65536u, 65537u}) {
    expect_bwt_blocks(emulator_launch("release"), ptxkit::testing::bwt_rank(),
                      {ptxkit::testing::matchable_bytes(size, 1)});
  }
}

TEST(BwtRank, WhatIsTooLargeIsSaid) { expect_too_large_is_said(ptxkit::testing::bwt_rank()); }

TEST(BwtRadix, AwkwardSizes) {
  for (const auto build : kVariants)
    expect_bwt_blocks(emulator_launch(build), ptxkit::testing::bwt_radix(), ptxkit::testing::bwt_inputs(kShortSizes));
}

TEST(BwtRadix, AroundTheEndOfASegment) {
  expect_bwt_blocks(emulator_launch("release"), ptxkit::testing::bwt_radix(),
                    ptxkit::testing::bwt_inputs({4095, 4096, 4097}));
}

TEST(BwtRadix, WhatIsTooLargeIsSaid) { expect_too_large_is_said(ptxkit::testing::bwt_radix()); }

TEST(BwtBitonic, AwkwardSizes) {
  for (const auto build : kVariants)
    expect_bwt_blocks(emulator_launch(build), ptxkit::testing::bwt_bitonic(), ptxkit::testing::bwt_inputs(kShortSizes));
}

TEST(BwtBitonic, AroundTheBound) {
  expect_bwt_blocks(emulator_launch("release"), ptxkit::testing::bwt_bitonic(),
                    ptxkit::testing::bwt_inputs({509, 4095, 4096, 4097}));
}

TEST(BwtBitonic, RoomsThatAreTooSmall) {
  for (const auto build : kVariants) {
    expect_column_as_reference(emulator_launch(build), ptxkit::testing::bwt_bitonic(), {Bytes(89, 'x'), Bytes(88, 'x')},
                               96);
  }
}

TEST(MtfEncode, BytesOfTheReference) {
  for (const auto build : kVariants) {
    const auto inputs = ptxkit::testing::bwt_inputs(build == "debug" ? kShortSizes : kLongSizes);
    expect_column_as_reference(emulator_launch(build), ptxkit::testing::mtf_encode(), inputs,
                               ptxkit::testing::longest_of(inputs));
    expect_column_as_reference(emulator_launch(build), ptxkit::testing::mtf_encode(), inputs, 32);
  }
}

TEST(MtfDecode, BytesOfTheReference) {
  for (const auto build : kVariants) {
    auto inputs = ptxkit::testing::bwt_inputs(build == "debug" ? kShortSizes : kLongSizes);
    expect_column_as_reference(emulator_launch(build), ptxkit::testing::mtf_decode(), inputs, 32);
    const std::vector<Bytes> raws = inputs;
    for (Bytes& input : inputs) mtf_encode_reference(input, input);
    EXPECT_TRUE(expect_column_as_reference(emulator_launch(build), ptxkit::testing::mtf_decode(), inputs,
                                           ptxkit::testing::longest_of(inputs)) == raws);
  }
}

TEST(ZeroRunsEncode, BytesOfTheReference) {
  for (const auto build : kVariants) {
    const auto inputs = ptxkit::testing::zero_run_inputs(build == "debug" ? kShortSizes : kLongSizes);
    const auto encode = ptxkit::testing::zero_runs_encode();
    expect_column_as_reference(emulator_launch(build), encode, inputs,
                               zero_runs_bound(ptxkit::testing::longest_of(inputs)));
    expect_column_as_reference(emulator_launch(build), encode, inputs, 16);
  }
}

TEST(ZeroRunsDecode, BytesOfTheReference) {
  for (const auto build : kVariants) {
    const auto raws = ptxkit::testing::zero_run_inputs(build == "debug" ? kShortSizes : kLongSizes);
    std::vector<Bytes> coded;
    for (const Bytes& raw : raws) {
      coded.emplace_back(zero_runs_bound(static_cast<uint32_t>(raw.size())));
      coded.back().resize(zero_runs_encode_reference(raw, coded.back()).size_bytes);
    }
    const auto decode = ptxkit::testing::zero_runs_decode();
    EXPECT_TRUE(expect_column_as_reference(emulator_launch(build), decode, coded, ptxkit::testing::longest_of(raws)) ==
                raws);
    expect_column_as_reference(emulator_launch(build), decode, coded, 16);
  }
}

TEST(ZeroRunsDecode, AnyBytes) {
  std::mt19937 random(3);
  std::vector<Bytes> items = {{255}, {255, 2}, {255, 255, 0}, Bytes(20, 0), Bytes(21, 0), Bytes(5000, 1)};
  for (int i = 0; i < 60; ++i) {
    items.emplace_back(random() % 400);
    for (uint8_t& byte : items.back()) {  // mostly bytes that have a meaning
      constexpr uint8_t kFew[] = {0, 1, 2, 200, 254, 255};
      byte = random() % 100 == 0 ? static_cast<uint8_t>(random()) : kFew[random() % (i % 2 == 0 ? 5 : 6)];
    }
  }
  for (const auto build : kVariants)
    expect_column_as_reference(emulator_launch(build), ptxkit::testing::zero_runs_decode(), items, 4096);
}

TEST(BwtInverse, AwkwardSizes) {
  for (const auto build : kVariants)
    expect_bwt_inverted(emulator_launch(build), ptxkit::testing::bwt_inputs(kShortSizes));
}

TEST(BwtInverse, AroundTheEndOfASegment) {
  expect_bwt_inverted(emulator_launch("release"), ptxkit::testing::bwt_inputs({4095, 4096, 4097, 20000}));
}

// Sizes around 64 KiB.
TEST(BwtInverse, AroundShortLinks) {
  for (const size_t size : {65535u, 65536u, 65537u}) {
    expect_bwt_inverted(emulator_launch("release"), {ptxkit::testing::matchable_bytes(size, 1), Bytes(size, 'x'),
                                                     ptxkit::testing::random_bytes(size, 1)});
  }
}

TEST(BwtInverse, RoomsThatAreTooSmall) {
  std::vector<Bytes> blocks;
  for (const size_t size : {64u, 65u, 80u, 81u, 5000u})
    blocks.push_back(ptxkit::testing::bwt_block(ptxkit::testing::matchable_bytes(size, 1)));
  for (const auto build : kVariants) {
    expect_bwt_as_reference(emulator_launch(build), ptxkit::testing::bwt_inverse(), blocks, 5000, 80);
    auto inverse = ptxkit::testing::bwt_inverse();
    inverse.reference = [](std::span<const uint8_t> src, std::span<uint8_t> dst) {
      return bwt_inverse_reference(src, dst.first(64));  // the limit of item_bytes, although there is more room
    };
    expect_bwt_as_reference(emulator_launch(build), inverse, {blocks[0], blocks[1]}, 64, 80);
  }
}

TEST(BwtInverse, DamagedBlocks) {
  std::mt19937 random(1);
  std::vector<Bytes> items = ptxkit::testing::damaged_bwt_blocks({1, 2, 40, 300}, random);
  for (const Bytes& item : ptxkit::testing::damaged_bwt_blocks({9000}, random)) items.push_back(item);
  expect_bwt_as_reference(emulator_launch("debug"), ptxkit::testing::bwt_inverse(), items, 9008, 9008);
  // A block above 64 KiB, of a text that repeats itself.
  items = ptxkit::testing::damaged_bwt_blocks({65600}, random);
  items = std::vector<Bytes>(items.begin() + 60, items.begin() + 72);
  expect_bwt_as_reference(emulator_launch("release"), ptxkit::testing::bwt_inverse(), items, 65600, 65600);
}

}  // namespace
}  // namespace ptxkit::kernels
