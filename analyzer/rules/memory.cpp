// Rules about single accesses: alignment and bounds.
#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/evaluate.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/launch.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/access_prover.hpp"
#include "analyzer/rules/engine/alignment.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/engine/walk.hpp"
#include "support/plural.hpp"

namespace ptxkit::rules {

using flow::Form;
using ptx::Access;
using ptx::Space;

namespace {

// PTX ISA and CUDA C++ Programming Guide: static shared memory of a CTA, in bytes, whatever the opt-in dynamic maximum.
constexpr uint64_t static_shared_limit(uint32_t sm) { return sm != 0 && sm < 20 ? 16 * 1024 : 48 * 1024; }

struct Bounds {
  size_t proved = 0, accesses = 0;
  size_t by_solver = 0;  // of those proved
};

// Accesses of one space into variables of known size. Adds a finding for each that is provably outside: by a constant
// displacement, or in a thread that the launch bounds promise.
Bounds check_bounds(Context& context, Space space, Severity severity, std::vector<Finding>& findings) {
  Analyses& analyses = context.analyses();
  Bounds bounds;
  flow::Forms& forms = analyses.forms();
  const flow::LaunchShape& shape = analyses.shape();
  // The last thread first: it is the likeliest to be out.
  std::vector<flow::Thread> last_first;
  if (shape.is_exact)
    for (uint32_t n = std::min(shape.max_threads, 1024u); n-- > 0;) last_first.push_back(flow::thread_of(shape, n));
  std::map<flow::LoopId, flow::Evaluator> evaluators;  // by innermost loop
  AccessProver prover(context);
  for (const Access& access : analyses.accesses()) {
    if (access.extent_bytes == 0) continue;
    const Form form = forms.expand(forms.address(access));
    if (form.base == flow::kNoBase) continue;
    const flow::Base& base = analyses.domain().base(form.base);
    if (base.kind != flow::Base::Kind::variable) continue;
    const ptx::Variable& variable = context.module.variables[base.id];
    if (variable.space != space || variable.is_unsized) continue;
    ++bounds.accesses;
    const flow::Interval range = forms.interval(form);
    const int64_t size = static_cast<int64_t>(variable.size_bytes), extent = access.extent_bytes;
    if (range.low >= 0 && range.high + extent <= size) {
      ++bounds.proved;
      continue;
    }
    auto report = [&](int64_t offset, Tier tier, Witness witness, std::string who) {
      Finding finding =
          finding_at(context, access.instruction, severity, tier,
                     fmt::format("{}-byte {} at offset {} of {}, which has {}{}", extent, text(access.kind), offset,
                                 analyses.domain().describe(form.base), plural(variable.size_bytes, "byte"), who),
                     "enlarge the array or bound the index");
      witness.address = static_cast<uint64_t>(offset);
      witness.note = "offset from " + analyses.domain().describe(form.base);
      finding.witness = std::move(witness);
      findings.push_back(std::move(finding));
    };
    const auto conditions = analyses.conditions().of_instruction(access.instruction);
    if (form.terms.empty()) {
      if (form.modulus_bits < 32) continue;
      const int64_t offset = static_cast<int32_t>(form.constant);
      report(offset, conditions.empty() ? Tier::proved : Tier::likely, {}, "");
      if (!conditions.empty()) findings.back().assumptions.push_back("control reaches the access");
      continue;
    }
    const size_t reported = findings.size();
    // Only what the thread's place and the first iteration decide.
    const flow::BlockId block = analyses.graph().block_of(access.instruction);
    flow::Evaluator& evaluator = evaluators
                                     .try_emplace(analyses.loops().innermost(block), forms, last_first,
                                                  flow::first_iterations(analyses.loops(), block))
                                     .first->second;
    const flow::Column offsets = last_first.empty() ? flow::Column() : evaluator.column_of_form(form);
    for (size_t n = 0; n < last_first.size() && offsets[n]; ++n) {
      const flow::Thread& thread = last_first[n];
      const int64_t offset = static_cast<int32_t>(*offsets[n]);
      if (offset >= 0 && offset + extent <= size) continue;
      bool possible = true, certain = true;
      for (const flow::Condition& condition : conditions) {
        const auto holds = evaluator.column(condition.predicate)[n];
        if (holds && (*holds != 0) != condition.expected) possible = false;
        if (!holds) certain = false;
      }
      if (!possible) continue;
      // A condition that cannot be evaluated may be the very bounds check.
      if (!certain) break;
      Witness witness;
      for (unsigned d = 0; d < 3; ++d) witness.tid[d] = thread.tid[d];
      report(offset, Tier::proved, witness,
             fmt::format(", in thread ({}, {}, {})", thread.tid[0], thread.tid[1], thread.tid[2]));
      break;
    }
    if (findings.size() > reported) continue;
    const AccessProver::Answer answer = prover.outside(access, form.base, variable.size_bytes);
    const bool is_inside = answer.kind == AccessProver::Answer::Kind::never;
    bounds.proved += is_inside;
    bounds.by_solver += is_inside;
    if (answer.kind != AccessProver::Answer::Kind::in_thread) continue;
    const flow::Thread& thread = answer.thread;
    Witness witness;
    for (unsigned d = 0; d < 3; ++d) witness.tid[d] = thread.tid[d];
    report(static_cast<int32_t>(answer.offset), Tier::proved, witness,
           fmt::format(", in thread ({}, {}, {}) of block ({}, {}, {})", thread.tid[0], thread.tid[1], thread.tid[2],
                       thread.ctaid[0], thread.ctaid[1], thread.ctaid[2]));
  }
  return bounds;
}

// "; Z3 proved 2 accesses".
std::string proved_by_solver(size_t count) {
  return count ? fmt::format("; Z3 proved {}", plural(count, "access", "accesses")) : std::string();
}

// Whether some thread of block (0, 0, 0) may get to an instruction, as far as the conditions on the way can be
// evaluated.
bool may_be_reached(Context& context, ptx::InstructionId id) {
  Analyses& analyses = context.analyses();
  const flow::LaunchShape& shape = analyses.shape();
  const auto conditions = analyses.conditions().of_instruction(id);
  const uint32_t threads = shape.max_threads;
  std::vector<flow::Thread> row;
  for (uint32_t n = 0; n < std::min(threads, 1024u); ++n) row.push_back({.tid = {n, 0, 0}, .nctaid = {1, 1, 1}});
  std::vector<bool> gets_here(row.size(), true);
  flow::Evaluator evaluator(analyses.forms(), row,
                            flow::first_iterations(analyses.loops(), analyses.graph().block_of(id)));
  for (const flow::Condition& condition : conditions) {
    const flow::Column& holds = evaluator.column(condition.predicate);
    for (size_t n = 0; n < row.size(); ++n)
      if (holds[n] && (*holds[n] != 0) != condition.expected) gets_here[n] = false;
  }
  return std::ranges::find(gets_here, true) != gets_here.end();
}

// Accesses to an address that the text spells as a number: no object is there. A number in another space's window may
// be meant: cvta.shared of 16.
void check_literal_addresses(Context& context, std::vector<Finding>& findings) {
  Analyses& analyses = context.analyses();
  for (const Access& access : analyses.accesses()) {
    if (access.space != Space::generic && access.space != Space::global) continue;
    const Form form = analyses.forms().address(access);
    if (form.base != flow::kNoBase || !form.terms.empty() || form.modulus_bits < context.module.address_size) continue;
    const flow::Source from = flow::address_base(analyses.ssa(), access.address);
    const bool is_elsewhere =
        from.kind == flow::Source::Kind::value && (analyses.domain().fact(from.id).points_to & ~flow::kGlobalSet);
    if (is_elsewhere || !may_be_reached(context, access.instruction)) continue;
    Finding finding = finding_at(context, access.instruction, Severity::critical, Tier::likely,
                                 fmt::format("{}-byte {} at the literal address {:#x}, where no object is",
                                             access.extent_bytes, text(access.kind), form.constant),
                                 "take the address of a variable, or pass a pointer");
    finding.assumptions.push_back("control reaches the access");
    Witness witness;
    witness.address = static_cast<uint64_t>(form.constant);
    finding.witness = std::move(witness);
    findings.push_back(std::move(finding));
  }
}

}  // namespace

namespace {

// "'pitch' and 'rows'".
std::string names_of(const Context& context, std::span<const ptx::VariableId> parameters) {
  std::string names;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const char* separator = i == 0 ? "" : i + 1 == parameters.size() ? " and " : ", ";
    names += fmt::format("{}'{}'", separator, context.module.variables[parameters[i]].name);
  }
  return names;
}

std::string remedy_of(const Context& context, const AccessAlignment& alignment, uint32_t width_bytes) {
  if (alignment.status == AlignmentStatus::refuted)
    return "load or store bytes, or read the aligned words around the address and shift them together";
  if (alignment.origin == Origin::layout)
    return fmt::format("declare the variable with alignas({0}), in PTX .align {0}: now its place alone makes it right",
                       width_bytes);
  const auto is_aggregate = [&](ptx::VariableId id) { return context.module.variables[id].is_array; };
  if (!alignment.launch_facts.empty() && std::ranges::none_of(alignment.launch_facts, is_aggregate))
    return fmt::format("state {} in a launch file, or test the address's low bits before the access",
                       names_of(context, alignment.launch_facts));
  if (!alignment.launch_facts.empty())
    return "test the address's low bits before the access, or pass the stride as a parameter of its own and state it "
           "in "
           "a launch file";
  return "bound the offset to multiples of the width, or say what the launch guarantees in a launch file";
}

}  // namespace

// F051. Must prove: an access that is neither proved aligned nor refuted loses the points.
RuleResult unaligned_access(Context& context) {
  Analyses& analyses = context.analyses();
  const auto& accesses = analyses.accesses();
  if (accesses.empty()) return not_applicable("the kernel accesses no memory");
  const auto& judged = analyses.alignment().of_accesses();
  std::vector<Finding> findings;
  std::set<std::string> assumptions;
  size_t tested = 0;
  size_t by_solver = 0;
  size_t open = 0;
  std::string first_open;
  bool host_decides = true;
  std::set<ptx::VariableId> launch_facts;
  for (size_t i = 0; i < accesses.size(); ++i) {
    const AccessAlignment& alignment = judged[i];
    assumptions.insert(alignment.assumptions.begin(), alignment.assumptions.end());
    tested += alignment.checked_at_run_time;
    by_solver += alignment.proved_by_solver;
    if (alignment.status == AlignmentStatus::proved) continue;
    if (open++ == 0)
      first_open = fmt::format("line {}: {}", line_of(context, accesses[i].instruction), alignment.reason);
    const bool refuted = alignment.status == AlignmentStatus::refuted;
    host_decides = host_decides && !alignment.launch_facts.empty();
    launch_facts.insert(alignment.launch_facts.begin(), alignment.launch_facts.end());
    Finding finding =
        finding_at(context, accesses[i].instruction, severity_of(alignment), alignment.tier,
                   fmt::format("{}-byte {} {}: {}", accesses[i].width_bytes, text(accesses[i].kind),
                               refuted ? "at a misaligned address" : "whose alignment is not proved", alignment.reason),
                   remedy_of(context, alignment, accesses[i].width_bytes));
    finding.assumptions = alignment.assumptions;
    finding.path = alignment.path;
    finding.witness = alignment.witness;
    findings.push_back(std::move(finding));
  }
  std::string basis = plural(accesses.size(), "access", "accesses") + " aligned for every thread and iteration";
  if (tested) basis += fmt::format(", {} of them by a test at run time", tested);
  if (!assumptions.empty()) {
    basis += ", assuming that";
    const char* separator = " ";
    size_t listed = 0;
    for (const std::string& assumption : assumptions) {
      if (++listed > 8) {
        basis += fmt::format("; and {} more", assumptions.size() - 8);
        break;
      }
      basis += separator + assumption;
      separator = "; ";
    }
  }
  RuleResult result = conclude(std::move(findings), std::move(basis));
  result.basis += proved_by_solver(by_solver);
  if (result.verdict != Verdict::refuted && open) {
    result.verdict = Verdict::undecided;
    result.loses_points = true;
    result.needs_launch_fact = host_decides;
    const std::string count = fmt::format("{} of {}", open, plural(accesses.size(), "access", "accesses"));
    const std::vector<ptx::VariableId> parameters(launch_facts.begin(), launch_facts.end());
    result.basis = host_decides ? fmt::format("needs a launch fact: {} decides the alignment of {}, the first in {}",
                                              names_of(context, parameters), count, first_open)
                                : fmt::format("the rule must prove alignment and could not for {}, the first in {}",
                                              count, first_open);
    result.basis += proved_by_solver(by_solver);
  }
  return result;
}

// F054. The static part fits, and no access is provably outside its object: a constant displacement, a thread that the
// launch bounds promise, or an address that is a number.
RuleResult shared_bounds(Context& context) {
  Analyses& analyses = context.analyses();
  const ptx::Function& function = context.function();
  bool any = !shared_variables(context).empty();
  for (const Access& access : analyses.accesses()) any = any || access.space == Space::shared;

  std::vector<Finding> findings;
  check_literal_addresses(context, findings);
  if (!any && findings.empty()) return not_applicable("the kernel uses no shared memory and no literal address");

  const uint64_t total = static_shared_bytes(context);
  const uint64_t limit = static_shared_limit(context.module.target_sm);
  if (total > limit) {
    Finding finding;
    finding.severity = Severity::critical;
    finding.tier = Tier::proved;
    finding.at = function.at;
    finding.message = fmt::format("expected at most {} bytes of static shared memory for {}, found {}", limit,
                                  context.module.target, total);
    finding.remedy = "make the largest array extern and pass its size at launch";
    findings.push_back(std::move(finding));
  }

  const Bounds bounds = check_bounds(context, Space::shared, Severity::critical, findings);
  return conclude(
      std::move(findings),
      fmt::format("{} of {} bytes of static shared memory; {}: {} proved inside its object, none provably outside{}",
                  total, limit, plural(bounds.accesses, "access", "accesses"), bounds.proved,
                  proved_by_solver(bounds.by_solver)));
}

// F025. The frame is what the kernel's local variables make up.
RuleResult local_bounds(Context& context) {
  std::vector<Finding> findings;
  const Bounds bounds = check_bounds(context, Space::local, Severity::high, findings);
  if (bounds.accesses == 0) return not_applicable("the kernel accesses no local variable");
  if (findings.empty() && bounds.proved < bounds.accesses)
    return undecided(fmt::format("{} of {} not proved inside its variable, none provably outside{}",
                                 bounds.accesses - bounds.proved, plural(bounds.accesses, "access", "accesses"),
                                 proved_by_solver(bounds.by_solver)));
  return conclude(std::move(findings),
                  fmt::format("{} inside its variable{}", plural(bounds.accesses, "access", "accesses"),
                              proved_by_solver(bounds.by_solver)));
}

}  // namespace ptxkit::rules
