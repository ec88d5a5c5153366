// Wording that the reports share.
#pragma once

#include <string>
#include <string_view>

#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/score.hpp"

namespace ptxkit::report {

// "thread (5, any, any), against thread (6, any, any), iteration 3, address 9, of buffer"
std::string witness_text(const rules::Witness& witness);

// "confirmed", "refuted", "reached", "unreached", "not run"
std::string_view replay_word(rules::Replay::Outcome outcome);

// "7 launches executed 57 of 60 instructions, not lines 20, 31 to 33; outputs follow inputs"
std::string run_text(const rules::ObservedRun& run);

// "none written", "follow inputs", "ignore inputs", "unknown"
std::string_view outputs_word(rules::ObservedRun::Outputs outputs);

// "; at most 69 with a high finding that is proved or observed"; empty where the cap does not lower the score.
std::string cap_text(const rules::Score& score);

}  // namespace ptxkit::report
