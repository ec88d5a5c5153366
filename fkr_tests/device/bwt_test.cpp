// The BWT kernels on a GPU: the reference's blocks, the order of the suffixes, the inverse, and the speed.
#include <cstdio>

#include <gtest/gtest.h>

#include "fkr_tests/cases/bwt_cases.hpp"
#include "fkr_tests/device/device.hpp"
#include "fkr_tests/device/launch.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::BwtKernel;
using ptxkit::testing::Bytes;
using ptxkit::testing::launch;

const std::vector<size_t> kSizes = {0, 1, 2, 3, 31, 32, 33, 257, 4093, 4095, 4096, 4097};

// Runs all kernels of the codec over `raws`, in the codec's order, and back.
void expect_codec_as_reference(const BwtKernel& sort, const std::vector<Bytes>& raws) {
  expect_bwt_blocks(launch, sort, raws);
  expect_bwt_inverted(launch, raws);
  std::vector<Bytes> columns, places;
  for (const Bytes& raw : raws) {
    const Bytes block = ptxkit::testing::bwt_block(raw);
    columns.emplace_back(block.end() - static_cast<ptrdiff_t>(raw.size()), block.end());
    places.push_back(columns.back());
    mtf_encode_reference(places.back(), places.back());
  }
  const uint32_t longest = ptxkit::testing::longest_of(raws);
  EXPECT_TRUE(expect_column_as_reference(launch, ptxkit::testing::mtf_encode(), columns, longest) == places);
  EXPECT_TRUE(expect_column_as_reference(launch, ptxkit::testing::mtf_decode(), places, longest) == columns);
  const auto runs =
      expect_column_as_reference(launch, ptxkit::testing::zero_runs_encode(), places, zero_runs_bound(longest));
  EXPECT_TRUE(expect_column_as_reference(launch, ptxkit::testing::zero_runs_decode(), runs, longest) == places);
}

// Small enough for an emulated GPU, or for compute-sanitizer.
TEST(DeviceShortBwt, ComesBack) {
  PTXKIT_REQUIRE_DEVICE();
  for (const BwtKernel& sort : ptxkit::testing::bwt_sorts())
    expect_codec_as_reference(sort, {{}, {7}, Bytes(33, 'x'), ptxkit::testing::matchable_bytes(300, 1)});
}

TEST(DeviceBwt, AwkwardSizes) {
  PTXKIT_REQUIRE_DEVICE();
  const auto raws = ptxkit::testing::bwt_inputs(kSizes);
  for (const BwtKernel& sort : ptxkit::testing::bwt_sorts()) expect_codec_as_reference(sort, raws);
}

TEST(DeviceBwt, GroupsAroundAWarp) {
  PTXKIT_REQUIRE_DEVICE();
  for (const BwtKernel& sort : {ptxkit::testing::bwt_rank(), ptxkit::testing::bwt_radix()})
    expect_codec_as_reference(sort, ptxkit::testing::grouped_inputs());
}

TEST(DeviceBwt, AtTheBound) {
  PTXKIT_REQUIRE_DEVICE();
  for (const BwtKernel& sort : {ptxkit::testing::bwt_rank(), ptxkit::testing::bwt_radix()}) {
    expect_codec_as_reference(sort, {Bytes(kMaxBwtBytes, 'x'), ptxkit::testing::matchable_bytes(kMaxBwtBytes, 1),
                                     ptxkit::testing::random_bytes(kMaxBwtBytes - 1, 1)});
  }
}

TEST(DeviceBwt, DamageHasAStatus) {
  PTXKIT_REQUIRE_DEVICE();
  std::mt19937 random(1);
  const auto blocks = ptxkit::testing::damaged_bwt_blocks({1, 2, 40, 300, 9000, 70000}, random);
  expect_bwt_as_reference(launch, ptxkit::testing::bwt_inverse(), blocks, 70016, 70016);
  std::vector<Bytes> runs(200);
  for (Bytes& coded : runs) {
    coded = ptxkit::testing::random_bytes(random() % 3000, static_cast<uint32_t>(random()));
    for (uint8_t& byte : coded) byte = byte < 200 ? byte % 2 : byte;
  }
  expect_column_as_reference(launch, ptxkit::testing::zero_runs_decode(), runs, 4096);
}

// 256 MiB of the corpus in blocks of 64 KiB: the same bytes, and the speed of each kernel.
TEST(DeviceBwt, BlocksOfTheCorpus) {
  PTXKIT_REQUIRE_DEVICE();
  PTXKIT_REQUIRE_CORPUS();
  constexpr uint32_t kBlock = 65536, kBlocks = 4096;
  std::vector<Bytes> raws;
  for (const auto& path : ptxkit::testing::corpus_files()) {
    const Bytes file = ptxkit::testing::read_prefix(path, 8 * kBlock);
    for (size_t at = 0; at + kBlock <= file.size(); at += kBlock)
      raws.emplace_back(file.begin() + static_cast<ptrdiff_t>(at), file.begin() + static_cast<ptrdiff_t>(at + kBlock));
  }
  ASSERT_FALSE(raws.empty());
  const auto run = [&](BwtKernel kernel, const std::vector<Bytes>& items, uint32_t room) {
    const auto results = expect_bwt_as_reference(launch, kernel, items, kBlock, room);
    std::vector<Bytes> many;
    for (size_t i = 0; i < kBlocks; ++i) many.push_back(items[i % items.size()]);
    kernel.leaves_order = false;  // the order takes 16 bytes for each byte, and would be checked
    double best = 1e9;
    for (int turn = 0; turn < 3; ++turn) {
      const auto ran = run_bwt_kernel(launch, kernel, many, kBlock, room);
      for (size_t i = 0; i < ran.sizes.size(); ++i) EXPECT_TRUE(ran.result(i) == results[i % items.size()]);
      best = std::min(best, ptxkit::testing::last_seconds());
    }
    std::printf("%s: %.2f GB/s\n", std::string(kernel.name).c_str(), double{kBlocks} * kBlock / best / 1e9);
    return results;
  };
  const uint32_t block_bytes = bwt_block_bytes(kBlock);
  const auto blocks = run(ptxkit::testing::bwt_rank(), raws, block_bytes);
  EXPECT_TRUE(run(ptxkit::testing::bwt_radix(), raws, block_bytes) == blocks);
  EXPECT_TRUE(run(ptxkit::testing::bwt_inverse(), blocks, kBlock) == raws);
  std::vector<Bytes> columns;
  for (const Bytes& block : blocks) columns.emplace_back(block.end() - kBlock, block.end());
  const auto places = run(ptxkit::testing::mtf_encode(), columns, kBlock);
  EXPECT_TRUE(run(ptxkit::testing::mtf_decode(), places, kBlock) == columns);
  const auto runs = run(ptxkit::testing::zero_runs_encode(), places, zero_runs_bound(kBlock));
  EXPECT_TRUE(run(ptxkit::testing::zero_runs_decode(), runs, kBlock) == places);
}

}  // namespace
}  // namespace ptxkit::kernels
