// The report for people: findings in the form of compiler diagnostics, then one line per kernel, then the undecided
// rules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "analyzer/report/document.hpp"

namespace ptxkit::report {

struct TextOptions {
  bool colour = false;
  bool verbose = false;  // list info findings and the verdict of every rule
  // Returns a line of a source file that a PTX file names; nothing where it is not available. Empty function: no source
  // lines are shown.
  std::function<std::optional<std::string>(const std::string& ptx_path, const std::string& file, uint32_t line)>
      source_line = {};
};

// Deterministic: the same files, options and source lines give the same bytes.
std::unique_ptr<Document> text_document(TextOptions options);

}  // namespace ptxkit::report
