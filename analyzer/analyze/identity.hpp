// Identifies a verdict: the exact text that was judged, and the version of this program.
#pragma once

#include <string>
#include <string_view>

namespace ptxkit::report {

// XXH128 of `text` as 32 lower-case hex digits, high half first (the canonical form, as `xxh128sum` prints it).
std::string xxh128_hex(std::string_view text);

std::string_view tool_version();  // "0.1.0"

}  // namespace ptxkit::report
