// Prints instructions made from the ISA table, one a line: form, version times ten, target, instruction.
// usage: list_forms [VARIANTS]
#include <cstdio>
#include <cstdlib>
#include <set>

#include "fkr_tests/unit/ptx/form_sample.hpp"

int main(int argc, char** argv) {
  using namespace ptxkit::ptx;
  const unsigned variant_count = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 2;
  for (size_t i = 0; i < all_forms().size(); ++i) {
    std::set<std::string> seen;
    for (unsigned variant = 0; variant < variant_count; ++variant) {
      const Sample sample = make_sample(all_forms()[i], variant);
      if (sample.narrow_addresses || !seen.insert(sample.instruction).second) continue;  // ptxas has 64 bits only
      std::printf("%zu\t%u\t%s\t%s\n", i, sample.version, sample.target.c_str(), sample.instruction.c_str());
    }
  }
}
