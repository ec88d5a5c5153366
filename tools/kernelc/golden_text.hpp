// The golden PTX of a kernel, and its difference from new PTX.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "support/result.hpp"

namespace ptxkit::kernelc {

// The text that is compared and kept as golden: without `.loc` and `.file` lines and the labels that only they use, so
// that a comment added to a kernel's source changes nothing.
std::string normalise(std::string_view ptx);

// A description for people: the differences in behaviour, then the changed lines (analyzer/inspect/difference.hpp). It
// is empty only if the normalised texts are equal byte for byte. If a text does not parse, it lists the errors.
std::string describe_difference(std::string_view before, std::string_view after);

// Every kernel has a golden file for this target. A newer target has one only if more than the header differs.
inline constexpr std::string_view kFirstTarget = "sm_75";

// The golden text of a kernel in the folder `golden`. Fails if a file cannot be read.
Result<std::string> accepted(const std::filesystem::path& golden, std::string_view kernel, std::string_view target);

// Makes `text` the golden text. Targets are stored in order, kFirstTarget first. Removes a file that becomes redundant.
// Fails if a file cannot be written.
Result<void> store(const std::filesystem::path& golden, std::string_view kernel, std::string_view target,
                   const std::string& text);

}  // namespace ptxkit::kernelc
