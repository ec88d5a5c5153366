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

RuleResult local_bounds(Context& context);      // F025, memory.cpp
RuleResult unaligned_access(Context& context);  // F051
RuleResult shared_bounds(Context& context);     // F054

RuleResult stale_read_only(Context& context);  // F056, read_only.cpp

RuleResult texture_reference(Context& context);  // F027, handles.cpp
RuleResult surface_reference(Context& context);  // F028

RuleResult parameter_write(Context& context);      // F029, pointers.cpp
RuleResult mixed_access(Context& context);         // F031
RuleResult unannotated_pointer(Context& context);  // F033
RuleResult cluster_address(Context& context);      // F034
RuleResult narrow_index(Context& context);         // F035
RuleResult narrowed_address(Context& context);     // F077

RuleResult missing_barrier(Context& context);     // F036, races.cpp
RuleResult implicit_warp_sync(Context& context);  // F050
RuleResult mixed_atomicity(Context& context);     // F058

RuleResult barrier_not_reached(Context& context);        // F037, barriers.cpp
RuleResult divergent_barrier(Context& context);          // F038
RuleResult predicated_barrier(Context& context);         // F041
RuleResult barrier_in_divergent_loop(Context& context);  // F045

RuleResult barrier_count(Context& context);        // F039, barrier_protocol.cpp
RuleResult arrive_wait_pairing(Context& context);  // F040
RuleResult barrier_operands(Context& context);     // F049
RuleResult redundant_barrier(Context& context);    // F093
RuleResult redundant_fence(Context& context);      // F094

RuleResult missing_device_fence(Context& context);  // F042, publish.cpp
RuleResult missing_system_fence(Context& context);  // F043
RuleResult weak_synchronisation(Context& context);  // F044

RuleResult warp_mask(Context& context);               // F046, warp.cpp
RuleResult exit_before_collective(Context& context);  // F067
RuleResult shuffle_lane_bounds(Context& context);     // F085
RuleResult vote_match_mask(Context& context);         // F086

RuleResult mbarrier_protocol(Context& context);  // F047, mbarriers.cpp

RuleResult async_copy_wait(Context& context);  // F048, asynchronous.cpp
RuleResult async_copy_size(Context& context);  // F089

RuleResult bank_conflicts(Context& context);        // F052, access_shape.cpp
RuleResult coalescing(Context& context);            // F053
RuleResult cache_operator(Context& context);        // F057
RuleResult missed_vector_access(Context& context);  // F059

RuleResult local_overflow(Context& context);        // F055, performance.cpp
RuleResult divergent_hot_branch(Context& context);  // F068
RuleResult local_spills(Context& context);          // F091
RuleResult occupancy(Context& context);             // F092
RuleResult dependent_load_chain(Context& context);  // F095

RuleResult uninitialised_shared(Context& context);  // F060, shared_state.cpp

RuleResult missing_return(Context& context);    // F061, control.cpp
RuleResult unreachable_code(Context& context);  // F062
RuleResult endless_loop(Context& context);      // F063
RuleResult irreducible_flow(Context& context);  // F069

RuleResult unbounded_recursion(Context& context);  // F064, calls.cpp
RuleResult indirect_target(Context& context);      // F065
RuleResult call_signature(Context& context);       // F066

RuleResult unguarded_global_index(Context& context);      // F070, indices.cpp
RuleResult mixed_width_use(Context& context);             // F076
RuleResult mixed_sign_bounds_check(Context& context);     // F078
RuleResult index_overflow(Context& context);              // F079
RuleResult shift_amount(Context& context);                // F080
RuleResult store_address_from_counter(Context& context);  // F090

RuleResult use_before_definition(Context& context);  // F071, data.cpp
RuleResult predicated_definition(Context& context);  // F075

RuleResult unused_parameter(Context& context);  // F072, dead.cpp
RuleResult dead_value(Context& context);        // F073
RuleResult masked_fault(Context& context);      // F074

RuleResult optimisation_sensitive(Context& context);  // F084, instructions.cpp
RuleResult deprecated_opcode(Context& context);       // F087
RuleResult mma_shape(Context& context);               // F088

RuleResult missing_debug_instrumentation(Context& context);  // F096, markers.cpp
RuleResult marker_places(Context& context);                  // F097
RuleResult marker_unique(Context& context);                  // F098
RuleResult marker_order(Context& context);                   // F099
RuleResult atomic_slot_claim(Context& context);              // F100
RuleResult unbounded_debug_write(Context& context);          // F101

}  // namespace ptxkit::rules
