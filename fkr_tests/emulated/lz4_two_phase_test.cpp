// lz4_match_page and lz4_encode_page on the emulator.
#include <gtest/gtest.h>

#include "fkr_tests/cases/lz4_two_phase_cases.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::bytes_of_words;
using ptxkit::testing::emulator_launch;
using ptxkit::testing::KernelArgument;
using ptxkit::testing::kTwoPhaseStride;
using ptxkit::testing::word_at;

TEST(Lz4TwoPhase, BytesOfTheFusedCompressor) {
  for (const auto build : ptxkit::testing::kVariants)
    expect_two_phases_as_fused(emulator_launch(build), ptxkit::testing::pages_of_every_kind());
}

TEST(Lz4TwoPhase, Corpus) {
  PTXKIT_REQUIRE_CORPUS();
  expect_two_phases_as_fused(emulator_launch("release"), ptxkit::testing::pages_of_the_corpus());
}

TEST(Lz4TwoPhase, PagesThatAreTooLargeAreRefused) {
  // The first kernel refuses the page; the second must not change that.
  const auto stride = KernelArgument::number(kTwoPhaseStride / kStrideUnitBytes), one = KernelArgument::number(1);
  const Bytes size = bytes_of_words({kMaxPageBytes + 1});
  const auto matched = ptxkit::testing::emulate_launch(
      ptxkit::testing::kernel_image(kLz4MatchPage).ptx, kLz4MatchPage, 1, kLz4CompressPageShape.block_threads,
      {KernelArgument::input(Bytes(kTwoPhaseStride)), KernelArgument::input(size),
       KernelArgument::output(kMaxPageMatches * 8), KernelArgument::output(4), KernelArgument::output(1), stride, one});
  ASSERT_EQ(matched.report, "");
  EXPECT_EQ(matched.buffers[4][0], static_cast<uint8_t>(PageFlag::refused));
  EXPECT_EQ(word_at(matched.buffers[3], 0), 0u);
  const auto encoded = ptxkit::testing::emulate_launch(
      ptxkit::testing::kernel_image(kLz4EncodePage).ptx, kLz4EncodePage, 1, kLz4CompressPageShape.block_threads,
      {KernelArgument::input(Bytes(kTwoPhaseStride)), KernelArgument::input(size),
       KernelArgument::output(kMaxPageMatches * 8), KernelArgument::input(matched.buffers[3]),
       KernelArgument::output(kTwoPhaseStride), KernelArgument::output(4), KernelArgument::input(matched.buffers[4]),
       stride, stride, one});
  ASSERT_EQ(encoded.report, "");
  EXPECT_EQ(encoded.buffers[6][0], static_cast<uint8_t>(PageFlag::refused));
  EXPECT_EQ(word_at(encoded.buffers[5], 0), 0u);
}

}  // namespace
}  // namespace ptxkit::kernels
