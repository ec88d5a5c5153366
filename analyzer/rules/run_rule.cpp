#include "analyzer/rules/run_rule.hpp"

#include <algorithm>
#include <iterator>

#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "support/check.hpp"

namespace ptxkit::rules {

namespace {

constexpr Implementation kImplementations[] = {
#define RULE(id, function, ...) {#id, function},
#include "analyzer/rules/rules.def"
};

}  // namespace

std::span<const Implementation> implementations() { return kImplementations; }

RuleResult run_rule(std::string_view id, Context& context) {
  const auto found = std::find_if(std::begin(kImplementations), std::end(kImplementations),
                                  [&](const Implementation& implementation) { return implementation.id == id; });
  PTXKIT_CHECK(found != std::end(kImplementations), "a rule was run that does not exist");
  if (id != "F001" && !context.has_body()) return not_applicable("there is no kernel body");
  if (id != "F001" && !context.analyses().fits())
    return undecided("not decided: budget: the kernel has too many ways through it to follow them all");
  RuleResult result = found->run(context);
  if (!result.findings.empty()) place_findings(context, result);
  return result;
}

}  // namespace ptxkit::rules
