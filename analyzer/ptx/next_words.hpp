// What may be written behind the words that an opcode has already. Only a form's own words are known: whether the
// operands fit is not asked.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ptx/isa.hpp"

namespace ptxkit::ptx {

// The words that may follow, each once, in the order of the table: those with which a form of this version (times ten;
// 0: of any) and target (sm 0: any) can still be completed. Where a form takes any number, the word has the number 8.
std::vector<std::string> next_words(Op op, std::span<const OpcodeWord> words, unsigned version, TargetName target);

// The slots of a form's modifiers: "[.weak]", ".{u32|u64}".
std::vector<std::string_view> slots_of(const Form& form);

}  // namespace ptxkit::ptx
