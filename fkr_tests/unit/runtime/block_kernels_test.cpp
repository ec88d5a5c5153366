// The block codecs' kernels on the emulator.
#include <numeric>

#include <gmock/gmock.h>

#include "fkr_tests/block_cases.hpp"
#include "fkr_tests/recording_machine.hpp"
#include "kernels/bwt/abi.hpp"
#include "kernels/images.hpp"
#include "runtime/backend/kernels/emulator_machine.hpp"

namespace ptxkit::codec {
namespace {

using testing::Bytes;

std::unique_ptr<Machine> emulator() { return make_emulator_machine(kernels::find_kernel_image, 2); }
BlockKernels emulated() { return BlockKernels(emulator()); }

// A device whose queues may not take more than so much.
class SmallMachine final : public testing::RecordingMachine {
 public:
  SmallMachine(std::vector<testing::RecordedLaunch>& launches, std::size_t queue_bytes)
      : RecordingMachine(emulator(), launches), queue_bytes_(queue_bytes) {}
  std::size_t queue_memory_bytes() const override { return queue_bytes_; }

 private:
  std::size_t queue_bytes_;
};

TEST(BlockKernels, GiveTheBytesOfTheCpu) {
  BlockKernels kernels = emulated();
  for (const format::PtzCodec codec : testing::kKernelCodecs) {
    testing::expect_blocks_as_on_the_cpu(
        kernels, codec,
        {{7}, Bytes(33, 'x'), testing::matchable_bytes(4097, 1), testing::random_bytes(3000, 1), Bytes(9000, 0)});
  }
}

// Every machine has work: a batch is as many blocks as all of them take.
TEST(BlockKernels, OfTwoMachinesGiveTheSameBytes) {
  for (const format::PtzCodec codec : testing::kKernelCodecs) {
    std::vector<testing::RecordedLaunch> launches[2];
    std::vector<std::unique_ptr<Machine>> machines;
    for (auto& of_one : launches) machines.push_back(std::make_unique<testing::RecordingMachine>(emulator(), of_one));
    BlockKernels kernels(std::move(machines));
    const std::size_t count = kernels.batch_blocks(codec, 700);
    std::vector<Bytes> blocks;
    for (std::size_t i = 0; i < 2 * count; ++i) blocks.push_back(testing::matchable_bytes(700 - i % 5, int(i)));
    testing::expect_blocks_as_on_the_cpu(kernels, codec, blocks);
    EXPECT_EQ(count % 2, 0u);
  }
}

TEST(BlockKernels, JudgeDamageAsTheCpuDoes) {
  BlockKernels kernels = emulated();
  for (const format::PtzCodec codec : testing::kKernelCodecs) {
    testing::expect_damage_as_on_the_cpu(kernels, codec, testing::matchable_bytes(3000, 2), 24);
  }
}

// From the match finder to the entropy coder: one submission a block of LZ77, and hardly more memory than the match
// finder's.
TEST(BlockKernels, ABlockIsOneSubmissionOfBuffersThatAreUsedAgain) {
  std::vector<testing::RecordedLaunch> launches;
  BlockKernels kernels(std::make_unique<testing::RecordingMachine>(emulator(), launches));
  const Bytes raw = testing::matchable_bytes(5000, 1);
  for (const format::PtzCodec codec : testing::kKernelCodecs) {
    if (codec == format::PtzCodec::bbw) continue;
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

// A block of 2000 bytes takes 60 KB with bbw, most of it the sort's scratch.
TEST(BlockKernels, GroupsOfBbwAreWhatFitsAQueue) {
  std::vector<testing::RecordedLaunch> launches;
  BlockKernels kernels(std::make_unique<SmallMachine>(launches, 170 << 10));
  testing::expect_blocks_as_on_the_cpu(kernels, format::PtzCodec::bbw,
                                       std::vector<Bytes>(5, testing::matchable_bytes(2000, 1)));
  std::vector<std::uint32_t> sorts;
  for (const testing::RecordedLaunch& launch : launches) {
    if (launch.kernel == kernels::kBwtRank) sorts.push_back(launch.grid_blocks);
  }
  EXPECT_EQ(sorts, (std::vector<std::uint32_t>{2, 2, 1}));
}

TEST(BlockKernels, ABlockThatFitsNoQueueIsAnError) {
  for (const format::PtzCodec codec : testing::kKernelCodecs) {
    std::vector<testing::RecordedLaunch> launches;
    BlockKernels kernels(std::make_unique<SmallMachine>(launches, 10000));
    const Bytes raw = testing::matchable_bytes(3000, 1), coded = encode_block(codec, raw);
    Bytes back(raw.size());
    std::vector<BlockToEncode> to_encode = {{raw}};
    const auto encoded = kernels.encode(codec, to_encode);
    ASSERT_FALSE(encoded.has_value());
    EXPECT_THAT(encoded.error().message(), ::testing::HasSubstr("bytes of device memory, a queue may take 10000"));
    EXPECT_THAT(encoded.error().message(), ::testing::HasSubstr("use --backend cpu"));
    if (codec != format::PtzCodec::bbw) continue;  // the others decode in less
    std::vector<BlockToDecode> to_decode = {{coded, back}};
    const auto decoded = kernels.decode(codec, to_decode);
    ASSERT_FALSE(decoded.has_value());
    EXPECT_THAT(decoded.error().message(), ::testing::HasSubstr("a block needs "));
  }
}

}  // namespace
}  // namespace ptxkit::codec
