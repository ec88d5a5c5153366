// See description.hpp.
#include "tools/ptx-debug/description.hpp"

#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "analyzer/analyze/place.hpp"
#include "analyzer/container/images.hpp"
#include "analyzer/rules/score.hpp"
#include "support/printable.hpp"
#include "tools/ptx-debug/inputs.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {
namespace {

struct DescriptionOptions {
  std::string name;
  Inputs inputs;
  bool json = false;
};

std::string heading(const ptx::Module& module) {
  std::string line = fmt::format("{}: PTX {}.{} for {}", printable_path(module.path), module.version_major,
                                 module.version_minor, module.target);
  for (const std::string_view option : module.target_options) line += fmt::format(", {}", option);
  return line + fmt::format(", {}-bit addresses\n", module.address_size);
}

int describe(const DescriptionOptions& options, Description description) {
  const auto work = [&](container::PtxImage image, const std::string&) {
    return answer_parsed(std::move(image), [&](const ptx::Module& module) {
      return ImageResult{rules::Status::good,
                         options.json ? description.json(module) : heading(module) + description.text(module)};
    });
  };
  if (!options.json) return print_each_result(options.name, options.inputs, work);
  return print_each_result(options.name, options.inputs, work,
                           json_list(fmt::format("ptxkit-{}-1", options.name), "modules"));
}

}  // namespace

void add_description(CLI::App& app, Action& action, const std::string& name, const std::string& help,
                     Description description) {
  Verb verb(app, name, help);
  const auto options = std::make_shared<DescriptionOptions>();
  options->name = name;
  add_inputs(verb, options->inputs);
  verb.flag("--json", options->json, "as JSON");
  verb.callback(
      [options, description, &action] { action = [options, description] { return describe(*options, description); }; });
}

}  // namespace ptxkit::tools
