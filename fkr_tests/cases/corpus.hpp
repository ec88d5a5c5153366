// Real files and generated pages for tests.
//
// The corpus is a folder of files that are not in the repository: $PTXKIT_CORPUS, or ../shared/corpus beside the
// repository. A test that needs it and does not find it skips with that reason: PTXKIT_REQUIRE_CORPUS().
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#define PTXKIT_REQUIRE_CORPUS()                                                                          \
  if (::ptxkit::testing::corpus_files().empty()) {                                                       \
    GTEST_SKIP() << "no corpus: set PTXKIT_CORPUS to a folder of files, or put one at ../shared/corpus"; \
  }

namespace ptxkit::testing {

using Bytes = std::vector<uint8_t>;

// Every regular file of the corpus, sorted by path; empty when there is no corpus.
inline std::vector<std::filesystem::path> corpus_files() {
  const char* named = std::getenv("PTXKIT_CORPUS");
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(named ? named : "../shared/corpus", error)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The first `limit_bytes` of a file.
inline Bytes read_prefix(const std::filesystem::path& path, size_t limit_bytes) {
  std::ifstream stream(path, std::ios::binary);
  Bytes bytes(limit_bytes);
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(limit_bytes));
  bytes.resize(static_cast<size_t>(stream.gcount()));
  return bytes;
}

inline Bytes random_bytes(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  Bytes bytes(count);
  for (auto& byte : bytes) byte = static_cast<uint8_t>(generator());
  return bytes;
}

inline Bytes ramp_bytes(size_t count) {
  Bytes bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i % 256);
  return bytes;
}

// Random bytes over a small alphabet with copies of earlier pieces: short and long matches, near and far.
inline Bytes matchable_bytes(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  Bytes bytes;
  while (bytes.size() < count) {
    const size_t length = 1 + generator() % (generator() % 8 == 0 ? 300 : 20);
    if (bytes.empty() || generator() % 3 == 0) {
      for (size_t i = 0; i < length; ++i) bytes.push_back(static_cast<uint8_t>(generator() % 64));
    } else {
      const size_t distance = 1 + generator() % std::min<size_t>(bytes.size(), generator() % 2 ? 16 : 60000);
      for (size_t i = 0; i < length; ++i) bytes.push_back(bytes[bytes.size() - distance]);
    }
  }
  bytes.resize(count);
  return bytes;
}

// Half matchable bytes, a quarter zeros, a quarter noise.
inline Bytes mixed_content(size_t size) {
  Bytes raw = matchable_bytes(size / 2, 1);
  raw.resize(size * 3 / 4);
  const Bytes noise = random_bytes(size - raw.size(), 2);
  raw.insert(raw.end(), noise.begin(), noise.end());
  return raw;
}

// Symbol k occurs as often as the k-th Fibonacci number, which gives the deepest Huffman tree.
inline Bytes fibonacci_bytes(size_t count) {
  Bytes bytes;
  size_t run = 1, next = 1;
  for (uint8_t symbol = 0; bytes.size() < count; ++symbol) {
    bytes.insert(bytes.end(), run, symbol);
    run = std::exchange(next, run + next);
  }
  bytes.resize(count);
  return bytes;
}

// Zeros, and about one other byte in `distance`.
inline Bytes sparse_bytes(size_t count, uint32_t distance) {
  Bytes bytes(count);
  std::mt19937 random(distance);
  for (size_t i = random() % distance; i < count; i += 1 + random() % (2 * distance))
    bytes[i] = static_cast<uint8_t>(1 + random() % 255);
  return bytes;
}

}  // namespace ptxkit::testing
