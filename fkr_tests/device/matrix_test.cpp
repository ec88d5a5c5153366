// wgmma and sparse mma: the emulator's bits must be the GPU's.
#include <cstdlib>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fkr_tests/device/device.hpp"
#include "fkr_tests/device/form_cases.hpp"
#include "fkr_tests/device/matrix_cases.hpp"

namespace ptxkit::testing {
namespace {

TEST(DeviceMatrix, TheEmulatorsBitsAreTheDevices) {
  PTXKIT_REQUIRE_DEVICE();
  if ((*device())->info().major != 9) GTEST_SKIP() << "wgmma is of compute capability 9.0 only";
  std::string record;
  for (const MatrixCase& each : matrix_cases()) {
    const auto real = run_in_out(each.ptx, "matrix", each.threads, each.in, each.out_bytes),
               emulated = emulate_matrix(each);
    ASSERT_TRUE(real) << each.name << ": " << real.error().message();
    ASSERT_TRUE(emulated) << each.name << ": " << emulated.error().message();
    EXPECT_TRUE(*real == *emulated) << each.name;
    record += fmt::format("{:016x} {}\n", form_hash(*real), each.name);
  }
  if (const char* file = std::getenv("PTXKIT_RECORD_MATRICES")) std::ofstream(file) << record;
}

}  // namespace
}  // namespace ptxkit::testing
