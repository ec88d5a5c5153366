// Translates the syntax tree to Codes, in one pass over each function. See decode.cpp.
#pragma once

#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analyzer/ptx/isa.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/ptx/validate.hpp"
#include "runtime/emulator/core/async.hpp"
#include "runtime/emulator/core/handlers.hpp"
#include "runtime/emulator/core/image.hpp"
#include "runtime/emulator/core/layout.hpp"
#include "runtime/emulator/core/matrix.hpp"

namespace ptxkit::emulator {

class Decoder {
 public:
  Decoder(ProgramImage& image, const Layout& layout);
  void decode_all();

 private:
  void layout_registers(ptx::FunctionId id);
  void decode_function(ptx::FunctionId id);
  void decode_instruction(const ptx::Instruction& instruction);
  bool read_row();
  bool read_operands();
  bool decode_family(Code& code);
  void fix_branches(uint32_t first_code);

  // The families of instructions. Each returns false if the emulator has no such form.
  bool control(Code& code);
  bool call(Code& code);
  bool barrier(Code& code);
  bool collective(Code& code);
  bool memory(Code& code);
  bool atomic(Code& code);
  bool fence(Code& code);
  bool move(Code& code);
  Ref unwritten(unsigned bytes);
  bool move_vector(Code& code);
  bool address_conversion(Code& code);
  bool convert(Code& code);
  bool convert_stochastic(Code& code);
  bool compare(Code& code);
  bool arithmetic(Code& code);

  bool asynchronous_copy(Code& code);
  bool asynchronous_store(Code& code);
  bool tensor_map(Code& code);
  bool launch_control(Code& code);
  bool tensor_memory(Code& code);
  void tensor_product(TensorForm& form);
  bool mbarrier(Code& code);
  bool cluster_address(Code& code);
  bool matrix(Code& code);
  void scales(MatrixForm& form);
  void sparse(MatrixForm& form);
  void find_watched();
  using Moves = std::vector<std::pair<ptx::RegId, ptx::RegId>>;
  Moves moves_of(const ptx::Instruction& instruction) const;
  Moves computed_by(const ptx::Instruction& instruction) const;
  void watch();
  bool warpgroup(Code& code, MatrixForm& form);
  bool stack(Code& code);
  bool video(Code& code);
  bool surface_data(TextureForm& form, ptx::Purpose purpose);
  bool texture(Code& code);
  bool image_handle(HandleOperand& out, ptx::Purpose purpose);

  // Operands by their purpose in the ISA table, with type, space, and whether they are written. Taking an operand that
  // the instruction lacks refuses the instruction; so does, at the end, an operand that was not taken.
  bool has(ptx::Purpose purpose) const;
  const ptx::MatchedOperand* take(ptx::Purpose purpose);
  std::vector<const ptx::MatchedOperand*> take_all(ptx::Purpose purpose);
  void ignore_operand(ptx::Purpose purpose);  // the emulator does not depend on it
  void ignore_all_operands();
  void refuse_untaken_operands();
  uint64_t number(ptx::Purpose purpose);
  Ref source(ptx::Purpose purpose);
  Ref predicate(ptx::Purpose purpose, bool& flipped);
  Ref destination(ptx::Purpose purpose);
  bool address(Code& code, ptx::Purpose purpose);
  AddressOperand address_operand(ptx::Purpose purpose);
  AddressOperand generic_address_operand(ptx::Purpose purpose);
  RegisterList register_list(ptx::Purpose purpose);
  struct Placed {
    unsigned count = 0;    // of sources
    unsigned flipped = 0;  // bit n: source n is `!p`
  };
  Placed place(Code& code);

  // Conversions of operands.
  unsigned element_count(const ptx::Operand& operand) const;
  ptx::Operand element(const ptx::Operand& operand, unsigned index) const;
  RegisterList add_refs(const std::vector<Ref>& refs);
  Ref constant(uint64_t value, unsigned bytes);
  Ref new_constant(uint64_t value, unsigned bytes);
  Ref source(const ptx::Operand& operand, ptx::Type type);
  Ref predicate(const ptx::Operand& operand, bool& flipped);
  Ref sum(Ref base, uint64_t offset, unsigned bytes);
  Ref narrowed(Ref word);
  Ref source_any(const ptx::Operand& operand, ptx::Type type, uint8_t& register_bytes);
  Ref destination(const ptx::Operand& operand, unsigned bytes);
  Ref destination_predicate(const ptx::Operand& operand);
  bool address(Code& code, const ptx::Operand& operand, ptx::Space space);
  Ref special(const ptx::Operand& operand, unsigned bytes);
  // Not for variables in a frame
  Ref variable_address(ptx::VariableId id, ptx::Space as, uint64_t addend, unsigned bytes);
  void add_register(std::vector<CallValue>& values, ptx::RegId id, uint8_t component);
  void add_parameter(std::vector<CallValue>& values, ptx::VariableId id);
  void add_argument(std::vector<CallValue>& values, const ptx::Operand& operand);
  unsigned register_bytes(ptx::RegId id) const;
  Ref slot(ptx::RegId id, uint8_t component);
  uint64_t literal(const ptx::Operand& operand, ptx::Type type) const;

  Words words() const { return {function_->modifiers(*instruction_)}; }
  void emit(const Code& code);
  void refuse(const std::string& why);

  ProgramImage& image_;
  const ptx::Module& module_;
  const Layout& layout_;
  const bool narrow_;  // 32-bit addresses

  // The ISA table's entry for a spelling that fits a form, and for each operand of the instruction.
  struct TableRow {
    ptx::Opcode opcode;
    ptx::Candidate candidate;
    bool may_be_unemulated = false;  // the emulator lacks some instructions of this opcode
  };
  ptx::Validator validator_;
  std::map<std::pair<uint32_t, std::string_view>, TableRow> rows_;  // by form and spelling
  const TableRow* row_ = nullptr;
  std::vector<ptx::MatchedOperand> operands_;
  uint64_t taken_ = 0;  // bit n: operands_[n] has been taken

  ptx::FunctionId function_id_ = 0;
  const ptx::Function* function_ = nullptr;
  const ptx::Instruction* instruction_ = nullptr;
  std::vector<std::vector<Ref>> slots_;  // by function and RegId
  std::map<std::pair<uint64_t, unsigned>, Ref> constants_;
  std::map<std::tuple<ptx::VariableId, uint64_t, unsigned>, Ref> shared_constants_;
  std::vector<uint32_t> code_of_;  // by InstructionId of the current function
  std::set<ptx::RegId> watched_;   // registers of wgmma and of tcgen05.ld in the current function
  std::set<ptx::RegId> loaded_;    // registers of tcgen05.ld, and values made of them before its wait
  bool next_may_reconverge_ = false;
  bool reads_clock_ = false;
  bool refused_ = false;
};

}  // namespace ptxkit::emulator
