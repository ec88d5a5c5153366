// Declares the function of every rule of rules.def. What a rule decides stands in its row; how, above its definition.
#pragma once

#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::rules {

struct Context;

#define RULE(id, function, ...) RuleResult function(Context& context);
#include "analyzer/rules/rules.def"

}  // namespace ptxkit::rules
