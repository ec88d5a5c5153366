// Inputs of the Zstandard kernels, for the emulator and for a GPU.
#pragma once

#include <random>
#include <vector>

#include "fkr_tests/cases/corpus.hpp"
#include "kernels/zstd/zstd_sequences_reference.hpp"

namespace ptxkit::testing {

// Literals whose sections have every form: raw, a run, one stream and four, weights direct and coded, headers of every
// length; lanes without literals, and with fewer than eight bits.
inline std::vector<Bytes> zstd_literals_cases() {
  std::vector<Bytes> cases = {
      {}, {7}, {7, 9}, Bytes(31, 'x'), Bytes(4096, 'x'), ramp_bytes(1024), random_bytes(5000, 1)};
  for (const size_t size : {20u, 33u, 100u, 255u, 1023u, 1024u, 1025u, 1100u, 5001u, 16383u, 16384u, 20003u}) {
    Bytes skewed = random_bytes(size, static_cast<uint32_t>(size)), high = fibonacci_bytes(size);
    for (auto& byte : skewed) byte = byte < 240 ? byte % 5 : byte % 64;
    for (auto& byte : high) byte = static_cast<uint8_t>(byte * 9 + 100);
    Bytes rare(size, 'a');
    rare[size / 2] = 'b';
    cases.insert(cases.end(), {skewed, high, rare, fibonacci_bytes(size), matchable_bytes(size, 1)});
  }
  return cases;
}

// Blocks of every kind: empty, short, zeros, noise, repeats; records with columns, whose matches repeat offsets; and
// two symbols, whose matches cost more than they save.
inline std::vector<Bytes> zstd_blocks(size_t longest) {
  std::vector<Bytes> blocks = {{}, {7}, Bytes(12, 'x'), ramp_bytes(13), matchable_bytes(100, 1)};
  for (const size_t size : {longest / 3 + 1, longest}) {
    Bytes columns, bits = random_bytes(size, 3);
    std::mt19937 random(static_cast<uint32_t>(size));
    while (columns.size() < size) {
      const Bytes record = {'a', 'b', 'c', static_cast<uint8_t>(random() % 3), 0, 0, static_cast<uint8_t>(random()),
                            1,   2};
      columns.insert(columns.end(), record.begin(), record.end() - random() % 4 / 3 * 2);
    }
    columns.resize(size);
    for (auto& byte : bits) byte &= 1;
    blocks.insert(blocks.end(),
                  {Bytes(size), random_bytes(size, 1), matchable_bytes(size, 2), mixed_content(size), columns, bits});
  }
  return blocks;
}

// Packed sequences whose sections have tables of every mode: equal ones, which take no bits; codes that are evenly
// spread, skewed, or hardly ever other than one; the largest values; lanes without sequences.
inline std::vector<Bytes> zstd_sequences_cases(uint32_t most) {
  using kernels::ZstdSequence;
  std::vector<Bytes> cases = {{}};
  std::mt19937 random(1);
  const auto below = [&](uint32_t end) { return static_cast<uint32_t>(random() % end); };
  for (const uint32_t count : {1u, 2u, 31u, 33u, 127u, 128u, 700u, most}) {
    std::vector<std::vector<ZstdSequence>> lists(6);
    for (uint32_t i = 0; i < count; ++i) {
      lists[0].push_back({3, 8, 1});
      lists[1].push_back({below(70), 3 + below(200), 1 + below(70000)});
      lists[2].push_back({below(4) * below(4), 4 + below(3) * below(6), 1 + below(8) * below(3)});
      lists[3].push_back({i % 97 == 5 ? 9u : 1u, i % 89 == 3 ? 40u : 5u, i % 101 == 50 ? 900u : 2u});
      lists[4].push_back({i % 2, 4 + i % 2, 4 + i % 2 * 4});
      lists[5].push_back({1u << below(16), 3 + (1u << below(15)), 1u << below(17)});
    }
    lists[5].push_back({65535, 65535, kernels::kZstdMaxOffsetValue});
    if (lists[5].size() > most) lists[5].pop_back();
    for (const auto& list : lists) cases.push_back(zstd_pack(list));
  }
  return cases;
}

}  // namespace ptxkit::testing
