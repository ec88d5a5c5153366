// The block codecs' kernels on the emulator.
#include <numeric>

#include "fkr_tests/block_cases.hpp"
#include "fkr_tests/recording_machine.hpp"
#include "kernels/images.hpp"
#include "runtime/backend/kernels/emulator_machine.hpp"

namespace ptxkit::codec {
namespace {

using testing::Bytes;

std::unique_ptr<Machine> emulator() {
  return make_emulator_machine([](std::string_view name, std::uint32_t major,
                                  std::uint32_t minor) { return kernels::find_kernel_image(name, major, minor); },
                               2);
}
BlockKernels emulated() { return BlockKernels(emulator()); }

TEST(BlockKernels, GiveTheBytesOfTheCpu) {
  BlockKernels kernels = emulated();
  for (const format::PtzCodec codec : testing::kKernelCodecs) {
    testing::expect_blocks_as_on_the_cpu(
        kernels, codec,
        {{7}, Bytes(33, 'x'), testing::matchable_bytes(4097, 1), testing::random_bytes(3000, 1), Bytes(9000, 0)});
  }
}

TEST(BlockKernels, JudgeDamageAsTheCpuDoes) {
  BlockKernels kernels = emulated();
  for (const format::PtzCodec codec : testing::kKernelCodecs) {
    testing::expect_damage_as_on_the_cpu(kernels, codec, testing::matchable_bytes(3000, 2), 24);
  }
}

// From the match finder to the entropy coder: one submission a block, and hardly more memory than the match finder's.
TEST(BlockKernels, ABlockIsOneSubmissionOfBuffersThatAreUsedAgain) {
  std::vector<testing::RecordedLaunch> launches;
  BlockKernels kernels(std::make_unique<testing::RecordingMachine>(emulator(), launches));
  const Bytes raw = testing::matchable_bytes(5000, 1);
  for (const format::PtzCodec codec : testing::kKernelCodecs) {
    launches.clear();
    BlockToEncode blocks[] = {{raw}, {raw}};
    ASSERT_TRUE(kernels.encode(codec, blocks));
    ASSERT_EQ(launches.size(), 12u);
    for (std::size_t i = 0; i < launches.size(); ++i) {
      EXPECT_NE(launches[i].chain, 0u);
      EXPECT_EQ(launches[i].chain == launches[0].chain, i < 6);
    }
    // raw, matches and resolved matches are the match finder's.
    const auto& bytes = launches[0].region_bytes;
    const auto finder = static_cast<double>(bytes[0] + bytes[1] + bytes[2]);
    EXPECT_LE(static_cast<double>(std::accumulate(bytes.begin(), bytes.end(), std::size_t{0})), 1.5 * finder);
  }
}

}  // namespace
}  // namespace ptxkit::codec
