#include "analyzer/flow/ssa.hpp"

#include <algorithm>

#include "analyzer/flow/step_budget.hpp"
#include "analyzer/ptx/facts.hpp"

namespace ptxkit::flow {

using ptx::InstructionId;
using ptx::RegId;

namespace {

struct Place {
  BlockId block;
  InstructionId instruction;
};

// Definitions and upward-exposed uses of each register, by register, in program order.
struct Occurrences {
  std::vector<uint32_t> first_def, first_use;
  std::vector<Place> defs, uses;
};

Occurrences collect(const Graph& graph) {
  const ptx::Function& function = graph.function();
  const size_t count = function.registers.size();
  Occurrences found;
  found.first_def.assign(count + 1, 0);
  found.first_use.assign(count + 1, 0);
  auto each = [&](auto&& on_def, auto&& on_use) {
    for (BlockId block = 0; block < graph.size(); ++block) {
      if (!graph.is_reachable(block)) continue;
      for (InstructionId i = graph.block(block).first; i < graph.block(block).end; ++i) {
        const ptx::Instruction& instruction = function.instructions[i];
        if (instruction.guard) on_use(instruction.guard.reg, Place{block, i});
        ptx::for_each_register(function, instruction, [&](uint32_t, const ptx::Operand& operand, bool written) {
          if (written)
            on_def(operand.id, Place{block, i});
          else
            on_use(operand.id, Place{block, i});
          // A guarded definition, or one of a part of a vector, keeps the rest of what was there.
          if (written && instruction.guard) on_use(operand.id, Place{block, i});
        });
      }
    }
  };
  each([&](RegId reg, Place) { ++found.first_def[reg + 1]; }, [&](RegId reg, Place) { ++found.first_use[reg + 1]; });
  for (size_t i = 0; i < count; ++i) {
    found.first_def[i + 1] += found.first_def[i];
    found.first_use[i + 1] += found.first_use[i];
  }
  found.defs.resize(found.first_def[count]);
  found.uses.resize(found.first_use[count]);
  std::vector<uint32_t> next_def(found.first_def.begin(), found.first_def.end() - 1);
  std::vector<uint32_t> next_use(found.first_use.begin(), found.first_use.end() - 1);
  each([&](RegId reg, Place place) { found.defs[next_def[reg]++] = place; },
       [&](RegId reg, Place place) { found.uses[next_use[reg]++] = place; });
  return found;
}

// Ends early, with an entry for each step, when none of `steps_left` is left.
std::vector<std::vector<BlockId>> dominance_frontiers(const Graph& graph, const DominatorTree& dominators,
                                                      StepBudget& steps_left) {
  std::vector<std::vector<BlockId>> frontier(graph.size());
  for (const BlockId join : graph.reverse_postorder()) {
    if (graph.block(join).predecessor_count < 2 && join != 0) continue;
    for (const BlockId predecessor : graph.predecessors(join)) {
      if (!graph.is_reachable(predecessor)) continue;
      for (BlockId runner = predecessor; runner != kNone && runner != dominators.parent(join);
           runner = dominators.parent(runner)) {
        if (!frontier[runner].empty() && frontier[runner].back() == join) break;
        if (steps_left.is_spent()) return frontier;
        steps_left.take(1);
        frontier[runner].push_back(join);
      }
    }
  }
  return frontier;
}

}  // namespace

Ssa::Ssa(const Graph& graph, const DominatorTree& dominators) : graph_(&graph) {
  operand_values_.assign(graph.function().operand_pool.size(), kNone);
  guard_values_.assign(graph.function().instructions.size(), kNone);
  first_phi_.assign(graph.size() + 1, 0);
  if (graph.size() == 0) {
    first_use_.assign(1, 0);
    return;
  }
  place_phis(dominators);
  rename(dominators);
  collect_uses();
}

void Ssa::place_phis(const DominatorTree& dominators) {
  const Graph& graph = *graph_;
  const ptx::Function& function = graph.function();
  const Occurrences found = collect(graph);
  // The frontiers, the blocks where a register is live, and the arguments can each be quadratic.
  StepBudget steps_left(kMaxSteps + kStepsOfInstruction * function.instructions.size());
  const auto frontier = dominance_frontiers(graph, dominators, steps_left);
  std::vector<std::pair<BlockId, RegId>> placed;
  std::vector<uint32_t> live_in(graph.size(), kNone), defines(graph.size(), kNone), has_phi(graph.size(), kNone);
  std::vector<BlockId> work;
  for (RegId reg = 0; reg < function.registers.size() && !steps_left.is_spent(); ++reg) {
    const std::span<const Place> defs{found.defs.data() + found.first_def[reg],
                                      found.first_def[reg + 1] - found.first_def[reg]};
    const std::span<const Place> uses{found.uses.data() + found.first_use[reg],
                                      found.first_use[reg + 1] - found.first_use[reg]};
    if (defs.empty() || uses.empty()) continue;
    if (defs.size() == 1 && std::all_of(uses.begin(), uses.end(), [&](Place use) {
          return use.block == defs[0].block ? use.instruction > defs[0].instruction
                                            : dominators.dominates(defs[0].block, use.block);
        }))
      continue;
    // Blocks at whose entry the register is live.
    for (const Place def : defs) defines[def.block] = reg;
    work.clear();
    for (const Place use : uses) {
      if (defines[use.block] == reg) {
        const auto first = std::ranges::lower_bound(defs, use.block, {}, &Place::block);
        if (first->instruction < use.instruction) continue;
      }
      if (live_in[use.block] == reg) continue;
      live_in[use.block] = reg;
      work.push_back(use.block);
    }
    while (!work.empty() && !steps_left.is_spent()) {
      const BlockId block = work.back();
      work.pop_back();
      steps_left.take(1 + graph.block(block).predecessor_count);
      for (const BlockId predecessor : graph.predecessors(block)) {
        if (live_in[predecessor] == reg || defines[predecessor] == reg || !graph.is_reachable(predecessor)) continue;
        live_in[predecessor] = reg;
        work.push_back(predecessor);
      }
    }
    for (const Place def : defs)
      if (work.empty() || work.back() != def.block) work.push_back(def.block);
    work.push_back(0);  // the entry defines `undefined`
    while (!work.empty() && !steps_left.is_spent()) {
      const BlockId block = work.back();
      work.pop_back();
      steps_left.take(1 + frontier[block].size());
      for (const BlockId join : frontier[block]) {
        if (has_phi[join] == reg || live_in[join] != reg) continue;
        has_phi[join] = reg;
        placed.emplace_back(join, reg);
        steps_left.take(2 + 2 * uint64_t{graph.block(join).predecessor_count});
        work.push_back(join);
      }
    }
  }
  if (steps_left.is_spent()) {
    complete_ = false;
    return;
  }
  std::sort(placed.begin(), placed.end());
  for (const auto& [block, reg] : placed) {
    ++first_phi_[block + 1];
    phis_.push_back(static_cast<ValueId>(values_.size()));
    const uint32_t predecessors = graph.block(block).predecessor_count;
    values_.push_back({.kind = Value::Kind::phi,
                       .reg = reg,
                       .block = block,
                       .first_argument = static_cast<uint32_t>(arguments_.size()),
                       .argument_count = predecessors});
    arguments_.resize(arguments_.size() + predecessors, kNone);
  }
  for (BlockId block = 0; block < graph.size(); ++block) first_phi_[block + 1] += first_phi_[block];
}

void Ssa::rename(const DominatorTree& dominators) {
  const Graph& graph = *graph_;
  const ptx::Function& function = graph.function();
  std::vector<ValueId> current(function.registers.size(), kNone);
  std::vector<ValueId> undefined(function.registers.size(), kNone);
  struct Change {
    RegId reg;
    ValueId before;
  };
  std::vector<Change> undo;
  std::vector<size_t> undo_mark;
  std::vector<BlockId> path;

  auto read = [&](RegId reg) {
    if (current[reg] != kNone) return current[reg];
    if (undefined[reg] == kNone) {
      undefined[reg] = static_cast<ValueId>(values_.size());
      values_.push_back({.kind = Value::Kind::undefined, .reg = reg, .block = 0});
    }
    return undefined[reg];
  };
  auto write = [&](RegId reg, ValueId value) {
    undo.push_back({reg, current[reg]});
    current[reg] = value;
  };

  for (const BlockId block : dominators.preorder()) {
    while (!path.empty() && path.back() != dominators.parent(block)) {
      for (; undo.size() > undo_mark.back(); undo.pop_back()) current[undo.back().reg] = undo.back().before;
      undo_mark.pop_back();
      path.pop_back();
    }
    path.push_back(block);
    undo_mark.push_back(undo.size());

    for (const ValueId phi : phis(block)) write(values_[phi].reg, phi);
    for (InstructionId i = graph.block(block).first; i < graph.block(block).end; ++i) {
      const ptx::Instruction& instruction = function.instructions[i];
      if (instruction.guard) guard_values_[i] = read(instruction.guard.reg);
      ptx::for_each_register(function, instruction, [&](uint32_t index, const ptx::Operand& operand, bool written) {
        if (!written) operand_values_[index] = read(operand.id);
      });
      ptx::for_each_register(function, instruction, [&](uint32_t index, const ptx::Operand& operand, bool written) {
        if (!written) return;
        Value value{.kind = Value::Kind::result, .reg = operand.id, .block = block, .instruction = i, .operand = index};
        if (instruction.guard) value.old = read(operand.id);
        operand_values_[index] = static_cast<ValueId>(values_.size());
        values_.push_back(value);
        write(operand.id, operand_values_[index]);
      });
    }
    for (const BlockId successor : graph.successors(block)) {
      // In ascending order; twice where both ways of a branch lead there.
      const auto predecessors = graph.predecessors(successor);
      const auto from_here = std::ranges::equal_range(predecessors, block);
      for (auto edge = static_cast<uint32_t>(from_here.begin() - predecessors.begin()),
                end = edge + static_cast<uint32_t>(from_here.size());
           edge < end; ++edge) {
        for (const ValueId phi : phis(successor)) {
          // read() may grow values_.
          const ValueId argument = read(values_[phi].reg);
          arguments_[values_[phi].first_argument + edge] = argument;
        }
      }
    }
  }
}

void Ssa::collect_uses() {
  const ptx::Function& function = graph_->function();
  auto each = [&](auto&& visit) {
    for (const BlockId block : graph_->reverse_postorder())
      for (InstructionId i = graph_->block(block).first; i < graph_->block(block).end; ++i) {
        if (guard_values_[i] != kNone) visit(guard_values_[i], Use{Use::Kind::guard, i, kNone});
        ptx::for_each_register(function, function.instructions[i],
                               [&](uint32_t index, const ptx::Operand&, bool written) {
                                 if (!written) visit(operand_values_[index], Use{Use::Kind::operand, i, index});
                               });
      }
    for (ValueId id = 0; id < values_.size(); ++id) {
      if (values_[id].kind == Value::Kind::phi)
        for (const ValueId argument : arguments(id))
          if (argument != kNone) visit(argument, Use{Use::Kind::phi, id, kNone});
      if (values_[id].old != kNone) visit(values_[id].old, Use{Use::Kind::old, id, kNone});
    }
  };
  first_use_.assign(values_.size() + 1, 0);
  each([&](ValueId id, Use) { ++first_use_[id + 1]; });
  for (size_t i = 0; i < values_.size(); ++i) first_use_[i + 1] += first_use_[i];
  uses_.resize(first_use_.back());
  std::vector<uint32_t> next(first_use_.begin(), first_use_.end() - 1);
  each([&](ValueId id, Use use) { uses_[next[id]++] = use; });

  for (ValueId id = 0; id < values_.size(); ++id)
    if (values_[id].kind == Value::Kind::undefined) order_.push_back(id);
  for (const BlockId block : graph_->reverse_postorder()) {
    for (const ValueId phi : phis(block)) order_.push_back(phi);
    for (InstructionId i = graph_->block(block).first; i < graph_->block(block).end; ++i)
      ptx::for_each_register(function, function.instructions[i],
                             [&](uint32_t index, const ptx::Operand&, bool written) {
                               if (written) order_.push_back(operand_values_[index]);
                             });
  }
}

}  // namespace ptxkit::flow
