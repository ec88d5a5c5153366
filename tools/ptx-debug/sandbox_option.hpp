// --sandbox of the verbs that read texts of others: when the program gives up what these need not
// (support/sandbox.hpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "support/sandbox.hpp"

namespace ptxkit::tools {

class Verb;

struct SandboxOption {
  std::string when = "auto";  // "require", "off"
};

void add_sandbox(Verb& verb, SandboxOption& option);

// What is wrong with the word, if anything.
std::optional<std::string> fault(const SandboxOption& option);

struct SandboxReason {
  std::string needs_gpu = {};  // the option that may use a GPU, whose driver opens what it likes; empty: none does
  bool says_more = false;      // -v: what the kernel lacks
};

// Enters it where that was not forbidden. An exit code where it was required and cannot be had.
std::optional<int> begin_sandbox(const SandboxOption& option, const SandboxNeeds& needs,
                                 const SandboxReason& reason = {});

}  // namespace ptxkit::tools
