// What a thread of a kernel computes, as terms of a query: the values of its registers, the addresses of its accesses,
// and whether it gets to an instruction.
//
// A value in a loop is that of one turn. A counter is its start and a multiple of the turn's number; what else changes
// from turn to turn may be anything that the value domain permits. Of a loop that the thread has left, the last turn
// counts. Loads are functions of their address where the kernel does not write the memory; other loads may give
// anything.
#pragma once

#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/flow/uniformity.hpp"
#include "analyzer/prove/query.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::prove {

// The analyses of the kernel. All must outlive what is made from them.
struct Kernel {
  const flow::DominatorTree& dominators;
  const flow::DominatorTree& post_dominators;
  flow::Forms& forms;
  const flow::UniformityAnalysis& uniformity;
  const std::vector<ptx::Access>& accesses;
};

// The turn of a loop: the number that a symbol stands for, and so many more. Without a symbol, the number alone.
struct Turn {
  std::string symbol;
  int64_t offset = 0;
  bool operator==(const Turn&) const = default;
};

// A thread at one time. Threads of one block in the same turn of a loop have the same symbol for it.
struct Moment {
  char thread = 'a';
  bool shares_block = true;  // with the other thread of the query
  std::map<flow::LoopId, Turn> turns{};
};

class Threads {
 public:
  Threads(const Kernel& kernel, Query& query);

  Term value(flow::ValueId id, const Moment& at);
  Term operand(uint32_t pool_index, unsigned width, const Moment& at);
  // 64 bits, displacement included.
  Term address(const ptx::Access& access, const Moment& at);
  // Where an object begins: a variable, or what a parameter points to, as a multiple of `multiple_of`, a power of two.
  // Nothing for other objects.
  std::optional<Term> start(flow::BaseId base, uint32_t multiple_of);
  // Whether the thread gets to the instruction, and its guard holds.
  Term reaches(ptx::InstructionId id, const Moment& at);
  // A component 0 to 2 of a special register.
  Term special(ptx::SpecialRegister special, unsigned dimension, const Moment& at);
  Term linear_tid(const Moment& at);

  // Parameters that are symbols of the query: the symbol, and the parameter's name.
  const std::map<std::string, std::string>& parameters() const { return parameters_; }
  // Whether the loop's blocks are left at the same turn by all threads of the block.
  bool has_same_turns(flow::LoopId loop) const;

 private:
  std::string place_of(flow::BlockId block, const Moment& at) const;
  std::string key_of(const Moment& at) const;
  Turn turn_of(flow::LoopId loop, const Moment& at) const;
  Term number_of(const Turn& turn);
  Moment before(flow::LoopId loop, const Moment& at) const;
  Term compute(flow::ValueId id, const Moment& at);
  Term result(flow::ValueId id, const Moment& at);
  Term phi_of_header(flow::ValueId id, flow::LoopId loop, const Moment& at);
  Term phi_of_join(flow::ValueId id, const Moment& at);
  std::optional<Term> counter(flow::ValueId id, flow::LoopId loop, const Moment& at);
  std::optional<Term> entered_with(flow::ValueId phi, flow::LoopId loop, const Moment& at);
  Term unknown(flow::ValueId id, const Moment& at);
  Term parameter(const flow::Operation& operation, flow::ValueId id, const Moment& at);
  Term loaded(const flow::Operation& operation, flow::ValueId id, const Moment& at);
  void require_multiple(const Term& term, uint64_t of);  // a power of two
  Term source(const flow::Source& source, unsigned width, const Moment& at);
  Term start_of_variable(ptx::VariableId id);
  bool is_never_written(const ptx::Access& access, flow::BaseId base) const;
  Term path(flow::BlockId from, flow::BlockId to, const Moment& at);
  Term way_into(flow::BlockId block, const Moment& at);
  bool leaves_loop(flow::BlockId dominator, flow::BlockId block) const;
  Term edge(flow::BlockId from, flow::BlockId to, const Moment& at);
  Term within_bounds(flow::LoopId loop, const Moment& at);
  Term within_bound(flow::LoopId loop, flow::BlockId exit, const Moment& at);

  const Kernel* kernel_;
  Query* query_;
  const flow::Ssa* ssa_;
  const flow::Loops* loops_;
  const flow::Domain* domain_;
  const ptx::Function* function_;
  std::map<std::pair<flow::ValueId, std::string>, Term> values_;
  std::map<std::pair<flow::BlockId, std::string>, Term> ways_;
  std::map<std::string, std::string> parameters_;
  std::set<flow::BaseId> written_, accessed_;
  bool writes_anywhere_ = false;  // somewhere that is not known
  unsigned depth_ = 0;
  unsigned unknown_count_ = 0;
};

}  // namespace ptxkit::prove
