// The pages of docs/rules/, compiled in.
#pragma once

#include <string_view>

namespace ptxkit::report {

// The Markdown page of a rule such as "F051"; empty where it has none.
std::string_view rule_page(std::string_view id);

}  // namespace ptxkit::report
