#include "tools/ptx-debug/lsp/values.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "analyzer/ptx/facts.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"

namespace ptxkit::lsp {

struct Values::Analyzed {
  Analyzed(const ptx::ParseResult& parsed, ptx::FunctionId id, const rules::Options& options)
      : context(parsed.module, id, parsed.diagnostics, options) {
    const std::vector<ptx::Instruction>& all = context.function().instructions;
    for (ptx::InstructionId i = 0; i < all.size(); ++i) copies.emplace(all[i].opcode_at, i);
  }

  rules::Context context;
  // Instructions by their place in the text; several where a call was inlined more than once.
  std::unordered_multimap<ptx::Offset, ptx::InstructionId> copies;
};

namespace {

std::string range_text(uint64_t low, uint64_t high) {
  return low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high);
}

// The offset from the base, or the value where there is none; `more_bytes` is added to it.
std::string fact_text(const flow::Domain& domain, const flow::Fact& fact, unsigned width, uint64_t more_bytes) {
  if (!fact.reached) return "";
  const uint64_t limit = flow::low_mask(width);
  // Of an offset from a base the domain has the bits alone.
  const bool has_base = fact.base != flow::kNoBase;
  const uint64_t least = has_base ? fact.bits.minimum() & limit : fact.low;
  const uint64_t most = has_base ? fact.bits.maximum() & limit : fact.high;
  const bool has_range = !(least == 0 && most == limit) && least <= most && more_bytes <= limit - most;
  const uint64_t low = least + more_bytes, high = most + more_bytes;
  const flow::Bits bits = flow::truncate(flow::add(fact.bits, flow::Bits::constant(more_bytes)), width);
  const unsigned zeros = std::min(bits.trailing_zeros(), width), known = std::min(bits.known_low(), width);
  std::string text;
  if (has_range && !(has_base && high == 0)) text = range_text(low, high);
  if (!(has_range && low == high) && known > 0 && zeros < width) {
    const uint64_t modulus = uint64_t{1} << std::min(known, 63u);
    const std::string residue = zeros > 0 && zeros >= known ? fmt::format("a multiple of {}", uint64_t{1} << zeros)
                                                            : fmt::format("{} modulo {}", bits.low_value(), modulus);
    text += (text.empty() ? "" : ", ") + residue;
  }
  if (!has_base) return text;
  std::string base = domain.describe(fact.base);
  if (has_range && high == 0) return base;
  return text.empty() ? base + " and an unknown offset" : fmt::format("{} + {}", base, text);
}

}  // namespace

Values::Values(const ptx::ParseResult& parsed, const rules::Options& options) : parsed_(parsed), options_(options) {}
Values::~Values() = default;

Values::Analyzed* Values::analyzed(ptx::FunctionId id) {
  if (id == ptx::kNone || !parsed_.diagnostics.empty()) return nullptr;
  const auto [found, is_new] = functions_.try_emplace(id);
  const ptx::Function& function = parsed_.module.functions[id];
  if (is_new && !function.instructions.empty() && function.instructions.size() <= kMaxValuedInstructions) {
    auto made = std::make_unique<Analyzed>(parsed_, id, options_);
    if (made->context.function().instructions.size() <= kMaxValuedInstructions) found->second = std::move(made);
  }
  return found->second.get();
}

std::string Values::at(const Occurrence& occurrence) {
  Analyzed* const found = analyzed(occurrence.symbol.function);
  if (found == nullptr || occurrence.symbol.kind != Symbol::Kind::reg || occurrence.operand == ptx::kNone) return "";
  const ptx::Function& written = parsed_.module.functions[occurrence.symbol.function];
  const ptx::Instruction& instruction = written.instructions[occurrence.instruction];
  const auto copies = found->copies.equal_range(instruction.opcode_at);
  if (copies.first == copies.second || std::next(copies.first) != copies.second) return "";
  const ptx::Function& function = found->context.function();
  const ptx::Instruction& copy = function.instructions[copies.first->second];
  uint32_t index = ptx::kNone;
  std::vector<uint32_t> of_written, of_copy;
  ptx::for_each_register(written, instruction, [&](uint32_t i, const auto&, bool) { of_written.push_back(i); });
  ptx::for_each_register(function, copy, [&](uint32_t i, const auto&, bool) { of_copy.push_back(i); });
  for (size_t i = 0; i < std::min(of_written.size(), of_copy.size()); ++i)
    if (of_written[i] == occurrence.operand) index = of_copy[i];
  if (index == ptx::kNone) return "";
  if (!found->context.analyses().fits()) return "";
  const flow::Domain& domain = found->context.analyses().domain();
  const flow::ValueId value = domain.ssa().at(index);
  if (value == ptx::kNone) return "";
  const ptx::Register& reg = written.registers[occurrence.symbol.id];
  if (ptx::kind(reg.type) == ptx::TypeKind::floating || ptx::kind(reg.type) == ptx::TypeKind::predicate) return "";
  const unsigned width = ptx::bit_width(reg.type);
  return width == 0 || width > 64 ? "" : fact_text(domain, domain.fact(value), width, 0);
}

std::vector<AccessNote> Values::accesses(ptx::FunctionId id) {
  std::vector<AccessNote> notes;
  Analyzed* const found = analyzed(id);
  if (found == nullptr) return notes;
  rules::Analyses& analyses = found->context.analyses();
  if (!analyses.fits()) return notes;
  const ptx::Function& function = found->context.function();
  const ptx::Function& written = parsed_.module.functions[id];
  const std::vector<ptx::Access>& all = analyses.accesses();
  const std::vector<rules::AccessAlignment>& alignments = analyses.alignment().of_accesses();
  for (size_t i = 0; i < all.size(); ++i) {
    const ptx::Access& access = all[i];
    const ptx::Instruction& instruction = function.instructions[access.instruction];
    if (instruction.opcode_at < written.at || instruction.opcode_at > written.end) continue;  // of an inlined function
    AccessNote note;
    note.at = instruction.at;
    const ptx::Operand& operand = function.operand_pool[access.address];
    if (operand.base == ptx::AddressBase::reg) {
      const flow::Domain& domain = analyses.domain();
      const flow::ValueId value = domain.ssa().at(access.address);
      const unsigned width = ptx::bit_width(function.registers[operand.id].type);
      if (value != ptx::kNone && width <= 64)
        note.address = fact_text(domain, domain.fact(value), width, operand.value);
    }
    const rules::AccessAlignment& alignment = alignments[i];
    switch (alignment.status) {
      case rules::AlignmentStatus::proved:
        note.alignment = fmt::format("aligned to {}", access.width_bytes);
        break;
      case rules::AlignmentStatus::refuted:
        note.alignment = fmt::format("not aligned to {}", access.width_bytes);
        break;
      case rules::AlignmentStatus::undecided:
        note.alignment = fmt::format("alignment to {} is open", access.width_bytes);
        break;
    }
    notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace ptxkit::lsp
