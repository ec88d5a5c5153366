// How deeply the arrays and objects of a JSON text are nested, before it is parsed: nlohmann-json copies, compares and
// prints values by recursion, so that a file of a million brackets would end the program.
#pragma once

#include <cstddef>
#include <string_view>

namespace ptxkit {

// Far more than any file that this project reads has.
inline constexpr size_t kMaxJsonDepth = 64;

// Open brackets at the deepest place; those in strings do not count. Of any bytes, JSON or not.
size_t json_depth(std::string_view text);

}  // namespace ptxkit
