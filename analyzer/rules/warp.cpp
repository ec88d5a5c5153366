// Rules about warp-level collectives: who takes part, who is named, whose value is read.
#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/bits.hpp"
#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/evaluate.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/flow/uniformity.hpp"
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

using flow::Source;
using ptx::Op;
using ptx::Purpose;

namespace {

// The member mask, in the operand pool; nothing where the instruction has none.
std::optional<uint32_t> mask_operand(const ptx::Function& function, const ptx::Instruction& instruction) {
  switch (instruction.op) {
    case Op::shfl:
    case Op::vote:
    case Op::match:
    case Op::redux:
    case Op::elect:
    case Op::bar:
      return ptx::operand_of(function, instruction, Purpose::mask);
    default:
      return std::nullopt;
  }
}

std::optional<uint32_t> constant_mask(Context& context, const ptx::Instruction& instruction) {
  const auto operand = mask_operand(context.function(), instruction);
  if (!operand) return std::nullopt;
  const auto mask = constant_at(context, *operand);
  return mask ? std::optional(static_cast<uint32_t>(*mask)) : std::nullopt;
}

// Lanes of one warp that get to an instruction, as far as the conditions on the way there can be evaluated for it.
struct WarpArrivals {
  uint32_t exist = 0, arrive = 0;
  uint32_t stay = 0;          // fail a condition whose other way may wait for others
  uint32_t leave = 0;         // fail one whose other way runs on to its end and waits for nobody
  uint32_t gone = 0;          // fail one whose other way ends the thread at once
  uint32_t first_thread = 0;  // of the warp
  bool certain = true;        // every condition could be evaluated
};

// Whether a thread that goes on at the beginning of a block comes to its end for certain: without a barrier, a
// collective, a call or a loop, each of which may wait for what others do.
bool runs_to_end(Context& context, flow::BlockId start) {
  Analyses& analyses = context.analyses();
  const flow::Graph& graph = analyses.graph();
  const ptx::Function& function = context.function();
  std::set<flow::BlockId> seen{start};
  std::vector<flow::BlockId> work{start};
  while (!work.empty()) {
    const flow::BlockId block = work.back();
    work.pop_back();
    if (analyses.loops().innermost(block) != flow::kNone || graph.block(block).falls_through_end) return false;
    for (ptx::InstructionId id = graph.block(block).first; id < graph.block(block).end; ++id) {
      const ptx::Instruction& instruction = function.instructions[id];
      const bool may_wait = ptx::is_warp_barrier(function, instruction) || instruction.op == Op::call ||
                            instruction.op == Op::mbarrier || instruction.op == Op::bar ||
                            instruction.op == Op::barrier;
      if (may_wait) return false;
    }
    for (const flow::BlockId next : graph.successors(block))
      if (seen.insert(next).second) work.push_back(next);
  }
  return true;
}

std::optional<WarpArrivals> arrivals(Context& context, ptx::InstructionId id, uint32_t warp) {
  Analyses& analyses = context.analyses();
  const flow::Graph& graph = analyses.graph();
  flow::Evaluator& lanes = analyses.lanes(warp, graph.block_of(id));
  WarpArrivals found;
  found.first_thread = 32 * warp;
  found.exist = found.arrive = static_cast<uint32_t>(flow::low_mask(static_cast<unsigned>(lanes.threads().size())));
  for (const flow::Condition& condition : analyses.conditions().of_instruction(id)) {
    const flow::Column& holds = lanes.column(condition.predicate);
    uint32_t fails = 0;
    for (uint32_t lane = 0; lane < lanes.threads().size(); ++lane) {
      if (!holds[lane]) {
        // What is the same for the warp keeps all its lanes together.
        if (analyses.uniformity().of(condition.predicate) > flow::Uniformity::warp) return std::nullopt;
        found.certain = false;
      } else if ((*holds[lane] != 0) != condition.expected) {
        fails |= 1u << lane;
      }
    }
    if (!fails) continue;
    found.arrive &= ~fails;
    // Whether the other way of the branch that asks this ends the thread, at once or later.
    bool is_asked = false;
    for (const flow::BlockId asks : graph.reverse_postorder()) {
      const ptx::Instruction& branch = context.function().instructions[graph.last(asks)];
      if (analyses.ssa().guard(graph.last(asks)) != condition.predicate) continue;
      is_asked = true;
      bool ends = graph.block(asks).exits;
      for (const flow::BlockId next : graph.successors(asks))
        ends = ends || (graph.block(next).end - graph.block(next).first == 1 && graph.block(next).exits &&
                        graph.block(next).successor_count == 0);
      const auto ways = graph.successors(asks);  // the taken one first
      const bool is_taken_by_others = condition.expected == branch.guard.negated;
      const bool leaves =
          ptx::is_branch(branch) && ways.size() == 2 && runs_to_end(context, ways[is_taken_by_others ? 0 : 1]);
      (ends ? found.gone : leaves ? found.leave : found.stay) |= fails;
    }
    if (!is_asked) found.stay |= fails & ~found.gone;
  }
  found.stay &= ~found.arrive;
  found.leave &= ~found.arrive & ~found.stay;
  found.gone &= ~found.arrive & ~found.stay & ~found.leave;
  return found;
}

// Warps whose lanes may differ: the first two and the last.
std::vector<uint32_t> warps_tried(Context& context) {
  const auto& shape = context.analyses().shape();
  const uint32_t count = (shape.max_threads + 31) / 32;
  std::set<uint32_t> warps{0, std::min(1u, count - 1), count - 1};
  if (!shape.is_exact) warps = {0, std::min(1u, count - 1)};
  return {warps.begin(), warps.end()};
}

Witness witness_of(Context& context, uint32_t n) {
  const flow::Thread thread = flow::thread_of(context.analyses().shape(), n);
  Witness witness;
  std::copy_n(thread.tid, 3, witness.tid);
  return witness;
}

// The member mask as a warp has it: a constant, or what vote.ballot gave that warp outside of loops.
std::optional<uint32_t> mask_of_warp(Context& context, const ptx::Instruction& instruction, uint32_t warp) {
  if (const auto mask = constant_mask(context, instruction)) return mask;
  Analyses& analyses = context.analyses();
  const flow::Ssa& ssa = analyses.ssa();
  const auto operand = mask_operand(context.function(), instruction);
  const Source source = operand ? flow::source_of(ssa, *operand) : Source{};
  if (source.kind != Source::Kind::value) return std::nullopt;
  const flow::Value& value = ssa.value(source.id);
  const ptx::Instruction* vote = definition_of(context, source.id);
  if (!vote || ptx::facts_of(context.function(), *vote).vote != ptx::Vote::ballot || value.old != flow::kNone ||
      analyses.loops().innermost(value.block) != flow::kNone)
    return std::nullopt;
  const auto lanes = arrivals(context, value.instruction, warp);
  const Source asked = flow::source_of(ssa, vote->first_operand + 1);
  if (!lanes || !lanes->certain || asked.kind != Source::Kind::value) return std::nullopt;
  uint32_t mask = 0;
  const flow::Column& votes = analyses.lanes(warp, value.block).column(asked.id);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (!(lanes->arrive >> lane & 1)) continue;
    if (!votes[lane]) return std::nullopt;
    mask |= static_cast<uint32_t>((*votes[lane] != 0) != asked.negated) << lane;
  }
  return mask;
}

// Whether another collective of the same word and mask stands where the staying lanes may go.
bool has_partner(Context& context, ptx::InstructionId id) {
  const ptx::Instruction& own = context.function().instructions[id];
  bool found = false;
  for_each_instruction(context, [&](ptx::InstructionId other, const ptx::Instruction& instruction) {
    found = found || (other != id && ptx::is_same_operation(context.function(), instruction, own) &&
                      !context.analyses().dominators().dominates(context.analyses().graph().block_of(id),
                                                                 context.analyses().graph().block_of(other)) &&
                      !context.analyses().dominators().dominates(context.analyses().graph().block_of(other),
                                                                 context.analyses().graph().block_of(id)));
  });
  return found;
}

Finding lane_finding(Context& context, ptx::InstructionId id, const WarpArrivals& warp, uint32_t lanes,
                     std::string_view text, std::string remedy, Severity severity) {
  const uint32_t lane = static_cast<uint32_t>(std::countr_zero(lanes));
  const bool is_exact = context.analyses().shape().is_exact;
  Finding finding =
      finding_at(context, id, severity, is_exact && warp.certain ? Tier::proved : Tier::likely,
                 fmt::format("lane {} of warp {} {}", lane, warp.first_thread / 32, text), std::move(remedy));
  finding.witness = witness_of(context, warp.first_thread + lane);
  if (!is_exact) finding.assumptions.push_back("the block is one row with that many threads");
  if (!warp.certain) finding.assumptions.push_back("control reaches this instruction");
  return finding;
}

template <class Judge>
RuleResult judge_collectives(Context& context, bool votes_only, Judge&& judge, std::string basis) {
  std::vector<Finding> findings;
  size_t count = 0, open = 0;
  for_each_instruction(context, [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
    if (!mask_operand(context.function(), instruction)) return;
    if (votes_only && instruction.op != Op::vote && instruction.op != Op::match) return;
    ++count;
    for (const uint32_t warp : warps_tried(context)) {
      const auto mask = mask_of_warp(context, instruction, warp);
      auto lanes = arrivals(context, id, warp);
      if (!mask || !lanes) {
        ++open;
        return;
      }
      // A mask of the first lanes fits a block of that many threads, as templates on the block's size have it.
      const bool names_first_lanes = (*mask & (*mask + 1)) == 0 && ~*mask != 0;
      if (names_first_lanes && !context.analyses().shape().is_exact && (lanes->arrive & ~*mask)) {
        ++open;
        lanes->arrive &= *mask;
        lanes->gone &= *mask;
      }
      if (lanes->arrive && judge(id, instruction, *mask, *lanes, findings)) return;
    }
  });
  if (count == 0) return not_applicable("the kernel has no such warp-level collective with a member mask");
  if (findings.empty() && open)
    return undecided("which lanes get to a collective, or its mask, is not known before the launch");
  return conclude(std::move(findings), std::move(basis));
}

}  // namespace

// F046. A lane that runs a collective must be in its mask, and a lane in the mask must run it, unless it ends: those
// that wait do so for the lanes that have not exited (PTX ISA, vote.sync). A shuffle reads the value of a lane that is
// there.
RuleResult warp_mask(Context& context) {
  return judge_collectives(
      context, false,
      [&](ptx::InstructionId id, const ptx::Instruction& instruction, uint32_t mask, const WarpArrivals& lanes,
          std::vector<Finding>& findings) {
        if (const uint32_t unnamed = lanes.arrive & ~mask) {
          findings.push_back(lane_finding(context, id, lanes, unnamed,
                                          fmt::format("runs this, but the member mask {:#010x} does not name it", mask),
                                          "name every lane that arrives here in the mask", Severity::high));
          return true;
        }
        const uint32_t missing = mask & (lanes.stay | (instruction.op == Op::shfl ? lanes.leave : 0));
        if (!missing || has_partner(context, id)) return false;
        findings.push_back(
            lane_finding(context, id, lanes, missing,
                         fmt::format("is named by the member mask {:#010x}, but does not arrive here", mask),
                         "move the collective out of the branch, or name only the lanes that take it", Severity::high));
        return true;
      },
      "every mask names exactly the lanes that arrive or have exited");
}

// F067. A lane that has ended has no value to read and no vote to give.
RuleResult exit_before_collective(Context& context) {
  return judge_collectives(
      context, false,
      [&](ptx::InstructionId id, const ptx::Instruction&, uint32_t mask, const WarpArrivals& lanes,
          std::vector<Finding>& findings) {
        const uint32_t ended = mask & lanes.gone;
        if (!ended) return false;
        findings.push_back(lane_finding(
            context, id, lanes, ended, fmt::format("has ended, but the member mask {:#010x} still names it", mask),
            "let the lane run on with a neutral value, and skip its work instead", Severity::high));
        return true;
      },
      "no lane that a mask names has ended before");
}

// F085. Where the mode and the operands are constants, which lanes read from where is known.
RuleResult shuffle_lane_bounds(Context& context) {
  const ptx::Function& function = context.function();
  std::vector<Finding> findings;
  size_t count = 0, open = 0;
  for_each_instruction(context, [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
    if (instruction.op != Op::shfl || instruction.operand_count < 4) return;
    ++count;
    const flow::Fact lane = fact_at(context, instruction.first_operand + 2);
    const auto clamp = constant_at(context, instruction.first_operand + 3);
    const auto mask = constant_mask(context, instruction);
    auto report = [&](std::string message, std::string remedy) {
      findings.push_back(
          finding_at(context, id, Severity::medium, Tier::proved, std::move(message), std::move(remedy)));
    };
    if (lane.low > 31) {
      report(fmt::format("expected a lane or distance from 0 to 31, found {}", lane.low),
             "only the low five bits count: keep the lane inside the warp");
      return;
    }
    if (!clamp || lane.low != lane.high) {
      ++open;
      return;
    }
    // c: bits 0-4 the last lane, bits 8-12 the bits of the lane that stay as they are in a segment.
    const uint32_t distance = static_cast<uint32_t>(lane.low);
    const uint32_t segment_mask = static_cast<uint32_t>(*clamp >> 8) & 31;
    const uint32_t width = (~segment_mask & 31) + 1;
    if (ptx::facts_of(function, instruction).shuffle == ptx::Shuffle::index) {
      if (distance >= width && std::has_single_bit(width))
        report(fmt::format("lane {} is outside the segment of {}", distance, plural(width, "lane")),
               "use a lane of the segment");
      else if (mask && width == 32 && !(*mask >> distance & 1))
        report(fmt::format("lane {} is read, but the member mask {:#010x} does not name it", distance, *mask),
               "read a lane that takes part");
    } else if (distance >= width && std::has_single_bit(width)) {
      report(fmt::format("the distance {} leaves the segment of {} in every lane", distance, plural(width, "lane")),
             "use a distance below the width of the segment");
    }
  });
  if (count == 0) return not_applicable("the kernel has no shuffle");
  if (findings.empty() && open) return undecided("the lane that a shuffle reads is computed at run time");
  return conclude(std::move(findings), "every shuffle reads lanes of its segment that take part");
}

// F086. A mask of 0 names nobody; a mask that activemask gave is old once the lanes have parted again.
RuleResult vote_match_mask(Context& context) {
  Analyses& analyses = context.analyses();
  const flow::Ssa& ssa = analyses.ssa();
  std::vector<Finding> findings;
  size_t count = 0;
  for_each_instruction(context, [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
    if (instruction.op != Op::vote && instruction.op != Op::match) return;
    const auto operand = mask_operand(context.function(), instruction);
    if (!operand) return;
    ++count;
    if (const auto mask = constant_mask(context, instruction)) {
      if (*mask == 0)
        findings.push_back(finding_at(context, id, Severity::medium, Tier::proved,
                                      "expected a member mask that names lanes, found 0",
                                      "name the lanes whose answer is used"));
      return;
    }
    const Source source = flow::source_of(ssa, *operand);
    if (source.kind != Source::Kind::value) return;
    const ptx::Instruction* definition = definition_of(context, source.id);
    if (!definition || definition->op != Op::activemask) return;
    // A divergent branch that the mask's block dominates and that decides whether control gets here.
    const auto outer = analyses.conditions().of(ssa.value(source.id).block);
    for (const flow::Condition& condition : analyses.conditions().of(analyses.graph().block_of(id))) {
      if (std::find(outer.begin(), outer.end(), condition) != outer.end()) continue;
      if (analyses.uniformity().of(condition.predicate) != flow::Uniformity::divergent) continue;
      Finding finding =
          finding_at(context, id, Severity::medium, Tier::likely,
                     "the member mask was read before the lanes parted, and names lanes that went elsewhere",
                     "read activemask where it is used, or compute the mask from the condition");
      finding.path.push_back({definition->at, "the mask is read here"});
      finding.assumptions.push_back("lanes of one warp go different ways in between");
      findings.push_back(std::move(finding));
      break;
    }
  });
  if (count == 0) return not_applicable("the kernel has no vote or match with a member mask");
  std::vector<Finding> unnamed;
  RuleResult named = judge_collectives(
      context, true,
      [&](ptx::InstructionId id, const ptx::Instruction& instruction, uint32_t mask, const WarpArrivals& lanes,
          std::vector<Finding>&) {
        const uint32_t left_out = lanes.arrive & ~mask;
        if (!left_out || mask == 0) return false;
        unnamed.push_back(
            lane_finding(context, id, lanes, left_out,
                         fmt::format("uses the answer of this {}, but the member mask {:#010x} does not name it",
                                     instruction.op == Op::vote ? "vote" : "match", mask),
                         "name every lane whose answer is used", Severity::medium));
        return true;
      },
      "");
  findings.insert(findings.end(), unnamed.begin(), unnamed.end());
  in_program_order(findings);
  return conclude(std::move(findings), "every mask names the lanes whose answer is used");
}

}  // namespace ptxkit::rules
