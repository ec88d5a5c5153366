// Fingerprints identify a finding across versions of a file.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/analyze/analysis.hpp"

namespace ptxkit::report {

// A finding of a verdict, suppressed or not.
struct AnyFinding {
  const rules::Finding* finding;
  const Suppressed* suppressed;  // null where the finding is not suppressed
  std::string fingerprint;
};

// How many findings with the same key came before.
using PlaceCounts = std::map<std::string, unsigned>;

// 16 hex digits computed from the rule, the function's name, the statement without names of registers and labels, and
// the number of earlier findings with the same key. Lines, columns, messages and file names do not count, so edits
// elsewhere keep it stable.
std::string fingerprint(std::string_view rule, std::string_view function, std::string_view statement,
                        PlaceCounts& seen);

// All findings of a verdict in program order.
std::vector<AnyFinding> all_findings(const ptx::Module& module, const KernelAnalysis& kernel,
                                     const RuleVerdict& verdict);

}  // namespace ptxkit::report
