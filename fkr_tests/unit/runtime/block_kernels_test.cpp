// The block codecs' kernels on the emulator.
#include "fkr_tests/block_cases.hpp"
#include "kernels/images.hpp"
#include "runtime/backend/kernels/emulator_machine.hpp"

namespace ptxkit::codec {
namespace {

using testing::Bytes;

BlockKernels emulated() {
  return BlockKernels(
      make_emulator_machine([](std::string_view name, std::uint32_t major,
                               std::uint32_t minor) { return kernels::find_kernel_image(name, major, minor); },
                            2));
}

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

}  // namespace
}  // namespace ptxkit::codec
