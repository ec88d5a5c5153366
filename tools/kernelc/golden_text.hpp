// The PTX of a kernel as it is kept for comparison, and what a new one does differently.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "support/result.hpp"

namespace ptxkit::kernelc {

// What is compared and kept as golden: the text without `.loc` and `.file` lines and the labels that only they use, so
// that a comment added to a kernel's source changes nothing.
std::string normalise(std::string_view ptx);

// For a person: what the machine would do differently, then the changed lines (analyzer/inspect/difference.hpp). Empty
// only when the normalised texts are equal, byte for byte. A text with mistakes is named with them.
std::string describe_difference(std::string_view before, std::string_view after);

// Every kernel has a file for this target. One for a newer target exists only where more than the header differs.
inline constexpr std::string_view kFirstTarget = "sm_75";

// The accepted text of a kernel in the folder `golden`. Errors: those of reading.
Result<std::string> accepted(const std::filesystem::path& golden, std::string_view kernel, std::string_view target);

// Makes `text` the accepted one; kFirstTarget comes first. Removes a file that this makes redundant. Errors: those of
// writing.
Result<void> store(const std::filesystem::path& golden, std::string_view kernel, std::string_view target,
                   const std::string& text);

}  // namespace ptxkit::kernelc
