// What may run where: the stack of branches and loops that tracing is inside of, with the rate of each. It answers the
// questions that the type system cannot: is this barrier reached by every thread of the CTA, this shuffle by every lane
// of the warp, is this assignment to a uniform variable made by all, does this value still exist here.
//
// All answers are syntactic. A branch on a lane-varying condition diverges for its whole body; a thread that returned
// is missing for good, also for what comes earlier in an enclosing loop.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "builder/types.hpp"

namespace ptxkit::dsl {

class Regions {
 public:
  using Id = u32;

  // Opens a branch or loop that the threads enter together only up to `rate`; `what` reads like "branch" or "loop".
  Id open(Rate rate, const char* what, bool is_loop, Where where);
  void close(Id id);

  Id current() const { return stack_.empty() ? 0 : stack_.back().id; }
  size_t depth() const { return stack_.size(); }

  // `what` (e.g. "barrier") needs all threads of the CTA (Rate::block) or all lanes of the warp (Rate::warp).
  void require_together(Rate together, const std::string& what, Where where);

  // An assignment, from here, to a variable of rate `rate` that was declared at `depth`.
  void require_uniform_assignment(Rate rate, size_t depth, Where declared, Where where) const;

  // A jump out of loop `loop` (or its next turn) decided here at `rate`.
  void require_uniform_jump(Rate rate, Id loop, const std::string& what, Where where) const;

  // A value made in region `made_in` is used here.
  void require_alive(Id made_in, Where where) const;

  // Some threads, as `rate` says, leave the kernel here.
  void note_return(Rate rate, Where where);

 private:
  struct Site {
    std::string what;
    Where where;
    Rate together;
  };
  struct Region {
    Id id;
    Rate rate;
    const char* what;
    bool is_loop;
    Where where;
    std::vector<Site> sites;  // barriers and collectives inside, kept for loops: the next turn meets them again
  };
  struct Return {
    Rate rate;
    Where where;
  };

  std::vector<Region> stack_;
  std::vector<Where> opened_{Where{}};  // by id: where each region was opened
  std::optional<Return> return_;        // the widest so far
};

}  // namespace ptxkit::dsl
