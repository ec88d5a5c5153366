// Where an unprovable part of an address comes from: followed back through its definitions to a load, a parameter, the
// thread, or a cursor that a loop moves by uneven steps.
#pragma once

#include "analyzer/rules/engine/alignment.hpp"

namespace ptxkit::rules {

struct Leftover {
  Origin origin = Origin::unknown;
  bool byte_granular = false;
  std::string reason;
  std::vector<Step> path;
  bool follows_cursor = false;  // a loop carries it on, and what is loaded moves it
  // Which of several parts an access is judged by: the one that says most.
  int rank() const;
};

// `term` is part of an address into `base` that must be a multiple of `width` bytes.
Leftover trace_leftover(Analyses& analyses, const Context& context, const flow::Term& term, flow::BaseId base,
                        uint32_t width);

}  // namespace ptxkit::rules
