// Fuzzes the PTX front end: it must return, and its result must be sound (ids within their vectors, offsets within the
// text, messages in order). A text without errors must survive printing.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/print.hpp"

namespace ptxkit::ptx {
namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "ptx_parser_fuzz: %s\n", what);
  std::abort();
}

void check_operand(const Module& module, const Function& function, const Operand& operand) {
  require(operand.at <= module.text.size(), "an operand outside the text");
  switch (operand.kind) {
    case OperandKind::reg:
      require(operand.id < function.registers.size(), "a register that does not exist");
      break;
    case OperandKind::symbol:
      require(operand.id < module.variables.size(), "a variable that does not exist");
      break;
    case OperandKind::function:
      require(operand.id < module.functions.size(), "a function that does not exist");
      break;
    case OperandKind::label:
      require(operand.id == kNone || operand.id < function.labels.size(), "a label that does not exist");
      break;
    case OperandKind::prototype:
      require(operand.id < function.tables.size(), "a table that does not exist");
      break;
    case OperandKind::special:
      require(operand.id < static_cast<uint32_t>(SpecialRegister::none), "a special register that does not exist");
      break;
    case OperandKind::address:
      if (operand.base == AddressBase::reg) require(operand.id < function.registers.size(), "an address base register");
      if (operand.base == AddressBase::variable) require(operand.id < module.variables.size(), "an address base");
      break;
    default:
      break;
  }
  require(uint64_t{operand.first_child} + operand.child_count <= function.operand_pool.size(),
          "children outside the pool");
}

void check_tree(const Module& module) {
  for (const Function& function : module.functions) {
    require(function.end <= module.text.size(), "a function outside the text");
    for (const Label& label : function.labels)
      require(label.target <= function.instructions.size(), "a label's target");
    for (const Operand& operand : function.operand_pool) check_operand(module, function, operand);
    for (const Instruction& instruction : function.instructions) {
      require(!instruction.guard || instruction.guard.reg < function.registers.size(), "a guard that does not exist");
      require(uint64_t{instruction.first_operand} + instruction.operand_count <= function.operand_pool.size(),
              "operands");
      require(uint64_t{instruction.first_modifier} + instruction.modifier_count <= function.modifier_pool.size(),
              "modifiers");
      require(instruction.location == kNone || instruction.location < module.locations.size(), "a location");
      require(instruction.at <= instruction.opcode_at, "a guard behind its opcode");
    }
  }
  for (size_t i = 0; i < module.locations.size(); ++i) {
    const LocationId outer = module.locations[i].inlined_at;
    require(outer == kNone || outer < module.locations.size(), "an outer location");
  }
}

}  // namespace
}  // namespace ptxkit::ptx

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ptxkit::ptx;
  const ParseResult result = parse(std::string(reinterpret_cast<const char*>(data), size), "fuzz.ptx");
  check_tree(result.module);
  Offset last = 0;
  for (const Diagnostic& diagnostic : result.diagnostics) {
    require(diagnostic.at >= last && diagnostic.end <= size, "messages out of order or outside the text");
    require(!diagnostic.message.empty() && !render(result.module, diagnostic).empty(), "an empty message");
    last = diagnostic.at;
  }
  const std::string printed = print(result.module);
  if (result.diagnostics.empty()) {
    const ParseResult again = parse(printed, "printed.ptx");
    require(again.diagnostics.empty(), "printed text has mistakes that its source lacks");
    require(print(again.module) == printed, "printing twice gives two texts");
  }
  return 0;
}
