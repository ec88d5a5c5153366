// Whether a run came to a finding's line as its witness says.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "runtime/emulator/watch.hpp"

namespace ptxkit {

// Lines that a run has to watch for it: that of the finding, and for a race that of the other access.
std::vector<uint32_t> lines_to_watch(const ptx::Module& module, std::string_view rule, const rules::Finding& finding);

// Whether `visits` show in one block all that the witness says: its thread in the finding's line, as often as its
// iteration asks for, at its address; for a race both threads at one byte, for a barrier the other thread not there.
// False for a finding whose witness names neither thread nor address, and for rules whose witness is of another kind.
bool matches_witness(const ptx::Module& module, std::string_view rule, const rules::Finding& finding,
                     std::span<const emulator::Visit> visits);

}  // namespace ptxkit
