// Where a finding is: in the PTX, and in the source that the PTX was made from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::report {

// A line of the source behind an instruction, from `.loc`; outermost last.
struct SourcePlace {
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;
};
std::vector<SourcePlace> source_places(const ptx::Module& module, ptx::LocationId location);

// The text from `at` to the ';' that ends its statement, or to the end of the line.
std::string_view statement_at(const ptx::Module& module, ptx::Offset at);

// All diagnostics of a text as compilers print them, one after the other, safe for a terminal.
std::string rendered(const ptx::ParseResult& parsed);

}  // namespace ptxkit::report
