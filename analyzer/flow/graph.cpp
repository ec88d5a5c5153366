// Building the graph is three linear passes: mark where blocks start, connect them, number them in reverse postorder.
#include "analyzer/flow/graph.hpp"

#include <algorithm>
#include <utility>

#include "analyzer/ptx/facts.hpp"

namespace ptxkit::flow {

using ptx::InstructionId;
using ptx::Op;
using ptx::OperandKind;

namespace {

// Calls visit(target instruction) for each label that the branch may go to.
template <class Visit>
void for_each_target(const ptx::Function& function, const ptx::Instruction& branch, Visit&& visit) {
  for (const ptx::Operand& operand : function.operands(branch)) {
    if (operand.kind == OperandKind::label && operand.id < function.labels.size())
      visit(function.labels[operand.id].target);
    if (operand.kind == OperandKind::prototype && operand.id < function.tables.size())
      for (const uint32_t label : function.tables[operand.id].targets)
        if (label < function.labels.size()) visit(function.labels[label].target);
  }
}

bool never_returns(const ptx::Function& function, const ptx::Instruction& instruction) {
  if (instruction.op != Op::call) return false;
  for (const ptx::Operand& operand : function.operands(instruction))
    if (operand.kind == OperandKind::prototype && operand.id < function.tables.size() &&
        function.tables[operand.id].no_return)
      return true;
  return false;
}

bool ends_block(const ptx::Instruction& instruction) {
  return ptx::is_branch(instruction) || ptx::ends_thread(instruction);
}

}  // namespace

uint64_t target_count(const ptx::Function& function) {
  uint64_t count = 0;
  for (const ptx::Instruction& instruction : function.instructions) {
    if (!ptx::is_branch(instruction)) continue;
    for (const ptx::Operand& operand : function.operands(instruction))
      if (operand.kind == OperandKind::prototype && operand.id < function.tables.size())
        count += function.tables[operand.id].targets.size();
  }
  return count;
}

Graph::Graph(const ptx::Function& function) : function_(&function) {
  const uint32_t count = static_cast<uint32_t>(function.instructions.size());
  std::vector<bool> starts(count + 1, false);
  starts[0] = true;
  for (const ptx::Label& label : function.labels) starts[std::min(label.target, count)] = true;
  for (InstructionId i = 0; i < count; ++i)
    if (ends_block(function.instructions[i]) || never_returns(function, function.instructions[i])) starts[i + 1] = true;

  block_of_.resize(count);
  for (InstructionId i = 0; i < count; ++i) {
    if (starts[i]) blocks_.push_back({.first = i, .end = i});
    block_of_[i] = static_cast<BlockId>(blocks_.size() - 1);
    blocks_.back().end = i + 1;
  }

  std::vector<BlockId> connected_from(blocks_.size(), kNone);  // the last block with an edge to this one
  for (BlockId id = 0; id < blocks_.size(); ++id) {
    Block& block = blocks_[id];
    block.first_successor = static_cast<uint32_t>(successors_.size());
    auto connect = [&](InstructionId target) {
      if (target >= count) {
        block.falls_through_end = true;
        return;
      }
      const BlockId successor = block_of_[target];
      if (std::exchange(connected_from[successor], id) != id) successors_.push_back(successor);
    };
    const ptx::Instruction& last = function.instructions[block.end - 1];
    const bool guarded = static_cast<bool>(last.guard);
    if (ptx::is_branch(last)) for_each_target(function, last, connect);
    if (ptx::ends_thread(last)) block.exits = true;
    if (guarded || (!ends_block(last) && !never_returns(function, last))) connect(block.end);
    block.successor_count = static_cast<uint32_t>(successors_.size()) - block.first_successor;
  }

  for (const BlockId successor : successors_) ++blocks_[successor].predecessor_count;
  uint32_t next = 0;
  for (Block& block : blocks_) {
    block.first_predecessor = next;
    next += block.predecessor_count;
    block.predecessor_count = 0;
  }
  predecessors_.resize(next);
  for (BlockId id = 0; id < blocks_.size(); ++id)
    for (const BlockId successor : successors(id)) {
      Block& block = blocks_[successor];
      predecessors_[block.first_predecessor + block.predecessor_count++] = id;
    }

  order_index_.assign(blocks_.size(), kNone);
  if (blocks_.empty()) return;
  std::vector<bool> seen(blocks_.size(), false);
  std::vector<std::pair<BlockId, uint32_t>> stack{{0, 0}};
  seen[0] = true;
  while (!stack.empty()) {
    auto& [id, edge] = stack.back();
    if (edge < blocks_[id].successor_count) {
      const BlockId successor = successors(id)[edge++];
      if (seen[successor]) continue;
      seen[successor] = true;
      stack.emplace_back(successor, 0);
    } else {
      order_.push_back(id);
      stack.pop_back();
    }
  }
  std::reverse(order_.begin(), order_.end());
  for (uint32_t i = 0; i < order_.size(); ++i) order_index_[order_[i]] = i;
}

}  // namespace ptxkit::flow
