// Programs of cp.async.bulk.tensor and tensormap.replace: tiles, im2col, strides, fills, swizzles, reductions, and maps
// that a kernel changes. A GPU must give the emulator's result bit for bit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/emulator/tensor_map.hpp"

namespace ptxkit::testing {

inline constexpr size_t kTensorTileBytes = 8192, kTensorOutBytes = kTensorTileBytes + 256;

// Entry `tensor(map, out, tensor)` with 128 threads. It stores the box in `out`; after it, it may store a map of its
// own.
struct TensorCase {
  std::string name;
  std::string ptx;
  emulator::TensorMap map;      // without an address
  std::vector<uint8_t> tensor;  // the tensor's bytes
};

std::vector<TensorCase> tensor_cases();

// The box and then the tensor, after a run on the emulator.
Result<std::vector<uint8_t>> emulate_tensor(const TensorCase& each);

}  // namespace ptxkit::testing
