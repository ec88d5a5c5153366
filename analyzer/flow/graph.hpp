// The control-flow graph of one function: basic blocks over its flat instruction vector.
//
// A block ends at a branch, at the end of a thread, or before a label. A guarded branch has two successors, the taken
// one first; a guarded ret or exit has the fall-through and the exit. Blocks are numbered in program order: ids sort
// like offsets, and every listing is deterministic.
#pragma once

#include <span>
#include <vector>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::flow {

using BlockId = uint32_t;
inline constexpr uint32_t kNone = ptx::kNone;

struct Block {
  ptx::InstructionId first = 0, end = 0;  // [first, end)
  uint32_t first_successor = 0, successor_count = 0;
  uint32_t first_predecessor = 0, predecessor_count = 0;
  bool exits = false;              // a thread may end at its last instruction
  bool falls_through_end = false;  // control may run past the last instruction of the function
};

// How many targets the tables of all brx.idx have together. Tables can be shared, so a short text can have many.
uint64_t target_count(const ptx::Function& function);

class Graph {
 public:
  explicit Graph(const ptx::Function& function);

  const ptx::Function& function() const { return *function_; }
  std::span<const Block> blocks() const { return blocks_; }
  const Block& block(BlockId id) const { return blocks_[id]; }
  uint32_t size() const { return static_cast<uint32_t>(blocks_.size()); }
  // Distinct successors: the taken branch (or the table in order), then the fall-through.
  std::span<const BlockId> successors(BlockId id) const {
    return {successors_.data() + blocks_[id].first_successor, blocks_[id].successor_count};
  }
  std::span<const BlockId> predecessors(BlockId id) const {
    return {predecessors_.data() + blocks_[id].first_predecessor, blocks_[id].predecessor_count};
  }
  BlockId block_of(ptx::InstructionId id) const { return block_of_[id]; }
  ptx::InstructionId last(BlockId id) const { return blocks_[id].end - 1; }

  std::span<const BlockId> reverse_postorder() const { return order_; }  // reachable blocks, entry first
  bool is_reachable(BlockId id) const { return order_index_[id] != kNone; }
  uint32_t order_index(BlockId id) const { return order_index_[id]; }  // kNone where unreachable

 private:
  const ptx::Function* function_;
  std::vector<Block> blocks_;
  std::vector<BlockId> successors_, predecessors_, block_of_, order_;
  std::vector<uint32_t> order_index_;
};

}  // namespace ptxkit::flow
