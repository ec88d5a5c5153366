// Programs of wgmma, wmma and sparse mma, whose registers cannot have arbitrary contents (matrices in shared memory,
// metadata), and of other forms that need values or variables of their own. The numbers are small, so that sums are
// exact in any order, and a GPU's bits are the emulator's.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.hpp"

namespace ptxkit::testing {

struct MatrixCase {
  std::string name;  // "wgmma m64n64k16 f32 f16 f16, 128-byte rows"
  std::string ptx;   // entry `matrix(in, out)`
  uint32_t threads = 32;
  std::vector<uint8_t> in;
  size_t out_bytes = 0;
};

std::vector<MatrixCase> matrix_cases();
void add_wmma_cases(std::vector<MatrixCase>& cases);

// Bytes of small numbers: 0, 1, 2 and 0.5 of either sign. Integers and bits are arbitrary.
std::vector<uint8_t> small_numbers(std::string_view type, size_t size_bytes, std::mt19937& random);

// `out` after a run on the emulator.
Result<std::vector<uint8_t>> emulate_matrix(const MatrixCase& each);

}  // namespace ptxkit::testing
