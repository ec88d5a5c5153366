// Finds the origin of the unprovable part of an address. It follows definitions back to a load, a parameter, the
// thread's indices, or a cursor that a loop moves by uneven steps.
#pragma once

#include "analyzer/rules/engine/alignment.hpp"

namespace ptxkit::rules {

struct UnalignedPart {
  Origin origin = Origin::unknown;
  bool byte_granular = false;
  std::string reason;
  std::vector<Step> path;
  std::vector<ptx::VariableId> parameters;  // that it is computed from
  bool moved_by_loaded_value = false;       // a loop carries the value, and a loaded value moves it
  // The part of an address with the highest rank judges the access.
  int rank() const;
};

// Traces `term`, a part of an address into `base` that must be a multiple of `width` bytes.
UnalignedPart trace_unaligned_part(Analyses& analyses, const Context& context, const flow::Term& term,
                                   flow::BaseId base, uint32_t width);

}  // namespace ptxkit::rules
