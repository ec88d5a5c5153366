// The files that a verb writes, looked at before it begins: long work for nothing, and an input that is replaced by
// what was made of it, are mistakes of the command line.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "support/result.hpp"

namespace ptxkit::tools {

struct Output {
  std::string_view option;
  std::string path;  // empty: none; "-": standard output
};

// What is wrong with them, if anything: two name one file, or one names an input. A device takes any number.
std::optional<std::string> fault(std::span<const Output> outputs, std::span<const std::string> inputs);

// Whether write_file could begin on each of them.
Result<void> check_all_writable(std::span<const Output> outputs);

}  // namespace ptxkit::tools
