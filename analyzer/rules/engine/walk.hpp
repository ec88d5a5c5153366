// Small walks and look-ups that several rules share.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"

namespace ptxkit::rules {

// Calls visit(id, instruction) for every reachable instruction, in program order.
template <class Visit>
void for_each_instruction(Context& context, Visit&& visit) {
  const flow::Graph& graph = context.analyses().graph();
  for (flow::BlockId block = 0; block < graph.size(); ++block) {
    if (!graph.is_reachable(block)) continue;
    for (ptx::InstructionId id = graph.block(block).first; id < graph.block(block).end; ++id)
      visit(id, context.function().instructions[id]);
  }
}

// What is known of an operand as a number.
inline flow::Fact fact_at(Context& context, uint32_t pool_index, unsigned width = 32) {
  Analyses& analyses = context.analyses();
  return analyses.domain().fact_of(flow::source_of(analyses.ssa(), pool_index), width);
}

// The constant that an operand surely is.
inline std::optional<uint64_t> constant_at(Context& context, uint32_t pool_index, unsigned width = 32) {
  const flow::Fact fact = fact_at(context, pool_index, width);
  if (!fact.reached || fact.base != flow::kNoBase || fact.low != fact.high) return std::nullopt;
  return fact.low;
}

// Whether an access may go to global memory, as far as its state space tells.
inline bool is_global(const ptx::Access& access) {
  return access.space == ptx::Space::global || access.space == ptx::Space::generic;
}

// The variable that an access surely goes to; kNone where it is not known.
inline ptx::VariableId object_of(Context& context, const ptx::Access& access) {
  const flow::Base& base = context.analyses().domain().base(context.analyses().forms().address(access).base);
  return base.kind == flow::Base::Kind::variable ? base.id : ptx::kNone;
}

// Whether ranges of bytes at two addresses into one object can meet, in any two threads and iterations: everything but
// the constants is taken for any multiple of the steps that the terms are made of. The forms are expanded.
bool may_overlap(const flow::Forms& forms, const flow::Form& a, uint32_t a_bytes, const flow::Form& b,
                 uint32_t b_bytes);

// Every value that `start` is computed from, itself first, through registers only; at most `limit`.
std::vector<flow::ValueId> ancestors(Context& context, flow::ValueId start, size_t limit = 256);

// Whether `visit(id)` holds for a value that `start` is computed from.
template <class Visit>
bool any_ancestor(Context& context, flow::ValueId start, Visit&& visit) {
  if (start == flow::kNone) return false;
  const auto all = ancestors(context, start);
  return std::any_of(all.begin(), all.end(), visit);
}

// Whether the value depends on the thread's place: %tid, %laneid, or on %ctaid too.
bool depends_on_thread(Context& context, flow::ValueId start, bool or_block);

// Whether a branch, or with `of_loop` one that leaves or stays in a loop around the instruction, depends on what the
// instruction computes.
bool decides_branch(Context& context, ptx::InstructionId id, bool of_loop);

// The variables of shared memory that the kernel declares or names.
std::set<ptx::VariableId> shared_variables(Context& context);

// Bytes that those of known size take, one after the other, each at its alignment.
uint64_t static_shared_bytes(Context& context);

// The instruction that defines a value; null for a phi or an undefined one.
const ptx::Instruction* definition_of(Context& context, flow::ValueId id);

}  // namespace ptxkit::rules
