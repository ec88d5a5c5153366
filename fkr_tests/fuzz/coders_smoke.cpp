// A bounded run of the coders' fuzz target in every test run: streams of every transform, most of them damaged by a
// seeded generator. usage: coders_smoke [COUNT]
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "fkr_tests/cases/transforms.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  using namespace ptxkit;
  const unsigned count = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 5000;
  const auto pairs = testing::transform_pairs();
  constexpr std::string_view kDecoders[] = {kernels::kRansWarpDecode, kernels::kRansChunkedDecode,
                                            kernels::kHuffmanDecode, kernels::kFseDecode, kernels::kLz77Decode};
  for (unsigned seed = 0; seed < count; ++seed) {
    std::mt19937 random(seed);
    const testing::TransformPair& pair = pairs[random() % pairs.size()];
    const auto decoder = std::find(std::begin(kDecoders), std::end(kDecoders), pair.decoder);
    const auto raw_seed = static_cast<uint32_t>(random());
    const size_t raw_size = random() % (random() % 8 == 0 ? 9000 : 600);
    const testing::Bytes raw =
        random() % 4 == 0 ? testing::fibonacci_bytes(raw_size) : testing::matchable_bytes(raw_size, raw_seed);
    testing::Bytes input = testing::coded(pair, raw);
    if (random() % 8 != 0) testing::damage(input, random);
    const auto room = static_cast<uint8_t>(std::min<size_t>(255, raw_size / 64 + random() % 3));
    input.insert(input.begin(), {static_cast<uint8_t>(decoder - std::begin(kDecoders)), room});
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%u streams, no difference\n", count);
}
