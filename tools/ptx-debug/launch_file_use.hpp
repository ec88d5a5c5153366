// Entries and parameters of launch files that kernels have. A promise to something misspelt would be kept in silence.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::tools {

// Complains on standard error; `launch` outlives it.
class LaunchFileUse {
 public:
  explicit LaunchFileUse(const rules::LaunchSet& launch) : launch_(launch) {}

  // Of parameters and variables that the module does not have, and of what does not fit those that it has.
  void look_at(const ptx::Module& module);

  // Entries of one file may be of kernels that are not looked at today; none at all is a mistake.
  void complain_of_none() const;

 private:
  void look_at_variables(const ptx::Module& module, const flow::LaunchFacts& facts) const;

  const rules::LaunchSet& launch_;
  std::set<std::string, std::less<>> entries_;
  std::vector<std::string> names_;  // of all kernels
};

}  // namespace ptxkit::tools
