// Checks that kernels have the entries and parameters that launch files name. Without it a misspelt name would have no
// effect and no message.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::tools {

// Reports on standard error. Keeps a reference to `launch`.
class LaunchFileUse {
 public:
  explicit LaunchFileUse(const rules::LaunchSet& launch) : launch_(launch) {}

  // Reports parameters and variables that the module does not have, and values that do not fit the existing ones.
  void check_module(const ptx::Module& module);

  // Reports launch files of which no entry is a kernel of the inputs. Single unused entries are fine: their kernels may
  // lie in other files.
  void report_unused_files() const;

 private:
  void check_variables(const ptx::Module& module, const flow::LaunchFacts& facts) const;

  const rules::LaunchSet& launch_;
  std::set<std::string, std::less<>> entries_;
  std::vector<std::string> names_;  // of all kernels seen
};

}  // namespace ptxkit::tools
