// The divergence rules of regions.hpp, one function each. Each error names both places and the remedy.
#include "builder/regions.hpp"

#include <algorithm>

#include "builder/error.hpp"
#include "support/check.hpp"

namespace ptxkit::dsl {
namespace {

const char* threads_text(Rate together) {
  return together == Rate::block ? "every thread of the CTA" : "every lane of the warp";
}

}  // namespace

Regions::Id Regions::open(Rate rate, const char* what, bool is_loop, Where where) {
  const Id id = static_cast<Id>(opened_.size());
  opened_.push_back(where);
  stack_.push_back({id, rate, what, is_loop, where, {}});
  return id;
}

void Regions::close(Id id) {
  PTXKIT_CHECK(!stack_.empty() && stack_.back().id == id, "regions close in the order in which they nest");
  stack_.pop_back();
}

void Regions::require_together(Rate together, const std::string& what, Where where) {
  for (const Region& region : stack_) {
    if (region.rate <= together) continue;
    throw DslError(what + " needs " + threads_text(together) + ", but stands inside a divergent " + region.what, where,
                   std::string("this ") + region.what + " is " + name_of(region.rate), region.where,
                   "move the " + what + " out of the " + region.what +
                       ", or make the condition uniform with any, all, " +
                       "ballot or broadcast and select the values per lane");
  }
  if (return_ && return_->rate > together) {
    throw DslError(what + " needs " + threads_text(together) + ", but some have left the kernel", where,
                   std::string("they return here, on a ") + name_of(return_->rate) + " condition", return_->where,
                   "let all threads stay until the last " + what + " and guard the work instead");
  }
  for (Region& region : stack_) {
    if (region.is_loop) region.sites.push_back({what, where, together});
  }
}

void Regions::require_uniform_assignment(Rate rate, size_t depth, Where declared, Where where) const {
  for (size_t i = depth; i < stack_.size(); ++i) {
    const Region& region = stack_[i];
    if (region.rate <= rate) continue;
    throw DslError(std::string("assignment to the ") + name_of(rate) + " variable of " + place(declared) +
                       " inside a divergent " + region.what,
                   where, std::string("this ") + region.what + " is " + name_of(region.rate), region.where,
                   "select the value per lane and make it uniform after the " + std::string(region.what) +
                       ", or declare the variable at Rate::thread");
  }
}

void Regions::require_uniform_jump(Rate rate, Id loop, const std::string& what, Where where) const {
  const auto found =
      std::find_if(stack_.begin(), stack_.end(), [&](const Region& region) { return region.id == loop; });
  PTXKIT_CHECK(found != stack_.end(), "a loop's handle lives no longer than its body");
  PTXKIT_CHECK(rate <= found->rate, "the type of a loop's handle limits its conditions");
  for (auto inner = found + 1; inner != stack_.end(); ++inner) {
    if (inner->rate <= found->rate) continue;
    throw DslError(what + " of a " + name_of(found->rate) + " loop inside a divergent " + inner->what, where,
                   std::string("this ") + inner->what + " is " + name_of(inner->rate), inner->where,
                   "decide with any or all outside of the " + std::string(inner->what) + ", or use thread_loop");
  }
}

void Regions::require_alive(Id defined_in, Where where) const {
  if (defined_in == 0) return;
  if (std::any_of(stack_.begin(), stack_.end(), [&](const Region& region) { return region.id == defined_in; })) return;
  throw DslError("a value is used outside of the branch or loop that made it", where, "it was made inside this one",
                 opened_[defined_in], "keep it in a Var that is declared before the branch");
}

void Regions::note_return(Rate rate, Where where) {
  for (const Region& region : stack_) rate = widest(rate, region.rate);
  for (const Region& region : stack_) {
    for (const Site& site : region.sites) {
      if (rate <= site.together) continue;
      throw DslError(std::string("a return on a ") + name_of(rate) + " condition in a loop that holds a " + site.what,
                     where, site.what + " here needs " + threads_text(site.together) + " in the next turn", site.where,
                     "leave the loop with break_if on a uniform condition instead");
    }
  }
  if (!return_ || rate > return_->rate) return_ = Return{rate, where};
}

}  // namespace ptxkit::dsl
