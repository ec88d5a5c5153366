// Rules about two threads of a CTA that touch the same shared byte in one barrier interval: F036, F050, F058.
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/race_search.hpp"
#include "analyzer/rules/engine/result.hpp"

namespace ptxkit::rules {

RuleResult missing_barrier(Context& context) { return search_races(context, RacePairs::shared); }

// F050. Before sm_70 the lanes of a warp ran in step, and volatile was enough to pass values between them.
RuleResult implicit_warp_sync(Context& context) {
  if (context.module.target_sm != 0 && context.module.target_sm < 70)
    return not_applicable("the warps of the target run in step");
  return search_races(context, RacePairs::lockstep);
}

// F058. An atomic is atomic only towards other atomics.
RuleResult mixed_atomicity(Context& context) { return search_races(context, RacePairs::mixed); }

}  // namespace ptxkit::rules
