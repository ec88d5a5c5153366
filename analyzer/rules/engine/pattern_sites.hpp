// The accesses that make up a site of F021, F081 or F082. F051 judges them more strictly than others, and the three
// rules have its verdict.
#pragma once

#include <vector>

#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/context.hpp"

namespace ptxkit::rules {

// Loads to which F081 and F082 apply.
bool is_shared_load(const ptx::Function& function, const ptx::Access& access);

// Generic accesses to which F021 applies: the address comes from `cvta.shared`.
bool is_generic_of_shared(Context& context, const ptx::Access& access);

// Values written by the load of `access`: one, or the elements of a vector.
std::vector<flow::ValueId> loaded_values(Context& context, const ptx::Access& access);

enum class StoreOperand : uint8_t { data, address };

// Values that a store or an atomic writes, or forms its address of. None for a load.
std::vector<flow::ValueId> operand_values(Context& context, const ptx::Access& access, StoreOperand operand);

// Whether an access is part of a site, parallel to Analyses::accesses().
std::vector<bool> accesses_in_sites(Context& context);

}  // namespace ptxkit::rules
