// What makes a finding the same one in the next version of a file.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/analyze/analysis.hpp"

namespace ptxkit::report {

// A finding of a verdict, whether it counts or not.
struct AnyFinding {
  const rules::Finding* finding;
  const Suppressed* suppressed;  // null where it counts
  std::string fingerprint;
};

// How many with equal parts came before.
using SeenPlaces = std::map<std::string, unsigned>;

// 16 hex digits made of the rule, the function's name, the statement without the names of registers and labels, and how
// many with all of these equal came before. Lines, columns, messages and file names do not count, so that edits
// elsewhere leave it alone.
std::string fingerprint(std::string_view rule, std::string_view function, std::string_view statement, SeenPlaces& seen);

// All findings of a verdict in program order.
std::vector<AnyFinding> all_findings(const ptx::Module& module, const KernelAnalysis& kernel,
                                     const RuleVerdict& verdict);

}  // namespace ptxkit::report
