// The PTX of a kernel as it is kept for comparison, and what a new one does differently.
#pragma once

#include <string>
#include <string_view>

namespace ptxkit::kernelc {

// What is compared and kept as golden: the text without `.loc` and `.file` lines and the labels that only they use, so
// that a comment added to a kernel's source changes nothing.
std::string normalise(std::string_view ptx);

// For a person: what the machine would do differently, then the changed lines (analyzer/inspect/difference.hpp). Empty
// only when the normalised texts are equal, byte for byte. A text with mistakes is named with them.
std::string describe_difference(std::string_view before, std::string_view after);

}  // namespace ptxkit::kernelc
