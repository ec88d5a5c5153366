// The encoder of Deflate as PTX: the bytes of its reference, which libdeflate and zlib decode.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fkr_tests/cases/deflate_chain.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"
#include "fkr_tests/emulated/zstd_machine.hpp"
#include "kernels/deflate/deflate_reference.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::EmulatedZstdMachine;
using ptxkit::testing::ZstdItem;

Bytes packed_matches(const std::vector<Lz4Sequence>& matches) {
  Bytes bytes;
  for (const auto& [literal_count, length, offset] : matches) {
    for (const uint32_t word : {literal_count | length << 16, offset}) {
      for (uint32_t byte = 0; byte < 4; ++byte) bytes.push_back(static_cast<uint8_t>(word >> 8 * byte));
    }
  }
  return bytes;
}

void expect_deflated(const std::vector<Bytes>& raws, DeflateFraming framing, bool is_high, std::string_view build) {
  std::vector<ZstdItem> items;
  size_t largest = 0;
  for (const Bytes& raw : raws) {
    items.push_back({.bytes = raw});
    largest = std::max(largest, raw.size());
  }
  const auto& variant = is_high ? kHighVariant : kChunkVariant;
  EmulatedZstdMachine machine(build);
  const auto made = deflate_on(machine, items, static_cast<uint32_t>(largest), framing, is_high);
  EXPECT_EQ(made.statuses, std::vector<uint32_t>(raws.size()));
  for (size_t i = 0; i < raws.size(); ++i) {
    SCOPED_TRACE("item " + std::to_string(i) + " of " + std::to_string(raws[i].size()) + " bytes, framing " +
                 std::to_string(static_cast<int>(framing)) + ", " + std::string(build));
    EXPECT_TRUE(made.matches[i] == packed_matches(lz4_parse_reference(raws[i], variant, kDeflateWindowBytes)));
    const Bytes expected = deflate_reference(raws[i], variant, framing);
    EXPECT_EQ(made.streams[i].size(), expected.size());
    EXPECT_TRUE(made.streams[i] == expected);
  }
}

TEST(DeflateEncode, ItemsOfEveryKindAndFraming) {
  const auto items = ptxkit::testing::deflate_items(10'000);
  for (const DeflateFraming framing : ptxkit::testing::kEveryDeflateFraming)
    expect_deflated(items, framing, framing != DeflateFraming::gzip, "release");
  const auto short_items = ptxkit::testing::deflate_items(1500);
  for (const DeflateFraming framing : ptxkit::testing::kEveryDeflateFraming)
    expect_deflated(short_items, framing, framing == DeflateFraming::bgzf, "debug");
}

// Stored bytes that need two blocks, matches as far back as the window, and runs as long as an item.
TEST(DeflateEncode, TheLargestItems) {
  Bytes far = ptxkit::testing::random_bytes(32'768, 3), farther = ptxkit::testing::random_bytes(32'769, 4);
  far.insert(far.end(), far.begin(), far.begin() + 30'000);
  farther.insert(farther.end(), farther.begin(), farther.begin() + 30'000);
  const std::vector<Bytes> raws = {Bytes(65'536),
                                   ptxkit::testing::random_bytes(65'536, 1),
                                   ptxkit::testing::random_bytes(65'535, 2),
                                   ptxkit::testing::mixed_content(65'536),
                                   ptxkit::testing::fibonacci_bytes(65'536),
                                   far,
                                   farther,
                                   Bytes(65'536, 255)};
  expect_deflated(raws, DeflateFraming::gzip, false, "release");
  expect_deflated(raws, DeflateFraming::zlib, true, "release");
  expect_deflated({ptxkit::testing::random_bytes(kBgzfMaxRawBytes, 1)}, DeflateFraming::bgzf, true, "debug");
}

TEST(DeflateEncode, AnItemThatIsWrongAffectsNoOther) {
  const Bytes raw = ptxkit::testing::matchable_bytes(3000, 1);
  const std::vector<ZstdItem> items = {{.bytes = raw},
                                       {.bytes = raw, .claimed_bytes = 3001},
                                       {.bytes = raw, .claimed_bytes = uint64_t{1} << 32 | 5},
                                       {.bytes = raw, .is_null = true},
                                       {.bytes = {}, .is_null = true},
                                       {.bytes = raw, .is_room_null = true},
                                       {.bytes = raw, .misalignment = 8},
                                       {.bytes = raw}};
  for (const auto build : ptxkit::testing::kVariants) {
    EmulatedZstdMachine machine(build);
    const auto made = deflate_on(machine, items, 3000, DeflateFraming::bgzf, false);
    std::vector<uint32_t> expected;
    for (const BatchStatus status :
         {BatchStatus::ok, BatchStatus::too_large, BatchStatus::too_large, BatchStatus::invalid_value, BatchStatus::ok,
          BatchStatus::invalid_value, BatchStatus::misaligned, BatchStatus::ok})
      expected.push_back(static_cast<uint32_t>(status));
    EXPECT_EQ(made.statuses, expected);
    const Bytes stream = deflate_reference(raw, kChunkVariant, DeflateFraming::bgzf);
    for (size_t i = 0; i < items.size(); ++i) {
      const bool is_good = i == 0 || i == 7;
      EXPECT_TRUE(made.streams[i] == (is_good  ? stream
                                      : i == 4 ? deflate_reference({}, kChunkVariant, DeflateFraming::bgzf)
                                               : Bytes()))
          << i;
    }
  }
}

// A member of BGZF has fewer bytes than an item of the other framings.
TEST(DeflateEncode, AnItemOfBgzfIsSmaller) {
  const std::vector<ZstdItem> items = {{.bytes = Bytes(kBgzfMaxRawBytes)}, {.bytes = Bytes(kBgzfMaxRawBytes + 1)}};
  EmulatedZstdMachine machine("release");
  const auto made = deflate_on(machine, items, kMaxChunkBytes, DeflateFraming::bgzf, false);
  EXPECT_EQ(made.statuses, (std::vector<uint32_t>{0, static_cast<uint32_t>(BatchStatus::too_large)}));
}

}  // namespace
}  // namespace ptxkit::kernels
