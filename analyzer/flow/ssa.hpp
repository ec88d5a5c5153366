// Static single assignment form of a function's registers.
//
// Every definition becomes a value; a join of different values of a register becomes a phi. A guarded instruction is a
// conditional move: its value also names the previous value of the register (`old`), which it keeps if the guard is
// false. Reading a register before any definition yields a value of kind `undefined`. If the entry block is a loop
// header, its phis have arguments for the back edges only.
//
// Phis are placed at iterated dominance frontiers (Cytron et al. 1991), pruned by liveness, and only for registers that
// need them. Compilers generate nearly all PTX from SSA, so most registers have one definition that dominates its uses
// and cost nothing.
#pragma once

#include <span>
#include <vector>

#include "analyzer/flow/dominators.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::flow {

using ValueId = uint32_t;

struct Value {
  enum class Kind : uint8_t { undefined, result, phi } kind = Kind::undefined;
  ptx::RegId reg = kNone;
  BlockId block = kNone;                            // where it is defined; entry for `undefined`
  ptx::InstructionId instruction = kNone;           // of a result
  uint32_t operand = kNone;                         // of a result: index of the written operand in the operand pool
  ValueId old = kNone;                              // of a guarded result
  uint32_t first_argument = 0, argument_count = 0;  // of a phi: one per predecessor of its block
};

// A use of a value: by an instruction, by its guard, by a phi, or as `old` of a guarded result.
struct Use {
  enum class Kind : uint8_t { operand, guard, phi, old } kind = Kind::operand;
  uint32_t id = kNone;       // InstructionId for operand and guard, ValueId for phi and old
  uint32_t operand = kNone;  // index into the operand pool
};

class Ssa {
 public:
  Ssa(const Graph& graph, const DominatorTree& dominators);

  // Whether the phis fitted into kMaxSteps. If not there are none, and the values after joins are wrong.
  bool is_complete() const { return complete_; }

  const Graph& graph() const { return *graph_; }
  std::span<const Value> values() const { return values_; }
  const Value& value(ValueId id) const { return values_[id]; }
  uint32_t size() const { return static_cast<uint32_t>(values_.size()); }
  // The value that a register operand reads, or writes if it is a destination. kNone in unreachable code.
  ValueId at(uint32_t pool_index) const { return operand_values_[pool_index]; }
  ValueId guard(ptx::InstructionId id) const { return guard_values_[id]; }
  // Arguments of a phi; kNone for an unreachable predecessor.
  std::span<const ValueId> arguments(ValueId phi) const {
    return {arguments_.data() + values_[phi].first_argument, values_[phi].argument_count};
  }
  std::span<const ValueId> phis(BlockId block) const {
    return {phis_.data() + first_phi_[block], first_phi_[block + 1] - first_phi_[block]};
  }
  std::span<const Use> uses(ValueId id) const {
    return {uses_.data() + first_use_[id], first_use_[id + 1] - first_use_[id]};
  }
  // Calls visit(value) for the values that are computed from `id`; more than once where one reads it twice.
  template <class Visit>
  void for_each_dependent(ValueId id, Visit&& visit) const {
    const auto visit_known = [&](ValueId dependent) {
      if (dependent != kNone) visit(dependent);
    };
    for (const Use& use : uses(id)) {
      if (use.kind == Use::Kind::phi || use.kind == Use::Kind::old) {
        visit_known(use.id);
        continue;
      }
      const ptx::Function& function = graph_->function();
      ptx::for_each_register(function, function.instructions[use.id],
                             [&](uint32_t index, const ptx::Operand&, bool written) {
                               if (written) visit_known(at(index));
                             });
    }
  }
  // Values ordered so that each follows the values that it reads, except phi arguments along back edges.
  std::span<const ValueId> order() const { return order_; }

  static constexpr uint64_t kMaxSteps = 4'000'000;     // of placing phis, and
  static constexpr uint64_t kStepsOfInstruction = 64;  // this many more for each instruction

 private:
  void place_phis(const DominatorTree& dominators);
  void rename(const DominatorTree& dominators);
  void collect_uses();

  const Graph* graph_;
  bool complete_ = true;
  std::vector<Value> values_;
  std::vector<ValueId> operand_values_, guard_values_, arguments_, phis_, order_;
  std::vector<uint32_t> first_phi_;
  std::vector<Use> uses_;
  std::vector<uint32_t> first_use_;
};

}  // namespace ptxkit::flow
