// Which values end up in a store, and how: one backward search from all stores at once, worst stores first, so that
// every value knows its shortest way to the worst store it reaches. Linear in the kernel's size. And forward: the
// values that others flow into.
#pragma once

#include <vector>

#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::rules {

struct Sink {
  flow::ValueId value = flow::kNone;  // flows into the store
  ptx::InstructionId store = ptx::kNone;
  unsigned alignment_rank = 0;  // rank_of() of its alignment
};

class Taint {
 public:
  // In the profile `pattern` a shuffle ends the way, and a value that forms the address of `ld.global` goes into what
  // that load gives.
  Taint(Context& context, std::vector<Sink> sinks, Profile profile);

  bool reaches(flow::ValueId id) const { return successors_[id].kind != Successor::Kind::none; }
  unsigned alignment_rank(flow::ValueId id) const { return alignment_ranks_[id]; }
  ptx::InstructionId store_of(flow::ValueId id) const;
  // The way from the value to its store: each instruction that passes it on, then the store.
  std::vector<Step> path(flow::ValueId id, const Context& context) const;

 private:
  struct Successor {
    enum class Kind : uint8_t { none, value, store } kind = Kind::none;
    uint32_t id = flow::kNone;
  };
  const flow::Ssa* ssa_;
  std::vector<Successor> successors_;
  std::vector<uint8_t> alignment_ranks_;
};

// For each value, whether one of `origins` flows into it, in the profile `root_cause`.
std::vector<bool> derived_from(Context& context, const std::vector<flow::ValueId>& origins);

}  // namespace ptxkit::rules
