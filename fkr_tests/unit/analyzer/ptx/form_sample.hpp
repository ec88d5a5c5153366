// Generates PTX from the ISA table: for a form, instructions that it accepts, in a kernel that declares everything they
// name. Tests pass the text to the parser and, where it is installed, to ptxas.
#pragma once

#include <string>
#include <vector>

#include "analyzer/ptx/validate.hpp"

namespace ptxkit::ptx {

struct Sample {
  std::string spelling;               // "add.sat.s32"
  std::string instruction;            // "add.sat.s32 %w1, %w2, %w3;"
  std::vector<OperandSpec> operands;  // the table's specification of each
  std::string target;                 // "sm_90a"
  unsigned version = 0;               // ten times the version
  bool narrow_addresses = false;      // the instruction needs a module with 32-bit addresses
};

// The `variant`-th instruction of a form. Variants cover alternatives, optional slots and optional operands.
Sample make_sample(const Form& form, unsigned variant);

// A module that contains the instruction and the declarations it needs.
std::string make_module(const Sample& sample);

// The operands of an instruction of the form, as the validator matches them.
std::vector<MatchedOperand> match_sample(const Form& form, const Sample& sample);

}  // namespace ptxkit::ptx
