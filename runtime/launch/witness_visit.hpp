// Tests whether a run reached a finding's line in the way that its witness describes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "runtime/emulator/watch.hpp"

namespace ptxkit {

// The lines that a run must watch for matches_witness: the finding's line, and for a race the line of the other access.
std::vector<uint32_t> lines_to_watch(const ptx::Module& module, std::string_view rule, const rules::Finding& finding);

// Whether `visits` contain, in one block, all that the witness describes: its thread in the finding's line, as often as
// its iteration requires, at its address; for a race both threads at one byte, for a barrier the other thread not
// there. False for a witness that names neither thread nor address, and for rules with another kind of witness.
bool matches_witness(const ptx::Module& module, std::string_view rule, const rules::Finding& finding,
                     std::span<const emulator::Visit> visits);

}  // namespace ptxkit
