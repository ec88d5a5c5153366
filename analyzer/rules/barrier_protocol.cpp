// Rules about barriers as a protocol: how many each way passes, what their operands say, which are in vain.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/flow/step_budget.hpp"
#include "analyzer/flow/uniformity.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/isa.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/divergence.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/engine/walk.hpp"
#include "support/plural.hpp"

namespace ptxkit::rules {

using flow::BlockId;
using ptx::Barrier;
using ptx::Fence;
using ptx::Op;
using ptx::Purpose;
using ptx::Scope;

namespace {

constexpr size_t kMaxRegionBlocks = 4096;

// What is done at a barrier of the CTA.
Barrier::Action cta_barrier_action(const ptx::Function& function, const ptx::Instruction& instruction) {
  if (instruction.op != Op::bar && instruction.op != Op::barrier) return Barrier::Action::none;
  const Barrier barrier = ptx::facts_of(function, instruction).barrier;
  return barrier.level == Barrier::Level::cta ? barrier.action : Barrier::Action::none;
}

// Least and greatest number of barriers on the ways from a block to where the ways meet; nothing where a way has a
// loop with a barrier, ends, or the region is too large.
struct Count {
  uint32_t minimum = 0, maximum = 0;
};

class BarrierCounter {
 public:
  explicit BarrierCounter(Context& context) : analyses_(&context.analyses()) {
    const flow::Graph& graph = analyses_->graph();
    const ptx::Function& function = context.function();
    per_block_.assign(graph.size(), 0);
    for (BlockId block = 0; block < graph.size(); ++block)
      for (ptx::InstructionId id = graph.block(block).first; id < graph.block(block).end; ++id)
        per_block_[block] +=
            ptx::is_whole_cta_barrier(function, function.instructions[id]) && !function.instructions[id].guard;
  }

  // False where a count was given up for the time that all of them take, and says nothing.
  bool has_time() const { return !steps_left_.is_spent(); }

  std::optional<Count> count(BlockId start, BlockId join) {
    if (start == join) return Count{};
    const flow::Graph& graph = analyses_->graph();
    // The region's blocks in reverse postorder of the whole graph, so that ways are summed up from their ends.
    std::set<BlockId> region;
    std::vector<BlockId> work{start};
    while (!work.empty()) {
      const BlockId block = work.back();
      work.pop_back();
      if (block == join || !region.insert(block).second) continue;
      steps_left_.take(1 + graph.block(block).successor_count);
      if (!has_time()) return std::nullopt;
      if (region.size() > kMaxRegionBlocks || graph.block(block).exits || graph.block(block).falls_through_end)
        return std::nullopt;
      const auto next = graph.successors(block);
      work.insert(work.end(), next.begin(), next.end());
    }
    std::vector<BlockId> order(region.begin(), region.end());
    std::sort(order.begin(), order.end(),
              [&](BlockId a, BlockId b) { return graph.order_index(a) > graph.order_index(b); });
    std::map<BlockId, Count> counts;
    for (const BlockId block : order) {
      std::optional<Count> best;
      for (const BlockId next : graph.successors(block)) {
        if (next != join && graph.order_index(next) <= graph.order_index(block)) {
          // A way back: it may be gone any number of times.
          const flow::LoopId loop = analyses_->loops().innermost(next);
          steps_left_.take(region.size());
          if (!has_time()) return std::nullopt;
          for (const BlockId inside : region)
            if (per_block_[inside] && (loop == flow::kNone || analyses_->loops().contains(loop, inside)))
              return std::nullopt;
          continue;
        }
        const Count rest = next == join ? Count{} : counts[next];
        best = best ? Count{std::min(best->minimum, rest.minimum), std::max(best->maximum, rest.maximum)} : rest;
      }
      if (!best) return std::nullopt;
      counts[block] = {best->minimum + per_block_[block], best->maximum + per_block_[block]};
    }
    return counts[start];
  }

 private:
  static constexpr uint64_t kMaxSteps = 2'000'000;  // a block or an edge each

  Analyses* analyses_;
  std::vector<uint32_t> per_block_;
  flow::StepBudget steps_left_{kMaxSteps};
};

}  // namespace

// F039. At every branch on which two threads part: the ways to where they meet again must pass equally many barriers,
// or the threads of one way wait for those of the other at the wrong one.
RuleResult barrier_count(Context& context) {
  Analyses& analyses = context.analyses();
  const flow::Graph& graph = analyses.graph();
  const ptx::Function& function = context.function();
  size_t barriers = 0;
  for_each_instruction(context, [&](ptx::InstructionId, const ptx::Instruction& instruction) {
    barriers += ptx::is_whole_cta_barrier(function, instruction);
  });
  if (barriers == 0) return not_applicable("the kernel has no barrier of the whole CTA");
  std::vector<Finding> findings;
  std::string open;
  BarrierCounter counter(context);
  for (BlockId block = 0; block < graph.size(); ++block) {
    if (!graph.is_reachable(block) || graph.block(block).successor_count != 2 ||
        analyses.uniformity().branch(block) == flow::Uniformity::uniform)
      continue;
    const auto sides = graph.successors(block);
    const BlockId meets = analyses.post_dominators().parent(block);
    if (meets >= graph.size()) continue;  // a way ends: F037
    const auto one = counter.count(sides[0], meets), other = counter.count(sides[1], meets);
    if (!counter.has_time()) {
      open = "not decided: budget: the ways between the kernel's branches and where they meet are too many";
      break;
    }
    if (!one || !other) continue;  // a barrier in a loop: F045
    if (one->minimum == one->maximum && other->minimum == other->maximum && one->minimum == other->minimum) continue;
    const flow::ValueId predicate = analyses.ssa().guard(graph.last(block));
    const bool apart = one->maximum < other->minimum || other->maximum < one->minimum;
    const auto split = predicate == flow::kNone ? std::nullopt
                                                : find_split(context, predicate, graph.last(block),
                                                             function.instructions[graph.last(block)].guard.negated);
    if (!split || !apart) {
      if (open.empty())
        open = fmt::format(
            "whether all threads go the same way at line {} is not known, and the ways pass different "
            "numbers of barriers",
            line_of(context, graph.last(block)));
      continue;
    }
    Finding finding = finding_at(context, graph.last(block), Severity::high, split->tier,
                                 fmt::format("the threads that jump here pass {} before the ways meet, the others {}",
                                             plural(one->minimum, "barrier"), other->minimum),
                                 "give both ways the same barriers, or move them behind the place where the ways meet");
    finding.path.push_back({function.instructions[graph.block(meets).first].at, "the ways meet here"});
    finding.assumptions = split->assumptions;
    Witness witness;
    for (unsigned d = 0; d < 3; ++d) {
      witness.tid[d] = split->comes.tid[d];
      witness.other_tid[d] = split->stays.tid[d];
    }
    finding.witness = witness;
    findings.push_back(std::move(finding));
  }
  if (findings.empty() && !open.empty()) return undecided(open);
  return conclude(std::move(findings), "wherever threads part, all ways pass equally many barriers");
}

// F040. A thread count says who is waited for; an arrival that counts differently is counted towards another barrier.
RuleResult arrive_wait_pairing(Context& context) {
  const ptx::Function& function = context.function();
  struct Use {
    ptx::InstructionId id;
    std::optional<uint64_t> barrier, count;
  };
  std::vector<Use> arrivals, waits;
  for_each_instruction(context, [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
    const Barrier::Action action = cta_barrier_action(function, instruction);
    const auto number = ptx::operand_of(function, instruction, Purpose::barrier);
    if ((action != Barrier::Action::arrive && action != Barrier::Action::wait) || !number) return;
    Use use{id, constant_at(context, *number), std::nullopt};
    if (const auto threads = ptx::operand_of(function, instruction, Purpose::threads))
      use.count = constant_at(context, *threads);
    (action == Barrier::Action::arrive ? arrivals : waits).push_back(use);
  });
  if (arrivals.empty()) return not_applicable("the kernel has no bar.arrive");
  std::vector<Finding> findings;
  bool open = false;
  for (const Use& arrival : arrivals) {
    if (!arrival.barrier || !arrival.count) {
      open = true;
      continue;
    }
    bool any = false, same = false, unknown = false;
    ptx::InstructionId partner = ptx::kNone;
    for (const Use& wait : waits) {
      if (!wait.barrier) unknown = true;
      if (!wait.barrier || *wait.barrier != *arrival.barrier) continue;
      any = true;
      partner = wait.id;
      const bool has_count = !ptx::is_whole_cta_barrier(function, function.instructions[wait.id]);
      if (has_count && !wait.count) unknown = true;
      if (wait.count == arrival.count) same = true;
    }
    if (same) continue;
    if (unknown) {
      open = true;
      continue;
    }
    Finding finding = finding_at(
        context, arrival.id, Severity::high, Tier::proved,
        any ? fmt::format("this counts {} for barrier {}, but line {} waits for another number",
                          plural(*arrival.count, "thread"), *arrival.barrier, line_of(context, partner))
            : fmt::format("threads arrive at barrier {}, and nothing in the kernel waits at it", *arrival.barrier),
        "give arrive and sync of one barrier the same thread count");
    if (any) finding.path.push_back({function.instructions[partner].at, "the wait"});
    findings.push_back(std::move(finding));
  }
  if (findings.empty() && open) return undecided("a barrier's number or thread count is computed at run time");
  return conclude(std::move(findings), plural(arrivals.size(), "arrival") + " with a wait of the same count");
}

// F049. The assembler checks constants; a register may hold what hardware does not have.
RuleResult barrier_operands(Context& context) {
  const ptx::Function& function = context.function();
  std::vector<Finding> findings;
  size_t count = 0, open = 0;
  for_each_instruction(context, [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
    if (cta_barrier_action(function, instruction) == Barrier::Action::none) return;
    const auto number = ptx::operand_of(function, instruction, Purpose::barrier);
    if (!number) return;
    ++count;
    const flow::Fact barrier = fact_at(context, *number);
    if (barrier.low > 15)
      findings.push_back(finding_at(context, id, Severity::medium, Tier::proved,
                                    fmt::format("expected a barrier from 0 to 15, found {}", barrier.low),
                                    "a CTA has 16 barriers"));
    else if (barrier.high > 15)
      ++open;
    const auto given = ptx::operand_of(function, instruction, Purpose::threads);
    if (!given) return;
    const auto threads = constant_at(context, *given);
    if (!threads)
      ++open;
    else if (*threads % 32 || *threads == 0)
      findings.push_back(
          finding_at(context, id, Severity::medium, Tier::proved,
                     fmt::format("expected a thread count that is a multiple of the warp size, found {}", *threads),
                     "warps arrive as a whole: count 32 threads for each"));
  });
  if (count == 0) return not_applicable("the kernel has no barrier with operands");
  if (findings.empty() && open) return undecided("a barrier's number or thread count is computed at run time");
  return conclude(std::move(findings), "operands in range: " + plural(count, "barrier"));
}

namespace {

enum class SinceEvent : uint8_t { nothing, access, unknown };  // unknown: no barrier on some way here

// For each block, whether something was touched since the last event of the kind `is_event` on every way to it.
// Greatest fixed point of: nothing < access < unknown.
template <class IsEvent, class IsAccess, class Report>
void report_redundant(Context& context, IsEvent&& is_event, IsAccess&& is_access, Report&& report) {
  const flow::Graph& graph = context.analyses().graph();
  std::vector<SinceEvent> in(graph.size(), SinceEvent::nothing);
  std::vector<bool> seen(graph.size(), false);
  in[0] = SinceEvent::unknown;
  seen[0] = true;
  auto run = [&](BlockId block, bool reporting) {
    SinceEvent state = in[block];
    for (ptx::InstructionId id = graph.block(block).first; id < graph.block(block).end; ++id) {
      const ptx::Instruction& instruction = context.function().instructions[id];
      if (is_event(id, instruction)) {
        if (reporting && state == SinceEvent::nothing) report(id);
        if (!instruction.guard) state = SinceEvent::nothing;
      } else if (state == SinceEvent::nothing && is_access(id, instruction)) {
        state = SinceEvent::access;
      }
    }
    return state;
  };
  for (bool again = true; again;) {
    again = false;
    for (const BlockId block : graph.reverse_postorder()) {
      if (!seen[block]) continue;
      const SinceEvent out = run(block, false);
      for (const BlockId next : graph.successors(block)) {
        const SinceEvent joined = seen[next] ? std::max(in[next], out) : out;
        if (seen[next] && joined == in[next]) continue;
        in[next] = joined;
        seen[next] = true;
        again = true;
      }
    }
  }
  for (BlockId block = 0; block < graph.size(); ++block)
    if (seen[block]) run(block, true);
}

bool may_touch_memory(const ptx::Function& function, ptx::InstructionId id, const ptx::Instruction& instruction) {
  switch (instruction.op) {
    case Op::ld:
    case Op::st:
      return instruction.space != ptx::Space::param && instruction.space != ptx::Space::local &&
             instruction.space != ptx::Space::constant;
    case Op::call:
    case Op::ldu:
    case Op::atom:
    case Op::red:
    case Op::cp:
    case Op::tex:
    case Op::tld4:
    case Op::suld:
    case Op::sust:
    case Op::sured:
    case Op::mbarrier:
    case Op::ldmatrix:
    case Op::stmatrix:
    case Op::wmma:
    case Op::wgmma:
    case Op::multimem:
    case Op::tcgen05:
    case Op::tensormap:
    case Op::nanosleep:
    case Op::griddepcontrol:
    case Op::clusterlaunchcontrol:
      return true;
    default:
      return ptx::accesses_of(function, id).count > 0;
  }
}

}  // namespace

// F093. A barrier orders what stands on its two sides; with no memory access since the last one it only waits.
// Templates whose steps are compiled away leave such pairs behind, and they cost next to nothing: advice.
RuleResult redundant_barrier(Context& context) {
  const ptx::Function& function = context.function();
  bool any = false;
  std::vector<Finding> findings;
  report_redundant(
      context,
      [&](ptx::InstructionId, const ptx::Instruction& instruction) {
        const bool is = ptx::is_whole_cta_barrier(function, instruction) &&
                        cta_barrier_action(function, instruction) == Barrier::Action::wait;
        any = any || is;
        return is;
      },
      [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
        return may_touch_memory(function, id, instruction) ||
               cta_barrier_action(function, instruction) != Barrier::Action::none || instruction.op == Op::fence ||
               instruction.op == Op::membar;
      },
      [&](ptx::InstructionId id) {
        findings.push_back(finding_at(context, id, Severity::info, Tier::proved,
                                      "no thread touches memory between the last barrier and this one",
                                      "delete one of the two"));
      });
  if (!any) return not_applicable("the kernel has no barrier of the whole CTA");
  return advise(std::move(findings), "every barrier has memory accesses before it",
                "barriers follow each other with no memory access between them");
}

namespace {

// Of a fence of all memory.
Scope fence_scope(const ptx::Function& function, const ptx::Instruction& instruction) {
  if (instruction.op != Op::membar && instruction.op != Op::fence) return Scope::none;
  const ptx::Facts facts = ptx::facts_of(function, instruction);
  return facts.fence == Fence::memory ? facts.scope : Scope::none;
}

}  // namespace

// F094. A fence orders the accesses before it against those after it; two in a row order nothing more than the wider.
RuleResult redundant_fence(Context& context) {
  const ptx::Function& function = context.function();
  bool any = false;
  std::set<ptx::InstructionId> redundant;
  for (const Scope scope : {Scope::cta, Scope::cluster, Scope::gpu, Scope::sys})
    report_redundant(
        context,
        [&](ptx::InstructionId, const ptx::Instruction& instruction) {
          const Scope own = fence_scope(function, instruction);
          any = any || own != Scope::none;
          return own >= scope;
        },
        [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
          return may_touch_memory(function, id, instruction) || instruction.op == Op::bar ||
                 instruction.op == Op::barrier;
        },
        [&](ptx::InstructionId id) {
          if (fence_scope(function, function.instructions[id]) == scope) redundant.insert(id);
        });
  if (!any) return not_applicable("the kernel has no fence");
  std::vector<Finding> findings;
  for (const ptx::InstructionId id : redundant)
    findings.push_back(finding_at(context, id, Severity::low, Tier::proved,
                                  "there is no memory access between the last fence of that scope and this one",
                                  "delete one of the two"));
  return conclude(std::move(findings), "every fence has memory accesses before it");
}

}  // namespace ptxkit::rules
