// Declares the function of every rule of rules.def. The row says what the rule decides; the comment above its
// definition says how.
#pragma once

#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::rules {

struct Context;

#define RULE(id, function, ...) RuleResult function(Context& context);
#include "analyzer/rules/rules.def"

}  // namespace ptxkit::rules
