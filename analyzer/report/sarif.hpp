// The report as a SARIF 2.1.0 log, for code scanning services and editors.
#pragma once

#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/report/document.hpp"

namespace ptxkit::report {

// One SARIF run: every rule of the catalogue with its help, and every finding with its place, the data flow to it, its
// source lines, a fingerprint and, where it is suppressed, the reason. Deterministic.
std::unique_ptr<Document> sarif_document();

// A fault of a kernel at run time.
struct RunFault {
  struct Place {
    ptx::FunctionId function = ptx::kNone;
    ptx::InstructionId instruction = ptx::kNone;  // kNone: the function as a whole
  };
  std::string rule;           // rule whose findings predict it; empty: no rule, and `kind` becomes a rule of its own
  std::string kind, meaning;  // "misaligned", "misaligned address"
  std::string message;
  Place at;
  std::optional<std::pair<Place, std::string>> other;  // the other access of a conflict, and its description
  std::vector<std::pair<std::string, std::string>> properties;
  bool is_note = false;  // harmless
};

// One SARIF run in the same form. A fault has the same fingerprint as a finding of its rule at the same statement, so
// that a code scanning service shows them as one. Faults without a rule in the catalogue get rules after it.
std::string to_sarif(const ptx::Module& module, std::span<const RunFault> faults, int exit_code);

}  // namespace ptxkit::report
