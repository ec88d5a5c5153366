// The stack of branches and loops around the traced position, with the rate of each. It answers the questions that the
// type system cannot: whether every thread of the CTA reaches this barrier, whether every lane of the warp reaches this
// shuffle, whether all threads make this assignment to a uniform variable, and whether this value is still in scope.
//
// All answers are syntactic. A branch on a lane-varying condition diverges for its whole body. A thread that has
// returned is missing from then on, and also from the earlier part of an enclosing loop.
//
// All checks throw DslError.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "builder/types.hpp"

namespace ptxkit::dsl {

class Regions {
 public:
  using Id = u32;

  // Opens a branch or loop that threads enter together only as far as `rate`; `what` is "branch" or "loop".
  Id open(Rate rate, const char* what, bool is_loop, Where where);
  void close(Id id);

  Id current() const { return stack_.empty() ? 0 : stack_.back().id; }
  size_t depth() const { return stack_.size(); }

  // `what` (such as "barrier") needs all threads of the CTA (Rate::block) or all lanes of the warp (Rate::warp).
  void require_together(Rate together, const std::string& what, Where where);

  // Checks an assignment here to a variable of rate `rate` that was declared at `depth`.
  void require_uniform_assignment(Rate rate, size_t depth, Where declared, Where where) const;

  // Checks a jump out of `loop`, or to its next iteration, on a condition of rate `rate`.
  void require_uniform_jump(Rate rate, Id loop, const std::string& what, Where where) const;

  // Checks that the region `defined_in`, in which a value was made, is still open.
  void require_alive(Id defined_in, Where where) const;

  // Some threads, as far as `rate` says, leave the kernel here.
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
    std::vector<Site> sites;  // barriers and collectives inside, kept for loops: the next iteration reaches them again
  };
  struct Return {
    Rate rate;
    Where where;
  };

  std::vector<Region> stack_;
  std::vector<Where> opened_{Where{}};  // indexed by id: where each region was opened
  std::optional<Return> return_;        // the most divergent so far
};

}  // namespace ptxkit::dsl
