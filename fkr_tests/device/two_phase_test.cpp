// LZ4 pages in two kernels on a GPU: the bytes of the fused compressor.
#include <gtest/gtest.h>

#include "fkr_tests/cases/lz4_two_phase_cases.hpp"
#include "fkr_tests/device/device.hpp"
#include "fkr_tests/device/launch.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::launch;

TEST(DeviceTwoPhase, PagesOfEveryKind) {
  PTXKIT_REQUIRE_DEVICE();
  expect_two_phases_as_fused(launch, ptxkit::testing::pages_of_every_kind());
}

TEST(DeviceTwoPhase, Corpus) {
  PTXKIT_REQUIRE_DEVICE();
  PTXKIT_REQUIRE_CORPUS();
  expect_two_phases_as_fused(launch, ptxkit::testing::pages_of_the_corpus());
}

}  // namespace
}  // namespace ptxkit::kernels
