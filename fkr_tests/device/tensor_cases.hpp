// Programs of cp.async.bulk.tensor and tensormap.replace: tiles, im2col, strides, fills, swizzles, reductions and maps
// that a kernel changes. What the emulator makes of each a GPU must make bit for bit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/emulator/tensor_map.hpp"

namespace ptxkit::testing {

inline constexpr size_t kTensorTileBytes = 8192, kTensorOutBytes = kTensorTileBytes + 256;

// Entry `tensor(map, out, tensor)` of 128 threads. It leaves the box in `out`; behind that it may put a map of its own.
struct TensorCase {
  std::string name;
  std::string ptx;
  emulator::TensorMap map;      // without an address
  std::vector<uint8_t> tensor;  // what lies there
};

std::vector<TensorCase> tensor_cases();

// The box and then the tensor, after the emulator has run it.
Result<std::vector<uint8_t>> emulate_tensor(const TensorCase& each);

}  // namespace ptxkit::testing
