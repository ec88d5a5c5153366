// Rules about data that other CTAs, the host or peers wait for: F042, F043, F044.
#include <map>
#include <set>

#include <fmt/format.h>

#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/walk.hpp"
#include "support/plural.hpp"

namespace ptxkit::rules {

using flow::BaseId;
using flow::BlockId;
using ptx::Access;
using ptx::AccessKind;
using ptx::AtomicOperation;
using ptx::Op;
using ptx::Scope;
using ptx::Space;

namespace {

// What a fence, or the ordering of an atomic, makes visible of the stores before it.
Scope release_scope(const ptx::Function& function, const ptx::Instruction& instruction) {
  switch (instruction.op) {
    case Op::membar:
    case Op::fence: {
      const ptx::Facts facts = ptx::facts_of(function, instruction);
      const bool orders_memory = facts.fence == ptx::Fence::memory || facts.fence == ptx::Fence::one_space;
      return orders_memory ? facts.scope : Scope::none;
    }
    case Op::atom:
    case Op::red:
    case Op::st: {
      const ptx::Facts facts = ptx::facts_of(function, instruction);
      if (!facts.releases()) return Scope::none;
      return facts.scope == Scope::none ? Scope::gpu : facts.scope;  // PTX ISA, atom: .gpu where none is given
    }
    default:
      return Scope::none;
  }
}

struct Flag {
  Access access;
  BaseId base = flow::kNoBase;
  std::string why;  // it is taken for a flag
};

// A compare-and-swap or an exchange, which may take a lock.
bool takes_lock(const Access& access) {
  return access.atomic == AtomicOperation::compare_and_swap || access.atomic == AtomicOperation::exchange;
}

// The plain global store that may still be on its way when control comes to `flag`: the last one on a way without a
// fence of `wanted` or wider. Walks backwards.
ptx::InstructionId unfenced_store(Context& context, const Flag& flag, Scope wanted) {
  Analyses& analyses = context.analyses();
  const flow::Graph& graph = analyses.graph();
  const ptx::Function& function = context.function();
  if (release_scope(function, function.instructions[flag.access.instruction]) >= wanted) return ptx::kNone;
  std::vector<bool> seen(graph.size(), false);
  std::vector<std::pair<BlockId, ptx::InstructionId>> work;
  work.emplace_back(graph.block_of(flag.access.instruction), flag.access.instruction);
  while (!work.empty()) {
    const auto [block, end] = work.back();
    work.pop_back();
    bool fenced = false;
    for (ptx::InstructionId id = end; id-- > graph.block(block).first && !fenced;) {
      const ptx::Instruction& instruction = function.instructions[id];
      if (release_scope(function, instruction) >= wanted || instruction.op == Op::call) {
        fenced = true;
        break;
      }
      const ptx::Accesses found = ptx::accesses_of(function, id);
      if (found.count != 1 || found.items[0].kind != AccessKind::store || !found.items[0].is_plain) continue;
      const Access& store = found.items[0];
      const BaseId base = analyses.forms().address(store).base;
      if (!is_global(store) || base == flow::kNoBase || base == flag.base) continue;
      const flow::Base& object = analyses.domain().base(base);
      if (object.kind == flow::Base::Kind::variable && context.module.variables[object.id].space != Space::global)
        continue;
      return id;
    }
    if (fenced) continue;
    for (const BlockId before : graph.predecessors(block)) {
      if (seen[before] || !graph.is_reachable(before)) continue;
      seen[before] = true;
      work.emplace_back(before, graph.block(before).end);
    }
  }
  return ptx::kNone;
}

RuleResult publication(Context& context, const std::vector<Flag>& flags, Scope wanted, std::string_view who,
                       std::string_view remedy, std::string none) {
  if (flags.empty()) return not_applicable(std::move(none));
  std::vector<Finding> findings;
  std::set<ptx::InstructionId> reported;
  for (const Flag& flag : flags) {
    if (!reported.insert(flag.access.instruction).second) continue;
    const ptx::InstructionId store = unfenced_store(context, flag, wanted);
    if (store == ptx::kNone) continue;
    Finding finding = finding_at(
        context, flag.access.instruction, Severity::medium, Tier::likely,
        fmt::format("{} may see this flag before the data that line {} stores", who, line_of(context, store)),
        std::string(remedy));
    finding.path.push_back({context.function().instructions[store].at, "the data is stored here"});
    finding.assumptions.push_back(flag.why);
    findings.push_back(std::move(finding));
  }
  return conclude(std::move(findings), plural(reported.size(), "flag") + " with a fence behind the data");
}

// Whether an object other than the flag's is both stored plainly and read after `flag`: what the flag guards.
bool guards_data(Context& context, const Flag& flag) {
  Analyses& analyses = context.analyses();
  std::set<BaseId> stored;
  for (const Access& access : analyses.accesses())
    if (access.kind == AccessKind::store && access.is_plain && is_global(access))
      stored.insert(analyses.forms().address(access).base);
  return std::any_of(analyses.accesses().begin(), analyses.accesses().end(), [&](const Access& access) {
    const BaseId base = analyses.forms().address(access).base;
    return access.kind == AccessKind::load && is_global(access) && base != flow::kNoBase && base != flag.base &&
           stored.contains(base) &&
           analyses.dominators().dominates(analyses.graph().block_of(flag.access.instruction),
                                           analyses.graph().block_of(access.instruction)) &&
           access.instruction > flag.access.instruction;
  });
}

}  // namespace

// F042. Two things are taken for a flag: an object that the kernel itself polls in a loop, and a counter whose atomic
// result decides who reads what all have written (the last block of a reduction).
RuleResult missing_device_fence(Context& context) {
  Analyses& analyses = context.analyses();
  const ptx::Function& function = context.function();
  std::set<BaseId> polled;
  for (const Access& access : analyses.accesses()) {
    if (access.kind == AccessKind::store || !is_global(access) || access.is_plain) continue;
    const BaseId base = analyses.forms().address(access).base;
    if (base == flow::kNoBase ||
        analyses.loops().innermost(analyses.graph().block_of(access.instruction)) == flow::kNone)
      continue;
    // A lock is polled too; it guards what comes after it, which is F044's.
    if (!takes_lock(access) && decides_branch(context, access.instruction, true)) polled.insert(base);
  }
  std::vector<Flag> flags;
  for (const Access& access : analyses.accesses()) {
    if (access.kind == AccessKind::load || access.is_plain || !is_global(access)) continue;
    const ptx::Instruction& instruction = function.instructions[access.instruction];
    Flag flag{access, analyses.forms().address(access).base, {}};
    if (flag.base == flow::kNoBase || instruction.op == Op::cp) continue;
    if (polled.contains(flag.base)) {
      flag.why = "another CTA waits for this flag, as this kernel does";
      flags.push_back(std::move(flag));
    } else if (instruction.op == Op::atom && decides_branch(context, access.instruction, false) &&
               guards_data(context, flag)) {
      flag.why = "the CTA that this counter picks reads what the others stored";
      flags.push_back(std::move(flag));
    }
  }
  return publication(context, flags, Scope::gpu, "another CTA",
                     "put fence.acq_rel.gpu before the flag, or write it with .release.gpu",
                     "the kernel publishes nothing through a flag");
}

// F043. Who writes a flag with system scope says that the host or a peer reads it.
RuleResult missing_system_fence(Context& context) {
  Analyses& analyses = context.analyses();
  std::vector<Flag> flags;
  for (const Access& access : analyses.accesses()) {
    if (access.kind == AccessKind::load || !is_global(access) || access.scope != Scope::sys) continue;
    Flag flag{access, analyses.forms().address(access).base, "the host or a peer reads the data once it sees the flag"};
    if (flag.base != flow::kNoBase) flags.push_back(std::move(flag));
  }
  return publication(context, flags, Scope::sys, "the host or a peer",
                     "put fence.acq_rel.sys before the flag, or write it with .release.sys",
                     "the kernel writes nothing with system scope");
}

namespace {

// The first plain access to shared or global memory, other than of `lock`, that control can come to from the end of
// the loop without a fence.
ptx::InstructionId unordered_access(Context& context, flow::LoopId loop, BaseId lock) {
  Analyses& analyses = context.analyses();
  const flow::Graph& graph = analyses.graph();
  const ptx::Function& function = context.function();
  std::vector<BlockId> work;
  std::vector<bool> seen(graph.size(), false);
  for (const BlockId block : graph.reverse_postorder()) {
    if (!analyses.loops().contains(loop, block)) continue;
    for (const BlockId next : graph.successors(block))
      if (!analyses.loops().contains(loop, next) && !seen[next]) {
        seen[next] = true;
        work.push_back(next);
      }
  }
  while (!work.empty()) {
    const BlockId block = work.back();
    work.pop_back();
    bool ordered = false;
    for (ptx::InstructionId id = graph.block(block).first; id < graph.block(block).end && !ordered; ++id) {
      const ptx::Instruction& instruction = function.instructions[id];
      if (instruction.op == Op::fence || instruction.op == Op::membar || instruction.op == Op::bar ||
          instruction.op == Op::barrier || instruction.op == Op::call)
        ordered = true;
      const ptx::Accesses found = ptx::accesses_of(function, id);
      if (ordered || found.count != 1 || !found.items[0].is_plain) continue;
      const Access& access = found.items[0];
      if (access.space != Space::global && access.space != Space::generic && access.space != Space::shared) continue;
      const BaseId base = analyses.forms().address(access).base;
      if (base == flow::kNoBase || base == lock || access.is_read_only) continue;
      return id;
    }
    if (ordered) continue;
    for (const BlockId next : graph.successors(block))
      if (!seen[next]) {
        seen[next] = true;
        work.push_back(next);
      }
  }
  return ptx::kNone;
}

}  // namespace

// F044. A lock is taken by a compare-and-swap or an exchange whose result decides whether a loop goes on; it is given
// back by a write to the same object.
RuleResult weak_synchronisation(Context& context) {
  Analyses& analyses = context.analyses();
  const ptx::Function& function = context.function();
  std::vector<Finding> findings;
  size_t locks = 0;
  for (const Access& access : analyses.accesses()) {
    const ptx::Instruction& instruction = function.instructions[access.instruction];
    if (!takes_lock(access)) continue;
    const BlockId block = analyses.graph().block_of(access.instruction);
    const flow::LoopId loop = analyses.loops().innermost(block);
    const BaseId base = analyses.forms().address(access).base;
    if (loop == flow::kNone || base == flow::kNoBase || !decides_branch(context, access.instruction, true)) continue;
    // What is swapped in is computed from what was there: an arithmetic update, no lock.
    const auto value = ptx::operand_of(function, instruction, ptx::Purpose::source);
    if (!value || !constant_at(context, *value, access.width_bytes * 8)) continue;
    ptx::InstructionId release = ptx::kNone;
    for (const Access& other : analyses.accesses())
      if (other.instruction != access.instruction && other.kind != AccessKind::load &&
          analyses.forms().address(other).base == base &&
          !analyses.loops().contains(loop, analyses.graph().block_of(other.instruction)))
        release = other.instruction;
    if (release == ptx::kNone) continue;
    ++locks;
    if (access.order != ptx::Order::acquire && access.order != ptx::Order::acq_rel) {
      const ptx::InstructionId after = unordered_access(context, loop, base);
      if (after != ptx::kNone) {
        Finding finding =
            finding_at(context, access.instruction, Severity::medium, Tier::likely,
                       fmt::format("the lock is taken here without acquire, and line {} may run before it is held",
                                   line_of(context, after)),
                       "use .acquire, or put a fence after the loop that takes the lock");
        finding.path.push_back({function.instructions[after].at, "what the lock guards"});
        finding.assumptions.push_back("the loop takes a lock that guards what comes after it");
        findings.push_back(std::move(finding));
      }
    }
    const Flag flag{{.instruction = release}, base, {}};
    const ptx::InstructionId store = unfenced_store(context, flag, Scope::gpu);
    if (store != ptx::kNone && analyses.dominators().dominates(block, analyses.graph().block_of(store))) {
      Finding finding =
          finding_at(context, release, Severity::medium, Tier::likely,
                     fmt::format("the lock is given back here without release, and what line {} stores may come later",
                                 line_of(context, store)),
                     "use .release, or put a fence before the lock is given back");
      finding.path.push_back({function.instructions[store].at, "what the lock guards"});
      finding.assumptions.push_back("the loop takes a lock that guards what comes after it");
      findings.push_back(std::move(finding));
    }
  }
  if (locks == 0) return not_applicable("the kernel takes no lock");
  in_program_order(findings);
  return conclude(std::move(findings), "every lock is taken with acquire and given back with release");
}

}  // namespace ptxkit::rules
