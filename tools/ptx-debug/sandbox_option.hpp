// --sandbox of the verbs that read untrusted texts: when the program gives up rights that these verbs do not need
// (support/sandbox.hpp).
#pragma once

#include <optional>
#include <string>

#include "support/sandbox.hpp"

namespace ptxkit::tools {

class Verb;

struct SandboxOption {
  std::string when = "auto";  // or "require", "off"
};

void add_sandbox(Verb& verb, SandboxOption& option);

// Returns an error message for an unknown word; nothing otherwise.
std::optional<std::string> fault(const SandboxOption& option);

struct SandboxReason {
  std::string needs_gpu = {};  // an option that may use a GPU, whose driver opens arbitrary files; empty: none
  bool is_verbose = false;     // -v: also report what the kernel lacks
};

// Enters the sandbox unless it is off. Returns an exit code where the sandbox is required and not available.
std::optional<int> begin_sandbox(const SandboxOption& option, const SandboxNeeds& needs,
                                 const SandboxReason& reason = {});

}  // namespace ptxkit::tools
