// Delta debugging of PTX: finds a smaller text with the same failure.
//
// Runs ddmin (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002) on the units of
// edits.hpp: it removes halves, quarters and so on of all units, last ones first, down to single units. The kinds of
// units take turns, coarse ones first, until no kind makes the text smaller. Candidates that the front end rejects are
// not passed to the test.
#pragma once

#include <functional>
#include <string>

#include "support/result.hpp"

namespace ptxkit::reduce {

struct Reduction {
  std::string text;         // in the layout of print(), unless that layout alone removes the failure
  size_t tested_count = 0;  // texts passed to the test
  bool is_minimal = true;   // false where `is_time_over` stopped the search
};

// `still_fails` says whether a text still fails; it is called first with `text` itself. The result depends only on its
// answers. `is_time_over` is called before each candidate. Errors: `text` does not parse; it does not fail.
Result<Reduction> reduce(const std::string& text, const std::string& path,
                         const std::function<bool(const std::string&)>& still_fails,
                         const std::function<bool()>& is_time_over);

}  // namespace ptxkit::reduce
