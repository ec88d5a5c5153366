// Delta debugging of PTX: the smallest text that still shows what somebody looks for.
//
// ddmin (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002) on the units of edits.hpp:
// halves, quarters, and so on of all units are taken out, last ones first, until no single one can go. Kinds of units
// take turns, coarse ones first, until none of them makes the text smaller. A candidate that the front end refuses is
// never shown to the test.
#pragma once

#include <functional>
#include <string>

#include "support/result.hpp"

namespace ptxkit::reduce {

struct Reduction {
  std::string text;         // what is left, in the layout of print(), unless that alone made the failure go away
  size_t tested_count = 0;  // texts that the test saw
  bool is_minimal = true;   // false where `is_time_over` ended it
};

// `still_fails` says whether a text shows what is looked for; the first text asked about is `text` itself. With the
// same answers the result is the same. `is_time_over` is asked before each candidate. Errors: `text` does not parse; it
// does not fail to begin with.
Result<Reduction> reduce(const std::string& text, const std::string& path,
                         const std::function<bool(const std::string&)>& still_fails,
                         const std::function<bool()>& is_time_over);

}  // namespace ptxkit::reduce
