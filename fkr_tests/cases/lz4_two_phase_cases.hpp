// Test cases of lz4_match_page followed by lz4_encode_page. Emulator and GPU tests pass their own `launch`.
#pragma once

#include <cstring>

#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/kernel_argument.hpp"
#include "kernels/lz4/lz4_compress_reference.hpp"

namespace ptxkit::testing {

inline constexpr uint32_t kTwoPhaseStride = kernels::kMaxPageBytes + kernels::kStrideUnitBytes;

inline Bytes bytes_of_words(const std::vector<uint32_t>& words) {
  Bytes bytes(words.size() * sizeof(uint32_t));
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

inline uint32_t word_at(const Bytes& bytes, size_t index) {
  uint32_t word;
  std::memcpy(&word, bytes.data() + index * sizeof word, sizeof word);
  return word;
}

// Expects the bytes, flags and lengths of the fused compressor's reference.
inline void expect_two_phases_as_fused(const Launch& launch, const std::vector<Bytes>& pages) {
  const auto count = static_cast<uint32_t>(pages.size());
  const auto run = [&](std::string_view kernel, const std::vector<KernelArgument>& arguments) {
    return launch(kernel, kernels::kLz4CompressPageShape.grid_blocks(count),
                  kernels::kLz4CompressPageShape.block_threads, arguments);
  };
  Bytes src(count * kTwoPhaseStride);
  std::vector<uint32_t> sizes;
  for (size_t i = 0; i < pages.size(); ++i) {
    std::copy(pages[i].begin(), pages[i].end(), src.begin() + static_cast<ptrdiff_t>(i * kTwoPhaseStride));
    sizes.push_back(static_cast<uint32_t>(pages[i].size()));
  }
  const auto stride = KernelArgument::number(kTwoPhaseStride / kernels::kStrideUnitBytes),
             items = KernelArgument::number(count);
  const auto matched =
      run(kernels::kLz4MatchPage, {KernelArgument::input(src), KernelArgument::input(bytes_of_words(sizes)),
                                   KernelArgument::input(Bytes(count * kernels::kMaxPageMatches * 8)),
                                   KernelArgument::output(count * 4), KernelArgument::output(count), stride, items});
  ASSERT_GE(matched.size(), 5u);
  const auto encoded =
      run(kernels::kLz4EncodePage,
          {KernelArgument::input(src), KernelArgument::input(bytes_of_words(sizes)), KernelArgument::input(matched[2]),
           KernelArgument::input(matched[3]), KernelArgument::input(Bytes(count * kTwoPhaseStride)),
           KernelArgument::output(count * 4), KernelArgument::input(matched[4]), stride, stride, items});
  ASSERT_GE(encoded.size(), 7u);
  for (size_t i = 0; i < pages.size(); ++i) {
    Bytes expected(pages[i].size());
    const auto reference = kernels::lz4_compress_reference(pages[i], expected, kernels::kPageVariant);
    expected.resize(reference.size_bytes);
    EXPECT_EQ(encoded[6][i], static_cast<uint8_t>(reference.flag)) << i;
    ASSERT_EQ(word_at(encoded[5], i), reference.size_bytes) << i;
    EXPECT_TRUE(
        std::equal(expected.begin(), expected.end(), encoded[4].begin() + static_cast<ptrdiff_t>(i * kTwoPhaseStride)))
        << i;
  }
}

// Zeros, a run, a ramp, noise, a short run, an empty page, and bytes with matches.
inline std::vector<Bytes> pages_of_every_kind() {
  std::vector<Bytes> pages = {Bytes(4096, 0),        Bytes(4096, 'A'), ramp_bytes(4096),
                              random_bytes(4096, 1), Bytes(40, 'A'),   {}};
  for (uint32_t seed = 0; seed < 20; ++seed)
    pages.push_back(matchable_bytes(seed % 4 == 0 ? 200 * seed + 13 : 4096, seed));
  return pages;
}

// The first 32 KiB of each file, cut into pages.
inline std::vector<Bytes> pages_of_the_corpus() {
  std::vector<Bytes> pages;
  for (const auto& path : corpus_files()) {
    const Bytes file = read_prefix(path, 32 << 10);
    for (size_t at = 0; at < file.size(); at += kernels::kMaxPageBytes) {
      const size_t end = std::min<size_t>(at + kernels::kMaxPageBytes, file.size());
      pages.emplace_back(file.begin() + static_cast<ptrdiff_t>(at), file.begin() + static_cast<ptrdiff_t>(end));
    }
  }
  return pages;
}

}  // namespace ptxkit::testing
