// The nesting depth of arrays and objects in a JSON text, computed before parsing: nlohmann-json copies, compares and
// prints values recursively, so a file of a million brackets would overflow the stack.
#pragma once

#include <cstddef>
#include <string_view>

namespace ptxkit {

// Far deeper than any file that this project reads.
inline constexpr size_t kMaxJsonDepth = 64;
// And far longer; it ends the reading of a device without an end.
inline constexpr size_t kMaxJsonBytes = size_t{256} << 20;

// The largest number of open brackets at any position; brackets in strings do not count. Accepts any bytes, valid JSON
// or not.
size_t json_depth(std::string_view text);

}  // namespace ptxkit
