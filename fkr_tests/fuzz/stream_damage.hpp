// Seeded damage to a stream, for the bounded runs of the fuzz targets.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

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

}  // namespace ptxkit::fuzz
