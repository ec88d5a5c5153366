// A bounded run of the block fuzz target in every test run: blocks of liblz4 and of the scalar encoders, most of them
// damaged by a seeded generator; and raw data to encode. usage: lz4_block_smoke [COUNT]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include <lz4.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/transforms.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  using namespace ptxkit;
  const unsigned count = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 5000;
  for (unsigned seed = 0; seed < count; ++seed) {
    std::mt19937 random(seed);
    const size_t raw_size = random() % (random() % 8 == 0 ? 66000 : 1200);
    testing::Bytes input =
        random() % 8 == 0 ? testing::random_bytes(raw_size, seed) : testing::matchable_bytes(raw_size, seed);
    const auto target = static_cast<uint8_t>(random() % 6);
    if (target == 0) {
      testing::Bytes block(static_cast<size_t>(LZ4_compressBound(static_cast<int>(raw_size))));
      block.resize(static_cast<size_t>(
          LZ4_compress_default(reinterpret_cast<const char*>(input.data()), reinterpret_cast<char*>(block.data()),
                               static_cast<int>(raw_size), static_cast<int>(block.size()))));
      input = block;
      if (random() % 8 != 0) testing::damage(input, random);
    }
    if (target >= 4 && random() % 2 == 0)
      input.assign(random() % 3 == 0 ? raw_size : random() % 3, input.empty() ? 0 : input[0]);
    const auto room = static_cast<uint16_t>(raw_size + random() % 3 - 1);
    const auto flag = static_cast<uint8_t>(target == 4 ? 6 * (random() % 6) : 0);
    input.insert(input.begin(), {static_cast<uint8_t>(target + flag), static_cast<uint8_t>(room & 255),
                                 static_cast<uint8_t>(room >> 8)});
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%u blocks, no difference\n", count);
}
