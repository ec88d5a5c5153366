// Batches of Zstandard frames through the launches of the library: the statuses of the reference, and the memory that
// the requirements name.
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fkr_tests/cases/zstd_frames.hpp"
#include "fkr_tests/emulated/lz4_batches.hpp"
#include "kernels/zstd/zstd_decode_format.hpp"
#include "kernels/zstd/zstd_decode_reference.hpp"

namespace ptxkit::kernels {
namespace {

using library::Coding;
using library::DeviceBatches;
using library::Framing;
using ptxkit::testing::BatchCase;
using ptxkit::testing::BatchOptions;
using ptxkit::testing::Bytes;

BatchOptions zstd_options() { return {.framing = Framing::frame, .coding = Coding::zstd}; }

TEST(ZstdLibrary, DecodesFramesByHandAndDamagedOnes) {
  std::vector<BatchCase> items;
  for (const auto& frame : ptxkit::testing::zstd_frames_by_hand()) {
    if (frame.room <= 3000) items.push_back({.bytes = frame.item, .capacity = frame.room});
  }
  std::mt19937 random(3);
  for (const auto& frame : ptxkit::testing::zstd_items_to_damage(2000))
    items.push_back({.bytes = ptxkit::testing::damaged_zstd(frame.item, random), .capacity = frame.raw.size()});
  const auto ran = decompress_batch(items, zstd_options());
  ASSERT_EQ(ran.report, "");
  for (size_t i = 0; i < items.size(); ++i) {
    Bytes expected(items[i].capacity);
    const auto outcome = zstd_decode_reference(items[i].bytes, expected);
    expected.resize(outcome.size_bytes);
    ASSERT_EQ(ran.statuses[i], static_cast<uint32_t>(outcome.status)) << i << ": " << outcome.reason;
    EXPECT_TRUE(ran.outputs[i] == expected) << i;
  }
}

TEST(ZstdLibrary, MoreBlocksThanAreListed) {
  const Bytes raw = ptxkit::testing::matchable_bytes(20'000, 1);
  const Bytes frame = ptxkit::testing::libzstd_frame(raw, 3, {.flush_bytes = 500});
  const auto ran = decompress_batch({{.bytes = frame, .capacity = raw.size()}}, zstd_options());
  ASSERT_EQ(ran.report, "");
  EXPECT_TRUE(ran.outputs.at(0) == raw);
}

// An item that needs more temporary memory is too large; the others are decoded.
TEST(ZstdLibrary, MemoryForSmallerItems) {
  const Bytes small = ptxkit::testing::matchable_bytes(1000, 1), large = ptxkit::testing::matchable_bytes(5000, 2);
  auto options = zstd_options();
  options.temp_bytes = DeviceBatches::requirements(1000, 2, Framing::frame, Coding::zstd)->decompress_temp_bytes;
  const auto ran = decompress_batch({{.bytes = ptxkit::testing::libzstd_frame(large, 1), .capacity = large.size()},
                                     {.bytes = ptxkit::testing::libzstd_frame(small, 1), .capacity = large.size()}},
                                    options);
  ASSERT_EQ(ran.report, "");
  EXPECT_EQ(ran.statuses, (std::vector<uint32_t>{static_cast<uint32_t>(BatchStatus::too_large), 0}));
  EXPECT_TRUE(ran.outputs.at(1) == small);
}

TEST(ZstdLibrary, ArgumentsThatCannotBeRight) {
  const auto error_of = [](const auto& result) { return result ? std::string() : result.error().message(); };
  EXPECT_EQ(error_of(DeviceBatches::requirements(1000, 1, Framing::raw, Coding::zstd)),
            "framing: Zstandard has FRAME alone");
  EXPECT_NE(error_of(DeviceBatches::requirements(kZstdMaxItemBytes + 1, 1, Framing::frame, Coding::zstd))
                .find("expected at most 268435456 of Zstandard, found 268435457"),
            std::string::npos);
  EXPECT_NE(error_of(DeviceBatches::requirements(kZstdMaxItemBytes, 1 << 20, Framing::frame, Coding::zstd))
                .find("expected at most 2147483647 blocks of 16 KiB"),
            std::string::npos);
  library::BatchDecompression batch{.inputs = 16,
                                    .input_bytes = 16,
                                    .output_capacities = 16,
                                    .item_count = 3,
                                    .temp = 16,
                                    .temp_bytes = 191,
                                    .outputs = 16,
                                    .framing = Framing::frame,
                                    .coding = Coding::zstd};
  EXPECT_NE(error_of(library::launches_of(batch)).find("temp: expected 192 bytes, found 191"), std::string::npos);
  batch.temp_bytes = 192;
  EXPECT_EQ(library::launches_of(batch)->size(), 5u);
  library::BatchCompression compression{.inputs = 16,
                                        .input_bytes = 16,
                                        .item_count = 1,
                                        .outputs = 16,
                                        .output_bytes = 16,
                                        .framing = Framing::frame,
                                        .coding = Coding::zstd};
  EXPECT_EQ(error_of(library::launches_of(compression)),
            "temp: expected 458992 bytes, found 0 at 0x0; see DeviceBatches::requirements");
  compression.temp = 16;
  compression.temp_bytes = 458'991;
  EXPECT_NE(error_of(library::launches_of(compression)).find("temp: expected 458992 bytes, found 458991 at 0x10"),
            std::string::npos);
  compression.temp_bytes = 458'992;
  EXPECT_EQ(library::launches_of(compression)->size(), 7u);
  EXPECT_EQ(library::launches_of(compression)->at(1).kernel, kZstdMatchHigh);
  compression.is_fast = true;
  EXPECT_EQ(library::launches_of(compression)->at(1).kernel, kZstdMatch);
}

}  // namespace
}  // namespace ptxkit::kernels
