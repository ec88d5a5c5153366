#include "analyzer/reduce/reduce.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/print.hpp"
#include "analyzer/reduce/edits.hpp"

namespace ptxkit::reduce {
namespace {

class Reducer {
 public:
  Reducer(std::string path, const std::function<bool(const std::string&)>& still_fails,
          const std::function<bool()>& is_time_over)
      : path_(std::move(path)), still_fails_(still_fails), is_time_over_(is_time_over) {}

  bool fails(const std::string& text) {
    ++result_.tested_count;
    return still_fails_(text);
  }

  Reduction run(const ptx::Module& original) {
    result_.text = std::string(original.text);
    try_candidate(ptx::print(original));
    for (bool smaller = true; smaller;) {
      smaller = false;
      for (const auto units_of : {module_units, statement_units, frame_units, operand_units})
        smaller = pass(units_of) || smaller;
    }
    return std::move(result_);
  }

 private:
  // Makes `candidate` the result if it parses and still fails.
  bool try_candidate(std::string candidate) {
    if (is_time_over_()) result_.is_minimal = false;
    if (!result_.is_minimal || !seen_.insert(candidate).second) return false;
    if (!ptx::parse(candidate, path_).diagnostics.empty() || !fails(candidate)) return false;
    result_.text = std::move(candidate);
    return true;
  }

  // One pass over the units of one kind, in ever smaller chunks. Returns whether anything was removed.
  bool pass(std::vector<Unit> (*units_of)(const ptx::Module&)) {
    const std::string text = result_.text;
    const ptx::ParseResult parsed = ptx::parse(text, path_);
    const std::vector<Unit> units = units_of(parsed.module);
    std::vector<bool> gone(units.size(), false);
    bool any = false;
    for (size_t chunk = units.size(); chunk > 0 && result_.is_minimal; chunk /= 2) {
      for (size_t end = units.size(); end > 0; end -= std::min(end, chunk)) {
        std::vector<bool> chosen = gone;
        for (size_t i = end - std::min(end, chunk); i < end; ++i) chosen[i] = true;
        if (chosen == gone || !try_candidate(edited(text, units, chosen))) continue;
        gone = std::move(chosen);
        any = true;
      }
    }
    return any;
  }

  const std::string path_;
  const std::function<bool(const std::string&)>& still_fails_;
  const std::function<bool()>& is_time_over_;
  std::unordered_set<std::string> seen_;
  Reduction result_;
};

}  // namespace

Result<Reduction> reduce(const std::string& text, const std::string& path,
                         const std::function<bool(const std::string&)>& still_fails,
                         const std::function<bool()>& is_time_over) {
  const ptx::ParseResult parsed = ptx::parse(text, path);
  if (!parsed.diagnostics.empty()) return fail(ptx::render(parsed.module, parsed.diagnostics.front()));
  Reducer reducer(path, still_fails, is_time_over);
  if (!reducer.fails(text)) return fail("the original text does not fail", path);
  return reducer.run(parsed.module);
}

}  // namespace ptxkit::reduce
