// The same PTX in other words: what it means is the same, so what is found in it must be.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/ptx/isa.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::rewriting {

// Other spellings of an opcode that ptxas takes for the same: all where they are at most `most`, else so many of them.
std::vector<std::string> other_orders(std::string_view spelling, size_t most, std::mt19937& random);

// Every opcode with its words in another order; every statement stays where it is.
std::string with_other_orders(const ptx::Module& module, std::mt19937& random);

// Registers and labels under other names.
std::string with_other_names(const ptx::Module& module);

// What stands from one label to the next in another place, with a branch where control went on to it. Nothing where no
// body has two labels.
std::optional<std::string> with_other_places(const ptx::Module& module, std::mt19937& random);

}  // namespace ptxkit::rewriting
