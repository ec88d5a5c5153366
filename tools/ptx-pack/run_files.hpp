// The files that no output of a run may replace, not even with -f: every input of the run, and what it has written.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "support/place.hpp"
#include "support/result.hpp"

namespace ptxkit::pack {

class RunFiles {
 public:
  // `inputs`: of the whole run, those of other ranks too.
  explicit RunFiles(std::vector<std::string> inputs) : inputs_(std::move(inputs)) {}
  // Fails if `output` leads to another input than `input`, or to an output that this run has written.
  Result<void> check(const std::string& output, const std::string& input);
  // `output` lies in place.
  void add_written(const std::string& output);
  // Whether `file` is an input, what the run has written, or the file of a standard descriptor.
  bool holds(const struct stat& file);

 private:
  void look();

  std::vector<std::string> inputs_;
  bool has_looked_ = false;
  std::set<FileIdentity> inputs_found_, written_;
};

}  // namespace ptxkit::pack
