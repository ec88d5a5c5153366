// Rules about the module as a text.
#include <algorithm>
#include <utility>

#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::rules {

// F001. A module without an entry cannot be launched; a declaration or a .func is not one.
RuleResult missing_entry_point(Context& context) {
  const auto& functions = context.module.functions;
  if (std::any_of(functions.begin(), functions.end(),
                  [](const ptx::Function& function) { return function.is_entry && function.has_body; }))
    return survived("the module defines an entry");
  Finding finding;
  finding.severity = Severity::high;
  finding.tier = Tier::proved;
  finding.message = functions.empty()
                        ? "expected at least one .entry with a body, found no function"
                        : "expected at least one .entry with a body, found only device functions and declarations";
  if (!functions.empty()) finding.at = functions.front().at;
  finding.remedy = "define a kernel with .entry, or check that the right file was given";
  return conclude({std::move(finding)}, "");
}

}  // namespace ptxkit::rules
