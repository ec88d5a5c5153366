// Every rule's function, by file. What each decides is in the catalogue's table; how, above its definition.
#pragma once

#include "analyzer/rules/rule.hpp"

namespace ptxkit::rules {

struct Context;

RuleResult missing_entry_point(Context& context);          // F001, syntax.cpp

RuleResult generic_address_corruption(Context& context);   // F021, patterns.cpp
RuleResult loaded_value_bug(Context& context);             // F081
RuleResult computed_address_from_loaded(Context& context); // F082

RuleResult shared_addressing_64(Context& context);         // F022, spaces.cpp
RuleResult missing_direct_space(Context& context);         // F023

RuleResult missing_barrier(Context& context);              // F036, races.cpp
RuleResult divergent_barrier(Context& context);            // F038, barriers.cpp

RuleResult unaligned_access(Context& context);             // F051, memory.cpp
RuleResult shared_bounds(Context& context);                // F054

RuleResult use_before_definition(Context& context);        // F071, data.cpp

}  // namespace ptxkit::rules
