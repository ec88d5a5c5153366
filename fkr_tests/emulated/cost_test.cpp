// A kernel needs exactly what its cost block declares. Each kernel is run with buffers of exactly the declared sizes
// and gives the reference's result. With any one of them a byte shorter it accesses memory beyond the end. "Depends on
// the data": the size of an encoder's output, what demux skips, and what a decoder of whole words leaves unread.
#include "kernels/cost.hpp"

#include <gtest/gtest.h>

#include "fkr_tests/cases/every_kernel.hpp"
#include "kernels/bwt/abi.hpp"
#include "kernels/bwt/zero_runs_reference.hpp"
#include "kernels/lz77/abi.hpp"
#include "kernels/typed/typed_format.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::emulate_launch;
using ptxkit::testing::KernelArgument;

class KernelCosts : public ::testing::Test, public ptxkit::testing::EveryKernel {
 protected:
  KernelCosts() : EveryKernel(false) {}

  Buffers launch(const KernelImage& image, uint32_t grid, const LaunchSize& size,
                 const std::vector<KernelArgument>& arguments, const std::set<std::string_view>& by_content) override {
    const KernelCost cost = parse_kernel_cost(image.ptx).value();
    // lz77_link has the same number of threads for every block; it declares those of a block of 4 MiB.
    const uint64_t threads = uint64_t{grid} * image.block_threads;
    EXPECT_GE(threads, *cost.thread_count(size.input_bytes));
    if (image.name != kLz77Link) {
      EXPECT_LT(threads - *cost.thread_count(size.input_bytes), image.block_threads);
    }
    const auto done = emulate_launch(image.ptx, image.name, grid, image.block_threads, arguments);
    EXPECT_EQ(done.report, "");
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i].is_buffer || by_content.contains(image.parameters[i].name)) continue;
      auto shorter = arguments;
      --shorter[i].size_bytes;
      if (!shorter[i].bytes.empty()) shorter[i].bytes.pop_back();
      EXPECT_NE(emulate_launch(image.ptx, image.name, grid, image.block_threads, shorter).report, "")
          << image.parameters[i].name << " has a byte that the kernel does not access";
    }
    return ptxkit::testing::named(image, arguments, done.buffers);
  }
};

// The declared room of blocks suffices for every block, and is hardly larger.
TEST(RoomOfBlocks, IsWhatTheirBoundsAsk) {
  const auto room_of = [](std::string_view kernel, uint64_t item_bytes) {
    const KernelCost cost = parse_kernel_cost(ptxkit::testing::kernel_image(kernel).ptx).value();
    return cost.find_buffer("dst")->bytes.evaluate({item_bytes}).value();
  };
  for (uint32_t item_bytes = 16; item_bytes <= kMaxBwtBytes; item_bytes += item_bytes < 70'000 ? 16 : 4080) {
    const uint64_t lz = room_of(kDemuxScatter, item_bytes), bwt = room_of(kBwtRank, item_bytes);
    ASSERT_GE(lz, lz_block_bound(item_bytes)) << item_bytes;
    ASSERT_LE(lz, lz_block_bound(item_bytes) + 48) << item_bytes;
    ASSERT_GE(bwt, bwt_block_bytes(item_bytes)) << item_bytes;
    ASSERT_LE(bwt, bwt_block_bytes(item_bytes) + 28) << item_bytes;
    ASSERT_EQ(lz % kStrideUnitBytes + bwt % kStrideUnitBytes, 0u) << item_bytes;
    ASSERT_EQ(room_of(kZeroRunsEncode, item_bytes), zero_runs_bound(item_bytes));
  }
}

// Of whole members of every layout, as the encoder of `.ptz` has them.
TEST(RoomOfBlocks, OfNumbersIsWhatTheirBoundsAsk) {
  const KernelCost cost = parse_kernel_cost(ptxkit::testing::kernel_image(kTypedEncode).ptx).value();
  const auto of = [&](const char* buffer, uint64_t bytes) {
    return cost.find_buffer(buffer)->bytes.evaluate({bytes}).value();
  };
  for (uint32_t number = 1; number <= kTypedLayouts; ++number) {
    const auto layout = static_cast<TypedLayout>(number);
    const TypedShape shape = typed_shape(layout);
    for (uint64_t members = 1; members <= 40; ++members) {
      const uint64_t stride = members * kTypedMember * shape.element_bytes;
      ASSERT_EQ(of("outputs[]", stride) % kTypedAlignment, 0u);
      ASSERT_LE(of("outputs[]", stride), typed_bound(stride, layout) + stride / 2000);
      ASSERT_GE(of("coded_units", stride), 4 * members * shape.coded_planes);
      ASSERT_GE(of("slots", stride), kTypedMember * members * shape.coded_planes);
      for (const uint64_t less : {0, 1, 15, 127, 4095, 32767}) {
        ASSERT_GE(of("outputs[]", stride), typed_bound(stride - less, layout)) << number << " " << members;
      }
    }
  }
}

TEST_F(KernelCosts, OfEveryKernelAreWhatItNeeds) { run_all(); }

}  // namespace
}  // namespace ptxkit::kernels
