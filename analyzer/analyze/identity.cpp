// xxHash is used header-only, so that users of this library need not link it.
#include "analyzer/analyze/identity.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ptxkit::report {

std::string xxh128_hex(std::string_view text) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(text.data(), text.size()));
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : canonical.digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string_view tool_version() { return PTXKIT_VERSION; }

}  // namespace ptxkit::report
