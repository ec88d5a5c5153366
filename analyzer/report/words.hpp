// Wording that the reports share.
#pragma once

#include <string>
#include <string_view>

#include "analyzer/rules/rule.hpp"

namespace ptxkit::report {

std::string plural(size_t count, std::string_view noun);  // "1 finding", "2 findings"

// "thread (5, any, any), against thread (6, any, any), iteration 3, address 9, of buffer"
std::string witness_text(const rules::Witness& witness);

}  // namespace ptxkit::report
