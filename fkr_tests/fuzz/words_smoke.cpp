// A bounded run, in every test run, of a fuzz target that reads PTX behind the front end: the PTX of a folder with
// words changed by a seeded generator. The same seeds give the same inputs everywhere. usage: NAME COUNT FOLDER; or
// NAME FILE, whose bytes are the only input.
#include <cstdio>
#include <cstdlib>

#include "fkr_tests/fuzz/ptx_damage.hpp"
#include "support/file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  using namespace ptxkit;
  const auto run = [](const std::string& text) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  };
  if (argc == 2) {
    run(read_file(argv[1]).value_or(""));
    return 0;
  }
  const unsigned count = argc > 2 ? static_cast<unsigned>(std::atoi(argv[1])) : 0;
  const std::vector<std::string> all = testing::ptx_files(argc > 2 ? argv[2] : ".", testing::kMaxFuzzedBytes);
  if (count == 0 || all.empty()) {
    std::fprintf(stderr, "expected a count and a folder with .ptx files\n");
    return 1;
  }
  for (unsigned seed = 0; seed < count; ++seed) {
    std::mt19937 random(seed);
    const std::string& text = all[random() % all.size()];
    run(testing::damage_words(text, all[random() % all.size()], random));
  }
  std::printf("%u damaged texts of %zu files\n", count, all.size());
  return 0;
}
