// PTX text made from the ISA table itself: for a form, instructions that it accepts, inside a kernel that declares
// whatever they name. Tests give the text to our parser and, where it is installed, to ptxas.
#pragma once

#include <string>
#include <vector>

#include "analyzer/ptx/validate.hpp"

namespace ptxkit::ptx {

struct Sample {
  std::string spelling;               // "add.sat.s32"
  std::string instruction;            // "add.sat.s32 %w1, %w2, %w3;"
  std::vector<OperandSpec> operands;  // what the table says of each
  std::string target;                 // "sm_90a"
  unsigned version = 0;               // times ten
  bool narrow_addresses = false;      // the instruction belongs to a file of 32-bit addresses
};

// The `variant`th instruction of a form; variants walk through alternatives, optional slots and optional operands.
Sample make_sample(const Form& form, unsigned variant);

// A whole module around one instruction.
std::string make_module(const Sample& sample);

// The operands of an instruction of the form, as the validator reads them.
std::vector<MatchedOperand> match_sample(const Form& form, const Sample& sample);

}  // namespace ptxkit::ptx
