#include "analyzer/flow/conditions.hpp"

#include <algorithm>

#include "analyzer/ptx/facts.hpp"

namespace ptxkit::flow {

using ptx::Op;

namespace {

constexpr int64_t kMaxTrips = 1 << 14;
constexpr unsigned kMaxSplit = 8;

}  // namespace

Conditions::Conditions(const Ssa& ssa, const DominatorTree& dominators, const Loops& loops)
    : ssa_(&ssa), dominators_(&dominators) {
  const Graph& graph = ssa.graph();
  entry_.resize(graph.size());
  for (BlockId block = 0; block < graph.size(); ++block) {
    // The one way in, back edges aside: what held on entering a loop holds inside it too, values being single.
    BlockId from = kNone;
    unsigned ways = 0;
    for (const BlockId predecessor : graph.predecessors(block)) {
      if (!graph.is_reachable(predecessor) || loops.is_back_edge(predecessor, block)) continue;
      from = predecessor;
      ++ways;
    }
    if (ways != 1 || !graph.is_reachable(block)) continue;
    const ptx::Instruction& last = graph.function().instructions[graph.last(from)];
    if (!last.guard) continue;
    const auto successors = graph.successors(from);
    bool taken = false;
    if (last.op == Op::bra) {
      if (successors.size() != 2) continue;
      taken = successors[0] == block;
    } else if (!ptx::ends_thread(last)) {
      continue;  // control goes on, whatever the guard
    }
    entry_[block] = {ssa.guard(graph.last(from)), taken != last.guard.negated};
  }
}

std::vector<Condition> Conditions::of(BlockId block) const {
  std::vector<Condition> found;
  for (; block != kNone && found.size() < kMaxConditions; block = dominators_->parent(block))
    if (entry_[block].predicate != kNone) split(entry_[block], found);
  return found;
}

std::vector<Condition> Conditions::of_instruction(ptx::InstructionId id) const {
  std::vector<Condition> found;
  const ptx::Instruction& instruction = ssa_->graph().function().instructions[id];
  if (instruction.guard) split({ssa_->guard(id), !instruction.guard.negated}, found);
  const auto outer = of(ssa_->graph().block_of(id));
  found.insert(found.end(), outer.begin(), outer.end());
  return found;
}

// p && q holding means both hold, p || q failing means both fail; a negation turns round.
void Conditions::split(Condition condition, std::vector<Condition>& into) const {
  std::vector<std::pair<Condition, unsigned>> work{{condition, 0}};
  while (!work.empty()) {
    const auto [next, level] = work.back();
    work.pop_back();
    into.push_back(next);
    const Value& value = ssa_->value(next.predicate);
    if (value.kind != Value::Kind::result || value.old != kNone || level >= kMaxSplit) continue;
    const Operation operation = operation_of(*ssa_, next.predicate);
    const Op op = operation.instruction->op;
    auto push = [&, depth = level](unsigned i, bool expected) {
      const Source source = source_of(*ssa_, operation.first_source + i);
      if (source.kind == Source::Kind::value) work.push_back({{source.id, expected != source.negated}, depth + 1});
    };
    if (op == Op::not_ && operation.source_count == 1) push(0, !next.expected);
    if (op == Op::mov && operation.source_count == 1) push(0, next.expected);
    if ((op == Op::and_ && next.expected) || (op == Op::or_ && !next.expected))
      for (unsigned i = 0; i < operation.source_count; ++i) push(i, next.expected);
  }
}

bool is_bound(const Ssa& ssa, ValueId predicate) {
  std::vector<std::pair<ValueId, unsigned>> work{{predicate, 0}};
  while (!work.empty()) {
    const auto [id, depth] = work.back();
    work.pop_back();
    const Value& value = ssa.value(id);
    if (value.kind != Value::Kind::result || value.old != kNone || depth > kMaxSplit) return false;
    const Operation operation = operation_of(ssa, id);
    const ptx::Instruction& instruction = *operation.instruction;
    const ptx::Function& function = ssa.graph().function();
    if (instruction.op == Op::setp) {
      const ptx::Comparison comparison = ptx::comparison_of(function, instruction);
      const bool is_order = operation.source_count == 2 && ptx::kind(instruction.type()) != ptx::TypeKind::floating &&
                            comparison != ptx::Comparison::eq && comparison != ptx::Comparison::ne;
      if (!is_order) return false;
      continue;
    }
    if (instruction.op != Op::and_ && instruction.op != Op::or_ && instruction.op != Op::not_) return false;
    for (unsigned i = 0; i < operation.source_count; ++i) {
      const Source source = source_of(ssa, operation.first_source + i);
      if (source.kind != Source::Kind::value) return false;
      work.emplace_back(source.id, depth + 1);
    }
  }
  return true;
}

std::optional<int64_t> last_iteration(Forms& forms, const DominatorTree& dominators, LoopId id, BlockId block) {
  const Ssa& ssa = forms.domain().ssa();
  const Graph& graph = ssa.graph();
  const ptx::Function& function = graph.function();
  const Loop& loop = forms.loops().loop(id);
  std::optional<int64_t> last;
  auto consider = [&](BlockId exit) {
    const ptx::Instruction& branch = function.instructions[graph.last(exit)];
    const auto successors = graph.successors(exit);
    if (branch.op != Op::bra || !branch.guard || successors.size() != 2) return;
    const bool taken_stays = forms.loops().contains(id, successors[0]);
    if (taken_stays == forms.loops().contains(id, successors[1])) return;
    const ValueId predicate = ssa.guard(graph.last(exit));
    if (ssa.value(predicate).kind != Value::Kind::result || ssa.value(predicate).old != kNone) return;
    const Operation test = operation_of(ssa, predicate);
    if (test.instruction->op != Op::setp || test.source_count != 2 || test.part != 0) return;
    const unsigned width = ptx::bit_width(test.instruction->type());
    const Form a = forms.expand(forms.of(source_of(ssa, test.first_source), width));
    const Form b = forms.expand(forms.of(source_of(ssa, test.first_source + 1), width));
    for (const Form* form : {&a, &b}) {
      if (form->base != kNoBase || form->modulus_bits < width || form->terms.size() > 1) return;
      for (const Term& term : form->terms)
        if (forms.atom(term.atom).kind != Atom::Kind::iteration || forms.atom(term.atom).id != id) return;
    }
    auto at = [](const Form& form, int64_t k) {
      const uint64_t slope = form.terms.empty() ? 0 : static_cast<uint64_t>(form.terms[0].coefficient);
      return static_cast<uint64_t>(form.constant) + slope * static_cast<uint64_t>(k);
    };
    for (int64_t k = 0; k < kMaxTrips; ++k) {
      const auto holds = compare(function, *test.instruction, at(a, k), at(b, k));
      if (!holds) return;
      const bool taken = *holds != branch.guard.negated;
      if (taken == taken_stays) continue;
      // Iteration k leaves here; blocks after the test last run in iteration k - 1.
      const bool after = exit != block && dominators.dominates(exit, block);
      const int64_t bound = after ? k - 1 : k;
      if (!last || bound < *last) last = bound;
      return;
    }
  };
  // Blocks that dominate every latch run in every iteration.
  for (BlockId exit = loop.latches.front(); exit != kNone; exit = dominators.parent(exit)) {
    if (std::all_of(loop.latches.begin(), loop.latches.end(),
                    [&](BlockId latch) { return dominators.dominates(exit, latch); }))
      consider(exit);
    if (exit == loop.header) break;
  }
  return last;
}

}  // namespace ptxkit::flow
