// The files that no output of a run may replace, not even with -f: every input of the run, and what it has written.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "support/result.hpp"
#include "tools/ptx-pack/options.hpp"

namespace ptxkit::pack {

class RunFiles {
 public:
  // `inputs`: of the whole run, those of other ranks too.
  explicit RunFiles(std::vector<std::string> inputs) : inputs_(std::move(inputs)) {}
  // Fails if `output` leads to another input than `input`, or to an output that this run has written.
  Result<void> check(const std::string& output, const std::string& input);
  // `output` lies in place.
  void add_written(const std::string& output);

 private:
  using Identity = std::pair<dev_t, ino_t>;

  std::vector<std::string> inputs_;
  bool has_looked_ = false;
  std::set<Identity> inputs_found_, written_;
};

// Fails if the file of the time line is an input or an output of the run, or exists and may not be overwritten.
Result<void> check_time_line(const Options& options, const std::vector<std::string>& inputs);

}  // namespace ptxkit::pack
