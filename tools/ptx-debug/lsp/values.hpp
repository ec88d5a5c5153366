// What the analyzer knows of registers and addresses, as text. Functions are analyzed when first asked for.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "tools/ptx-debug/lsp/names.hpp"

namespace ptxkit::lsp {

// Functions with more instructions have no values: the answer to a request must not take long.
inline constexpr size_t kMaxValuedInstructions = 20'000;

// An access of memory, for the end of its statement.
struct AccessNote {
  ptx::Offset at = 0;   // of the instruction
  std::string address;  // "tile + 0 to 4095", empty where nothing is known
  std::string alignment;
};

class Values {
 public:
  // Both must outlive it. A text with mistakes has no values.
  Values(const ptx::ParseResult& parsed, const rules::Options& options);
  ~Values();

  // The value that a register has at this place, or gets there: "0 to 31", "parameter 'p' + 0 to 124, a multiple of 4".
  // Empty where nothing is known.
  std::string at(const Occurrence& occurrence);
  std::vector<AccessNote> accesses(ptx::FunctionId function);

 private:
  struct Analyzed;
  Analyzed* analyzed(ptx::FunctionId function);  // null where it has none

  const ptx::ParseResult& parsed_;
  const rules::Options& options_;
  std::map<ptx::FunctionId, std::unique_ptr<Analyzed>> functions_;
};

}  // namespace ptxkit::lsp
