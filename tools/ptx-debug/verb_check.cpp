// `ptx-debug check FILE...`: parses each text and reports its syntax errors.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "analyzer/analyze/place.hpp"
#include "analyzer/container/images.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/score.hpp"
#include "support/plural.hpp"
#include "support/printable.hpp"
#include "tools/ptx-debug/inputs.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {
namespace {

ImageResult check(container::PtxImage image, const std::string&) {
  const std::string name = printable_path(image.name);
  const ptx::ParseResult parsed = ptx::parse(std::move(image.text), std::move(image.name));
  if (!parsed.diagnostics.empty()) {
    return {rules::Status::unparsable,
            report::rendered(parsed) + fmt::format("{}: {}\n", name, plural(parsed.diagnostics.size(), "error"))};
  }
  const auto entry_count = std::ranges::count_if(
      parsed.module.functions, [](const ptx::Function& function) { return function.is_entry && function.has_body; });
  return {rules::Status::good,
          fmt::format("{}: ok, PTX {}.{} for {}, {}\n", name, parsed.module.version_major, parsed.module.version_minor,
                      parsed.module.target, plural(static_cast<size_t>(entry_count), "kernel"))};
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  Verb verb(app, "check", "parse and validate FILE..., nothing more");
  const auto inputs = std::make_shared<Inputs>();
  add_inputs(verb, *inputs);
  verb.callback([inputs, &action] { action = [inputs] { return print_each_result("check", *inputs, check); }; });
}

}  // namespace ptxkit::tools
