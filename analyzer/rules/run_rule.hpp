// The implemented rules, and the function that runs one.
//
// A rule is a plain function from a Context (one kernel with its analyses) to a RuleResult, with one row in rules.def.
// A rule never throws and never fails: if it cannot decide, it returns Verdict::undecided.
#pragma once

#include <span>
#include <string_view>

#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::rules {

struct Context;  // analyzer/rules/engine/context.hpp

using RuleFunction = RuleResult (*)(Context&);

struct Implementation {
  std::string_view id;
  RuleFunction run;
};

// Sorted by id. Rules of the catalogue that are missing here are not implemented.
std::span<const Implementation> implementations();

// Returns the rule's result for the kernel of `context`. F001 is about the module and accepts a context without a
// function; every other rule is n/a for such a context and for a function without a body. Precondition: `id` is
// implemented.
RuleResult run_rule(std::string_view id, Context& context);

}  // namespace ptxkit::rules
