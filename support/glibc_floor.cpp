// The one function of a glibc newer than 2.35 that Debian's static libstdc++ asks for: std::random_device wants
// arc4random, which came in 2.36. With this definition a statically linked program starts on glibc 2.35 too. Built for
// the static preset only.
#include <cstdint>
#include <cstdlib>

#include <sys/random.h>

extern "C" uint32_t arc4random() {
  uint32_t value;
  if (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) std::abort();
  return value;
}
