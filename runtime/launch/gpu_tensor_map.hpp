// Tensor maps of a GPU: opaque bytes that the driver makes.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/driver/context.hpp"
#include "runtime/emulator/tensor_map.hpp"
#include "support/result.hpp"

namespace ptxkit {

// The 128 bytes of the kernel's parameter for `map`. Errors: a driver before CUDA 12, a map that the driver refuses.
Result<std::vector<std::byte>> driver_tensor_map(const driver::Context& context, const emulator::TensorMap& map);

}  // namespace ptxkit
