// `ptx-debug print FILE...`: prints PTX in one canonical layout, from the tree, or as it is stored.
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "analyzer/analyze/place.hpp"
#include "analyzer/container/images.hpp"
#include "analyzer/ptx/print.hpp"
#include "analyzer/rules/score.hpp"
#include "support/printable.hpp"
#include "tools/ptx-debug/inputs.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {
namespace {

struct PrintOptions {
  Inputs inputs;
  bool raw = false;
};

ImageResult print_image(const PrintOptions& options, container::PtxImage image) {
  // Where several texts are possible, a comment names the next one.
  const bool is_alone = options.inputs.words.size() == 1 && options.inputs.words.front() == image.name;
  std::string text = is_alone ? "" : fmt::format("// {}\n", printable(image.name));
  if (options.raw) return {rules::Status::good, text + image.text};
  return answer_parsed(std::move(image), [&](const ptx::Module& module) {
    return ImageResult{rules::Status::good, text + ptx::print(module)};
  });
}

}  // namespace

void add_print(CLI::App& app, Action& action) {
  Verb verb(app, "print", "print FILE... in the canonical layout");
  const auto options = std::make_shared<PrintOptions>();
  add_inputs(verb, options->inputs);
  verb.flag("--raw", options->raw, "as stored, neither parsed nor changed: takes PTX out of a binary");
  verb.callback([options, &action] {
    action = [options] {
      const auto work = [&](container::PtxImage image, const std::string&) {
        return print_image(*options, std::move(image));
      };
      return print_each_result("print", options->inputs, work, {{}, {}, {}, true});
    };
  });
}

}  // namespace ptxkit::tools
