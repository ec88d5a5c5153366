// Functions that CUDA's runtime gives to kernels: vprintf and the failure of an assertion. See builtins.cpp.
#pragma once

#include <span>
#include <string_view>

#include "runtime/backend/emulator/state.hpp"

namespace ptxkit::emulator {

enum class Builtin : uint8_t { vprintf, assert_fail };

bool find_builtin(std::string_view name, Builtin& builtin);

// Runs it for one lane of the running fragment. `arguments` are the bytes of each, zero-extended. Gives its result.
uint32_t run_builtin(Warp& warp, Builtin builtin, unsigned lane, std::span<const uint64_t> arguments);

}  // namespace ptxkit::emulator
