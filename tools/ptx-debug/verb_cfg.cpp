// `ptx-debug cfg FILE --dot|--svg`: the control-flow graph of kernels, as text for Graphviz or as an image.
#include <memory>
#include <set>

#include <fmt/format.h>

#include "analyzer/inspect/flow_picture.hpp"
#include "tools/ptx-debug/inputs.hpp"
#include "tools/ptx-debug/name_pattern.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {
namespace {

struct CfgOptions {
  Inputs inputs;
  std::string kernel;
  bool dot = false, svg = false;
};

int draw(const CfgOptions& options) {
  if (options.dot == options.svg) return usage_error("cfg", "expected one of --dot and --svg");
  const auto pattern = NamePattern::parse("--kernel", options.kernel);
  if (!pattern) return usage_error("cfg", pattern.error().message());
  std::vector<std::string> names, places;  // of the drawn functions; `places` are TEXT:NAME
  std::string out;
  const auto work = [&](container::PtxImage image, const std::string&) {
    return answer_parsed(std::move(image), [&](const ptx::Module& module) {
      ImageResult answer;
      for (const ptx::Function& function : module.functions) {
        const std::string place = fmt::format("{}:{}", module.path, function.name);
        const bool matches = pattern->matches(function.name) || pattern->matches(place);
        if (function.instructions.empty() || !matches) continue;
        names.emplace_back(function.name);
        places.push_back(place);
        out += options.dot ? inspect::flow_dot(module, function) : inspect::flow_svg(module, function);
      }
      return answer;
    });
  };
  Inputs in_order = options.inputs;
  in_order.jobs = 1;  // `work` appends to shared variables
  if (const int code = print_each_result("cfg", in_order, work); code != 0) return code;
  if (names.empty())
    return usage_error("cfg", fmt::format("no function with instructions matches '{}'", options.kernel));
  if (options.svg && names.size() > 1) {
    // A fat binary may hold the same kernel for several targets.
    const bool are_told_apart = std::set<std::string>(names.begin(), names.end()).size() == names.size();
    return usage_error("cfg", fmt::format("an SVG image shows one function, name it with --kernel: {}",
                                          fmt::join(are_told_apart ? names : places, ", ")));
  }
  return print(out) ? 0 : rules::exit_code(rules::Status::unreadable);
}

}  // namespace

void add_cfg(CLI::App& app, Action& action) {
  Verb verb(app, "cfg", "draw the control-flow graph of the functions of FILE...");
  const auto options = std::make_shared<CfgOptions>();
  add_inputs(verb, options->inputs);
  verb.flag("--dot", options->dot, "as text for Graphviz, one digraph a function");
  verb.flag("--svg", options->svg, "as an image, of one function");
  verb.option("--kernel", options->kernel,
              "only functions whose name, or TEXT:NAME, matches somewhere (ECMAScript, no back references)")
      .type_name("RE");
  verb.callback([options, &action] { action = [options] { return draw(*options); }; });
}

}  // namespace ptxkit::tools
