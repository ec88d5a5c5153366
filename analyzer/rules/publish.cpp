// Rules about data that other CTAs, the host or peers wait for: F042, F043, F044.
#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/isa.hpp"
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

// A load or store that orders no other access. Volatile ones are relaxed, by the PTX ISA's memory consistency model.
bool orders_nothing(const Access& access) {
  return access.kind != AccessKind::atomic && access.order <= ptx::Order::relaxed;
}

// The store of data to memory of the flag's kind that may still be on its way when control comes to `flag`: the last
// one on a way without a fence of `wanted` or wider. Walks backwards.
ptx::InstructionId unfenced_store(Context& context, const Flag& flag, Scope wanted, bool (*is_data)(const Access&)) {
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
      if (found.count != 1 || found.items[0].kind != AccessKind::store || !is_data(found.items[0])) continue;
      const Access& store = found.items[0];
      const BaseId base = analyses.forms().address(store).base;
      if (base == flow::kNoBase || base == flag.base) continue;
      const flow::Base& object = analyses.domain().base(base);
      const bool is_shared = store.space == Space::shared && flag.access.space == Space::shared;
      const bool is_other =
          object.kind == flow::Base::Kind::variable && context.module.variables[object.id].space != Space::global;
      if (is_shared || (is_global(store) && !is_other)) return id;
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
    const ptx::InstructionId store =
        unfenced_store(context, flag, wanted, [](const Access& access) { return access.is_plain; });
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

// An access that only reads: a load, or an atomic that adds or ors 0.
bool only_reads(Context& context, const Access& access) {
  if (access.kind != AccessKind::atomic) return access.kind == AccessKind::load;
  const auto value =
      ptx::operand_of(context.function(), context.function().instructions[access.instruction], ptx::Purpose::source);
  return access.atomic == AtomicOperation::other && value &&
         constant_at(context, *value, access.width_bytes * 8) == uint64_t{0};
}

// Whether an address is computed from what an atomic returns: it hands out slots.
bool picks_address(Context& context, ptx::InstructionId atomic) {
  Analyses& analyses = context.analyses();
  const flow::Ssa& ssa = analyses.ssa();
  return std::any_of(analyses.accesses().begin(), analyses.accesses().end(), [&](const Access& access) {
    const flow::Source address = flow::address_base(ssa, access.address);
    return address.kind == flow::Source::Kind::value && any_ancestor(context, address.id, [&](flow::ValueId value) {
             return ssa.value(value).kind == flow::Value::Kind::result && ssa.value(value).instruction == atomic;
           });
  });
}

}  // namespace

// F042. Two things are taken for a flag: an object that the kernel itself polls in a loop, and a counter whose atomic
// result decides which thread reads what all have written (the last block of a reduction).
RuleResult missing_device_fence(Context& context) {
  Analyses& analyses = context.analyses();
  const ptx::Function& function = context.function();
  std::set<BaseId> polled;
  for (const Access& access : analyses.accesses()) {
    if (!is_global(access) || access.is_plain) continue;
    const BaseId base = analyses.forms().address(access).base;
    if (base == flow::kNoBase ||
        analyses.loops().innermost(analyses.graph().block_of(access.instruction)) == flow::kNone)
      continue;
    // A lock is polled too; it guards what comes after it, which is F044's. A loop that counts is no poll.
    if (only_reads(context, access) && decides_branch(context, access.instruction, true)) polled.insert(base);
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
               !picks_address(context, access.instruction) && guards_data(context, flag)) {
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

// A loop that takes a lock by a compare-and-swap or an exchange whose result decides whether it goes on, and the writes
// to the same object behind it that give the lock back.
struct Lock {
  Access take;
  flow::LoopId loop = flow::kNone;
  BaseId base = flow::kNoBase;
  Scope scope = Scope::gpu;  // of the threads that it keeps apart
  std::vector<Access> releases{};
};

// No thread outside of the CTA can take a lock in its shared memory, unless the atomic says so.
Scope lock_scope(const Access& take) {
  if (take.space == Space::shared && take.scope != Scope::cluster) return Scope::cta;
  return take.scope == Scope::none ? Scope::gpu : take.scope;  // PTX ISA, atom: .gpu where none is given
}

std::vector<Lock> locks_of(Context& context) {
  Analyses& analyses = context.analyses();
  flow::Forms& forms = analyses.forms();
  std::vector<Lock> locks;
  for (const Access& access : analyses.accesses()) {
    if (!takes_lock(access)) continue;
    Lock lock{.take = access,
              .loop = analyses.loops().innermost(analyses.graph().block_of(access.instruction)),
              .base = analyses.forms().address(access).base,
              .scope = lock_scope(access)};
    if (lock.loop == flow::kNone || lock.base == flow::kNoBase || !decides_branch(context, access.instruction, true))
      continue;
    // What is swapped in is computed from what was there: an arithmetic update, no lock.
    const auto value =
        ptx::operand_of(context.function(), context.function().instructions[access.instruction], ptx::Purpose::source);
    if (!value || !constant_at(context, *value, access.width_bytes * 8)) continue;
    std::ranges::copy_if(analyses.accesses(), std::back_inserter(lock.releases), [&](const Access& other) {
      const flow::Form place = forms.expand(forms.address(other));
      return other.instruction != access.instruction && other.kind != AccessKind::load && place.base == lock.base &&
             may_overlap(forms, forms.expand(forms.address(access)), access.extent_bytes, place, other.extent_bytes) &&
             !analyses.loops().contains(lock.loop, analyses.graph().block_of(other.instruction));
    });
    if (!lock.releases.empty()) locks.push_back(std::move(lock));
  }
  return locks;
}

bool is_data_of(Context& context, const Access& access, const Lock& lock) {
  const BaseId base = context.analyses().forms().address(access).base;
  return orders_nothing(access) && !access.is_read_only && base != flow::kNoBase && base != lock.base &&
         (is_global(access) || access.space == Space::shared);
}

// The first access to data that control can come to from the end of the lock's loop without a fence of its scope.
ptx::InstructionId unordered_access(Context& context, const Lock& lock) {
  Analyses& analyses = context.analyses();
  const flow::Graph& graph = analyses.graph();
  const ptx::Function& function = context.function();
  std::vector<BlockId> work;
  std::vector<bool> seen(graph.size(), false);
  for (const BlockId block : graph.reverse_postorder()) {
    if (!analyses.loops().contains(lock.loop, block)) continue;
    for (const BlockId next : graph.successors(block))
      if (!analyses.loops().contains(lock.loop, next) && !seen[next]) {
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
      const bool is_fence = instruction.op == Op::fence || instruction.op == Op::membar;
      const bool is_barrier = instruction.op == Op::bar || instruction.op == Op::barrier;
      ordered = (is_fence && release_scope(function, instruction) >= lock.scope) ||
                (is_barrier && lock.scope == Scope::cta) || instruction.op == Op::call;
      const ptx::Accesses found = ptx::accesses_of(function, id);
      if (!ordered && found.count == 1 && is_data_of(context, found.items[0], lock)) return id;
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

// Whether control comes to `id` only from `before`.
bool follows(Context& context, ptx::InstructionId id, ptx::InstructionId before) {
  Analyses& analyses = context.analyses();
  return id > before &&
         analyses.dominators().dominates(analyses.graph().block_of(before), analyses.graph().block_of(id));
}

bool is_held(Context& context, const Lock& lock, ptx::InstructionId id) {
  return follows(context, id, lock.take.instruction) &&
         !context.analyses().loops().contains(lock.loop, context.analyses().graph().block_of(id)) &&
         std::ranges::none_of(lock.releases,
                              [&](const Access& release) { return follows(context, id, release.instruction); });
}

// Whether a barrier keeps an access of the CTA apart from the time in which its threads take the lock.
bool is_other_phase(Context& context, const Lock& lock, ptx::InstructionId id) {
  if (lock.scope != Scope::cta) return false;
  bool found = false;
  for_each_instruction(context, [&](ptx::InstructionId barrier, const ptx::Instruction& instruction) {
    if (!ptx::is_whole_cta_barrier(context.function(), instruction)) return;
    found = found || (follows(context, lock.take.instruction, barrier) && !follows(context, id, barrier)) ||
            (follows(context, barrier, lock.take.instruction) && follows(context, id, barrier));
  });
  return found;
}

Finding lock_finding(Context& context, ptx::InstructionId id, ptx::InstructionId guarded, std::string message,
                     std::string remedy) {
  Finding finding = finding_at(context, id, Severity::medium, Tier::likely, std::move(message), std::move(remedy));
  finding.path.push_back({context.function().instructions[guarded].at, "what the lock guards"});
  finding.assumptions.push_back("the loop takes a lock that guards what comes after it");
  return finding;
}

// Accesses without the lock to a place, the same for all threads, that one stores to while it holds the lock.
void find_accesses_without(Context& context, const Lock& lock, std::vector<Finding>& findings) {
  Analyses& analyses = context.analyses();
  flow::Forms& forms = analyses.forms();
  std::set<ptx::InstructionId> reported;
  for (const Access& store : analyses.accesses()) {
    if (store.kind != AccessKind::store || !is_data_of(context, store, lock) ||
        !is_held(context, lock, store.instruction))
      continue;
    const flow::Source address = flow::address_base(analyses.ssa(), store.address);
    if (address.kind == flow::Source::Kind::value && depends_on_thread(context, address.id, true)) continue;
    const flow::Form form = forms.expand(forms.address(store));
    for (const Access& other : analyses.accesses()) {
      if (!is_data_of(context, other, lock) || is_held(context, lock, other.instruction) ||
          is_other_phase(context, lock, other.instruction) || forms.expand(forms.address(other)) != form ||
          !reported.insert(other.instruction).second)
        continue;
      findings.push_back(lock_finding(
          context, other.instruction, store.instruction,
          fmt::format("this {} does not hold the lock of line {}, which guards the store in line {}", text(other.kind),
                      line_of(context, lock.take.instruction), line_of(context, store.instruction)),
          "take the lock around every access to what it guards"));
    }
  }
}

}  // namespace

// F044. A lock that is taken without acquire, given back without release, or not held where its data is accessed.
RuleResult weak_synchronisation(Context& context) {
  const std::vector<Lock> locks = locks_of(context);
  if (locks.empty()) return not_applicable("the kernel takes no lock");
  std::vector<Finding> findings;
  for (const Lock& lock : locks) {
    if (lock.take.order != ptx::Order::acquire && lock.take.order != ptx::Order::acq_rel) {
      const ptx::InstructionId after = unordered_access(context, lock);
      if (after != ptx::kNone)
        findings.push_back(
            lock_finding(context, lock.take.instruction, after,
                         fmt::format("the lock is taken here without acquire, and line {} may run before it is held",
                                     line_of(context, after)),
                         fmt::format("use .acquire, or put fence.acq_rel.{} after the loop that takes the lock",
                                     ptx::text(lock.scope))));
    }
    for (const Access& release : lock.releases) {
      const Flag flag{release, lock.base, {}};
      const ptx::InstructionId store = unfenced_store(context, flag, lock.scope, orders_nothing);
      if (store == ptx::kNone || !follows(context, store, lock.take.instruction)) continue;
      findings.push_back(lock_finding(
          context, release.instruction, store,
          fmt::format("the lock is given back here without release, and what line {} stores may come later",
                      line_of(context, store)),
          fmt::format("use .release, or put fence.acq_rel.{} before the lock is given back", ptx::text(lock.scope))));
    }
    find_accesses_without(context, lock, findings);
  }
  in_program_order(findings);
  return conclude(std::move(findings), "every lock is taken with acquire and given back with release");
}

}  // namespace ptxkit::rules
