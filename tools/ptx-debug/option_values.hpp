// Words as options take them. CLI11's own conversion lets -4 pass as 2^64 - 4, and does not say what it expected.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

namespace ptxkit::tools {

// What is wrong with a word, for Option::check; empty where nothing is.
using ValueCheck = std::function<std::string(const std::string& word)>;

// A whole number from 0 to `most`.
ValueCheck whole_number(uint64_t most = std::numeric_limits<uint64_t>::max());

// A number from 0 to `most`.
ValueCheck number(double most = std::numeric_limits<double>::infinity());

// The name of a file: an empty word is a variable that a script left unset.
ValueCheck file_name();

}  // namespace ptxkit::tools
