// What a run found as a SARIF 2.1.0 log of the same form as that of `analyze`.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "analyzer/ptx/tree.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::tools {

// Faults of the emulator, with thread, block, address and object as properties. Deterministic.
std::string fault_sarif(const ptx::Module& module, std::span<const emulator::Fault> faults,
                        std::span<const emulator::Fault> notes, int exit_code);

// How a launch of `entry` ended on a GPU, which names no place: a result at the kernel, or none where `kind` is empty.
std::string gpu_fault_sarif(const ptx::Module& module, std::string_view entry, std::string_view kind,
                            std::string_view what, int exit_code);

}  // namespace ptxkit::tools
