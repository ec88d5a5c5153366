// Rules about control flow as such: where paths end, what is never reached, which loops never end.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::rules {

using flow::BlockId;
using flow::Value;
using flow::ValueId;
using ptx::Op;

// F061. Control that runs past the last instruction ends as the assembler pleases.
RuleResult missing_return(Context& context) {
  Analyses& analyses = context.analyses();
  const flow::Graph& graph = analyses.graph();
  std::vector<Finding> findings;
  for (BlockId block = 0; block < graph.size(); ++block) {
    if (!graph.is_reachable(block) || !graph.block(block).falls_through_end) continue;
    findings.push_back(finding_at(context, graph.last(block), Severity::high, Tier::proved,
                                  "expected ret, exit or trap at the end of the path, found the end of the body",
                                  "end the path with ret"));
  }
  return conclude(std::move(findings), "every path ends in ret, exit or trap, or does not end");
}

// F062. Only code that could do something: compilers leave terminators, and the copies of phis before them, behind.
RuleResult unreachable_code(Context& context) {
  Analyses& analyses = context.analyses();
  const flow::Graph& graph = analyses.graph();
  std::vector<Finding> findings;
  for (BlockId block = 0; block < graph.size(); ++block) {
    if (graph.is_reachable(block)) continue;
    const auto begin = context.function().instructions.begin();
    const bool only_ends = std::all_of(
        begin + graph.block(block).first, begin + graph.block(block).end, [](const ptx::Instruction& instruction) {
          return ptx::ends_thread(instruction) || ptx::is_branch(instruction) || instruction.op == Op::mov;
        });
    if (only_ends) continue;
    findings.push_back(finding_at(context, graph.block(block).first, Severity::low, Tier::proved,
                                  "expected a path to this code, found none", "delete it, or branch to it"));
  }
  return conclude(std::move(findings), "every instruction is reachable");
}

namespace {

// Whether the value can differ from one iteration of `loop` to the next.
bool varies(Analyses& analyses, flow::LoopId loop, ValueId start) {
  const flow::Ssa& ssa = analyses.ssa();
  const ptx::Function& function = ssa.graph().function();
  std::set<ValueId> seen;
  std::vector<ValueId> work{start};
  while (!work.empty()) {
    const ValueId id = work.back();
    work.pop_back();
    if (!seen.insert(id).second) continue;
    const Value& value = ssa.value(id);
    if (!analyses.loops().contains(loop, value.block)) continue;
    if (value.kind != Value::Kind::result || value.old != flow::kNone) return true;
    const flow::Operation operation = flow::operation_of(ssa, id);
    switch (operation.instruction->op) {
      case Op::mov:
      case Op::cvt:
      case Op::cvta:
      case Op::add:
      case Op::sub:
      case Op::mul:
      case Op::mad:
      case Op::and_:
      case Op::or_:
      case Op::xor_:
      case Op::not_:
      case Op::neg:
      case Op::shl:
      case Op::shr:
      case Op::setp:
      case Op::selp:
      case Op::min:
      case Op::max:
        break;
      default:
        return true;
    }
    for (unsigned i = 0; i < operation.source_count; ++i) {
      const flow::Source source = flow::source_of(ssa, operation.first_source + i);
      if (source.kind == flow::Source::Kind::special) {
        const auto special = static_cast<ptx::SpecialRegister>(source.id);
        if (special >= ptx::SpecialRegister::clock) return true;
      }
    }
    ptx::for_each_register(function, *operation.instruction, [&](uint32_t index, const ptx::Operand&, bool written) {
      if (!written) work.push_back(ssa.at(index));
    });
  }
  return false;
}

}  // namespace

// F063. A loop that nothing leaves, or whose every way out asks what no iteration changes.
RuleResult endless_loop(Context& context) {
  Analyses& analyses = context.analyses();
  const flow::Graph& graph = analyses.graph();
  const flow::Loops& loops = analyses.loops();
  if (loops.all().empty()) return not_applicable("the kernel has no loop");
  // The ways out of each loop, collected once over all blocks. Whoever stays in a loop stays in those around it.
  std::vector<std::vector<BlockId>> exits(loops.all().size());
  for (const BlockId block : graph.reverse_postorder())
    for (flow::LoopId loop = loops.innermost(block); loop != flow::kNone; loop = loops.loop(loop).parent) {
      bool leaves = graph.block(block).exits || graph.block(block).falls_through_end;
      for (const BlockId next : graph.successors(block)) leaves = leaves || !loops.contains(loop, next);
      if (!leaves) break;
      exits[loop].push_back(block);
    }
  std::vector<Finding> findings;
  for (flow::LoopId loop = 0; loop < loops.all().size(); ++loop) {
    const ptx::InstructionId head = graph.block(loops.loop(loop).header).first;
    if (exits[loop].empty()) {
      findings.push_back(finding_at(context, head, Severity::high, Tier::proved,
                                    "expected a way out of the loop that starts here, found none",
                                    "leave the loop by a branch or end the thread in it"));
      continue;
    }
    const bool some_change = std::any_of(exits[loop].begin(), exits[loop].end(), [&](BlockId block) {
      const ptx::Instruction& last = context.function().instructions[graph.last(block)];
      if (last.op == Op::brx || !last.guard) return true;
      return varies(analyses, loop, analyses.ssa().guard(graph.last(block)));
    });
    if (some_change) continue;
    Finding finding = finding_at(context, head, Severity::high, Tier::likely,
                                 "no iteration of the loop that starts here changes the condition of a way out",
                                 "update the loop's state, or read it from memory anew");
    for (const BlockId block : exits[loop])
      finding.path.push_back({context.function().instructions[graph.last(block)].at, "a way out is tested here"});
    finding.assumptions.push_back("the loop does not leave in its first iteration");
    findings.push_back(std::move(finding));
  }
  in_program_order(findings);
  return conclude(std::move(findings), "every loop has a way out whose condition changes");
}

// F069. A loop with two entries: most optimisations and most readers give up on it.
RuleResult irreducible_flow(Context& context) {
  Analyses& analyses = context.analyses();
  const flow::Graph& graph = analyses.graph();
  if (!analyses.loops().is_irreducible()) return survived("every loop has one entry");
  std::vector<Finding> findings;
  for (const BlockId block : graph.reverse_postorder())
    for (const BlockId next : graph.successors(block))
      if (graph.order_index(next) <= graph.order_index(block) && !analyses.dominators().dominates(next, block))
        findings.push_back(finding_at(context, graph.last(block), Severity::low, Tier::proved,
                                      "from here control enters a loop that is also entered elsewhere",
                                      "give the loop one entry"));
  return conclude(std::move(findings), "");
}

}  // namespace ptxkit::rules
