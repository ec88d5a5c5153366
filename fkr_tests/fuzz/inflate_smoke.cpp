// A bounded run of the fuzz target of the Deflate decoder in every test run: items of libdeflate and zlib, and items
// made by hand, damaged by a seeded generator. The same seeds give the same inputs everywhere. usage: inflate_smoke
// [COUNT]
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "fkr_tests/cases/deflate_streams.hpp"
#include "fkr_tests/fuzz/stream_damage.hpp"

namespace ptxkit {
namespace {

using testing::Bytes;
using testing::DeflateFraming;

Bytes item_of(DeflateFraming framing, std::mt19937& random) {
  const auto seed = [&] { return static_cast<uint32_t>(random()); };
  const Bytes raw = random() % 4 == 0 ? testing::random_bytes(random() % 300, seed())
                                      : testing::matchable_bytes(random() % 3000, seed());
  if (random() % 2 == 0) return testing::libdeflate_item(raw, static_cast<int>(random() % 13), framing);
  return testing::zlib_item(raw, static_cast<int>(random() % 10),
                            {.framing = framing,
                             .strategy = static_cast<int>(random() % 5),
                             .memory_level = static_cast<int>(1 + random() % 9),
                             .flush_bytes = random() % 4 == 0 ? size_t{700} : 0});
}

std::vector<uint8_t> valid_stream(std::mt19937& random) {
  static const auto by_hand = testing::deflate_items_to_damage(500);
  // Mostly without checksums, which would detect most damage at once.
  auto framing = random() % 3 != 0 ? DeflateFraming::raw : static_cast<DeflateFraming>(random() % 3);
  Bytes item;
  if (random() % 4 == 0) {
    const auto& of = by_hand[random() % by_hand.size()];
    framing = std::min(of.framing, DeflateFraming::gzip);
    item = of.item;
  } else {
    item = item_of(framing, random);
    if (framing == DeflateFraming::gzip && random() % 2 == 0) {
      const Bytes more = item_of(framing, random);
      item.insert(item.end(), more.begin(), more.end());
    }
  }
  item.insert(item.begin(), static_cast<uint8_t>(framing));
  return item;
}

}  // namespace
}  // namespace ptxkit

int main(int argc, char** argv) { return ptxkit::fuzz::run_damaged(argc, argv, ptxkit::valid_stream); }
