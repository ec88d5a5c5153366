#include "kernels/lz4/xxh32_reference.hpp"

#include <bit>

#include "kernels/lz4/xxh32_format.hpp"

namespace ptxkit::kernels {

uint32_t xxh32_reference(std::span<const uint8_t> bytes) {
  const auto word = [&](size_t at) {
    return bytes[at] | uint32_t{bytes[at + 1]} << 8 | uint32_t{bytes[at + 2]} << 16 | uint32_t{bytes[at + 3]} << 24;
  };
  const auto& prime = kXxh32Primes;
  size_t at = 0;
  uint32_t hash = prime[4];
  if (bytes.size() >= 16) {
    uint32_t sums[4] = {prime[0] + prime[1], prime[1], 0, 0 - prime[0]};
    for (; bytes.size() - at >= 16; at += 16) {
      for (size_t i = 0; i < 4; ++i) sums[i] = std::rotl(sums[i] + word(at + 4 * i) * prime[1], 13) * prime[0];
    }
    hash = std::rotl(sums[0], 1) + std::rotl(sums[1], 7) + std::rotl(sums[2], 12) + std::rotl(sums[3], 18);
  }
  hash += static_cast<uint32_t>(bytes.size());
  for (; bytes.size() - at >= 4; at += 4) hash = std::rotl(hash + word(at) * prime[2], 17) * prime[3];
  for (; at < bytes.size(); ++at) hash = std::rotl(hash + bytes[at] * prime[4], 11) * prime[0];
  hash = (hash ^ hash >> 15) * prime[1];
  hash = (hash ^ hash >> 13) * prime[2];
  return hash ^ hash >> 16;
}

}  // namespace ptxkit::kernels
