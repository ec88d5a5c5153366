// Checks that kernels have the entries and parameters that launch files name. Without it a misspelt name would have no
// effect and no message.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit {

// Keeps a reference to `launch`.
class LaunchFileUse {
 public:
  explicit LaunchFileUse(const rules::LaunchSet& launch) : launch_(launch) {}

  // Remarks on parameters and variables that the module does not have, and on values that do not fit the existing ones.
  std::vector<std::string> check_module(const ptx::Module& module);

  // A remark on launch files of which no entry is a kernel of the modules checked. Single unused entries are fine:
  // their kernels may lie in other files.
  std::vector<std::string> unused_files() const;

 private:
  const rules::LaunchSet& launch_;
  std::set<std::string, std::less<>> entries_;
  std::vector<std::string> names_;  // of all kernels seen
};

// All remarks on `launch` for one module.
std::vector<std::string> launch_file_remarks(const rules::LaunchSet& launch, const ptx::Module& module);

}  // namespace ptxkit
