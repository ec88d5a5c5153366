// The BWT kernels as PTX: the blocks of the reference, the order of the suffixes, and the way back.
#include <gtest/gtest.h>

#include "fkr_tests/bwt_cases.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::BwtKernel;
using ptxkit::testing::Bytes;
using ptxkit::testing::emulator_launch;
using ptxkit::testing::kVariants;

const std::vector<size_t> kShortSizes = {0, 1, 2, 3, 31, 32, 33, 257};

void expect_too_large_is_said(BwtKernel sort) {
  sort.reference = [](std::span<const uint8_t> src, std::span<uint8_t> dst) {
    return src.size() > 99 ? TransformOutcome{StreamStatus::item_too_large, 0} : bwt_reference(src, dst);
  };
  for (const auto build : kVariants) {
    const std::vector<Bytes> raws = {Bytes(100, 'x'), Bytes(99, 'x'), Bytes(92, 'x'), Bytes(88, 'x')};
    expect_bwt_as_reference(emulator_launch(build), sort, raws, 99, 96);
  }
}

TEST(BwtRadix, AwkwardSizes) {
  for (const auto build : kVariants)
    expect_bwt_blocks(emulator_launch(build), ptxkit::testing::bwt_radix(), ptxkit::testing::bwt_inputs(kShortSizes));
}

TEST(BwtRadix, AroundTheEndOfASegment) {
  expect_bwt_blocks(emulator_launch("release"), ptxkit::testing::bwt_radix(),
                    ptxkit::testing::bwt_inputs({4095, 4096, 4097}));
}

TEST(BwtRadix, WhatIsTooLargeIsSaid) { expect_too_large_is_said(ptxkit::testing::bwt_radix()); }

TEST(BwtInverse, AwkwardSizes) {
  for (const auto build : kVariants)
    expect_bwt_inverted(emulator_launch(build), ptxkit::testing::bwt_inputs(kShortSizes));
}

TEST(BwtInverse, AroundTheEndOfASegment) {
  expect_bwt_inverted(emulator_launch("release"), ptxkit::testing::bwt_inputs({4095, 4096, 4097, 20000}));
}

TEST(BwtInverse, RoomsThatAreTooSmall) {
  std::vector<Bytes> blocks;
  for (const size_t size : {64u, 65u, 80u, 81u, 5000u})
    blocks.push_back(ptxkit::testing::bwt_block(ptxkit::testing::matchable_bytes(size, 1)));
  for (const auto build : kVariants) {
    expect_bwt_as_reference(emulator_launch(build), ptxkit::testing::bwt_inverse(), blocks, 5000, 80);
    auto inverse = ptxkit::testing::bwt_inverse();
    inverse.reference = [](std::span<const uint8_t> src, std::span<uint8_t> dst) {
      return bwt_inverse_reference(src, dst.first(64));  // what item_bytes says, although there is room
    };
    expect_bwt_as_reference(emulator_launch(build), inverse, {blocks[0], blocks[1]}, 64, 80);
  }
}

TEST(BwtInverse, DamagedBlocks) {
  std::mt19937 random(1);
  std::vector<Bytes> items = ptxkit::testing::damaged_bwt_blocks({1, 2, 40, 300}, random);
  for (const Bytes& item : ptxkit::testing::damaged_bwt_blocks({9000}, random)) items.push_back(item);
  expect_bwt_as_reference(emulator_launch("debug"), ptxkit::testing::bwt_inverse(), items, 9008, 9008);
}

}  // namespace
}  // namespace ptxkit::kernels
