// The place of a finding in the PTX and in the source that the PTX was compiled from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::report {

// A source line of an instruction, from `.loc`. source_places() returns the innermost first, then the call sites of
// inlined functions.
struct SourcePlace {
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;
};
std::vector<SourcePlace> source_places(const ptx::Module& module, ptx::LocationId location);

// The text from `at` up to the ';' that ends the statement, or up to the end of the line.
std::string_view statement_at(const ptx::Module& module, ptx::Offset at);

// All diagnostics of a text in the form of compiler messages, safe to print to a terminal.
std::string rendered(const ptx::ParseResult& parsed);

}  // namespace ptxkit::report
