// The source that misaligned.ptx names in its .loc lines.
#include <cstdint>

namespace {

constexpr uint32_t kWindowBytes = 192;

}  // namespace

uint32_t load_word(const unsigned char* at);

extern "C" uint32_t find_match(const unsigned char* window, uint32_t* out) {
  uint32_t sum = 0;
  const unsigned char* end = window + kWindowBytes;

  // Reads words, steps by 3 bytes.
  for (const unsigned char* at = window; at < end;) {
    // A word at any position:
    const uint32_t value = load_word(at);
    sum ^= value;
    at += 3;
  }
  *out = sum;
  return sum;
}
