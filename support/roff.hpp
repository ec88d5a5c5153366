// Text of manual pages, in the language of man(7).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ptxkit {

// `text` as it is. A line that begins with '.' or ''' would be a request, '\' would begin an escape, and a plain '-'
// is a hyphen.
std::string roff(std::string_view text);

// The paragraph of an option: its names ("-j", "--jobs"), what stands for its value (may be empty), its help.
std::string roff_option(const std::vector<std::string>& names, std::string_view value, std::string_view help);

}  // namespace ptxkit
