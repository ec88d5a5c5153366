// The parts of the HTML report, one per kind of content; internal to html*.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/report/html.hpp"

namespace ptxkit::report {

// `text` escaped for HTML text or an attribute value. Characters that printable_lines (support/printable.hpp) calls
// unsafe become '?'.
std::string for_html(std::string_view text);

// "good", "fair" or "poor": the class of a score. A critical finding makes any score poor.
std::string_view score_class_of(double percent, bool has_critical);

// A kernel, and the prefix of its ids in the page, "k3".
struct HtmlKernel {
  const FileAnalysis& file;
  const KernelAnalysis& kernel;
  std::string id;
  bool has_code;                                     // the page contains its PTX
  bool is_excerpt;                                   // only the code around findings above info, and no pictures
  std::vector<const ptx::Function*> functions = {};  // functions shown: the kernel and those that it calls

  const ptx::Module& module() const { return file.parsed.module; }
  const ptx::Function& function() const { return module().functions[kernel.function]; }
  // Whether the line belongs to one of the functions shown.
  bool owns(uint32_t line) const;
};

// The kernel, followed by the functions with a body that it names directly or indirectly, in the order of first
// mention.
std::vector<const ptx::Function*> functions_of(const ptx::Module& module, ptx::FunctionId kernel);

// The page's id for a line of the kernel's PTX.
std::string ptx_line_id(const HtmlKernel& at, uint32_t line);
// Whether the page contains all lines of the kernel. It contains only some of an excerpt or of a very long function.
bool is_shown_whole(const HtmlKernel& at);

std::string score_bars_html(const KernelAnalysis& kernel);
// Precondition of the following: the kernel has a function.
std::string code_html(const HtmlKernel& at, const SourceText& source_text);
std::string flow_html(const HtmlKernel& at);
std::string shared_memory_html(const HtmlKernel& at, const AnalysisOptions& options);

}  // namespace ptxkit::report
