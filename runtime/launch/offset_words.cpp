// See offset_words.hpp. Keeps two sets of buffers for each register, one bit for each buffer: the buffers into which
// its value points, and the buffers from whose words it was computed. The analysis ignores the order of instructions.
#include "runtime/launch/offset_words.hpp"

#include <algorithm>

#include "runtime/launch/address_parts.hpp"

namespace ptxkit {
namespace {

using ptx::AddressBase;
using ptx::Instruction;
using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;

using Buffers = uint64_t;  // one bit for each buffer
constexpr size_t kMaxBuffers = 64;

bool is_floating(const Instruction& each) {
  return std::ranges::any_of(std::span(each.types, each.type_count),
                             [](ptx::Type type) { return ptx::kind(type) == ptx::TypeKind::floating; });
}

bool propagates_offsets(const Instruction& each) {
  static constexpr Op kOps[] = {Op::add, Op::and_, Op::cvt,  Op::mad, Op::max, Op::min, Op::mov,
                                Op::mul, Op::or_,  Op::selp, Op::shl, Op::shr, Op::sub};
  return !is_floating(each) && std::ranges::find(kOps, each.op) != std::end(kOps);
}

class OffsetWordAnalysis {
 public:
  OffsetWordAnalysis(const ptx::Module& module, const ptx::Function& kernel, const std::set<ptx::RegId>& address_parts)
      : module_(module),
        kernel_(kernel),
        address_parts_(address_parts),
        points_(kernel.registers.size()),
        indexed_(kernel.registers.size()),
        words_(kernel.registers.size()),
        loads_(kernel.registers.size()) {}

  std::vector<OffsetWords> run();

 private:
  struct Buffer {
    OffsetWords found;
    bool is_offset = false, is_scattered = false, is_bound = false, is_floating = false;
  };

  Buffers in(const std::vector<Buffers>& sets, const Operand& operand) const {
    return operand.kind == OperandKind::reg ? sets[operand.id] : 0;
  }
  void record_parameters();
  bool propagate(const Instruction& each);
  bool record_load(const Instruction& each, uint32_t number);
  void classify_uses(const Instruction& each);
  template <class Note>
  void for_each_of(Buffers buffers, Note&& note) {
    for (size_t i = 0; i < buffers_.size(); ++i)
      if (buffers >> i & 1) note(buffers_[i]);
  }

  const ptx::Module& module_;
  const ptx::Function& kernel_;
  const std::set<ptx::RegId>& address_parts_;
  std::vector<Buffer> buffers_;
  std::vector<Buffers> points_;   // by register: buffers into which it points
  std::vector<Buffers> indexed_;  // by register that points: buffers whose words are in its offset
  std::vector<Buffers> words_;    // by register: buffers whose words it holds or was computed from
  std::vector<uint64_t> loads_;   // by register: the loads of those words, as a set of hashed bits
};

void OffsetWordAnalysis::record_parameters() {
  const auto take = [&](const Operand& from, uint64_t offset, const Operand& into) {
    if (into.kind != OperandKind::reg || !address_parts_.contains(into.id)) return;
    const auto same = [&](const Buffer& each) {
      return each.found.parameter == from.id && each.found.offset == offset;
    };
    auto place = std::ranges::find_if(buffers_, same);
    if (place == buffers_.end()) {
      if (buffers_.size() == kMaxBuffers) return;
      buffers_.push_back({{from.id, offset, Offsets::anywhere, 0}});
      place = buffers_.end() - 1;
    }
    points_[into.id] |= Buffers{1} << (place - buffers_.begin());
  };
  const uint32_t address_bytes = module_.address_size / 8;
  for (const Instruction& each : kernel_.instructions) {
    const auto operands = kernel_.operands(each);
    if (each.op != Op::ld || operands.size() < 2 || operands[1].kind != OperandKind::address ||
        operands[1].base != AddressBase::variable || ptx::byte_width(each.type()) != address_bytes ||
        std::ranges::find(kernel_.parameters, operands[1].id) == kernel_.parameters.end())
      continue;
    if (operands[0].kind != OperandKind::vector) take(operands[1], operands[1].value, operands[0]);
    uint64_t offset = operands[1].value;
    for (const Operand& element : kernel_.children(operands[0])) {
      take(operands[1], offset, element);
      offset += address_bytes;
    }
  }
}

bool OffsetWordAnalysis::record_load(const Instruction& each, uint32_t number) {
  const auto operands = kernel_.operands(each);
  if (operands.size() < 2 || operands[1].kind != OperandKind::address || operands[1].base != AddressBase::reg)
    return false;
  const Buffers from = points_[operands[1].id];
  const uint32_t word_bytes = ptx::byte_width(each.type());
  if (from == 0 || word_bytes == 1) return false;
  bool is_new = false;
  const auto take = [&](const Operand& into) {
    if (into.kind != OperandKind::reg) return;
    is_new |= (from & ~words_[into.id]) != 0;
    words_[into.id] |= from;
    loads_[into.id] |= uint64_t{1} << number % 64;
  };
  if (operands[0].kind != OperandKind::vector) take(operands[0]);
  for (const Operand& element : kernel_.children(operands[0])) take(element);
  if (is_new)
    for_each_of(from, [&](Buffer& buffer) { buffer.found.word_bytes = std::max(buffer.found.word_bytes, word_bytes); });
  return is_new;
}

// Propagates the sets through an instruction; returns whether anything changed.
bool OffsetWordAnalysis::propagate(const Instruction& each) {
  const auto operands = kernel_.operands(each);
  if (operands.size() < 2 || operands[0].kind != OperandKind::reg) return false;
  if (!propagates_offsets(each) && each.op != Op::cvta) return false;
  Buffers points = 0, indexed = 0, words = 0;
  uint64_t loads = 0;
  for (size_t i = 1; i < operands.size(); ++i) {
    const bool is_factor =
        (each.op == Op::mad && i < 3) || each.op == Op::mul || each.op == Op::shl || each.op == Op::shr;
    if (!is_factor) points |= in(points_, operands[i]);
    indexed |= in(indexed_, operands[i]);
    words |= in(words_, operands[i]);
    loads |= in(loads_, operands[i]);
  }
  if (points != 0) {  // words added to an address are offsets, and the sum is an address
    indexed |= words;
    words = 0;
  }
  const ptx::RegId into = operands[0].id;
  const bool is_new = (points & ~points_[into]) || (indexed & ~indexed_[into]) || (words & ~words_[into]) ||
                      (words != 0 && (loads & ~loads_[into]) != 0);
  points_[into] |= points;
  indexed_[into] |= indexed;
  words_[into] |= words;
  if (words != 0) loads_[into] |= loads;
  return is_new;
}

// Records what an instruction shows about the buffers, once the sets of all registers are final.
void OffsetWordAnalysis::classify_uses(const Instruction& each) {
  const auto operands = kernel_.operands(each);
  for (const Operand& operand : operands) {
    if (is_floating(each)) for_each_of(in(words_, operand), [](Buffer& buffer) { buffer.is_floating = true; });
    if (operand.kind != OperandKind::address || operand.base != AddressBase::reg) continue;
    const Buffers by = indexed_[operand.id] | words_[operand.id];
    for_each_of(by, [&](Buffer& buffer) {
      buffer.is_offset = true;
      buffer.is_scattered |= each.op == Op::st;
    });
  }
  // Two words of one buffer from different loads are compared or subtracted: the bounds of a row.
  if ((each.op == Op::setp || each.op == Op::sub) && !is_floating(each) && operands.size() > 2) {
    const Operand &a = operands[operands.size() - 2], &b = operands.back();
    const bool are_apart = a.kind == OperandKind::reg && b.kind == OperandKind::reg && loads_[a.id] != loads_[b.id];
    if (are_apart) for_each_of(in(words_, a) & in(words_, b), [](Buffer& buffer) { buffer.is_bound = true; });
  }
}

std::vector<OffsetWords> OffsetWordAnalysis::run() {
  record_parameters();
  for (bool is_new = true; is_new;) {
    is_new = false;
    for (uint32_t number = 0; number < kernel_.instructions.size(); ++number) {
      const Instruction& each = kernel_.instructions[number];
      is_new |= each.op == Op::ld && is_global_or_generic(each.space) ? record_load(each, number) : propagate(each);
    }
  }
  for (const Instruction& each : kernel_.instructions) classify_uses(each);
  std::vector<OffsetWords> all;
  for (Buffer& buffer : buffers_) {
    if (!buffer.is_offset || buffer.is_floating || buffer.found.word_bytes > sizeof(uint64_t)) continue;
    if (buffer.is_scattered) buffer.found.offsets = Offsets::each_once;
    if (buffer.is_bound) buffer.found.offsets = Offsets::rising;
    all.push_back(buffer.found);
  }
  return all;
}

}  // namespace

std::vector<OffsetWords> offset_words(const ptx::Module& module, const ptx::Function& kernel,
                                      const std::set<ptx::RegId>& address_parts) {
  return OffsetWordAnalysis(module, kernel, address_parts).run();
}

}  // namespace ptxkit
