#include "tools/ptx-debug/sandbox_option.hpp"

#include <fmt/format.h>

#include "analyzer/rules/score.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {

void add_sandbox(Verb& verb, SandboxOption& option) {
  verb.option("--sandbox", option.when,
              "before a text is read, give up new files but the outputs, programs and sockets: auto (default), where "
              "the kernel can; require, or fail; off")
      .type_name("auto|require|off");
}

std::optional<std::string> fault(const SandboxOption& option) {
  if (option.when == "auto" || option.when == "require" || option.when == "off") return std::nullopt;
  return fmt::format("--sandbox: expected auto, require, off, found '{}'", option.when);
}

std::optional<int> begin_sandbox(const SandboxOption& option, const SandboxNeeds& needs, const SandboxReason& reason) {
  if (option.when == "off") return std::nullopt;
  const bool is_required = option.when == "require";
  std::string why;
  if (!reason.needs_gpu.empty())
    why = fmt::format("no sandbox: {} may use a GPU, whose driver opens what it likes", reason.needs_gpu);
  else if (const std::string conflict = sandbox_conflict(); !conflict.empty() && !is_required)
    why = "no sandbox: " + conflict;
  else if (const auto entered = enter_sandbox(needs); !entered)
    why = entered.error().message();
  if (why.empty()) return std::nullopt;
  if (is_required) {
    complain(fmt::format("--sandbox=require: {}", why));
    return rules::exit_code(rules::Status::unreadable);
  }
  if (reason.says_more && reason.needs_gpu.empty()) complain(why);
  return std::nullopt;
}

}  // namespace ptxkit::tools
