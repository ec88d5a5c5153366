// Text of others, as file names are, safe to print on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace ptxkit {

// `text` with '?' for control bytes and a space for tabs.
std::string printable(std::string_view text);

}  // namespace ptxkit
