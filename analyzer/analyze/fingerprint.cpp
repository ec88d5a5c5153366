// See fingerprint.hpp.
#include "analyzer/analyze/fingerprint.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "analyzer/analyze/identity.hpp"
#include "analyzer/analyze/place.hpp"
#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::report {
namespace {

bool is_name_part(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

// "ld.shared.u32 %,[%+4]" for "ld.shared.u32  %r12, [%r16+4]". Special registers such as %tid.x lose their names too.
std::string shape(std::string_view statement) {
  std::string result;
  for (size_t at = 0; at < statement.size();) {
    const char c = statement[at++];
    if (c == '%' || c == '$') {
      while (at < statement.size() && is_name_part(statement[at])) ++at;
      result += c;
    } else if (c == ' ' || c == '\t') {
      if (!result.empty() && is_name_part(result.back()) && at < statement.size() && statement[at] != ' ')
        result += ' ';
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace

std::string fingerprint(std::string_view rule, std::string_view function, std::string_view statement,
                        PlaceCounts& seen) {
  std::string key = fmt::format("{}\n{}\n{}", rule, function, shape(statement));
  key += '\n' + std::to_string(seen[key]++);
  return xxh128_hex(key).substr(0, 16);
}

std::vector<AnyFinding> all_findings(const ptx::Module& module, const KernelAnalysis& kernel,
                                     const RuleVerdict& verdict) {
  std::vector<AnyFinding> all;
  all.reserve(verdict.result.findings.size() + verdict.suppressed.size());
  for (const rules::Finding& finding : verdict.result.findings) all.push_back({&finding, nullptr, {}});
  for (const Suppressed& suppressed : verdict.suppressed) all.push_back({&suppressed.finding, &suppressed, {}});
  std::ranges::stable_sort(all, {}, [](const AnyFinding& each) { return each.finding->at; });
  PlaceCounts seen;
  for (AnyFinding& each : all) {
    each.fingerprint = fingerprint(verdict.rule->id, kernel.name, statement_at(module, each.finding->at), seen);
  }
  return all;
}

}  // namespace ptxkit::report
