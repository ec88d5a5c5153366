// `ptx-debug stats FILE...`: instruction mix, registers, memory, loops, barriers and accesses of each kernel.
#include "analyzer/inspect/statistics.hpp"
#include "tools/ptx-debug/description.hpp"
#include "tools/ptx-debug/verb.hpp"
#include "tools/ptx-debug/verb_options.hpp"

namespace ptxkit::tools {

void add_stats(CLI::App& app, Action& action) {
  add_description(app, action, "stats",
                  "count instructions, registers, memory, loops, barriers and accesses of each kernel",
                  {inspect::statistics_text, inspect::statistics_json});
}

}  // namespace ptxkit::tools
