// Two versions of one kernel's PTX, side by side for a person: what the machine would do differently, then the lines.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace ptxkit::kernelc {

// What is compared and kept as golden: the text without `.loc` and `.file` lines and the labels that only they use, so
// that a comment added to a kernel's source changes nothing.
std::string normalise(std::string_view ptx);

// How often each kind of instruction stands in the text; the kind is the opcode with the modifiers that say what the
// machine does ("ld.global", "shfl.sync"), without types.
std::map<std::string, uint32_t> instruction_mix(std::string_view ptx);

// What a kernel asks of the machine, as its text declares it.
struct Resources {
  uint32_t shared_bytes = 0;
  uint32_t local_bytes = 0;
  uint32_t register_count = 0;  // virtual registers of all classes
  uint32_t block_threads = 0;   // .reqntid
  uint32_t instruction_count = 0;
};
Resources resources_of(std::string_view ptx);

// Several lines: resources before and after, the kinds of instruction whose number changed, and the changed lines with
// three lines around them. Empty when the normalised texts are equal.
std::string describe_difference(std::string_view before, std::string_view after);

}  // namespace ptxkit::kernelc
