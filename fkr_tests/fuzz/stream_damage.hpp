// Seeded damage to a stream, for the bounded runs of the fuzz targets.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace ptxkit::fuzz {

// Up to five bytes are changed, inserted or removed, or the stream is cut.
inline void damage(std::vector<uint8_t>& stream, std::mt19937& random) {
  for (auto change = random() % 6; change != 0 && !stream.empty(); --change) {
    const size_t at = random() % stream.size();
    switch (random() % 5) {
      case 0:
        stream[at] = static_cast<uint8_t>(random());
        break;
      case 1:
        stream[at] ^= static_cast<uint8_t>(1u << random() % 8);
        break;
      case 2:
        stream.resize(at);
        break;
      case 3:
        stream.insert(stream.begin() + static_cast<ptrdiff_t>(at), static_cast<uint8_t>(random()));
        break;
      case 4:
        stream.erase(stream.begin() + static_cast<ptrdiff_t>(at));
        break;
    }
  }
}

// The main() of a bounded run: damages COUNT streams (the first argument; 20,000) of valid_stream(random), and gives
// each to the target.
template <class ValidStream>
int run_damaged(int argc, char** argv, const ValidStream& valid_stream) {
  const unsigned count = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 20000;
  for (unsigned seed = 0; seed < count; ++seed) {
    std::mt19937 random(seed);
    auto stream = valid_stream(random);
    damage(stream, random);
    // A heap copy of the exact size, so that a sanitizer sees an access one byte too far.
    const std::vector<uint8_t> exact(stream.begin(), stream.end());
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
  }
  std::printf("%u streams, no crash\n", count);
  return 0;
}

}  // namespace ptxkit::fuzz
