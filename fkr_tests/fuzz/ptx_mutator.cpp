// The mutator that libFuzzer uses for PTX. Every second mutation changes words (ptx_damage.hpp), because changes of
// bytes leave few texts that the front end accepts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "fkr_tests/fuzz/ptx_damage.hpp"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  static std::string before;  // an earlier input, as a source of statements
  std::mt19937 random(seed);
  std::string text(reinterpret_cast<const char*>(data), size);
  const std::string changed = ptxkit::testing::damage_words(text, before, random);
  if (random() % 16 == 0) before = std::move(text);
  const size_t kept = std::min(changed.size(), max_size);
  std::copy_n(changed.begin(), kept, data);
  return kept;
}
