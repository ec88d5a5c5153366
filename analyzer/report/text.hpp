// The report for people: findings as compilers print them, then one line a kernel, then what could not be decided.
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
  bool verbose = false;  // info findings one by one, and the verdict of every rule
  // The text of a line of a source file that a PTX file names, if it is at hand; empty: not shown.
  std::function<std::optional<std::string>(const std::string& ptx_path, const std::string& file, uint32_t line)>
      source_line = {};
};

// Deterministic: the same files, options and source lines give the same bytes.
std::unique_ptr<Document> text_document(TextOptions options);

}  // namespace ptxkit::report
