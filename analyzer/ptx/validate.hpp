// Checks instructions against the ISA table: the spelling (modifiers, version, target) once, and the operands of each
// instruction. If several forms match a spelling, the instruction must fit one of them; the message is about the form
// that matches the most operands.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/isa.hpp"

namespace ptxkit::ptx {

// A form that matches a spelling, with its operand list.
struct Candidate {
  uint32_t form = kNone;  // index into all_forms()
  uint32_t first_spec = 0, spec_count = 0;
};

// The table's verdict on one spelling.
struct Verdict {
  std::vector<Candidate> candidates;
  // The mistake, if there are no candidates.
  DiagnosticKind kind = DiagnosticKind::unknown_form;
  std::string message;
};

struct Mistake {
  DiagnosticKind kind = DiagnosticKind::operand_kind;
  Offset at = 0;
  std::string message;
};

// An operand and its specification in the table.
struct MatchedOperand {
  OperandSpec spec;
  Operand operand;
};

class Validator {
 public:
  explicit Validator(const Module& module) : module_(module) {}

  // `pattern` has the spelling's op, types, spaces and vector.
  Verdict judge(const Instruction& pattern, std::string_view spelling, const std::vector<OpcodeWord>& words);

  // Sets `form` to the matching row and returns true, or sets `mistake` and returns false.
  bool check(const Function& function, const Instruction& instruction, const Verdict& verdict, uint32_t& form,
             Mistake& mistake) const;

  // The row that `instruction` has matched, given the words of its spelling.
  Candidate row_of(const Instruction& instruction, const std::vector<OpcodeWord>& words);
  // Stores the row's specification of each operand in `matches`; returns false if the operands do not fit. An address
  // is followed by the other contents of its brackets, and a pair counts as two operands. Calls give no matches for
  // their operands.
  bool read(const Function& function, const Instruction& instruction, const Candidate& row,
            std::vector<MatchedOperand>& matches) const;
  const OperandSpec& child(const OperandSpec& item, unsigned index) const { return specs_[item.first_child + index]; }

 private:
  // The furthest match of an instruction against one form.
  struct Failure {
    uint32_t operand = 0;  // index of the first operand that does not fit
    DiagnosticKind kind = DiagnosticKind::operand_kind;
    Offset at = 0;
    std::string message;

    bool set(DiagnosticKind new_kind, Offset new_at, std::string new_message) {
      kind = new_kind;
      at = new_at;
      message = std::move(new_message);
      return false;
    }
  };
  uint32_t version() const { return module_.version_major * 10 + module_.version_minor; }
  // If `matches` is not null, it receives each operand with its specification.
  bool match_list(const Function& function, const Instruction& instruction, const Candidate& candidate,
                  Failure& failure, std::vector<MatchedOperand>* matches) const;
  bool match_brackets(const Function& function, const Instruction& instruction, const OperandSpec& spec,
                      const Operand& address, Failure& failure, std::vector<MatchedOperand>* matches) const;
  void append_matches(const Function& function, const Instruction& instruction, const OperandSpec& spec,
                      const Operand& operand, std::vector<MatchedOperand>& matches) const;
  bool match(const Function& function, const Instruction& instruction, const OperandSpec& spec, const Operand& operand,
             Failure& failure) const;
  bool match_register(const Function& function, const OperandSpec& spec, const Operand& operand,
                      Failure& failure) const;
  bool match_constant(const OperandSpec& spec, const Operand& operand, Failure& failure) const;
  bool match_address(const Function& function, const Instruction& instruction, const OperandSpec& spec,
                     const Operand& operand, Failure& failure) const;
  bool match_opaque(const Function& function, const OperandSpec& spec, const Operand& operand, Failure& failure) const;
  bool match_converted(const Instruction& instruction, const Operand& operand, Failure& failure) const;
  bool match_elements(const Function& function, const Instruction& instruction, const OperandSpec& spec,
                      const Operand& list, Failure& failure) const;
  bool supports_late_operand(const Operand& operand, Failure& failure) const;
  bool match_negation(const Function& function, const Instruction& instruction, Failure& failure) const;
  bool match_call(const Function& function, const Instruction& instruction, Failure& failure) const;
  std::string describe(const Function& function, const Operand& operand) const;

  const Module& module_;
  std::vector<OperandSpec> specs_;
};

}  // namespace ptxkit::ptx
