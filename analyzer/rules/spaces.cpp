// Rules about state spaces: which instruction reaches which memory, and how wide the address is.
#include <fmt/format.h>

#include "analyzer/rules/all.hpp"
#include "analyzer/rules/analyses.hpp"
#include "analyzer/rules/result.hpp"

namespace ptxkit::rules {

using flow::Access;
using flow::Source;
using ptx::Space;

// F022. Shared memory is a 32-bit window: an address register of 64 bits costs a register and hides truncation.
RuleResult shared_addressing_64(Context& context) {
  Analyses& analyses = context.analyses();
  std::vector<Finding> findings;
  bool any = false;
  for (const Access& access : analyses.accesses()) {
    if (access.space != Space::shared && access.space != Space::shared_cluster) continue;
    any = true;
    const Source base = flow::address_base(analyses.ssa(), access.address);
    if (base.kind != Source::Kind::value || flow::width_of(analyses.ssa(), base.id) <= 32) continue;
    const auto& reg = context.function().registers[analyses.ssa().value(base.id).reg];
    findings.push_back(finding_at(context, access.instruction, Severity::high, Tier::proved,
                                  fmt::format("expected a 32-bit shared address, found the 64-bit register {}", reg.name()),
                                  "compute the address with mov.u32 and 32-bit arithmetic"));
  }
  if (!any) return not_applicable("the kernel does not access shared memory");
  return conclude(std::move(findings), "every shared access uses a 32-bit register or a symbol");
}

// F023. Where every path to a generic access brings an address of one space, that space's instruction is faster and
// says what is meant.
RuleResult missing_direct_space(Context& context) {
  Analyses& analyses = context.analyses();
  std::vector<Finding> findings;
  bool any = false;
  for (const Access& access : analyses.accesses()) {
    if (access.space != Space::generic) continue;
    any = true;
    const Source base = flow::address_base(analyses.ssa(), access.address);
    if (base.kind != Source::Kind::value) continue;
    const flow::Fact& fact = analyses.domain().fact(base.id);
    const auto space = flow::only_space(fact.points_to);
    if (!space || *space == Space::param) continue;
    Finding finding = finding_at(
        context, access.instruction, Severity::medium, Tier::proved,
        fmt::format("expected .{}, found a generic access to an address that is in {} memory on every path", ptx::text(*space),
                    ptx::text(*space)),
        fmt::format("take the address without cvta.{} and use .{}", ptx::text(*space), ptx::text(*space)));
    if (fact.base != flow::kNoBase) finding.path.push_back({finding.at, "the address is into " + analyses.domain().describe(fact.base)});
    findings.push_back(std::move(finding));
  }
  if (!any) return not_applicable("the kernel has no generic access");
  return conclude(std::move(findings), "no generic access has an address that is provably of one space");
}

}  // namespace ptxkit::rules
