// The report for people: findings as compilers print them, then one line a kernel, then what could not be decided.
#pragma once

#include <string>

#include "analyzer/report/analysis.hpp"

namespace ptxkit::report {

struct TextOptions {
  bool colour = false;
  bool verbose = false;  // info findings one by one, and the verdict of every rule
};

// Deterministic: the same report gives the same bytes.
std::string to_text(const Report& report, const TextOptions& options);

}  // namespace ptxkit::report
