// What an instruction does to registers and to memory. Source: PTX ISA 9.0, chapter 9, the syntax of each instruction.
#include "analyzer/flow/effects.hpp"

#include <algorithm>

#include "analyzer/ptx/isa.hpp"

namespace ptxkit::flow {

using ptx::Mod;
using ptx::Op;
using ptx::OperandKind;
using ptx::Space;

namespace {

bool spelled(const ptx::Instruction& instruction, std::string_view part) {
  return instruction.spelling.find(part) != std::string_view::npos;
}

}  // namespace

unsigned destination_count(const ptx::Function& function, const ptx::Instruction& instruction) {
  if (instruction.op == Op::call) {
    const auto operands = function.operands(instruction);
    return operands.size() > 1 && operands[0].kind == OperandKind::parameters &&
           operands[1].kind != OperandKind::prototype;
  }
  if (instruction.form == ptx::kNone) return 0;
  return std::min<unsigned>(ptx::all_forms()[instruction.form].destination_count, instruction.operand_count);
}

Accesses memory_accesses(const ptx::Function& function, ptx::InstructionId id) {
  const ptx::Instruction& instruction = function.instructions[id];
  Accesses result;
  auto pool = [&](uint32_t i) { return instruction.first_operand + i; };
  auto is_address = [&](uint32_t i) {
    return i < instruction.operand_count && function.operand_pool[pool(i)].kind == OperandKind::address;
  };
  auto add = [&](Access access) {
    access.instruction = id;
    result.items[result.count++] = access;
  };
  const bool plain = !function.has(instruction, Mod::volatile_) && !function.has(instruction, Mod::relaxed) &&
                     !function.has(instruction, Mod::acquire) && !function.has(instruction, Mod::release) &&
                     !function.has(instruction, Mod::mmio);
  const uint32_t width = ptx::byte_width(instruction.type()) * std::max<uint32_t>(instruction.vector, 1);
  switch (instruction.op) {
    case Op::ld:
    case Op::ldu:
      if (instruction.space == Space::param || !is_address(1) || width == 0) break;
      add({.kind = AccessKind::load,
           .space = instruction.space,
           .width_bytes = width,
           .extent_bytes = width,
           .address = pool(1),
           .data = pool(0),
           .is_plain = plain});
      break;
    case Op::st:
      if (instruction.space == Space::param || !is_address(0) || instruction.operand_count < 2 || width == 0) break;
      add({.kind = AccessKind::store,
           .space = instruction.space,
           .width_bytes = width,
           .extent_bytes = width,
           .address = pool(0),
           .data = pool(1),
           .is_plain = plain});
      break;
    case Op::atom:
      if (!is_address(1) || width == 0) break;
      add({.kind = AccessKind::atomic,
           .space = instruction.space,
           .width_bytes = width,
           .extent_bytes = width,
           .address = pool(1),
           .data = instruction.operand_count > 2 ? pool(2) : ptx::kNone,
           .is_plain = false});
      break;
    case Op::red:
      if (!is_address(0) || width == 0) break;
      add({.kind = AccessKind::atomic,
           .space = instruction.space,
           .width_bytes = width,
           .extent_bytes = width,
           .address = pool(0),
           .data = instruction.operand_count > 1 ? pool(1) : ptx::kNone,
           .is_plain = false});
      break;
    case Op::ldmatrix:
      if (is_address(1))
        add({.kind = AccessKind::load,
             .space = instruction.space,
             .width_bytes = 16,
             .address = pool(1),
             .data = pool(0)});
      break;
    case Op::stmatrix:
      if (is_address(0) && instruction.operand_count > 1)
        add({.kind = AccessKind::store,
             .space = instruction.space,
             .width_bytes = 16,
             .address = pool(0),
             .data = pool(1)});
      break;
    case Op::cp: {
      // cp.async.ca.shared.global [dst], [src], size: both addresses are aligned to the size.
      if (!function.has(instruction, Mod::async) || spelled(instruction, ".bulk") || instruction.operand_count < 3 ||
          !is_address(0) || !is_address(1))
        break;
      const ptx::Operand& size = function.operand_pool[pool(2)];
      if (size.kind != OperandKind::integer || (size.value != 4 && size.value != 8 && size.value != 16)) break;
      const uint32_t bytes = static_cast<uint32_t>(size.value);
      add({.kind = AccessKind::store,
           .space = Space::shared,
           .width_bytes = bytes,
           .extent_bytes = bytes,
           .address = pool(0),
           .is_plain = false});
      add({.kind = AccessKind::load,
           .space = Space::global,
           .width_bytes = bytes,
           .extent_bytes = bytes,
           .address = pool(1),
           .is_plain = false});
      break;
    }
    default:
      break;
  }
  return result;
}

bool ends_thread(const ptx::Instruction& instruction) {
  return instruction.op == Op::ret || instruction.op == Op::exit || instruction.op == Op::trap;
}

bool is_branch(const ptx::Instruction& instruction) { return instruction.op == Op::bra || instruction.op == Op::brx; }

bool is_cta_barrier(const ptx::Function& function, const ptx::Instruction& instruction) {
  if (instruction.op != Op::bar && instruction.op != Op::barrier) return false;
  if (spelled(instruction, ".warp") || spelled(instruction, ".cluster")) return false;
  return !function.has(instruction, Mod::arrive);
}

bool is_whole_cta_barrier(const ptx::Function& function, const ptx::Instruction& instruction) {
  if (!is_cta_barrier(function, instruction)) return false;
  if (function.has(instruction, Mod::red)) return instruction.operand_count == 3;  // d, a, c; with a count: d, a, b, c
  return instruction.operand_count == 1;
}

bool is_warp_barrier(const ptx::Function& function, const ptx::Instruction& instruction) {
  switch (instruction.op) {
    case Op::bar:
    case Op::barrier:
      return spelled(instruction, ".warp.sync") || is_cta_barrier(function, instruction);
    case Op::shfl:
    case Op::vote:
    case Op::match:
    case Op::redux:
    case Op::mma:
    case Op::wmma:
    case Op::ldmatrix:
    case Op::stmatrix:
    case Op::movmatrix:
    case Op::elect:
      return function.has(instruction, Mod::sync);
    default:
      return false;
  }
}

}  // namespace ptxkit::flow
