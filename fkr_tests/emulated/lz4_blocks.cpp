#include "fkr_tests/emulated/lz4_blocks.hpp"

#include <algorithm>

namespace ptxkit::testing {

Block block_of_sequences(const std::vector<Lz4Sequence>& sequences) {
  Block block{};
  const auto extend = [&](uint32_t length) {
    for (; length >= 255; length -= 255) block.bytes.push_back(255);
    block.bytes.push_back(static_cast<uint8_t>(length));
  };
  for (const Lz4Sequence& each : sequences) {
    const uint32_t beyond_minimum = each.match_length ? each.match_length - 4 : 0;
    block.bytes.push_back(static_cast<uint8_t>(std::min(each.literal_count, 15u) << 4 | std::min(beyond_minimum, 15u)));
    if (each.literal_count >= 15) extend(each.literal_count - 15);
    for (uint32_t i = 0; i < each.literal_count; ++i) block.bytes.push_back(static_cast<uint8_t>(7 * i + i / 32));
    block.capacity += each.literal_count + each.match_length;
    if (each.match_length == 0) break;
    block.bytes.push_back(static_cast<uint8_t>(each.offset));
    block.bytes.push_back(static_cast<uint8_t>(each.offset >> 8));
    if (beyond_minimum >= 15) extend(beyond_minimum - 15);
  }
  return block;
}

std::vector<Block> blocks_that_the_staged_part_cuts() {
  std::vector<Block> blocks;
  for (uint32_t longer = 70; longer < 86; ++longer) {
    std::vector<Lz4Sequence> sequences(31, {55, 7, 4});
    sequences.push_back({longer, 7, 4});
    sequences.insert(sequences.end(), 20, {269, 7, 4});
    sequences.push_back({20, 0, 0});
    blocks.push_back(block_of_sequences(sequences));
  }
  return blocks;
}

}  // namespace ptxkit::testing
