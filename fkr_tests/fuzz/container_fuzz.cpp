// Fuzzes the readers of fat binaries, ELF files and static libraries. They must return, and their results must lie
// within the input or come from a decoder with a bound.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "analyzer/container/fatbin.hpp"
#include "analyzer/container/images.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ptxkit::container;
  const auto contents = read_images(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  const bool is_sound = contents ? contents->images.empty() || contents->images.front().text.size() <= kLargestTextBytes
                                 : contents.error().where.starts_with("fuzz") && !contents.error().what.empty();
  if (!is_sound) {
    std::fprintf(stderr, "container_fuzz: %s\n", contents ? "a text beyond the bound" : "an error without a place");
    std::abort();
  }
  return 0;
}
