// In which order the words of an opcode may stand. The forms of the ISA table say which words go together; ptxas takes
// them in nearly any order.
//
//  - Words of the instruction's name come first, in the order of isa_names.def.
//  - Words of one class keep their order, because it has a meaning: two types, two state spaces, the layouts of two
//    matrices, an operation and the count behind it (.and.popc).
//  - All others may stand anywhere behind the name.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "analyzer/ptx/isa.hpp"

namespace ptxkit::ptx {

enum class WordClass : uint8_t { type, space, layout, logic, none };
WordClass class_of(const Word& word);

// The words of `words` that are part of the instruction's name, in the order in which they have to stand.
std::vector<std::string_view> name_words(Op op, std::span<const OpcodeWord> words);

// A word of the instruction's name that stands behind another word.
struct MisplacedWord {
  std::string_view expected, found;
};
std::optional<MisplacedWord> misplaced_word(Op op, std::span<const OpcodeWord> words);

}  // namespace ptxkit::ptx
