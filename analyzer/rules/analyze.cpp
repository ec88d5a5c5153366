#include "analyzer/rules/analyze.hpp"

#include <algorithm>

#include "analyzer/rules/all.hpp"
#include "analyzer/rules/context.hpp"
#include "analyzer/rules/result.hpp"
#include "support/check.hpp"

namespace ptxkit::rules {

namespace {

constexpr Implementation kImplementations[] = {
    {"F001", missing_entry_point},
    {"F021", generic_address_corruption},
    {"F022", shared_addressing_64},
    {"F023", missing_direct_space},
    {"F024", truncated_pointer},
    {"F025", local_bounds},
    {"F026", constant_write},
    {"F027", texture_reference},
    {"F028", surface_reference},
    {"F029", parameter_write},
    {"F030", space_mismatch},
    {"F031", mixed_access},
    {"F032", double_cvta},
    {"F033", unannotated_pointer},
    {"F034", cluster_address},
    {"F035", narrow_index},
    {"F036", missing_barrier},
    {"F037", barrier_not_reached},
    {"F038", divergent_barrier},
    {"F039", barrier_count},
    {"F040", arrive_wait_pairing},
    {"F041", predicated_barrier},
    {"F042", missing_device_fence},
    {"F043", missing_system_fence},
    {"F044", weak_synchronisation},
    {"F045", barrier_in_divergent_loop},
    {"F046", warp_mask},
    {"F047", mbarrier_protocol},
    {"F048", async_copy_wait},
    {"F049", barrier_operands},
    {"F050", implicit_warp_sync},
    {"F051", unaligned_access},
    {"F052", bank_conflicts},
    {"F053", coalescing},
    {"F054", shared_bounds},
    {"F055", local_overflow},
    {"F056", stale_read_only},
    {"F057", cache_operator},
    {"F058", mixed_atomicity},
    {"F059", missed_vector_access},
    {"F060", uninitialised_shared},
    {"F061", missing_return},
    {"F062", unreachable_code},
    {"F063", endless_loop},
    {"F064", unbounded_recursion},
    {"F065", indirect_target},
    {"F066", call_signature},
    {"F067", exit_before_collective},
    {"F068", divergent_hot_branch},
    {"F069", irreducible_flow},
    {"F070", unguarded_global_index},
    {"F071", use_before_definition},
    {"F072", unused_parameter},
    {"F073", dead_value},
    {"F074", masked_fault},
    {"F075", predicated_definition},
    {"F076", mixed_width_use},
    {"F077", narrowed_address},
    {"F078", mixed_sign_bounds_check},
    {"F079", index_overflow},
    {"F080", shift_amount},
    {"F081", loaded_value_bug},
    {"F082", computed_address_from_loaded},
    {"F083", loop_cvta_shared},
    {"F084", optimisation_sensitive},
    {"F085", shuffle_lane_bounds},
    {"F086", vote_match_mask},
    {"F087", deprecated_opcode},
    {"F088", mma_shape},
    {"F089", async_copy_size},
    {"F090", store_address_from_counter},
    {"F091", local_spills},
    {"F092", occupancy},
    {"F093", redundant_barrier},
    {"F094", redundant_fence},
    {"F095", dependent_load_chain},
    {"F096", missing_debug_instrumentation},
    {"F097", marker_places},
    {"F098", marker_unique},
    {"F099", marker_order},
    {"F100", atomic_slot_claim},
    {"F101", unbounded_debug_write},
};

}  // namespace

std::span<const Implementation> implementations() { return kImplementations; }

RuleResult run_rule(std::string_view id, Context& context) {
  const auto found = std::find_if(std::begin(kImplementations), std::end(kImplementations),
                                  [&](const Implementation& implementation) { return implementation.id == id; });
  PTXKIT_CHECK(found != std::end(kImplementations), "a rule was run that does not exist");
  if (id != "F001" && !context.has_body()) return not_applicable("there is no kernel body");
  RuleResult result = found->run(context);
  if (!result.findings.empty()) place_findings(context, result);
  return result;
}

}  // namespace ptxkit::rules
