#include "analyzer/flow/uniformity.hpp"

#include <algorithm>

#include "analyzer/ptx/facts.hpp"

namespace ptxkit::flow {

using ptx::Op;
using ptx::Space;
using ptx::SpecialRegister;

UniformityAnalysis::UniformityAnalysis(const Domain& domain, const DominatorTree& post_dominators,
                                       std::optional<uint8_t> row)
    : domain_(&domain),
      post_dominators_(&post_dominators),
      row_(row),
      budget_(2'000'000 + 64ull * domain.ssa().graph().size()),
      values_(domain.ssa().order().size()),
      branches_(domain.ssa().graph().reverse_postorder().size()) {
  const Ssa& ssa = domain.ssa();
  const Graph& graph = ssa.graph();
  levels_.assign(ssa.size(), Uniformity::uniform);
  join_levels_.assign(graph.size(), Uniformity::uniform);
  spread_.assign(graph.size(), Uniformity::uniform);
  reached_.assign(graph.size(), kNone);
  position_.assign(ssa.size(), kNone);
  for (uint32_t i = 0; i < ssa.order().size(); ++i) {
    position_[ssa.order()[i]] = i;
    values_.insert(i);
  }
  for (uint32_t i = 0; i < graph.reverse_postorder().size(); ++i) branches_.insert(i);
  settle();
}

// Looks at values until none changes, then at one branch whose test has changed, and so on.
void UniformityAnalysis::settle() {
  const Ssa& ssa = domain_->ssa();
  const Graph& graph = ssa.graph();
  size_t branch_at = 0;
  while (true) {
    for (size_t at = values_.take(0); at != PositionSet::kNoPosition; at = values_.take(at + 1)) {
      const ValueId id = ssa.order()[at];
      const Uniformity level = std::max(levels_[id], transfer(id));
      if (level == levels_[id]) continue;
      levels_[id] = level;
      ssa.for_each_dependent(id, [&](ValueId user) {
        if (position_[user] != kNone) values_.insert(position_[user]);
      });
      for (const Use& use : ssa.uses(id)) {
        if (use.kind == Use::Kind::phi || use.kind == Use::Kind::old) continue;
        const BlockId block = graph.block_of(use.id);
        if (graph.last(block) == use.id) branches_.insert(graph.order_index(block));
      }
    }
    branch_at = branches_.take(branch_at);
    if (branch_at == PositionSet::kNoPosition) return;
    const BlockId block = graph.reverse_postorder()[branch_at++];
    const Uniformity level = branch(block);
    if (level <= spread_[block] || graph.block(block).successor_count < 2) continue;
    spread_[block] = level;
    spread(block, level);
  }
}

void UniformityAnalysis::raise(BlockId block, Uniformity level) {
  const Ssa& ssa = domain_->ssa();
  if (block >= join_levels_.size() || level <= join_levels_[block]) return;
  join_levels_[block] = level;
  for (const ValueId phi : ssa.phis(block))
    if (position_[phi] != kNone) values_.insert(position_[phi]);
}

Uniformity UniformityAnalysis::branch(BlockId block) const {
  const Ssa& ssa = domain_->ssa();
  const ptx::InstructionId last = ssa.graph().last(block);
  const ptx::Instruction& instruction = ssa.graph().function().instructions[last];
  Uniformity level = Uniformity::uniform;
  if (ssa.guard(last) != kNone && (ptx::is_branch(instruction) || ptx::ends_thread(instruction)))
    level = levels_[ssa.guard(last)];
  if (instruction.op == Op::brx) level = std::max(level, of(source_of(ssa, instruction.first_operand)));
  return level;
}

// Raises the phis of every block where the sides of `branch` meet.
void UniformityAnalysis::spread(BlockId branch, Uniformity level) {
  const Graph& graph = domain_->ssa().graph();
  if (budget_.is_spent()) return;  // every block is raised
  const BlockId end = post_dominators_->parent(branch);
  raise(end, level);
  std::vector<BlockId> touched, work;
  const auto successors = graph.successors(branch);
  for (size_t side = 0; side < successors.size() && !budget_.is_spent(); ++side) {
    const auto mark = static_cast<uint32_t>(side);
    work.assign(1, successors[side]);
    while (!work.empty() && !budget_.is_spent()) {
      const BlockId block = work.back();
      work.pop_back();
      if (block == end || reached_[block] == mark || reached_[block] == kManySides) continue;
      // The two ways out of a branch count with its block; what a table adds does not.
      budget_.take(1 + graph.block(block).successor_count / 4);
      if (reached_[block] == kNone) {
        touched.push_back(block);
        reached_[block] = mark;
      } else {
        reached_[block] = kManySides;
        raise(block, level);
      }
      for (const BlockId next : graph.successors(block)) work.push_back(next);
    }
  }
  for (const BlockId block : touched) reached_[block] = kNone;
  if (!budget_.is_spent()) return;
  for (BlockId all = 0; all < graph.size(); ++all) raise(all, Uniformity::divergent);
}

Uniformity UniformityAnalysis::special(SpecialRegister special, uint8_t component) const {
  const LaunchShape& shape = domain_->shape();
  const SpecialRange range = range_of(special, component, shape);
  if (range.low == range.high) return Uniformity::uniform;
  const bool one_warp = shape.max_threads <= 32;
  switch (special) {
    case SpecialRegister::tid:
      if (row_ && component != *row_) return Uniformity::uniform;
      // Rows of whole warps: y and z do not differ within one.
      if (component != 'x' && shape.is_exact && shape.threads[0] % 32 == 0) return Uniformity::warp;
      return Uniformity::divergent;
    case SpecialRegister::laneid:
    case SpecialRegister::lanemask_eq:
    case SpecialRegister::lanemask_lt:
    case SpecialRegister::lanemask_le:
    case SpecialRegister::lanemask_gt:
    case SpecialRegister::lanemask_ge:
    case SpecialRegister::clock:
    case SpecialRegister::clock_hi:
    case SpecialRegister::clock64:
    case SpecialRegister::globaltimer:
    case SpecialRegister::globaltimer_lo:
      return Uniformity::divergent;
    case SpecialRegister::warpid:
      return one_warp ? Uniformity::uniform : Uniformity::warp;
    default:
      return Uniformity::uniform;
  }
}

Uniformity UniformityAnalysis::of(const Source& source) const {
  switch (source.kind) {
    case Source::Kind::value:
      return levels_[source.id];
    case Source::Kind::special:
      return special(static_cast<SpecialRegister>(source.id), source.component);
    default:
      return Uniformity::uniform;
  }
}

Uniformity UniformityAnalysis::transfer(ValueId id) const {
  const Ssa& ssa = domain_->ssa();
  const ptx::Function& function = ssa.graph().function();
  const Value& value = ssa.value(id);
  const Uniformity within_warp = domain_->shape().max_threads <= 32 ? Uniformity::uniform : Uniformity::warp;
  switch (value.kind) {
    case Value::Kind::undefined:
      return Uniformity::uniform;
    case Value::Kind::phi: {
      Uniformity level = Uniformity::uniform;
      ValueId first = kNone;
      bool differs = false;
      for (const ValueId argument : ssa.arguments(id)) {
        if (argument == kNone) continue;
        level = std::max(level, levels_[argument]);
        differs = differs || (first != kNone && argument != first);
        first = argument;
      }
      return differs ? std::max(level, join_levels_[value.block]) : level;
    }
    case Value::Kind::result:
      break;
  }
  const Operation operation = operation_of(ssa, id);
  const ptx::Instruction& instruction = *operation.instruction;
  Uniformity level = Uniformity::uniform;
  ptx::for_each_register(function, instruction, [&](uint32_t index, const ptx::Operand&, bool written) {
    if (!written) level = std::max(level, levels_[ssa.at(index)]);
  });
  for (unsigned i = 0; i < operation.source_count; ++i) {
    const Source source = source_of(ssa, operation.first_source + i);
    if (source.kind == Source::Kind::special) level = std::max(level, of(source));
  }
  if (value.old != kNone) level = std::max({level, levels_[value.old], levels_[ssa.guard(value.instruction)]});
  switch (instruction.op) {
    case Op::ld:
    case Op::ldu:
      if (instruction.space == Space::param || instruction.space == Space::constant) return level;
      if (instruction.space == Space::local) return Uniformity::divergent;
      if (instruction.space == Space::generic) {
        // A stack slot has one address and a value for each thread.
        const Source base = address_base(ssa, operation.first_source);
        if (base.kind == Source::Kind::value && (domain_->fact(base.id).points_to & (kLocalSet | kUnknownSpace)))
          return Uniformity::divergent;
      }
      return level == Uniformity::uniform ? Uniformity::loaded : level;
    case Op::atom:
      return Uniformity::divergent;
    case Op::vote:
    case Op::redux:
    case Op::activemask:
      return within_warp;
    case Op::match:
      return ptx::facts_of(function, instruction).vote == ptx::Vote::all ? within_warp : Uniformity::divergent;
    case Op::bar:
    case Op::barrier:
      return Uniformity::uniform;  // .red: one result for the CTA
    case Op::elect:
      return operation.part == 0 ? within_warp : Uniformity::divergent;
    case Op::shfl: {
      if (operation.part == 1) return Uniformity::divergent;
      // Every lane reads lane `b`: the same value where that is the same lane.
      const Source lane = source_of(ssa, operation.first_source + 1);
      const Source clamp = source_of(ssa, operation.first_source + 2);
      const bool is_indexed = ptx::facts_of(function, instruction).shuffle == ptx::Shuffle::index;
      if (is_indexed && of(lane) <= Uniformity::warp && clamp.kind == Source::Kind::constant && clamp.constant == 31)
        return within_warp;
      return level <= Uniformity::warp ? level : Uniformity::divergent;
    }
    case Op::shr: {
      // tid / 32 where rows are whole warps or the block is one row.
      const Source from = source_of(ssa, operation.first_source), by = source_of(ssa, operation.first_source + 1);
      const LaunchShape& shape = domain_->shape();
      if (level != Uniformity::divergent || !shape.is_exact || by.kind != Source::Kind::constant || by.constant < 5)
        return level;
      const bool one_row = shape.threads[1] == 1 && shape.threads[2] == 1;
      Source origin = from;
      if (from.kind == Source::Kind::value && ssa.value(from.id).kind == Value::Kind::result) {
        const Operation move = operation_of(ssa, from.id);
        if (move.instruction->op == Op::mov && move.source_count == 1 && ssa.value(from.id).old == kNone)
          origin = source_of(ssa, move.first_source);
      }
      if (origin.kind == Source::Kind::special && static_cast<SpecialRegister>(origin.id) == SpecialRegister::tid &&
          origin.component == 'x' && (one_row || shape.threads[0] % 32 == 0))
        return within_warp;
      return level;
    }
    case Op::call:
      return Uniformity::divergent;
    default:
      return level;
  }
}

}  // namespace ptxkit::flow
