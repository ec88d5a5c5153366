// The encoder of Deflate on a GPU: the streams of the reference, which libdeflate decodes, and the time of each kernel.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <libdeflate.h>

#include "fkr_tests/cases/deflate_chain.hpp"
#include "fkr_tests/device/device.hpp"
#include "fkr_tests/device/zstd_machine.hpp"
#include "kernels/deflate/deflate_reference.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::DeviceZstdMachine;
using ptxkit::testing::ZstdItem;

void expect_deflated(const std::vector<Bytes>& raws, DeflateFraming framing) {
  std::vector<ZstdItem> items;
  size_t largest = 0;
  for (const Bytes& raw : raws) {
    items.push_back({.bytes = raw});
    largest = std::max(largest, raw.size());
  }
  for (const bool is_high : {false, true}) {
    DeviceZstdMachine machine;
    const auto made = deflate_on(machine, items, static_cast<uint32_t>(largest), framing, is_high);
    EXPECT_EQ(made.statuses, std::vector<uint32_t>(items.size()));
    for (size_t i = 0; i < items.size(); ++i) {
      EXPECT_TRUE(made.streams[i] == deflate_reference(raws[i], is_high ? kHighVariant : kChunkVariant, framing))
          << "item " << i << " of " << raws[i].size() << " bytes, framing " << static_cast<int>(framing);
    }
  }
}

TEST(DeviceShortDeflate, ItemsOfEveryKindAndFraming) {
  PTXKIT_REQUIRE_DEVICE();
  const auto items = ptxkit::testing::deflate_items(1500);
  for (const DeflateFraming framing : ptxkit::testing::kEveryDeflateFraming) expect_deflated(items, framing);
}

TEST(DeviceDeflate, ItemsOfEveryKindAndFraming) {
  PTXKIT_REQUIRE_DEVICE();
  const auto items = ptxkit::testing::deflate_items(kBgzfMaxRawBytes);
  for (const DeflateFraming framing : ptxkit::testing::kEveryDeflateFraming) expect_deflated(items, framing);
  expect_deflated({Bytes(kMaxChunkBytes), ptxkit::testing::random_bytes(kMaxChunkBytes, 1),
                   ptxkit::testing::mixed_content(kMaxChunkBytes)},
                  DeflateFraming::gzip);
}

// Every file as members of BGZF, repeated to at least $PTXKIT_DEFLATE_MIB (default 1); prints GB/s of each kernel.
TEST(DeviceDeflate, CorpusAndSpeed) {
  PTXKIT_REQUIRE_DEVICE();
  PTXKIT_REQUIRE_CORPUS();
  const char* const wanted = std::getenv("PTXKIT_DEFLATE_MIB");
  const size_t wanted_bytes = (wanted == nullptr ? 1 : std::stoul(wanted)) << 20;
  for (const auto& path : ptxkit::testing::corpus_files()) {
    const Bytes raw = ptxkit::testing::read_prefix(path, 16 << 20);
    std::vector<ZstdItem> items;
    for (size_t at = 0, total = 0; total < wanted_bytes;
         at = at + kBgzfMaxRawBytes < raw.size() ? at + kBgzfMaxRawBytes : 0) {
      const auto begin = raw.begin() + static_cast<ptrdiff_t>(at);
      const size_t size = std::min<size_t>(kBgzfMaxRawBytes, raw.size() - at);
      items.push_back({.bytes = Bytes(begin, begin + static_cast<ptrdiff_t>(size))});
      total += size;
    }
    for (const bool is_high : {false, true}) {
      DeviceZstdMachine machine;
      const auto made = deflate_on(machine, items, kBgzfMaxRawBytes, DeflateFraming::bgzf, is_high);
      EXPECT_EQ(made.statuses, std::vector<uint32_t>(items.size()));
      size_t raw_bytes = 0, coded_bytes = 0;
      auto* const decoder = libdeflate_alloc_decompressor();
      for (size_t i = 0; i < items.size(); ++i) {
        const Bytes &item = items[i].bytes, &stream = made.streams[i];
        raw_bytes += item.size();
        coded_bytes += stream.size();
        Bytes decoded(item.size());
        size_t decoded_bytes = 0;
        EXPECT_EQ(libdeflate_gzip_decompress(decoder, stream.data(), stream.size(), decoded.data(), decoded.size(),
                                             &decoded_bytes),
                  LIBDEFLATE_SUCCESS);
        EXPECT_TRUE(decoded_bytes == item.size() && decoded == item) << path.filename() << ", item " << i;
      }
      libdeflate_free_decompressor(decoder);
      for (size_t i = 0; i < std::min<size_t>(items.size(), 16); ++i) {
        EXPECT_TRUE(made.streams[i] ==
                    deflate_reference(items[i].bytes, is_high ? kHighVariant : kChunkVariant, DeflateFraming::bgzf))
            << path.filename() << ", item " << i;
      }
      std::cout << path.filename().string() << ", ratio "
                << static_cast<double>(raw_bytes) / static_cast<double>(coded_bytes);
      machine.print_rates(raw_bytes);
    }
  }
}

}  // namespace
}  // namespace ptxkit::kernels
