// A bounded run of the containers' fuzz target in every test run: valid containers of every kind, damaged by a seeded
// generator. The same seeds give the same inputs everywhere. usage: container_smoke [COUNT]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fkr_tests/unit/analyzer/container/fixture.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using namespace ptxkit::container;

std::vector<std::string> seeds() {
  const std::string fat = fatbin({plain(kPtx), lz4(kPtx), {2, 80, 0x11, "cubin", 0}, zstd(kPtx)});
  const std::string object = elf({{".text", "code"}, {".nv_fatbin", padded(fat, 64) + fat}, {"__nv_relfatbin", fat}});
  return {fat, object, elf({{".nv_debug_ptx_txt", std::string(kPtx)}}, 190),
          "!<arch>\n" + archive_member("//", "a_long_member.o/\n") + archive_member("a.o/", object) +
              archive_member("/0", object) + archive_member("#1/4", "b.o\n" + object)};
}

// Most changes write a size, an offset or a count, because fields matter more than other bytes.
std::string damage(std::string bytes, std::mt19937& random) {
  static constexpr uint64_t kValues[] = {0,   1,     7,        16,  63,           64,          80,
                                         255, 65535, 1u << 20, ~0u, ~uint64_t{7}, ~uint64_t{0}};
  for (auto change = 1 + random() % 4; change != 0 && bytes.size() > 8; --change) {
    const size_t at = random() % (bytes.size() - 8);
    const uint64_t value = kValues[random() % std::size(kValues)];
    switch (random() % 6) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        put<uint16_t>(bytes, at & ~size_t{1}, static_cast<uint16_t>(value));
        break;
      case 2:
        put<uint32_t>(bytes, at & ~size_t{3}, static_cast<uint32_t>(value));
        break;
      case 3:
        put<uint64_t>(bytes, at & ~size_t{7}, value);
        break;
      case 4:
        bytes.resize(at);
        break;
      case 5:
        bytes.erase(at, 1 + random() % 8);
        break;
    }
  }
  return bytes;
}

void run(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned count = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 20000;
  const std::vector<std::string> all = seeds();
  for (const std::string& bytes : all) run(bytes);
  for (unsigned seed = 0; seed < count; ++seed) {
    std::mt19937 random(seed);
    run(damage(all[seed % all.size()], random));
  }
  std::printf("%u damaged inputs of %zu seeds\n", count, all.size());
  return 0;
}
