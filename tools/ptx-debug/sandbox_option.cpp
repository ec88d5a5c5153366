#include "tools/ptx-debug/sandbox_option.hpp"

#include <fmt/format.h>

#include "analyzer/rules/score.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {

void add_sandbox(Verb& verb, SandboxOption& option) {
  verb.option("--sandbox", option.when,
              "before reading a text, give up sockets, programs and new files except the outputs; auto (default): "
              "where the kernel can; require: or fail; off")
      .type_name("auto|require|off");
}

std::optional<std::string> fault(const SandboxOption& option) { return sandbox_fault(option.when); }

std::optional<int> begin_sandbox(const SandboxOption& option, const SandboxNeeds& needs, const SandboxReason& reason) {
  const auto missing = ptxkit::begin_sandbox(option.when, needs, reason.needs_gpu);
  if (!missing) {
    complain(missing.error().message());
    return rules::exit_code(rules::Status::unreadable);
  }
  if (!missing->empty() && reason.is_verbose && reason.needs_gpu.empty()) complain(*missing);
  return std::nullopt;
}

}  // namespace ptxkit::tools
