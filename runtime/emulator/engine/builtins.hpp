// Functions of the CUDA runtime that kernels call: vprintf, the failure of an assertion, malloc and free.
#pragma once

#include <span>
#include <string_view>

#include "runtime/emulator/core/state.hpp"

namespace ptxkit::emulator {

enum class Builtin : uint8_t { vprintf, assert_fail, heap_allocate, heap_release };

bool find_builtin(std::string_view name, Builtin& builtin);

// Executes a function for one lane of the running fragment and returns its result. `arguments` are zero-extended.
uint64_t run_builtin(Warp& warp, Builtin builtin, unsigned lane, std::span<const uint64_t> arguments);

}  // namespace ptxkit::emulator
