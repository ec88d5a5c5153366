// Test cases of the LZ77 kernels against their references. Emulator and GPU tests pass their own `launch`.
#pragma once

#include <cstring>
#include <string_view>

#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/kernel_argument.hpp"
#include "kernels/lz77/lz77_reference.hpp"

namespace ptxkit::testing {

// "abcdefghijkl", then `between` times "abcd" with four bytes that occur nowhere else, then the first twelve bytes
// again. Their best candidate comes after `between` others.
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

// Noise in which the first eight bytes occur again at `distance`.
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

// Runs every kernel of the family over one block.
class Lz77OnDevice {
 public:
  Lz77OnDevice(Launch launch, const Bytes& raw)
      : launch_(std::move(launch)), raw_(raw), padded_(raw), size_(static_cast<uint32_t>(raw.size())) {
    padded_.resize((raw.size() + 15) / 16 * 16, 0xa5);
  }

  Bytes link() {
    const auto buffers = launch_(kernels::kLz77Link, kernels::kLzLinkBlocks, 32,
                                 {src(), sizes(), KernelArgument::output(match_bytes()), item_bytes()});
    return buffers.empty() ? Bytes() : buffers[2];
  }
  // For hash and batch: completes the matches whose links lz77_link wrote.
  Bytes find(std::string_view kernel, const Bytes& links, uint32_t positions_a_thread) {
    const auto buffers = launch_(kernel, ctas(positions_a_thread * kernels::kLzBlockThreads), kernels::kLzBlockThreads,
                                 {src(), sizes(), KernelArgument::input(links), item_bytes()});
    return buffers.empty() ? Bytes() : buffers[2];
  }
  Bytes table() {
    const auto buffers = launch_(kernels::kLz77Table, ctas(kernels::kLzTablePart), kernels::kLzTableStep,
                                 {src(), sizes(), KernelArgument::output(match_bytes()), item_bytes()});
    return buffers.empty() ? Bytes() : buffers[2];
  }
  Bytes lazy(const Bytes& matches) {
    const auto buffers =
        launch_(kernels::kLz77Lazy, ctas(kernels::kLzBlockThreads), kernels::kLzBlockThreads,
                {KernelArgument::input(matches), KernelArgument::output(match_bytes()), sizes(), item_bytes()});
    return buffers.empty() ? Bytes() : buffers[1];
  }
  Bytes per_position(uint32_t window) {
    const auto buffers =
        launch_(kernels::kLz77PerPosition, ctas(kernels::kLzBlockThreads), kernels::kLzBlockThreads,
                {src(), sizes(), KernelArgument::output(match_bytes()), item_bytes(), KernelArgument::number(window)});
    return buffers.empty() ? Bytes() : buffers[2];
  }
  Bytes topk(const Bytes& links) {
    const auto buffers = launch_(kernels::kLz77TopK, ctas(kernels::kLzBlockThreads), kernels::kLzBlockThreads,
                                 {src(), sizes(), KernelArgument::input(links),
                                  KernelArgument::output(kernels::kLzTopK * match_bytes()), item_bytes()});
    return buffers.empty() ? Bytes() : buffers[3];
  }
  Bytes demux(const Bytes& matches, size_t block_bytes) {
    const uint32_t segments = ctas(kernels::kLzSegmentBytes);
    const auto counted =
        launch_(kernels::kDemuxCount, segments, 32,
                {KernelArgument::input(matches), sizes(), KernelArgument::output(size_t{16} * segments), item_bytes()});
    if (counted.empty()) return {};
    const auto buffers =
        launch_(kernels::kDemuxScatter, segments, 32,
                {src(), sizes(), KernelArgument::input(matches), KernelArgument::input(counted[2]),
                 KernelArgument::output(block_bytes), KernelArgument::output(8 * kernels::kLzStreams),
                 KernelArgument::output(4 * kernels::kLzStreams), item_bytes(), KernelArgument::number(0)});
    if (buffers.empty()) return {};
    expect_streams_of(buffers[4], buffers[5], buffers[6]);
    return buffers[4];
  }

 private:
  // The streams must be contiguous, from the header to the end of the block.
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
  KernelArgument sizes() const {
    Bytes word(sizeof size_);
    std::memcpy(word.data(), &size_, sizeof size_);
    return KernelArgument::input(word);
  }
  KernelArgument item_bytes() const { return KernelArgument::number(static_cast<uint32_t>(padded_.size())); }
  size_t match_bytes() const { return raw_.size() * sizeof(kernels::LzMatch); }
  uint32_t ctas(uint32_t positions) const { return (size_ + positions - 1) / positions; }

  Launch launch_;
  const Bytes& raw_;
  Bytes padded_;
  uint32_t size_;
};

// Runs all kernels over `raw`, which is not empty. The buffers are exactly as large as what is written to them.
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
  EXPECT_TRUE(matches_of(device.table()) == lz77_table_reference(raw));
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

// Runs the finders over two blocks in one launch, the second one shorter. Expects the matches of each block's
// reference; those of the second begin after the largest possible first block.
inline void expect_finders_take_blocks(const Launch& launch, const Bytes& first, const Bytes& second, uint32_t window) {
  using namespace kernels;
  const size_t item_bytes = (first.size() + 15) / 16 * 16;
  Bytes raw(item_bytes + (second.size() + 15) / 16 * 16, 0xa5), sizes(8);
  std::copy(first.begin(), first.end(), raw.begin());
  std::copy(second.begin(), second.end(), raw.begin() + static_cast<ptrdiff_t>(item_bytes));
  const uint32_t size_words[] = {static_cast<uint32_t>(first.size()), static_cast<uint32_t>(second.size())};
  std::memcpy(sizes.data(), size_words, sizeof size_words);
  const auto src = KernelArgument::input(raw), both = KernelArgument::input(sizes),
             stride = KernelArgument::number(static_cast<uint32_t>(item_bytes));
  const size_t match_bytes = (item_bytes + second.size()) * sizeof(LzMatch);
  const auto expect = [&](std::string_view kernel, const Bytes& found, const auto& reference, size_t a_position = 1) {
    const LzMatches matches = matches_of(found);
    ASSERT_EQ(matches.size(), (item_bytes + second.size()) * a_position) << kernel;
    const auto second_at = matches.begin() + static_cast<ptrdiff_t>(item_bytes * a_position);
    const auto first_end = matches.begin() + static_cast<ptrdiff_t>(first.size() * a_position);
    EXPECT_TRUE(LzMatches(matches.begin(), first_end) == reference(first)) << kernel;
    EXPECT_TRUE(LzMatches(second_at, matches.end()) == reference(second)) << kernel;
  };
  const auto ctas = [&](uint32_t positions) {
    return 2 * ((static_cast<uint32_t>(item_bytes) + positions - 1) / positions);
  };
  const auto room = KernelArgument::output(match_bytes);
  // Of these entries only `next` is a kernel's result.
  LzMatches links = lz77_link_reference(first);
  links.resize(item_bytes);
  for (const LzMatch& match : lz77_link_reference(second)) links.push_back(match);
  const auto linked = KernelArgument::input(bytes_of_matches(links));
  LzMatches found = matches_of(launch(kLz77Link, 2 * kLzLinkBlocks, 32, {src, both, room, stride})[2]);
  for (LzMatch& match : found) match.offset = match.length = 0;
  expect(kLz77Link, bytes_of_matches(found), lz77_link_reference);
  const std::vector<KernelArgument> finding = {src, both, linked, stride};
  const Bytes hashed = launch(kLz77Hash, ctas(kLzBlockThreads), kLzBlockThreads, finding)[2];
  expect(kLz77Hash, hashed, lz77_hash_reference);
  const uint32_t batches = ctas(kLzBlockThreads * kLzBatchPositions);
  expect(kLz77Batch, launch(kLz77Batch, batches, kLzBlockThreads, finding)[2], lz77_batch_reference);
  expect(kLz77TopK,
         launch(kLz77TopK, ctas(kLzBlockThreads), kLzBlockThreads,
                {src, both, linked, KernelArgument::output(kLzTopK * match_bytes), stride})[3],
         lz77_topk_reference, kLzTopK);
  expect(kLz77Table, launch(kLz77Table, ctas(kLzTablePart), kLzTableStep, {src, both, room, stride})[2],
         lz77_table_reference);
  expect(kLz77PerPosition,
         launch(kLz77PerPosition, ctas(kLzBlockThreads), kLzBlockThreads,
                {src, both, room, stride, KernelArgument::number(window)})[2],
         [&](const Bytes& of) { return lz77_per_position_reference(of, window); });
  expect(
      kLz77Lazy,
      launch(kLz77Lazy, ctas(kLzBlockThreads), kLzBlockThreads, {KernelArgument::input(hashed), room, both, stride})[1],
      [](const Bytes& of) { return lz77_lazy_reference(lz77_hash_reference(of)); });
}

}  // namespace ptxkit::testing
