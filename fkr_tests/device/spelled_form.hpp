// Instructions of a row of the ISA table, word by word, from which programs of memory and synchronisation are made.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ptx/isa.hpp"

namespace ptxkit::testing {

// One choice of a row's words, and the operands of that choice.
struct SpelledForm {
  const ptx::Form* form = nullptr;
  std::vector<std::string> words;  // "acquire", "gpu", "global", "b32"
  std::string spelling;            // "ld.acquire.gpu.global.b32"
  std::vector<ptx::Type> types;
  ptx::Space space = ptx::Space::generic;
  bool has_space = false;
  unsigned vector = 1;
  std::vector<ptx::OperandSpec> specs;  // the operands from `first` on
  size_t first = 0;
  unsigned number = 0;  // the number of this choice in the row

  bool has(std::string_view word) const;
  ptx::Type type() const { return types.empty() ? ptx::Type::none : types.back(); }
};

// Every combination of a row's words if there are at most `most`, otherwise as many as make each pair of alternatives
// of two slots occur. Combinations that compute capability 9.0 with its own features lacks are left out.
std::vector<SpelledForm> spell_form(const ptx::Form& form, size_t most);

// Whether a device of compute capability 9.0 runs any instruction of the row.
bool runs_on_90(const ptx::Form& form);

}  // namespace ptxkit::testing
