// The pages of docs/rules/, which are compiled in.
#pragma once

#include <string_view>

namespace ptxkit::tools {

// The Markdown page of the rule "F051"; empty where it has none.
std::string_view rule_page(std::string_view id);

}  // namespace ptxkit::tools
