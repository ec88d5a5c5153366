// `ptx-debug diff A B`: semantic differences between two PTX files, or between all texts of two binaries or folders.
// Exit codes as in diff(1): 0 the same, 1 different; trouble is 10, 11 or 64.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "analyzer/analyze/place.hpp"
#include "analyzer/container/images.hpp"
#include "analyzer/inspect/difference.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/score.hpp"
#include "support/printable.hpp"
#include "support/result.hpp"
#include "tools/ptx-debug/inputs.hpp"
#include "tools/ptx-debug/sandbox_option.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {
namespace {

constexpr int kDifferentExitCode = 1;

// The texts of one side by name. Names omit the word of the command line, so that both sides' names agree.
struct Side {
  std::map<std::string, ptx::ParseResult> modules;
  rules::Status status = rules::Status::good;
};

Side read_side(const std::string& word) {
  Side side;
  for_each_image(
      Inputs{{word}},
      [](container::PtxImage image, const std::string&) {
        return ptx::parse(std::move(image.text), std::move(image.name));
      },
      [&](ptx::ParseResult parsed) {
        if (!parsed.diagnostics.empty()) {
          fmt::print(stderr, "{}", report::rendered(parsed));
          side.status = std::max(side.status, rules::Status::unparsable);
        }
        std::string name = parsed.module.path.substr(word.size());
        side.modules.emplace(std::move(name), std::move(parsed));
      },
      [&](const std::string&, const Error& error) {
        complain(error.message());
        side.status = rules::Status::unreadable;
      });
  return side;
}

int diff(const std::string& first, const std::string& second, const SandboxOption& sandbox) {
  if (first == "-" && second == "-") return usage_error("diff", "standard input can be read only once");
  if (const auto what = fault(sandbox)) return usage_error("diff", *what);
  if (const auto code = begin_sandbox(sandbox, {})) return *code;
  Side before = read_side(first), after = read_side(second);
  if (const rules::Status status = std::max(before.status, after.status); status != rules::Status::good) {
    return rules::exit_code(status);
  }
  std::string out;
  const auto compare = [&](const ptx::Module& old_module, const ptx::Module& new_module) {
    const inspect::Difference difference = inspect::difference(old_module, new_module);
    if (difference.same) return;
    out += fmt::format("--- {}\n+++ {}\n{}", printable(old_module.path), printable(new_module.path), difference.text);
  };
  if (before.modules.size() == 1 && after.modules.size() == 1) {
    compare(before.modules.begin()->second.module, after.modules.begin()->second.module);
  } else {
    for (const auto& [name, parsed] : before.modules) {
      const auto partner = after.modules.find(name);
      if (partner == after.modules.end()) {
        out += fmt::format("only in the first: {}\n", printable(parsed.module.path));
      } else {
        compare(parsed.module, partner->second.module);
      }
    }
    for (const auto& [name, parsed] : after.modules) {
      if (!before.modules.contains(name)) {
        out += fmt::format("only in the second: {}\n", printable(parsed.module.path));
      }
    }
  }
  if (!print(out)) return rules::exit_code(rules::Status::unreadable);
  return out.empty() ? 0 : kDifferentExitCode;
}

}  // namespace

void add_diff(CLI::App& app, Action& action) {
  Verb verb(app, "diff", "show what B does differently from A, apart from names and source positions");
  const auto words = std::make_shared<std::pair<std::string, std::string>>();
  const auto sandbox = std::make_shared<SandboxOption>();
  verb.option("A", words->first, "PTX, or a file that contains PTX; - is standard input").required();
  verb.option("B", words->second, "the same").required();
  add_sandbox(verb, *sandbox);
  verb.callback(
      [words, sandbox, &action] { action = [words, sandbox] { return diff(words->first, words->second, *sandbox); }; });
}

}  // namespace ptxkit::tools
