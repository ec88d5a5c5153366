// Checks of option values. CLI11's own conversion accepts -4 as 2^64 - 4, and does not say what it expected.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

namespace ptxkit::tools {

// Returns what is wrong with the word, for Option::check; empty where it is right.
using ValueCheck = std::function<std::string(const std::string& word)>;

// A whole number from 0 to `most`.
ValueCheck whole_number(uint64_t most = std::numeric_limits<uint64_t>::max());

// A number from 0 to `most`.
ValueCheck number(double most = std::numeric_limits<double>::infinity());

// The name of a file. An empty word is an error: a script left a variable unset.
ValueCheck file_name();

}  // namespace ptxkit::tools
