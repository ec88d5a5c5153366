#include "analyzer/flow/transfer.hpp"

#include <algorithm>

#include "analyzer/ptx/facts.hpp"

namespace ptxkit::flow {

using ptx::Op;
using ptx::TypeKind;

namespace {

Fact number(Bits bits, uint64_t low, uint64_t high, unsigned width) {
  Fact fact;
  fact.reached = true;
  fact.bits = truncate(bits, width);
  fact.low = low;
  fact.high = std::min(high, low_mask(width));
  return fact;
}

Fact unknown(unsigned width) { return number({}, 0, low_mask(width), width); }

bool is_constant(const Fact& fact) { return fact.low == fact.high; }

// Bit m of `table` is the result where a, b, c are bits 2, 1, 0 of m (PTX ISA, lop3).
Bits three_way_logic(Bits a, Bits b, Bits c, unsigned table) {
  uint64_t can_be_one = 0, can_be_zero = 0;
  for (unsigned m = 0; m < 8; ++m) {
    const uint64_t possible = ~(m & 4 ? a.zero : a.one) & ~(m & 2 ? b.zero : b.one) & ~(m & 1 ? c.zero : c.one);
    (table >> m & 1 ? can_be_one : can_be_zero) |= possible;
  }
  return {~can_be_one, ~can_be_zero};
}

Bits permute(Bits a, Bits b, uint32_t selector) {
  const Bits whole = bit_or(truncate(a, 32), shift_left(truncate(b, 32), 32));
  Bits result = Bits::constant(0);
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned control = selector >> (4 * i) & 0xf;
    Bits byte = truncate(shift_right(whole, 8 * (control & 7)), 8);
    if (control & 8) byte = truncate(shift_right_signed(byte, 7, 8), 8);
    result = bit_or(result, shift_left(byte, 8 * i));
  }
  return result;
}

}  // namespace

Fact integer_multiply(const ptx::Function& function, const ptx::Instruction& instruction, const Fact& a, const Fact& b,
                      unsigned width) {
  const unsigned from = ptx::bit_width(instruction.type());
  const TypeKind kind = ptx::kind(instruction.type());
  const ptx::Product product = ptx::facts_of(function, instruction).product;
  if (kind == TypeKind::floating || kind == TypeKind::packed || product == ptx::Product::high) return unknown(width);
  const bool wide = product == ptx::Product::wide;
  Bits x = truncate(a.bits, from), y = truncate(b.bits, from);
  if (wide && kind == TypeKind::signed_int) {
    x = sign_extend(x, from);
    y = sign_extend(y, from);
  }
  Fact fact = number(multiply(x, y), 0, low_mask(width), width);
  const bool positive =
      kind != TypeKind::signed_int || !wide || (a.high <= low_mask(from - 1) && b.high <= low_mask(from - 1));
  if (positive && (b.high == 0 || a.high <= low_mask(width) / b.high)) {
    fact.low = a.low * b.low;
    fact.high = a.high * b.high;
  }
  return fact;
}

Fact number_operation(const ptx::Function& function, const Operation& operation, std::span<const Fact> inputs) {
  const ptx::Instruction& instruction = *operation.instruction;
  const unsigned width = operation.width;
  const ptx::Type type = instruction.type();
  const TypeKind kind = ptx::kind(type);
  const unsigned bits = ptx::bit_width(type) ? ptx::bit_width(type) : width;
  const bool is_signed = kind == TypeKind::signed_int;
  if (kind == TypeKind::floating || kind == TypeKind::packed) return unknown(width);
  auto non_negative = [&](const Fact& fact) { return !is_signed || fact.high <= low_mask(bits - 1); };
  auto has = [&](size_t count) { return inputs.size() >= count; };
  switch (instruction.op) {
    case Op::mul:
      return has(2) ? integer_multiply(function, instruction, inputs[0], inputs[1], width) : unknown(width);
    case Op::xor_:
      return has(2) ? number(bit_xor(inputs[0].bits, inputs[1].bits), 0, low_mask(width), width) : unknown(width);
    case Op::not_:
      return has(1) ? number(bit_not(inputs[0].bits), 0, low_mask(width), width) : unknown(width);
    case Op::neg:
      return has(1) ? number(subtract(Bits::constant(0), inputs[0].bits), 0, low_mask(width), width) : unknown(width);
    case Op::abs:
      return has(1) && non_negative(inputs[0]) ? inputs[0] : unknown(width);
    case Op::shl: {
      if (!has(2) || !is_constant(inputs[1])) {
        // Whatever the count, zeros come in from below.
        if (!has(2)) return unknown(width);
        const unsigned zeros = std::min(
            63u, inputs[0].bits.trailing_zeros() + static_cast<unsigned>(std::min<uint64_t>(inputs[1].low, 63)));
        return number({low_mask(zeros), 0}, 0, low_mask(width), width);
      }
      const uint64_t count = inputs[1].low;
      if (count >= width) return number(Bits::constant(0), 0, 0, width);
      Fact fact = number(shift_left(inputs[0].bits, static_cast<unsigned>(count)), 0, low_mask(width), width);
      if (inputs[0].high <= low_mask(width) >> count) {
        fact.low = inputs[0].low << count;
        fact.high = inputs[0].high << count;
      }
      return fact;
    }
    case Op::shr: {
      if (!has(2)) return unknown(width);
      if (!is_constant(inputs[1]))
        return non_negative(inputs[0]) ? number({}, 0, inputs[0].high, width) : unknown(width);
      const unsigned count = static_cast<unsigned>(std::min<uint64_t>(inputs[1].low, 63));
      if (non_negative(inputs[0]) || !is_signed)
        return number(shift_right(truncate(inputs[0].bits, bits), count), inputs[0].low >> count,
                      inputs[0].high >> count, width);
      return number(shift_right_signed(inputs[0].bits, count, bits), 0, low_mask(width), width);
    }
    case Op::bfe: {
      if (!has(3) || is_signed || !is_constant(inputs[1]) || !is_constant(inputs[2])) return unknown(width);
      const unsigned at = static_cast<unsigned>(inputs[1].low & 0xff),
                     length = static_cast<unsigned>(inputs[2].low & 0xff);
      if (at >= bits) return number(Bits::constant(0), 0, 0, width);
      return number(truncate(shift_right(inputs[0].bits, at), length), 0, low_mask(std::min(length, bits)), width);
    }
    case Op::bfi: {
      if (!has(4) || !is_constant(inputs[2]) || !is_constant(inputs[3])) return unknown(width);
      const unsigned at = static_cast<unsigned>(inputs[2].low & 0xff),
                     length = static_cast<unsigned>(inputs[3].low & 0xff);
      if (at >= bits || length == 0) return inputs[1];
      const uint64_t field = low_mask(length) << at;
      const Bits inserted = shift_left(inputs[0].bits, at);
      return number({(inputs[1].bits.zero & ~field) | (inserted.zero & field),
                     (inputs[1].bits.one & ~field) | (inserted.one & field)},
                    0, low_mask(width), width);
    }
    case Op::prmt:
      if (!has(3) || !is_constant(inputs[2]) || instruction.modifier_count) return unknown(width);
      return number(permute(inputs[0].bits, inputs[1].bits, static_cast<uint32_t>(inputs[2].low)), 0, low_mask(width),
                    width);
    case Op::lop3:
      if (!has(4) || !is_constant(inputs[3])) return unknown(width);
      return number(
          three_way_logic(inputs[0].bits, inputs[1].bits, inputs[2].bits, static_cast<unsigned>(inputs[3].low)), 0,
          low_mask(width), width);
    case Op::shf: {
      if (!has(3) || !is_constant(inputs[2]) || inputs[2].low >= 32) return unknown(width);
      const unsigned count = static_cast<unsigned>(inputs[2].low);
      const Bits whole = bit_or(truncate(inputs[0].bits, 32), shift_left(truncate(inputs[1].bits, 32), 32));
      return number(
          ptx::facts_of(function, instruction).shifts_left ? shift_right(whole, 32 - count) : shift_right(whole, count),
          0, low_mask(width), width);
    }
    case Op::min:
    case Op::max: {
      if (!has(2)) return unknown(width);
      const Fact &a = inputs[0], &b = inputs[1];
      Fact fact = number(join(a.bits, b.bits), 0, low_mask(width), width);
      const bool least = instruction.op == Op::min;
      if (non_negative(a) && non_negative(b)) {
        fact.low = least ? std::min(a.low, b.low) : std::max(a.low, b.low);
        fact.high = least ? std::min(a.high, b.high) : std::max(a.high, b.high);
      } else if (!least && is_signed && (non_negative(a) || non_negative(b))) {
        fact.high = low_mask(bits - 1);  // one side is not negative, so the larger is not either
      }
      return fact;
    }
    case Op::div: {
      if (!has(2) || !is_constant(inputs[1]) || inputs[1].low == 0 || !non_negative(inputs[0]) ||
          !non_negative(inputs[1]))
        return unknown(width);
      const uint64_t by = inputs[1].low;
      const Bits known = std::has_single_bit(by)
                             ? shift_right(truncate(inputs[0].bits, bits), static_cast<unsigned>(std::countr_zero(by)))
                             : Bits{};
      return number(known, inputs[0].low / by, inputs[0].high / by, width);
    }
    case Op::rem: {
      if (!has(2) || !is_constant(inputs[1]) || inputs[1].low == 0 || !non_negative(inputs[1])) return unknown(width);
      const uint64_t by = inputs[1].low;
      const unsigned tail = static_cast<unsigned>(std::countr_zero(by));
      // a - k * by keeps a's residue modulo the power of two in `by`, whatever the signs.
      const uint64_t mask = low_mask(tail);
      const Bits low_part{inputs[0].bits.zero & mask, inputs[0].bits.one & mask};
      if (!non_negative(inputs[0])) return number(low_part, 0, low_mask(width), width);
      return number(low_part, 0, std::min(by - 1, inputs[0].high), width);
    }
    case Op::popc:
      return number({}, 0, bits, width);
    case Op::clz:
      return number({}, 0, bits, width);
    case Op::set:
      return unknown(width);
    default:
      return unknown(width);
  }
}

}  // namespace ptxkit::flow
