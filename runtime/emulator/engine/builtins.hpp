// Functions that CUDA's runtime gives to kernels: vprintf, the failure of an assertion, malloc and free.
#pragma once

#include <span>
#include <string_view>

#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

enum class Builtin : uint8_t { vprintf, assert_fail, heap_allocate, heap_release };

bool find_builtin(std::string_view name, Builtin& builtin);

// Runs it for one lane of the running fragment. `arguments` are the bytes of each, zero-extended. Gives its result.
uint64_t run_builtin(Warp& warp, Builtin builtin, unsigned lane, std::span<const uint64_t> arguments);

}  // namespace ptxkit::emulator
