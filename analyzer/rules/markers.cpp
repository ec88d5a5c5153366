// Rules about debug instrumentation, F096 to F101, as the DSL's debug builds write it (docs/dsl.md): a parameter
// whose name ends in debug_buffer; word 0 counts markers; marker n is a 16-byte store {id, thread, value} at 16 * (1 +
// n mod records).
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/dominators.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/engine/walk.hpp"
#include "support/plural.hpp"

namespace ptxkit::rules {

using flow::BlockId;
using flow::Source;
using flow::ValueId;
using ptx::Access;
using ptx::AccessKind;
using ptx::Op;

namespace {

constexpr uint32_t kRecordBytes = 16;

struct Marker {
  Access access;
  std::optional<uint64_t> id;
};

struct Instrumentation {
  ptx::VariableId buffer = ptx::kNone;
  std::vector<Marker> markers;       // in program order
  std::vector<Access> other_writes;  // into the buffer, that are neither records nor the counter's atomic
  std::vector<Access> claims;        // atomics on the buffer
};

ptx::VariableId debug_buffer(const Context& context) {
  for (const ptx::VariableId id : context.function().parameters)
    if (context.module.variables[id].name.ends_with("debug_buffer")) return id;
  return ptx::kNone;
}

Instrumentation instrumentation(Context& context) {
  Instrumentation found;
  found.buffer = debug_buffer(context);
  if (found.buffer == ptx::kNone) return found;
  Analyses& analyses = context.analyses();
  const ptx::Function& function = context.function();
  for (const Access& access : analyses.accesses()) {
    const flow::Base& base = analyses.domain().base(analyses.forms().address(access).base);
    if (base.kind != flow::Base::Kind::parameter || base.id != found.buffer || access.kind == AccessKind::load)
      continue;
    if (access.kind == AccessKind::atomic) {
      found.claims.push_back(access);
    } else if (access.extent_bytes == kRecordBytes && access.data != ptx::kNone &&
               function.operand_pool[access.data].child_count == 4) {
      found.markers.push_back({access, constant_at(context, function.operand_pool[access.data].first_child)});
    } else {
      found.other_writes.push_back(access);
    }
  }
  return found;
}

constexpr std::string_view kNoBuffer = "the kernel has no debug buffer";

}  // namespace

// F096. Advice: a build for use has none, and --release says that it is one.
RuleResult missing_debug_instrumentation(Context& context) {
  if (context.options.release) return not_applicable("--release: the kernel is a release build");
  if (debug_buffer(context) != ptx::kNone) return survived("the kernel has a debug buffer");
  Finding finding;
  finding.tier = Tier::proved;
  finding.at = context.function().at;
  finding.message = "expected a parameter whose name ends in debug_buffer, found none";
  finding.remedy = "make a debug build, or say --release";
  std::vector<Finding> findings{std::move(finding)};
  return advise(std::move(findings), "", "the kernel cannot say where it was when it failed");
}

// F097. Where a kernel that hangs or faults was last seen: at its entry, before what can wait, before what it leaves
// behind, and at the head of what goes round.
RuleResult marker_places(Context& context) {
  const Instrumentation found = instrumentation(context);
  if (found.buffer == ptx::kNone) return not_applicable(std::string(kNoBuffer));
  Analyses& analyses = context.analyses();
  const flow::Graph& graph = analyses.graph();
  const ptx::Function& function = context.function();
  std::set<ptx::InstructionId> marks, own;
  for (const Marker& marker : found.markers) marks.insert(marker.access.instruction);
  for (const Access& access : found.claims) own.insert(access.instruction);
  own.insert(marks.begin(), marks.end());
  // Marked before `id`: a marker that dominates it, in its block or above, with no barrier or store in between counts
  // for the entry and for loops only where it stands in the loop.
  auto marked_in_block = [&](ptx::InstructionId id) {
    const BlockId block = graph.block_of(id);
    return std::any_of(marks.begin(), marks.end(),
                       [&](ptx::InstructionId mark) { return graph.block_of(mark) == block && mark < id; });
  };
  std::vector<Finding> findings;
  auto report = [&](ptx::InstructionId id, std::string_view where) {
    findings.push_back(finding_at(context, id, Severity::info, Tier::proved,
                                  fmt::format("expected a marker {}, found none", where),
                                  "mark the place in the source"));
  };
  const bool at_entry = std::any_of(marks.begin(), marks.end(), [&](ptx::InstructionId mark) {
    return analyses.post_dominators().dominates(graph.block_of(mark), 0) && graph.block_of(mark) == 0;
  });
  if (!at_entry) report(0, "in the entry block");
  for (const flow::Loop& loop : analyses.loops().all()) {
    const bool any = std::any_of(marks.begin(), marks.end(), [&](ptx::InstructionId mark) {
      return std::any_of(loop.latches.begin(), loop.latches.end(), [&](BlockId latch) {
        return graph.block_of(mark) != loop.header
                   ? analyses.dominators().dominates(loop.header, graph.block_of(mark)) &&
                         analyses.dominators().dominates(graph.block_of(mark), latch)
                   : true;
      });
    });
    if (!any) report(graph.block(loop.header).first, "in every iteration of the loop that starts here");
  }
  for_each_instruction(context, [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
    if (own.contains(id)) return;
    if (ptx::is_cta_barrier(function, instruction) && !marked_in_block(id)) report(id, "before this barrier");
    if (instruction.op == Op::st && instruction.space != ptx::Space::param && instruction.space != ptx::Space::local &&
        !marked_in_block(id))
      report(id, "before this store");
  });
  in_program_order(findings);
  return advise(std::move(findings), "no place without one: " + plural(found.markers.size(), "marker"),
                "places are not marked");
}

// F098. Two places with one id cannot be told apart. A loop that the compiler unrolled has copies of one marker: those
// share a source line.
RuleResult marker_unique(Context& context) {
  const Instrumentation found = instrumentation(context);
  if (found.buffer == ptx::kNone) return not_applicable(std::string(kNoBuffer));
  const ptx::Function& function = context.function();
  auto place = [&](const Marker& marker) {
    const ptx::LocationId location = function.instructions[marker.access.instruction].location;
    return location == ptx::kNone
               ? std::pair<uint32_t, uint32_t>{0, marker.access.instruction}
               : std::pair{context.module.locations[location].file + 1, context.module.locations[location].line};
  };
  std::map<uint64_t, const Marker*> first;
  std::vector<Finding> findings;
  size_t open = 0;
  for (const Marker& marker : found.markers) {
    if (!marker.id) {
      ++open;
      continue;
    }
    const auto [before, added] = first.try_emplace(*marker.id, &marker);
    if (added || place(*before->second) == place(marker)) continue;
    findings.push_back(finding_at(
        context, marker.access.instruction, Severity::info, Tier::proved,
        fmt::format("marker {} is also in line {}", *marker.id, line_of(context, before->second->access.instruction)),
        "give every place its own id"));
  }
  if (findings.empty() && open) return undecided("the id of a marker is computed at run time");
  return advise(std::move(findings), plural(found.markers.size(), "marker") + ", no number twice",
                "markers share an id");
}

// F099. Ids that grow with the text let a reader see how far a thread came.
RuleResult marker_order(Context& context) {
  const Instrumentation found = instrumentation(context);
  if (found.buffer == ptx::kNone) return not_applicable(std::string(kNoBuffer));
  const flow::DominatorTree& dominators = context.analyses().dominators();
  const flow::Graph& graph = context.analyses().graph();
  std::vector<Finding> findings;
  for (const Marker& marker : found.markers)
    for (const Marker& before : found.markers) {
      const BlockId a = graph.block_of(before.access.instruction), b = graph.block_of(marker.access.instruction);
      const bool comes_before =
          a == b ? before.access.instruction < marker.access.instruction : dominators.dominates(a, b);
      if (!comes_before || !marker.id || !before.id || *before.id <= *marker.id) continue;
      findings.push_back(finding_at(context, marker.access.instruction, Severity::info, Tier::proved,
                                    fmt::format("marker {} comes after marker {} in line {}", *marker.id, *before.id,
                                                line_of(context, before.access.instruction)),
                                    "number the markers in the order in which they are passed"));
      break;
    }
  return advise(std::move(findings), "markers that are always passed before others have smaller ids",
                "markers are numbered out of order");
}

// F100. Without an atomic two threads write one slot, and both records are lost.
RuleResult atomic_slot_claim(Context& context) {
  const Instrumentation found = instrumentation(context);
  if (found.buffer == ptx::kNone) return not_applicable(std::string(kNoBuffer));
  Analyses& analyses = context.analyses();
  std::set<ptx::InstructionId> claims;
  for (const Access& claim : found.claims) claims.insert(claim.instruction);
  std::vector<Finding> findings;
  for (const Marker& marker : found.markers) {
    const Source address = flow::address_base(analyses.ssa(), marker.access.address);
    const bool claimed = address.kind == Source::Kind::value && any_ancestor(context, address.id, [&](ValueId id) {
                           const flow::Value& value = analyses.ssa().value(id);
                           return value.kind == flow::Value::Kind::result && claims.contains(value.instruction);
                         });
    // A slot of the thread's own needs no claim.
    const bool own = address.kind == Source::Kind::value && depends_on_thread(context, address.id, false) &&
                     depends_on_thread(context, address.id, true);
    if (claimed || own) continue;
    findings.push_back(
        finding_at(context, marker.access.instruction, Severity::medium, Tier::proved,
                   "expected a slot that an atomic on the buffer has claimed, found one all threads share",
                   "take the slot's number from atom.add on the counter"));
  }
  for (const Access& write : found.other_writes)
    if (analyses.forms().address(write).terms.empty())
      findings.push_back(finding_at(context, write.instruction, Severity::medium, Tier::proved,
                                    "expected an atomic on the buffer's counter, found a plain store",
                                    "count with atom.add"));
  if (found.markers.empty() && findings.empty()) return not_applicable("the kernel has no marker");
  in_program_order(findings);
  return conclude(std::move(findings), plural(found.markers.size(), "marker") + " in slots that were claimed");
}

// F101. The counter runs on past the number of slots: its value must be masked, or tested, before it is an address.
RuleResult unbounded_debug_write(Context& context) {
  const Instrumentation found = instrumentation(context);
  if (found.buffer == ptx::kNone) return not_applicable(std::string(kNoBuffer));
  Analyses& analyses = context.analyses();
  std::set<ptx::InstructionId> claims;
  for (const Access& claim : found.claims) claims.insert(claim.instruction);
  auto comes_from_claim = [&](ValueId start) {
    return any_ancestor(context, start, [&](ValueId id) {
      const flow::Value& value = analyses.ssa().value(id);
      return value.kind == flow::Value::Kind::result && claims.contains(value.instruction);
    });
  };
  std::vector<Finding> findings;
  size_t judged = 0;
  for (const Marker& marker : found.markers) {
    const Source address = flow::address_base(analyses.ssa(), marker.access.address);
    if (address.kind != Source::Kind::value || !comes_from_claim(address.id)) continue;
    ++judged;
    const bool masked = any_ancestor(context, address.id, [&](ValueId id) {
      const ptx::Instruction* definition = definition_of(context, id);
      return definition &&
             (definition->op == Op::and_ || definition->op == Op::rem || definition->op == Op::bfe ||
              definition->op == Op::min || definition->op == Op::lop3) &&
             comes_from_claim(id);
    });
    bool tested = false;
    for (const flow::Condition& condition : analyses.conditions().of_instruction(marker.access.instruction))
      tested = tested || comes_from_claim(condition.predicate);
    if (masked || tested) continue;
    findings.push_back(
        finding_at(context, marker.access.instruction, Severity::high, Tier::proved,
                   "the slot's number is neither masked nor tested, and the counter runs past the last slot",
                   "mask the number with the count of slots less one"));
  }
  if (judged == 0 && findings.empty()) return not_applicable("no marker's slot comes from a counter");
  return conclude(std::move(findings), plural(judged, "marker") + " in bounded slots");
}

}  // namespace ptxkit::rules
