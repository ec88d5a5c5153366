// The LZ77 kernels against their references, wherever they run: emulator and GPU give their own `launch`.
#pragma once

#include <cstring>
#include <string_view>

#include <gtest/gtest.h>

#include "fkr_tests/corpus.hpp"
#include "fkr_tests/kernel_argument.hpp"
#include "kernels/lz77/lz77_reference.hpp"

namespace ptxkit::testing {

// "abcdefghijkl", `between` times "abcd" and four bytes that are nowhere else, and the first twelve again: their best
// candidate is the one after so many others.
inline Bytes far_candidate(uint32_t between) {
  const std::string_view text = "abcdefghijkl";
  Bytes raw(text.begin(), text.end());
  for (uint32_t i = 0; i < between; ++i) {
    const auto low = static_cast<uint8_t>(i % 16), high = static_cast<uint8_t>(i / 16);
    raw.insert(raw.end(), {'a', 'b', 'c', 'd', static_cast<uint8_t>(0x80 + low), static_cast<uint8_t>(0xC0 + high),
                           static_cast<uint8_t>(0x90 + low), static_cast<uint8_t>(0xD0 + high)});
  }
  raw.insert(raw.end(), text.begin(), text.end());
  return raw;
}

// Noise in which the eight bytes in front and those at `distance` are the same.
inline Bytes far_match(uint32_t distance) {
  Bytes raw = random_bytes(distance + 20, distance);
  std::copy_n(raw.begin(), 8, raw.begin() + distance);
  return raw;
}

inline kernels::LzMatches matches_of(const Bytes& bytes) {
  kernels::LzMatches matches(bytes.size() / sizeof(kernels::LzMatch));
  if (!bytes.empty()) std::memcpy(matches.data(), bytes.data(), bytes.size());
  return matches;
}

inline Bytes bytes_of_matches(const kernels::LzMatches& matches) {
  Bytes bytes(matches.size() * sizeof(kernels::LzMatch));
  if (!bytes.empty()) std::memcpy(bytes.data(), matches.data(), bytes.size());
  return bytes;
}

// Every kernel of the family over one block.
class Lz77OnDevice {
 public:
  Lz77OnDevice(Launch launch, const Bytes& raw)
      : launch_(std::move(launch)), raw_(raw), padded_(raw), size_(static_cast<uint32_t>(raw.size())) {
    padded_.resize((raw.size() + 15) / 16 * 16, 0xa5);
  }

  Bytes link() {
    const auto buffers =
        launch_(kernels::kLz77Link, kernels::kLzLinkBlocks, 32, {src(), size(), KernelArgument::output(match_bytes())});
    return buffers.empty() ? Bytes() : buffers[1];
  }
  // hash, batch: fill in what lz77_link began.
  Bytes find(std::string_view kernel, const Bytes& links, uint32_t positions_a_thread) {
    const auto buffers = launch_(kernel, ctas(positions_a_thread * kernels::kLzBlockThreads), kernels::kLzBlockThreads,
                                 {src(), size(), KernelArgument::input(links)});
    return buffers.empty() ? Bytes() : buffers[1];
  }
  Bytes lazy(const Bytes& matches) {
    const auto buffers = launch_(kernels::kLz77Lazy, ctas(kernels::kLzBlockThreads), kernels::kLzBlockThreads,
                                 {KernelArgument::input(matches), KernelArgument::output(match_bytes()), size()});
    return buffers.empty() ? Bytes() : buffers[1];
  }
  Bytes per_position(uint32_t window) {
    const auto buffers =
        launch_(kernels::kLz77PerPosition, ctas(kernels::kLzBlockThreads), kernels::kLzBlockThreads,
                {src(), size(), KernelArgument::output(match_bytes()), KernelArgument::number(window)});
    return buffers.empty() ? Bytes() : buffers[1];
  }
  Bytes topk(const Bytes& links) {
    const auto buffers = launch_(
        kernels::kLz77TopK, ctas(kernels::kLzBlockThreads), kernels::kLzBlockThreads,
        {src(), size(), KernelArgument::input(links), KernelArgument::output(kernels::kLzTopK * match_bytes())});
    return buffers.empty() ? Bytes() : buffers[2];
  }
  Bytes demux(const Bytes& matches, size_t block_bytes) {
    const uint32_t segments = ctas(kernels::kLzSegmentBytes);
    const auto counted =
        launch_(kernels::kDemuxCount, segments, 32,
                {KernelArgument::input(matches), size(), KernelArgument::output(size_t{16} * segments)});
    if (counted.empty()) return {};
    const auto buffers = launch_(kernels::kDemuxScatter, segments, 32,
                                 {src(), size(), KernelArgument::input(matches), KernelArgument::input(counted[1]),
                                  KernelArgument::output(block_bytes), KernelArgument::output(8 * kernels::kLzStreams),
                                  KernelArgument::output(4 * kernels::kLzStreams)});
    if (buffers.empty()) return {};
    expect_streams_of(buffers[3], buffers[4], buffers[5]);
    return buffers[3];
  }

 private:
  // The streams lie one behind another, from the header to the end.
  static void expect_streams_of(const Bytes& block, const Bytes& offset_bytes, const Bytes& size_bytes) {
    uint32_t header[4], sizes[kernels::kLzStreams];
    uint64_t offsets[kernels::kLzStreams], at = kernels::kLzBlockHeaderBytes;
    std::memcpy(header, block.data(), sizeof header);
    std::memcpy(offsets, offset_bytes.data(), sizeof offsets);
    std::memcpy(sizes, size_bytes.data(), sizeof sizes);
    const uint32_t expected[] = {4 * header[3], header[1], header[2], header[2], header[2]};
    for (size_t i = 0; i < kernels::kLzStreams; ++i) {
      EXPECT_EQ(sizes[i], expected[i]) << "stream " << i;
      EXPECT_EQ(offsets[i], at) << "stream " << i;
      at += sizes[i];
    }
    EXPECT_EQ(at, block.size());
  }

  KernelArgument src() const { return KernelArgument::input(padded_); }
  KernelArgument size() const { return KernelArgument::number(size_); }
  size_t match_bytes() const { return raw_.size() * sizeof(kernels::LzMatch); }
  uint32_t ctas(uint32_t positions) const { return (size_ + positions - 1) / positions; }

  Launch launch_;
  const Bytes& raw_;
  Bytes padded_;
  uint32_t size_;
};

// Runs everything over `raw`, which is not empty. The buffers are as large as what is written to them, and no larger.
inline void expect_lz77_as_reference(const Launch& launch, const Bytes& raw, uint32_t window) {
  using namespace kernels;
  Lz77OnDevice device(launch, raw);
  const Bytes links = device.link();
  const LzMatches linked = matches_of(links), linked_by_reference = lz77_link_reference(raw);
  ASSERT_EQ(linked.size(), raw.size());
  for (size_t i = 0; i < raw.size(); ++i) ASSERT_EQ(linked[i].next, linked_by_reference[i].next) << "position " << i;

  const Bytes hash = device.find(kLz77Hash, links, 1);
  EXPECT_TRUE(matches_of(hash) == lz77_hash_reference(raw));
  EXPECT_TRUE(matches_of(device.find(kLz77Batch, links, kLzBatchPositions)) == lz77_batch_reference(raw));
  const Bytes lazy = device.lazy(hash);
  EXPECT_TRUE(matches_of(lazy) == lz77_lazy_reference(lz77_hash_reference(raw)));
  EXPECT_TRUE(matches_of(device.topk(links)) == lz77_topk_reference(raw));
  if (window != 0) {
    EXPECT_TRUE(matches_of(device.per_position(window)) == lz77_per_position_reference(raw, window));
  }
  for (const Bytes* matches : {&hash, &lazy}) {
    const Bytes block = demux_reference(raw, matches_of(*matches));
    EXPECT_TRUE(device.demux(*matches, block.size()) == block);
    Bytes decoded(raw.size());
    EXPECT_EQ(lz77_decode_reference(block, decoded).status, StreamStatus::ok);
    EXPECT_TRUE(decoded == raw);
  }
}

}  // namespace ptxkit::testing
