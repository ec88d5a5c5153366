// Asks the solver about a pair of accesses that the search for races leaves undecided: can two threads touch one byte?
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analyzer/flow/evaluate.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/intervals.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/prove/query.hpp"
#include "analyzer/prove/thread.hpp"
#include "analyzer/rules/engine/footprint.hpp"
#include "analyzer/rules/engine/solver_budget.hpp"

namespace ptxkit::rules {

// Two threads that meet.
struct MetThreads {
  flow::Thread one{}, other{};
  std::vector<std::string> assumptions{};  // empty: the launch's facts alone
};

class PairProver {
 public:
  struct Answer {
    enum class Kind : uint8_t { apart, meet, open } kind = Kind::open;
    std::optional<MetThreads> threads{};  // of `meet`
  };

  // `separates`: barriers of the block, by instruction. Without them two blocks are compared. `pairs` is how many there
  // are to ask about.
  PairProver(Context& context, const std::vector<bool>* separates, size_t pairs);

  // `different_warps`: threads of one warp do not count.
  Answer ask(const RacingAccess& a, const RacingAccess& b, bool different_warps);

 private:
  // Turns of a loop with barriers that one thread is ahead of the other.
  struct Relation {
    flow::LoopId first_is_later = flow::kNone, second_is_later = flow::kNone;
    bool is_known = true;
    auto operator<=>(const Relation&) const = default;
  };
  struct Question;

  std::set<Relation> relations(const RacingAccess& a, const RacingAccess& b) const;
  bool has_path_without_barrier(flow::LoopId loop, const std::vector<bool>& separates) const;
  void set_turns(const RacingAccess& a, const RacingAccess& b, const Relation& relation, prove::Moment& one,
                 prove::Moment& other) const;
  Answer ask(const RacingAccess& a, const RacingAccess& b, const Relation& relation, bool different_warps);
  prove::Term is_used(const RacingAccess& load, const prove::Moment& at, prove::Threads& threads, prove::Query& query);

  Context* context_;
  Analyses* analyses_;
  prove::Kernel kernel_;
  bool is_of_one_block_;
  std::set<flow::LoopId> free_;         // loops that threads may go round without a barrier
  std::set<flow::LoopId> has_barrier_;  // of those: some path has one
  std::optional<flow::Intervals> intervals_;
  SolverBudget budget_;
};

}  // namespace ptxkit::rules
