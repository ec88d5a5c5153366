// Tensor maps on a command line: `f16,64x64,box16x64,swizzle128` in `tensor:LIST:FILE`.
#pragma once

#include <string_view>

#include "runtime/emulator/tensor_map.hpp"
#include "support/result.hpp"

namespace ptxkit {

// Parses the words of LIST, in any order: type of the elements (u8 u16 u32 s32 u64 s64 f16 bf16 f32 f64); size of the
// tensor and, after `box`, of the box that one copy moves, both in elements with the innermost dimension first (64x64,
// box16x64); swizzle32, swizzle64 or swizzle128. The rows have no gaps. The address is not set. Errors name the word.
Result<emulator::TensorMap> parse_tensor_spec(std::string_view list);

}  // namespace ptxkit
