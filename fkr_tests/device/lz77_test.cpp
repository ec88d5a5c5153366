// Match finders and demux on a GPU: the references' results for every position, and the time of the batch kernel for a
// block of 4 MiB.
#include <random>

#include <gtest/gtest.h>

#include "fkr_tests/cases/lz77_cases.hpp"
#include "fkr_tests/device/device.hpp"
#include "fkr_tests/device/launch.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::last_seconds;
using ptxkit::testing::launch;

TEST(DeviceLz77, AwkwardSizes) {
  PTXKIT_REQUIRE_DEVICE();
  for (const size_t size : {1u, 2u, 3u, 31u, 32u, 33u, 257u, 4095u, 4096u, 4097u, 65537u}) {
    SCOPED_TRACE(size);
    expect_lz77_as_reference(launch, ptxkit::testing::matchable_bytes(size, 1), 300);
  }
}

TEST(DeviceLz77, TwoBlocksOfOneLaunch) {
  PTXKIT_REQUIRE_DEVICE();
  for (const size_t shorter : {5001u, 0u}) {
    expect_finders_take_blocks(launch, ptxkit::testing::matchable_bytes(70000, 1),
                               ptxkit::testing::matchable_bytes(shorter, 2), 300);
  }
}

TEST(DeviceLz77, RunsNoiseAndEverythingInBetween) {
  PTXKIT_REQUIRE_DEVICE();
  for (const Bytes& raw : {Bytes(5000, 'x'), ptxkit::testing::random_bytes(5000, 1), ptxkit::testing::ramp_bytes(5000),
                           ptxkit::testing::fibonacci_bytes(5000)}) {
    expect_lz77_as_reference(launch, raw, kLzMaxWindow + 1);
  }
}

TEST(DeviceLz77, EveryCorpusFile) {
  PTXKIT_REQUIRE_DEVICE();
  PTXKIT_REQUIRE_CORPUS();
  for (const auto& path : ptxkit::testing::corpus_files()) {
    SCOPED_TRACE(path);
    const Bytes raw = ptxkit::testing::read_prefix(path, 256 << 10);
    if (!raw.empty()) expect_lz77_as_reference(launch, raw, 0);
  }
}

// No block of 4 MiB keeps the batch kernel busy for more than 100 ms, including the worst case of a single symbol.
TEST(DeviceLz77, BatchIsBoundedAtFourMebibytes) {
  PTXKIT_REQUIRE_DEVICE();
  for (const Bytes& raw : {Bytes(4 << 20, 'x'), ptxkit::testing::matchable_bytes(4 << 20, 1)}) {
    ptxkit::testing::Lz77OnDevice device(launch, raw);
    const Bytes links = device.link();
    EXPECT_LT(last_seconds(), 0.1) << "lz77_link";
    const Bytes matches = device.find(kLz77Batch, links, kLzBatchPositions);
    EXPECT_LT(last_seconds(), 0.1) << "lz77_batch";
    EXPECT_TRUE(ptxkit::testing::matches_of(matches) == lz77_batch_reference(raw));
  }
}

// The same for the kernel that tries every offset: its window shrinks as the block grows. Runs that end at random
// positions are its worst case, since they have many long matches and few of maximal length.
TEST(DeviceLz77, PerPositionIsBoundedAtFourMebibytes) {
  PTXKIT_REQUIRE_DEVICE();
  Bytes runs(4 << 20, 'x');
  std::mt19937 random(1);
  for (size_t at = 0; at < runs.size(); at += 100 + random() % 150) runs[at] = 'y';
  constexpr uint32_t kWindow = kLzMaxWindowWork / (4 << 20);
  for (const Bytes& raw : {runs, Bytes(4 << 20, 'x'), ptxkit::testing::matchable_bytes(4 << 20, 1)}) {
    ptxkit::testing::Lz77OnDevice device(launch, raw);
    LzMatches matches = ptxkit::testing::matches_of(device.per_position(kLzMaxWindow));
    EXPECT_LT(last_seconds(), 0.1);
    constexpr size_t kCompared = 60000;
    const std::span<const uint8_t> front(raw.data(), kCompared + kLzMaxMatch);
    LzMatches expected = lz77_per_position_reference(front, kWindow);
    expected.resize(kCompared);
    matches.resize(kCompared);
    EXPECT_TRUE(matches == expected);
  }
}

}  // namespace
}  // namespace ptxkit::kernels
