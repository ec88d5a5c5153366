// Debian's static libstdc++ needs one function of a glibc newer than 2.35: std::random_device calls arc4random, added
// in 2.36. With this definition a statically linked program also starts on glibc 2.35. Only the static preset builds
// this file.
#include <cstdint>
#include <cstdlib>

#include <sys/random.h>

extern "C" uint32_t arc4random() {
  uint32_t value;
  if (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) std::abort();
  return value;
}
