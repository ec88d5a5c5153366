// Liveness of registers by blocks, backwards to a fixed point over bit sets, then one walk through each block.
#include "analyzer/flow/liveness.hpp"

#include <algorithm>

#include "analyzer/ptx/facts.hpp"

namespace ptxkit::flow {

namespace {

// Beyond this many bits (blocks times registers) the sets would not fit; the widest block then stands for the kernel.
constexpr uint64_t kMaxBits = uint64_t{1} << 31;

}  // namespace

RegisterPressure pressure(const Ssa& ssa) {
  const Graph& graph = ssa.graph();
  const ptx::Function& function = graph.function();
  const uint32_t registers = static_cast<uint32_t>(function.registers.size());
  std::vector<uint32_t> words(registers, 0);
  for (uint32_t i = 0; i < registers; ++i) {
    const unsigned bits =
        ptx::bit_width(function.registers[i].type) * std::max<uint32_t>(function.registers[i].vector, 1);
    words[i] = function.registers[i].type == ptx::Type::pred ? 0 : (bits + 31) / 32;
  }
  RegisterPressure worst;
  if (registers == 0 || uint64_t{graph.size()} * registers > kMaxBits) return worst;
  const size_t row = (registers + 63) / 64;
  std::vector<uint64_t> in(row * graph.size(), 0);
  auto bit = [](std::vector<uint64_t>& set, uint32_t reg) -> bool { return set[reg / 64] >> (reg % 64) & 1; };
  std::vector<uint64_t> live(row);
  // Walks a block backwards from what is alive at its end; `visit` sees the set before each instruction.
  auto walk = [&](BlockId block, auto&& visit) {
    std::fill(live.begin(), live.end(), 0);
    for (const BlockId next : graph.successors(block))
      for (size_t i = 0; i < row; ++i) live[i] |= in[next * row + i];
    for (ptx::InstructionId id = graph.block(block).end; id-- > graph.block(block).first;) {
      const ptx::Instruction& instruction = function.instructions[id];
      if (!instruction.guard)
        ptx::for_each_register(function, instruction, [&](uint32_t, const ptx::Operand& operand, bool written) {
          if (written) live[operand.id / 64] &= ~(uint64_t{1} << (operand.id % 64));
        });
      ptx::for_each_register(function, instruction, [&](uint32_t, const ptx::Operand& operand, bool written) {
        if (!written) live[operand.id / 64] |= uint64_t{1} << (operand.id % 64);
      });
      if (instruction.guard) live[instruction.guard.reg / 64] |= uint64_t{1} << (instruction.guard.reg % 64);
      visit(id);
    }
  };
  const auto order = graph.reverse_postorder();
  for (bool again = true; again;) {
    again = false;
    for (size_t i = order.size(); i-- > 0;) {
      walk(order[i], [](ptx::InstructionId) {});
      for (size_t word = 0; word < row; ++word) {
        if (in[order[i] * row + word] == live[word]) continue;
        in[order[i] * row + word] = live[word];
        again = true;
      }
    }
  }
  for (const BlockId block : order) {
    // The count is kept up while walking: only registers that this instruction names can change.
    std::vector<uint64_t> before(row, 0);
    uint32_t alive = 0;
    bool first = true;
    walk(block, [&](ptx::InstructionId id) {
      if (first) {
        for (uint32_t reg = 0; reg < registers; ++reg)
          if (bit(live, reg)) alive += words[reg];
        before = live;
        first = false;
      } else {
        auto update = [&](uint32_t reg) {
          const bool now = bit(live, reg), was = bit(before, reg);
          if (now == was) return;
          alive = now ? alive + words[reg] : alive - words[reg];
          before[reg / 64] ^= uint64_t{1} << (reg % 64);
        };
        const ptx::Instruction& instruction = function.instructions[id];
        ptx::for_each_register(function, instruction,
                               [&](uint32_t, const ptx::Operand& operand, bool) { update(operand.id); });
        if (instruction.guard) update(instruction.guard.reg);
      }
      if (alive > worst.words) worst = {alive, id};
    });
  }
  return worst;
}

}  // namespace ptxkit::flow
