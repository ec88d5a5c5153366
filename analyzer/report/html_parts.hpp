// The parts of the HTML report, one for each thing that it shows; internal to html*.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/report/html.hpp"

namespace ptxkit::report {

// `text` as HTML text or attribute value; what printable_lines (support/printable.hpp) calls unsafe becomes '?'.
std::string for_html(std::string_view text);

// "good", "fair", "poor": the class of a score; a critical finding makes any score poor.
std::string_view grade_of(double percent, bool has_critical);

// A kernel and the prefix of its ids in the page, "k3".
struct HtmlKernel {
  const FileAnalysis& file;
  const KernelAnalysis& kernel;
  std::string id;
  bool has_code;                                     // its PTX is in the page
  bool is_excerpt;                                   // only what is around findings above info, and no pictures
  std::vector<const ptx::Function*> functions = {};  // shown: the kernel's own and those that it calls

  const ptx::Module& module() const { return file.parsed.module; }
  const ptx::Function& function() const { return module().functions[kernel.function]; }
  // Whether the line is of one of the functions shown.
  bool owns(uint32_t line) const;
};

// The kernel, then the functions with a body that it names, or that these name, in the order in which that happens.
std::vector<const ptx::Function*> functions_of(const ptx::Module& module, ptx::FunctionId kernel);

// The id of a line of PTX of the kernel.
std::string ptx_line_id(const HtmlKernel& at, uint32_t line);
// Whether all lines of the kernel are in the page; of a very long function and in an excerpt only some are.
bool is_shown_whole(const HtmlKernel& at);

std::string score_bars_html(const KernelAnalysis& kernel);
// Precondition of these: the kernel has a function.
std::string code_html(const HtmlKernel& at, const SourceText& source_text);
std::string flow_html(const HtmlKernel& at);
std::string shared_memory_html(const HtmlKernel& at, const AnalysisOptions& options);

}  // namespace ptxkit::report
