#include "runtime/launch/generated_bytes.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "support/hex.hpp"

namespace ptxkit {
namespace {

constexpr uint32_t kFloats[] = {0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x00000001, 0x807fffff, 0x00800000,
                                0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fffffff, 0x3f800001, 0x40490fdb};
constexpr uint64_t kDoubles[] = {0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000,
                                 0x0000000000000001, 0x800fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff,
                                 0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
                                 0x3ff0000000000001, 0x400921fb54442d18};

// The generator of Numerical Recipes; its upper bits are better than its lower ones.
class Random {
 public:
  explicit Random(unsigned seed) : state_(seed * 2654435761u) {}
  uint32_t operator()() { return state_ = state_ * 1664525 + 1013904223; }

 private:
  uint32_t state_;
};

// Fills `bytes` with elements; the last one is cut off at the end.
template <class Make>
void fill(std::vector<std::byte>& bytes, Make&& make) {
  for (size_t at = 0, index = 0; at < bytes.size(); ++index) {
    const auto element = make(index);
    const size_t size = std::min(sizeof element, bytes.size() - at);
    std::memcpy(&bytes[at], &element, size);
    at += size;
  }
}

}  // namespace

std::vector<std::byte> generated_bytes(size_t size_bytes, unsigned seed) {
  std::vector<std::byte> bytes(size_bytes);
  const unsigned stream = seed / kContents;
  Random random(seed);
  switch (static_cast<Content>(seed % kContents)) {
    case Content::counting:
      fill(bytes, [&](size_t i) { return static_cast<uint32_t>((i + stream) % 61); });
      break;
    case Content::floats:
      fill(bytes, [&](size_t) { return static_cast<float>(static_cast<int32_t>(random()) >> 8) * 0x1p-22f; });
      break;
    case Content::doubles:
      fill(bytes, [&](size_t) {
        const uint64_t high = random(), low = random() >> 11;
        return static_cast<double>(static_cast<int64_t>(high << 32 | low << 11) >> 11) * 0x1p-51;
      });
      break;
    case Content::rising_floats:
      fill(bytes, [&](size_t i) { return static_cast<float>(i + stream) * 0.75f; });
      break;
    case Content::equal_floats:
      fill(bytes, [&](size_t) { return 1.0f + static_cast<float>(stream % kContents) * 0.5f; });
      break;
    case Content::edge_floats:
      fill(bytes, [&](size_t) { return kFloats[(random() >> 8) % std::size(kFloats)]; });
      break;
    case Content::edge_doubles:
      fill(bytes, [&](size_t) { return kDoubles[(random() >> 8) % std::size(kDoubles)]; });
      break;
    case Content::small_words:
      fill(bytes, [&](size_t) { return random() >> 24; });
      break;
    case Content::zeros:
      break;
    case Content::rising_words:
      fill(bytes, [&](size_t i) { return static_cast<uint32_t>(i + stream); });
      break;
    case Content::halves:
      fill(bytes, [&](size_t) {
        const uint32_t bits = random() >> 8;  // the sign, 10 bits of fraction, an exponent of 8 to 16
        return static_cast<uint16_t>((bits >> 8 & 0x83ff) + (8 + bits % 9) * 0x400);
      });
      break;
    case Content::random:
    default:
      fill(bytes, [&](size_t) { return static_cast<uint8_t>(random() >> 24); });
  }
  return bytes;
}

std::vector<std::byte> generated_offsets(size_t size_bytes, Offsets offsets, unsigned word_bytes, unsigned seed) {
  constexpr unsigned kGroup = 64, kFew = 16;
  std::vector<std::byte> bytes(size_bytes);
  Random random(seed);
  const uint64_t factor = random() >> 8 | 1, first = random() >> 8;
  const unsigned below = random() >> 31 ? kGroup : kFew;
  uint64_t sum = 0;
  for (size_t at = 0, index = 0; at + word_bytes <= bytes.size(); at += word_bytes, ++index) {
    uint64_t word = 0;
    switch (offsets) {
      case Offsets::anywhere:
        word = (random() >> 8) % below;
        break;
      case Offsets::each_once:
        word = index / kGroup * kGroup + (index * factor + first) % kGroup;
        break;
      case Offsets::rising:
        word = sum;
        sum += random() >> 30;
        break;
    }
    std::memcpy(&bytes[at], &word, word_bytes);
  }
  return bytes;
}

std::vector<std::byte> repeated_bytes(std::string_view hex, size_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  const auto unit = bytes_of_hex(hex);
  if (!unit || unit->empty()) return bytes;
  fill(bytes, [&](size_t i) { return (*unit)[i % unit->size()]; });
  return bytes;
}

std::vector<std::byte> address_value(uint64_t address, uint32_t address_bytes) {
  std::vector<std::byte> bytes(address_bytes);
  std::memcpy(bytes.data(), &address, address_bytes);
  return bytes;
}

}  // namespace ptxkit
