// The report as a SARIF 2.1.0 log, for code scanning services and editors.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/report/document.hpp"

namespace ptxkit::report {

// The Markdown page of a rule, "F051"; empty where there is none.
using RulePage = std::function<std::string_view(std::string_view id)>;

// One run: every rule of the catalogue with its help, every finding with its place, the data flow to it, the source
// lines behind it, a fingerprint, and, where it is suppressed, why. Deterministic.
std::unique_ptr<Document> sarif_document(RulePage rule_page);

// Something that went wrong when a kernel ran.
struct RunFault {
  struct Place {
    ptx::FunctionId function = ptx::kNone;
    ptx::InstructionId instruction = ptx::kNone;  // kNone: the function as a whole
  };
  std::string rule;           // of the findings that foretell it; empty: none does, and `kind` is a rule of its own
  std::string kind, meaning;  // "misaligned", "misaligned address"
  std::string message;
  Place at;
  std::optional<std::pair<Place, std::string>> other;  // the other side of a conflict, and what it did
  std::vector<std::pair<std::string, std::string>> properties;
  bool is_note = false;  // did no harm
};

// One run as a log of the same form. A fault has the fingerprint of a finding of its rule at the same statement, so
// that a code scanning service shows both as one. Rules of their own stand behind the catalogue's.
std::string to_sarif(const ptx::Module& module, std::span<const RunFault> faults, int exit_code,
                     const RulePage& rule_page);

}  // namespace ptxkit::report
