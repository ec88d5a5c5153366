// Verbs that describe each module, as text or as JSON.
#pragma once

#include <string>

#include "analyzer/ptx/tree.hpp"
#include "tools/ptx-debug/verb.hpp"

namespace ptxkit::tools {

struct Description {
  std::string (*text)(const ptx::Module&);
  std::string (*json)(const ptx::Module&);  // an object, without a final newline
};

// Adds a verb with FILE..., --jobs and --json. The JSON is one document {"schema": "ptxkit-VERB-1", "modules": [...]}.
void add_description(CLI::App& app, Action& action, const std::string& name, const std::string& help,
                     Description description);

}  // namespace ptxkit::tools
