// F021, F081, F082: the patterns of the original crash hunt. What they really are is in catalogue.md and in
// docs/rules/: a misaligned access hidden by dead-code elimination. So a site is judged by the alignment of its load
// and of the store that it feeds; where that is proved, the hardware's evidence decides.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/evidence/evidence.hpp"
#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/alignment.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/engine/taint.hpp"
#include "support/plural.hpp"

namespace ptxkit::rules {

using ptx::Access;
using ptx::AccessKind;
using ptx::Space;

namespace {

unsigned alignment_rank_of(const AccessAlignment& alignment) {
  if (alignment.status == AlignmentStatus::proved) return 0;
  return alignment.status == AlignmentStatus::refuted || alignment.byte_granular ? 2 : 1;
}

// Severity, tier and evidence of a site, whose worst access is `alignment`.
void judge_site(const Context& context, std::string_view rule, const AccessAlignment& alignment, Finding& finding) {
  if (context.options.profile == Profile::pattern) {
    finding.severity = Severity::critical;
    finding.tier = Tier::proved;
    return;
  }
  finding.assumptions = alignment.assumptions;
  switch (alignment_rank_of(alignment)) {
    case 2:
      finding.severity = Severity::critical;
      finding.tier = alignment.tier;
      finding.witness = alignment.witness;
      if (finding.tier == Tier::possible) {
        finding.tier = Tier::likely;
        finding.assumptions.push_back("the part takes a value that is no multiple of the width");
      }
      return;
    case 1:
      finding.severity = severity_of_undecided(alignment);
      finding.tier = Tier::possible;
      return;
    default:
      break;
  }
  finding.tier = Tier::possible;
  finding.severity = Severity::info;
  if (!context.options.evidence) return;
  if (auto confirmed = context.options.evidence->confirmed_by(rule, context.module.target_sm)) {
    finding.severity = Severity::critical;
    finding.tier = Tier::likely;
    finding.assumptions.push_back("the kernel runs on a device of the measured family");
    finding.evidence = std::move(*confirmed);
  } else if (auto refuted = context.options.evidence->refuted_by(rule, context.module.target_sm)) {
    finding.evidence = std::move(*refuted);
  }
}

constexpr std::string_view kRemedy =
    "keep the address a multiple of the width, or load bytes and put them together with shifts";

// What the sites of a kernel add up to. `all_proved`: every site's accesses are.
RuleResult conclude_sites(const Context& context, std::vector<Finding> findings, bool all_proved, std::string none) {
  const size_t sites = findings.size();
  if (sites == 0) return survived(std::move(none));
  RuleResult result = conclude(std::move(findings), "");
  const bool is_pattern = context.options.profile == Profile::pattern;
  if (result.verdict == Verdict::refuted) {
    result.basis = is_pattern ? "the pattern occurs; this profile takes every site as the defect"
                              : "a site has a misaligned or byte-granular access";
  } else if (!all_proved) {
    result.verdict = Verdict::undecided;
    result.loses_points = true;
    result.basis = "the alignment of a site could not be proved";
  } else if (result.findings.front().evidence.empty()) {
    result.verdict = Verdict::undecided;
    result.basis = fmt::format("{} proved aligned, but no evidence covers target {}", plural(sites, "site"),
                               context.module.target);
  } else {
    result.basis = fmt::format("{} proved aligned; the hypothesis is refuted by {}", plural(sites, "site"),
                               result.findings.front().evidence);
  }
  return result;
}

std::string describe(const AccessAlignment& alignment) {
  switch (alignment.status) {
    case AlignmentStatus::proved:
      return "proved aligned";
    case AlignmentStatus::undecided:
      return "not proved aligned: " + alignment.reason;
    case AlignmentStatus::refuted:
      return "misaligned: " + alignment.reason;
  }
  return {};
}

// Values written by the load of `access`: one, or the elements of a vector.
std::vector<flow::ValueId> loaded_values(Context& context, const Access& access) {
  const flow::Ssa& ssa = context.analyses().ssa();
  std::vector<flow::ValueId> values;
  ptx::for_each_register(context.function(), context.function().instructions[access.instruction],
                         [&](uint32_t index, const ptx::Operand&, bool written) {
                           if (written && ssa.at(index) != flow::kNone) values.push_back(ssa.at(index));
                         });
  return values;
}

bool is_shared_load(const ptx::Function& function, const Access& access) {
  return access.kind == AccessKind::load && access.space == Space::shared &&
         (function.instructions[access.instruction].op == ptx::Op::ld ||
          function.instructions[access.instruction].op == ptx::Op::ldmatrix);
}

enum class StoreOperand : uint8_t { data, address };

// F081 and F082 differ in which operand of the store the value reaches.
RuleResult shared_value_reaches(Context& context, std::string_view rule, StoreOperand store_operand) {
  Analyses& analyses = context.analyses();
  const ptx::Function& function = context.function();
  const flow::Ssa& ssa = analyses.ssa();
  const auto& accesses = analyses.accesses();
  const auto& judged = analyses.alignment().of_accesses();
  bool any_load = false;
  for (const Access& access : accesses) any_load = any_load || is_shared_load(function, access);
  if (!any_load) return not_applicable("the kernel loads nothing from shared memory");

  const bool root_cause = context.options.profile == Profile::root_cause;
  std::vector<Sink> sinks;
  for (size_t i = 0; i < accesses.size(); ++i) {
    const Access& access = accesses[i];
    if (access.kind == AccessKind::load) continue;
    const unsigned alignment_rank = root_cause ? alignment_rank_of(judged[i]) : 0;
    auto add = [&](flow::ValueId value) {
      if (value != flow::kNone) sinks.push_back({value, access.instruction, alignment_rank});
    };
    if (store_operand == StoreOperand::address) {
      if (function.operand_pool[access.address].base == ptx::AddressBase::reg) add(ssa.at(access.address));
    } else if (access.data != ptx::kNone) {
      const ptx::Operand& data = function.operand_pool[access.data];
      if (data.kind == ptx::OperandKind::reg) add(ssa.at(access.data));
      for (uint32_t child = 0; child < data.child_count; ++child)
        if (function.operand_pool[data.first_child + child].kind == ptx::OperandKind::reg)
          add(ssa.at(data.first_child + child));
    }
  }
  const Taint taint(context, std::move(sinks));

  std::vector<Finding> findings;
  bool all_proved = true;
  for (size_t i = 0; i < accesses.size(); ++i) {
    const Access& access = accesses[i];
    if (!is_shared_load(function, access)) continue;
    flow::ValueId worst = flow::kNone;
    for (const flow::ValueId value : loaded_values(context, access))
      if (taint.reaches(value) && (worst == flow::kNone || taint.alignment_rank(value) > taint.alignment_rank(worst)))
        worst = value;
    if (worst == flow::kNone) continue;
    const ptx::InstructionId store = taint.store_of(worst);
    const AccessAlignment* of_store = analyses.alignment().of_instruction(store);
    const AccessAlignment* decisive =
        of_store && alignment_rank_of(*of_store) > alignment_rank_of(judged[i]) ? of_store : &judged[i];
    Finding finding = finding_at(
        context, access.instruction, Severity::info, Tier::possible,
        fmt::format("the {}-byte value loaded from shared memory {} the store in line {}; the load is {}, the store {}",
                    access.width_bytes, store_operand == StoreOperand::data ? "is stored by" : "forms the address of",
                    line_of(context, store), describe(judged[i]), of_store ? describe(*of_store) : "not followed"),
        std::string(kRemedy));
    judge_site(context, rule, *decisive, finding);
    all_proved = all_proved && alignment_rank_of(*decisive) == 0;
    finding.path = decisive->path;
    finding.path.push_back({finding.at, "loaded from shared memory here"});
    const auto way = taint.path(worst, context);
    finding.path.insert(finding.path.end(), way.begin(), way.end());
    findings.push_back(std::move(finding));
  }
  return conclude_sites(context, std::move(findings), all_proved,
                        store_operand == StoreOperand::data
                            ? "no value loaded from shared memory reaches the data of a store"
                            : "no value loaded from shared memory reaches the address of a store");
}

}  // namespace

RuleResult generic_address_corruption(Context& context) {
  Analyses& analyses = context.analyses();
  const auto& accesses = analyses.accesses();
  const auto& judged = analyses.alignment().of_accesses();
  std::vector<Finding> findings;
  bool any = false, all_proved = true;
  for (size_t i = 0; i < accesses.size(); ++i) {
    const Access& access = accesses[i];
    if (access.space != Space::generic) continue;
    any = true;
    const flow::Source base = flow::address_base(analyses.ssa(), access.address);
    if (base.kind != flow::Source::Kind::value || !analyses.domain().fact(base.id).from_cvta_shared) continue;
    Finding finding = finding_at(
        context, access.instruction, Severity::info, Tier::possible,
        fmt::format("generic access to an address that comes from cvta.shared; it is {}", describe(judged[i])),
        "use the shared address directly, without cvta");
    judge_site(context, "F021", judged[i], finding);
    all_proved = all_proved && alignment_rank_of(judged[i]) == 0;
    finding.path = judged[i].path;
    findings.push_back(std::move(finding));
  }
  if (!any) return not_applicable("the kernel has no generic access");
  return conclude_sites(context, std::move(findings), all_proved,
                        "no generic access has an address that comes from cvta.shared");
}

RuleResult loaded_value_bug(Context& context) { return shared_value_reaches(context, "F081", StoreOperand::data); }

RuleResult computed_address_from_loaded(Context& context) {
  return shared_value_reaches(context, "F082", StoreOperand::address);
}

// F083. The conversion gives the same address in every iteration.
RuleResult loop_cvta_shared(Context& context) {
  Analyses& analyses = context.analyses();
  std::vector<Finding> findings;
  bool any = false;
  for (const flow::BlockId block : analyses.graph().reverse_postorder())
    for (ptx::InstructionId id = analyses.graph().block(block).first; id < analyses.graph().block(block).end; ++id) {
      const ptx::Instruction& instruction = context.function().instructions[id];
      if (instruction.op != ptx::Op::cvta || instruction.space != Space::shared || instruction.to_space) continue;
      any = true;
      const flow::LoopId loop = analyses.loops().innermost(block);
      if (loop == flow::kNone) continue;
      const flow::Source from = flow::source_of(analyses.ssa(), instruction.first_operand + 1);
      bool invariant = from.kind == flow::Source::Kind::variable || from.kind == flow::Source::Kind::constant;
      if (from.kind == flow::Source::Kind::value) {
        // The address of a variable, wherever the instruction that takes it stands.
        const flow::Fact& fact = analyses.domain().fact(from.id);
        invariant = !analyses.loops().contains(loop, analyses.ssa().value(from.id).block) ||
                    (fact.reached && fact.bits.known() == ~0ull);
      }
      if (!invariant) continue;
      findings.push_back(finding_at(context, id, Severity::low, Tier::proved,
                                    "the conversion gives the same address in every iteration of the loop",
                                    "move the cvta.shared before the loop, or use the shared address directly"));
    }
  if (!any) return not_applicable("the kernel has no cvta.shared");
  return advise(std::move(findings), "no loop repeats a cvta.shared of one address", "a loop repeats a conversion");
}

}  // namespace ptxkit::rules
