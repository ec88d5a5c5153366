// The faults of a run as a SARIF 2.1.0 log, in the form that `analyze` writes.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "analyzer/ptx/tree.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::tools {

// Faults of the emulator; thread, block, address and object become properties. The text is deterministic.
std::string fault_sarif(const ptx::Module& module, std::span<const emulator::Fault> faults,
                        std::span<const emulator::Fault> notes, int exit_code);

// The outcome of a launch of `entry` on a GPU. A GPU reports no location: the result is placed at the kernel. There is
// no result where `kind` is empty.
std::string gpu_fault_sarif(const ptx::Module& module, std::string_view entry, std::string_view kind,
                            std::string_view what, int exit_code);

}  // namespace ptxkit::tools
