// The file of --trace: an output of the run like its others, which replaces none of them and no input.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/result.hpp"
#include "tools/ptx-pack/options.hpp"
#include "tools/ptx-pack/output_file.hpp"
#include "tools/ptx-pack/run_files.hpp"

namespace ptxkit::pack {

// Fails if the file is an input or an output of the run or that of a standard descriptor, or exists and may not be
// overwritten.
Result<void> check_time_line(const Options& options, const std::vector<std::string>& inputs);

class TimeLineFile {
 public:
  // To be opened before the first input is read.
  static Result<TimeLineFile> open(const Options& options);
  // Puts it in place, unless `run` has come to hold what lies there.
  Result<void> write(std::string_view json, RunFiles& run);

 private:
  explicit TimeLineFile(OutputFile file) : file_(std::move(file)) {}

  OutputFile file_;
};

}  // namespace ptxkit::pack
