// Match finders and demux as PTX: what the references say, position by position.
#include <gtest/gtest.h>

#include "fkr_tests/emulated/kernel_harness.hpp"
#include "fkr_tests/lz77_cases.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::emulator_launch;

TEST(Lz77, AwkwardSizes) {
  for (const auto build : ptxkit::testing::kVariants) {
    for (const size_t size : {1u, 2u, 3u, 4u, 31u, 32u, 33u, 257u}) {
      SCOPED_TRACE(size);
      expect_lz77_as_reference(emulator_launch(build), ptxkit::testing::matchable_bytes(size, 1), 40);
    }
  }
}

TEST(Lz77, AroundTheEndOfASegment) {
  for (const size_t size : {4095u, 4096u, 4097u}) {
    SCOPED_TRACE(size);
    expect_lz77_as_reference(emulator_launch("release"), ptxkit::testing::matchable_bytes(size, 2), 0);
  }
}

TEST(Lz77, RunsNoiseAndEverythingInBetween) {
  for (const Bytes& raw : {Bytes(200, 'x'), ptxkit::testing::random_bytes(300, 1), ptxkit::testing::ramp_bytes(400),
                           ptxkit::testing::fibonacci_bytes(150)}) {
    expect_lz77_as_reference(emulator_launch("debug"), raw, kLzMaxWindow + 1);
  }
}

}  // namespace
}  // namespace ptxkit::kernels
