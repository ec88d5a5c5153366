// `ptx-debug info FILE...`: the declarations of a module: levels, producer, kernels with their parameters, functions,
// variables.
#include "analyzer/inspect/module_info.hpp"
#include "tools/ptx-debug/description.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {

void add_info(CLI::App& app, Action& action) {
  add_description(app, action, "info",
                  "list what a module declares: levels, producer, kernels with their parameters, functions, variables",
                  {inspect::info_text, inspect::info_json});
}

}  // namespace ptxkit::tools
