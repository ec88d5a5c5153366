// From the tree to Codes: one pass over each function. See decode.cpp.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "analyzer/ptx/validate.hpp"
#include "runtime/backend/emulator/handlers.hpp"
#include "runtime/backend/emulator/image.hpp"
#include "runtime/backend/emulator/layout.hpp"

namespace ptxkit::emulator {

class Decoder {
 public:
  Decoder(ProgramImage& image, const Layout& layout);
  void decode_all();

 private:
  using Operands = std::span<const ptx::Operand>;

  void layout_registers(ptx::FunctionId id);
  void decode_function(ptx::FunctionId id);
  void decode_instruction(const ptx::Instruction& instruction);
  bool read_row();
  bool decode_family(Code& code, Operands operands);
  void fix_branches(uint32_t first_code);

  // families; false: no such form
  bool control(Code& code, Operands operands);
  bool call(Code& code);
  bool barrier(Code& code, Operands operands);
  bool collective(Code& code, Operands operands);
  bool memory(Code& code, Operands operands);
  bool atomic(Code& code, Operands operands);
  bool fence(Code& code);
  bool move(Code& code, Operands operands);
  Ref unwritten(unsigned bytes);
  bool move_vector(Code& code, Operands operands);
  bool address_conversion(Code& code, Operands operands);
  bool convert(Code& code, Operands operands);
  bool convert_stochastic(Code& code, Operands operands);
  bool compare(Code& code, Operands operands);
  bool arithmetic(Code& code, Operands operands);

  bool address_operand(AddressOperand& out, const ptx::Operand& operand, ptx::Space space);
  bool asynchronous_copy(Code& code, Operands operands);
  bool asynchronous_store(Code& code, Operands operands);
  bool tensor_map(Code& code, Operands operands);
  bool launch_control(Code& code, Operands operands);
  bool tensor_memory(Code& code, Operands operands);
  bool tensor_product(TensorForm& form, Operands operands);
  bool mbarrier(Code& code, Operands operands);
  bool cluster_address(Code& code, Operands operands);
  RegisterList register_list(const ptx::Operand& operand, ptx::Type type, bool writes);
  bool matrix(Code& code, Operands operands);
  bool scales(MatrixForm& form, Operands operands);
  bool sparse(MatrixForm& form, const ptx::Operand& metadata, const ptx::Operand& selector);
  void find_watched();
  void watch();
  bool warpgroup(Code& code, MatrixForm& form, Operands operands);
  bool stack(Code& code, Operands operands);
  bool video(Code& code, Operands operands);
  bool texture(Code& code, Operands operands);
  bool image_handle(HandleOperand& out, const ptx::Operand& operand);

  // operands
  struct Placed {
    unsigned count = 0;    // of sources
    unsigned flipped = 0;  // bit n: source n is `!p`
  };
  Placed place(Code& code, Operands operands);
  Ref constant(uint64_t value, unsigned bytes);
  Ref source(const ptx::Operand& operand, ptx::Type type);
  Ref predicate(const ptx::Operand& operand, bool& flipped);
  Ref sum(Ref base, uint64_t offset, unsigned bytes);
  Ref narrowed(Ref word);
  Ref source_any(const ptx::Operand& operand, ptx::Type type, uint8_t& register_bytes);
  Ref destination(const ptx::Operand& operand, unsigned bytes);
  Ref destination_predicate(const ptx::Operand& operand);
  bool address(Code& code, const ptx::Operand& operand, ptx::Space space);
  Ref special(const ptx::Operand& operand, unsigned bytes);
  uint64_t variable_address(ptx::VariableId id, ptx::Space as) const;  // of one that does not live in a frame
  void add_register(std::vector<CallValue>& values, ptx::RegId id, uint8_t component);
  void add_parameter(std::vector<CallValue>& values, ptx::VariableId id);
  void add_argument(std::vector<CallValue>& values, const ptx::Operand& operand);
  unsigned register_bytes(ptx::RegId id) const;
  Ref slot(ptx::RegId id, uint8_t component) const;
  uint64_t literal(const ptx::Operand& operand, ptx::Type type) const;

  Words words() const { return {function_->modifiers(*instruction_)}; }
  void emit(const Code& code);
  void refuse(const std::string& why);

  ProgramImage& image_;
  const ptx::Module& module_;
  const Layout& layout_;
  const bool narrow_;  // 32-bit addresses

  // What the ISA table says of a spelling that fits a form, and of each operand of the instruction.
  struct TableRow {
    ptx::Opcode opcode;
    ptx::Candidate candidate;
  };
  ptx::Validator validator_;
  std::map<std::pair<std::string_view, uint32_t>, TableRow> rows_;
  std::vector<ptx::OperandSpec> items_;
  std::vector<ptx::Operand> operands_;

  ptx::FunctionId function_id_ = 0;
  const ptx::Function* function_ = nullptr;
  const ptx::Instruction* instruction_ = nullptr;
  std::vector<std::vector<Ref>> slots_;  // by function and RegId
  std::map<std::pair<uint64_t, unsigned>, Ref> constants_;
  std::vector<uint32_t> code_of_;  // by InstructionId of the current function
  std::set<ptx::RegId> watched_;   // registers of wgmma in the current function
  bool next_meets_ = false;
  bool reads_clock_ = false;
  bool refused_ = false;
};

}  // namespace ptxkit::emulator
