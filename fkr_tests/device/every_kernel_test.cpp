// Every kernel on a GPU: the launches that the emulator's tests make, with the same results.
#include "fkr_tests/cases/every_kernel.hpp"

#include <set>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "fkr_tests/device/device.hpp"
#include "fkr_tests/device/launch.hpp"

namespace ptxkit::testing {
namespace {

class OnDevice final : public EveryKernel {
 public:
  OnDevice() : EveryKernel(true) {}

 protected:
  Buffers launch(const kernels::KernelImage& image, uint32_t grid, const kernels::LaunchSize&,
                 const std::vector<KernelArgument>& arguments, const std::set<std::string_view>&) override {
    return named(image, arguments, ptxkit::testing::launch(image.name, grid, image.block_threads, arguments));
  }
};

TEST(DeviceEveryKernel, GivesTheReferencesResult) {
  PTXKIT_REQUIRE_DEVICE();
  OnDevice().run_all();
}

}  // namespace
}  // namespace ptxkit::testing
