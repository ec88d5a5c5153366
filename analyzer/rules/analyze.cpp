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
    {"F030", space_mismatch},
    {"F032", double_cvta},
    {"F036", missing_barrier},
    {"F037", barrier_not_reached},
    {"F038", divergent_barrier},
    {"F041", predicated_barrier},
    {"F045", barrier_in_divergent_loop},
    {"F051", unaligned_access},
    {"F054", shared_bounds},
    {"F056", stale_read_only},
    {"F061", missing_return},
    {"F062", unreachable_code},
    {"F063", endless_loop},
    {"F069", irreducible_flow},
    {"F071", use_before_definition},
    {"F072", unused_parameter},
    {"F073", dead_value},
    {"F074", masked_fault},
    {"F081", loaded_value_bug},
    {"F082", computed_address_from_loaded},
    {"F083", loop_cvta_shared},
};

}  // namespace

std::span<const Implementation> implementations() { return kImplementations; }

RuleResult run_rule(std::string_view id, Context& context) {
  const auto found = std::find_if(std::begin(kImplementations), std::end(kImplementations),
                                  [&](const Implementation& implementation) { return implementation.id == id; });
  PTXKIT_CHECK(found != std::end(kImplementations), "a rule was run that does not exist");
  if (id != "F001" && !context.has_body()) return not_applicable("there is no kernel body");
  return found->run(context);
}

}  // namespace ptxkit::rules
