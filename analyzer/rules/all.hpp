// Every rule's function, by file. What each decides is in the catalogue's table; how, above its definition.
#pragma once

#include "analyzer/rules/rule.hpp"

namespace ptxkit::rules {

struct Context;

RuleResult missing_entry_point(Context& context);  // F001, syntax.cpp

RuleResult generic_address_corruption(Context& context);    // F021, patterns.cpp
RuleResult loaded_value_bug(Context& context);              // F081
RuleResult computed_address_from_loaded(Context& context);  // F082
RuleResult loop_cvta_shared(Context& context);              // F083

RuleResult shared_addressing_64(Context& context);  // F022, spaces.cpp
RuleResult missing_direct_space(Context& context);  // F023
RuleResult truncated_pointer(Context& context);     // F024
RuleResult constant_write(Context& context);        // F026
RuleResult space_mismatch(Context& context);        // F030
RuleResult double_cvta(Context& context);           // F032

RuleResult missing_barrier(Context& context);            // F036, races.cpp
RuleResult barrier_not_reached(Context& context);        // F037, barriers.cpp
RuleResult divergent_barrier(Context& context);          // F038
RuleResult predicated_barrier(Context& context);         // F041
RuleResult barrier_in_divergent_loop(Context& context);  // F045

RuleResult unaligned_access(Context& context);  // F051, memory.cpp
RuleResult shared_bounds(Context& context);     // F054
RuleResult local_bounds(Context& context);      // F025
RuleResult stale_read_only(Context& context);   // F056

RuleResult missing_return(Context& context);    // F061, control.cpp
RuleResult unreachable_code(Context& context);  // F062
RuleResult endless_loop(Context& context);      // F063
RuleResult irreducible_flow(Context& context);  // F069

RuleResult unused_parameter(Context& context);  // F072, dead.cpp
RuleResult dead_value(Context& context);        // F073
RuleResult masked_fault(Context& context);      // F074

RuleResult use_before_definition(Context& context);  // F071, data.cpp

}  // namespace ptxkit::rules
