#include "analyzer/flow/evaluate.hpp"

#include <algorithm>

namespace ptxkit::flow {

using ptx::Mod;
using ptx::Op;
using ptx::SpecialRegister;
using ptx::TypeKind;

namespace {

constexpr unsigned kMaxDepth = 128;

int64_t sign_extended(uint64_t value, unsigned width) {
  if (width >= 64) return static_cast<int64_t>(value);
  const unsigned shift = 64 - width;
  return static_cast<int64_t>(value << shift) >> shift;
}

}  // namespace

std::optional<bool> compare(const ptx::Function& function, const ptx::Instruction& instruction, uint64_t a,
                            uint64_t b) {
  const TypeKind kind = ptx::kind(instruction.type());
  const unsigned width = ptx::bit_width(instruction.type());
  if (kind == TypeKind::floating || kind == TypeKind::packed || width == 0) return std::nullopt;
  a &= low_mask(width);
  b &= low_mask(width);
  auto has = [&](Mod mod) { return function.has(instruction, mod); };
  if (has(Mod::eq)) return a == b;
  if (has(Mod::ne)) return a != b;
  const bool less = kind == TypeKind::signed_int ? sign_extended(a, width) < sign_extended(b, width) : a < b;
  if (has(Mod::lt)) return less;
  if (has(Mod::le)) return less || a == b;
  if (has(Mod::gt)) return !less && a != b;
  if (has(Mod::ge)) return !less;
  // lo, ls, hi, hs compare unsigned whatever the type.
  if (has(Mod::lo)) return a < b;
  if (has(Mod::ls)) return a <= b;
  if (has(Mod::hi)) return a > b;
  if (has(Mod::hs)) return a >= b;
  return std::nullopt;
}

Evaluator::Evaluator(const Forms& forms, const Thread& thread, std::map<LoopId, int64_t> iterations)
    : forms_(&forms), thread_(thread), iterations_(std::move(iterations)) {}

std::map<LoopId, int64_t> first_iterations(const Loops& loops, BlockId block) {
  std::map<LoopId, int64_t> first;
  for (LoopId loop = loops.innermost(block); loop != kNone; loop = loops.loop(loop).parent) first[loop] = 0;
  return first;
}

std::optional<uint64_t> Evaluator::special(SpecialRegister special, uint8_t component) const {
  const unsigned dimension = component == 'y' ? 1 : component == 'z' ? 2 : 0;
  // The first row of threads has its number in it, whatever the block's shape.
  const bool is_first_row = thread_.tid[1] == 0 && thread_.tid[2] == 0;
  const bool is_linear_known = is_first_row || (thread_.ntid[0] && thread_.ntid[1] && thread_.ntid[2]);
  const SpecialRange range = range_of(special, component, forms_->domain().shape());
  if (range.low == range.high) return range.low;
  switch (special) {
    case SpecialRegister::tid:
      return thread_.tid[dimension];
    case SpecialRegister::ntid:
      if (thread_.ntid[dimension]) return thread_.ntid[dimension];
      return std::nullopt;
    case SpecialRegister::ctaid:
      if (thread_.nctaid[dimension]) return thread_.ctaid[dimension];
      return std::nullopt;
    case SpecialRegister::laneid:
      if (is_linear_known) return thread_.linear() % 32;
      return std::nullopt;
    case SpecialRegister::lanemask_eq:
    case SpecialRegister::lanemask_lt:
    case SpecialRegister::lanemask_le:
    case SpecialRegister::lanemask_gt:
    case SpecialRegister::lanemask_ge: {
      if (!is_linear_known) return std::nullopt;
      const unsigned lane = thread_.linear() % 32;
      const uint64_t below_lane = low_mask(lane), upto = low_mask(lane + 1);
      switch (special) {
        case SpecialRegister::lanemask_eq:
          return upto & ~below_lane;
        case SpecialRegister::lanemask_lt:
          return below_lane;
        case SpecialRegister::lanemask_le:
          return upto;
        case SpecialRegister::lanemask_gt:
          return low_mask(32) & ~upto;
        default:
          return low_mask(32) & ~below_lane;
      }
    }
    default:
      return std::nullopt;
  }
}

std::optional<uint64_t> Evaluator::atom(AtomId id) {
  const Atom& atom = forms_->atom(id);
  switch (atom.kind) {
    case Atom::Kind::value:
      return value(atom.id, 0);
    case Atom::Kind::special:
      return special(static_cast<SpecialRegister>(atom.id), static_cast<uint8_t>(atom.detail));
    case Atom::Kind::iteration: {
      const auto found = iterations_.find(atom.id);
      if (found == iterations_.end()) return std::nullopt;
      return static_cast<uint64_t>(found->second);
    }
    case Atom::Kind::whole:
    case Atom::Kind::parameter:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<int64_t> Evaluator::form(const Form& form) {
  uint64_t sum = static_cast<uint64_t>(form.constant);
  for (const Term& term : form.terms) {
    const auto factor = atom(term.atom);
    if (!factor) return std::nullopt;
    sum += *factor * static_cast<uint64_t>(term.coefficient);
  }
  return static_cast<int64_t>(sum);
}

std::optional<uint64_t> Evaluator::source(const Source& source, unsigned width, unsigned depth) {
  switch (source.kind) {
    case Source::Kind::constant:
      return source.constant & low_mask(width);
    case Source::Kind::value: {
      auto found = value(source.id, depth + 1);
      if (found && source.negated) *found ^= 1;
      if (found) *found &= low_mask(width);
      return found;
    }
    case Source::Kind::variable:
      return source.constant;
    case Source::Kind::special:
      return special(static_cast<SpecialRegister>(source.id), source.component);
    default:
      return std::nullopt;
  }
}

std::optional<uint64_t> Evaluator::value(ValueId id, unsigned depth) {
  if (const auto found = known_.find(id); found != known_.end()) return found->second;
  if (depth > kMaxDepth) return std::nullopt;
  known_[id] = std::nullopt;  // while it is being computed, and for cycles
  const Ssa& ssa = forms_->domain().ssa();
  const Value& defined = ssa.value(id);
  const Fact& fact = forms_->domain().fact(id);
  std::optional<uint64_t> found;
  if (defined.kind == Value::Kind::phi) {
    if (const Induction* induction = forms_->induction(id)) {
      const auto start = form(induction->start);
      const auto iteration = iterations_.find(induction->loop);
      if (start && iteration != iterations_.end())
        found = (static_cast<uint64_t>(*start) +
                 static_cast<uint64_t>(induction->step) * static_cast<uint64_t>(iteration->second)) &
                low_mask(width_of(ssa, id));
    }
  } else if (defined.kind == Value::Kind::result) {
    found = result(id, depth);
    if (defined.old != kNone) {
      const auto& guard = forms_->domain().ssa().graph().function().instructions[defined.instruction].guard;
      const auto predicate = value(ssa.guard(defined.instruction), depth + 1);
      if (!predicate)
        found = std::nullopt;
      else if ((*predicate != 0) == guard.negated)
        found = value(defined.old, depth + 1);
    }
  }
  // A join of equal constants, say. Only where the instructions do not tell, so that facts can be tested against them.
  if (!found && fact.reached && fact.bits.known() == ~0ull && width_of(ssa, id) <= 64) found = fact.bits.one;
  known_[id] = found;
  return found;
}

std::optional<uint64_t> Evaluator::result(ValueId id, unsigned depth) {
  const Ssa& ssa = forms_->domain().ssa();
  const ptx::Function& function = ssa.graph().function();
  const Operation operation = operation_of(ssa, id);
  const ptx::Instruction& instruction = *operation.instruction;
  const unsigned width = operation.width;
  const ptx::Type type = instruction.type();
  const TypeKind kind = ptx::kind(type);
  const unsigned bits = ptx::bit_width(type) ? ptx::bit_width(type) : width;
  const bool is_signed = kind == TypeKind::signed_int;
  if (width > 64 || bits > 64 || kind == TypeKind::packed) return std::nullopt;
  if (kind == TypeKind::floating && instruction.op != Op::mov && instruction.op != Op::selp) return std::nullopt;
  const uint64_t mask = low_mask(width);
  auto input = [&](unsigned i, unsigned of_width) -> std::optional<uint64_t> {
    if (i >= operation.source_count) return std::nullopt;
    return source(source_of(ssa, operation.first_source + i), of_width, depth);
  };
  auto signed_of = [&](uint64_t v) { return sign_extended(v, bits); };
  auto binary = [&](auto&& apply) -> std::optional<uint64_t> {
    const auto a = input(0, bits), b = input(1, bits);
    if (!a || !b) return std::nullopt;
    const std::optional<uint64_t> r = apply(*a, *b);
    return r ? std::optional(*r & mask) : std::nullopt;
  };
  auto unary = [&](auto&& apply) -> std::optional<uint64_t> {
    const auto a = input(0, bits);
    return a ? std::optional<uint64_t>(apply(*a) & mask) : std::nullopt;
  };
  using Maybe = std::optional<uint64_t>;
  auto product = [&](uint64_t a, uint64_t b) -> Maybe {
    if (function.has(instruction, Mod::hi)) {
      if (bits != 32) return std::nullopt;
      return is_signed ? static_cast<uint64_t>((signed_of(a) * signed_of(b)) >> 32) : (a * b) >> 32;
    }
    if (function.has(instruction, Mod::wide) && is_signed) return static_cast<uint64_t>(signed_of(a) * signed_of(b));
    return a * b;
  };
  switch (instruction.op) {
    case Op::mov: {
      const ptx::Operand& from = function.operand_pool[operation.first_source];
      if (operation.parts == 1 && from.child_count == 0) return input(0, width);
      if (operation.parts == 1) {
        uint64_t whole = 0;
        const unsigned part = width / from.child_count;
        for (unsigned i = 0; i < from.child_count; ++i) {
          const auto piece = source(source_of(ssa, from.first_child + i), part, depth);
          if (!piece) return std::nullopt;
          whole |= *piece << (i * part);
        }
        return whole;
      }
      const auto whole = input(0, 64);
      return whole ? Maybe(*whole >> (operation.part * width) & mask) : std::nullopt;
    }
    case Op::cvta:
      return input(0, width);
    case Op::cvt: {
      if (instruction.type_count < 2 || function.has(instruction, Mod::sat)) return std::nullopt;
      const ptx::Type to = instruction.types[0], from = instruction.types[1];
      if (ptx::kind(to) == TypeKind::floating || ptx::kind(from) == TypeKind::floating) return std::nullopt;
      const auto a = input(0, ptx::bit_width(from));
      if (!a) return a;
      uint64_t number = *a;
      if (ptx::kind(from) == TypeKind::signed_int)
        number = static_cast<uint64_t>(sign_extended(number, ptx::bit_width(from)));
      number &= low_mask(ptx::bit_width(to));
      if (ptx::kind(to) == TypeKind::signed_int)
        number = static_cast<uint64_t>(sign_extended(number, ptx::bit_width(to)));
      return number & mask;
    }
    case Op::add:
      return binary([](uint64_t a, uint64_t b) -> Maybe { return a + b; });
    case Op::sub:
      return binary([](uint64_t a, uint64_t b) -> Maybe { return a - b; });
    case Op::mul:
    case Op::mad: {
      const Maybe c = instruction.op == Op::mad ? input(2, width) : Maybe(0);
      if (!c) return c;
      // Nothing times what is not known is nothing: block 0 of blocks of any size.
      for (const unsigned i : {0u, 1u})
        if (input(i, bits) == Maybe(0)) return *c & mask;
      return binary([&](uint64_t a, uint64_t b) -> Maybe {
        const auto p = product(a, b);
        return p ? Maybe(*p + *c) : std::nullopt;
      });
    }
    case Op::and_:
      return binary([](uint64_t a, uint64_t b) -> Maybe { return a & b; });
    case Op::or_:
      return binary([](uint64_t a, uint64_t b) -> Maybe { return a | b; });
    case Op::xor_:
      return binary([](uint64_t a, uint64_t b) -> Maybe { return a ^ b; });
    case Op::not_:
      return unary([](uint64_t a) { return ~a; });
    case Op::neg:
      return unary([](uint64_t a) { return ~a + 1; });
    case Op::abs:
      return unary([&](uint64_t a) { return signed_of(a) < 0 ? ~a + 1 : a; });
    case Op::popc:
      return unary([](uint64_t a) { return static_cast<uint64_t>(std::popcount(a)); });
    case Op::shl:
    case Op::shr: {
      const auto a = input(0, bits), b = input(1, 32);
      if (!a || !b) return std::nullopt;
      if (instruction.op == Op::shl) return *b >= width ? 0 : (*a << *b) & mask;
      if (!is_signed) return *b >= bits ? 0 : *a >> *b;
      return static_cast<uint64_t>(signed_of(*a) >> std::min<uint64_t>(*b, 63)) & mask;
    }
    case Op::min:
      return binary([&](uint64_t a, uint64_t b) -> Maybe {
        return is_signed ? (signed_of(a) < signed_of(b) ? a : b) : std::min(a, b);
      });
    case Op::max:
      return binary([&](uint64_t a, uint64_t b) -> Maybe {
        return is_signed ? (signed_of(a) > signed_of(b) ? a : b) : std::max(a, b);
      });
    case Op::div:
    case Op::rem:
      return binary([&](uint64_t a, uint64_t b) -> Maybe {
        if (b == 0 || (is_signed && signed_of(b) == -1)) return std::nullopt;
        if (!is_signed) return instruction.op == Op::div ? a / b : a % b;
        return static_cast<uint64_t>(instruction.op == Op::div ? signed_of(a) / signed_of(b)
                                                               : signed_of(a) % signed_of(b));
      });
    case Op::bfe: {
      const auto a = input(0, bits), at = input(1, 32), length = input(2, 32);
      if (!a || !at || !length) return std::nullopt;
      const auto first = static_cast<unsigned>(*at & 0xff), count = static_cast<unsigned>(*length & 0xff);
      const uint64_t field = first >= bits ? 0 : (*a >> first) & low_mask(count);
      // The sign is the field's last bit, or the register's where the field goes beyond it (PTX ISA 9.0, bfe).
      const unsigned sign = std::min(first + count - 1, bits - 1);
      if (!is_signed || count == 0 || !(*a >> sign & 1)) return field;
      return (field | ~low_mask(sign < first ? 0 : sign - first + 1)) & mask;
    }
    case Op::setp: {
      if (operation.source_count != 2) return std::nullopt;
      const auto a = input(0, bits), b = input(1, bits);
      if (!a || !b) return std::nullopt;
      // Pointers are numbers only up to their base.
      const Source x = source_of(ssa, operation.first_source), y = source_of(ssa, operation.first_source + 1);
      for (const Source& s : {x, y})
        if (s.kind == Source::Kind::variable ||
            (s.kind == Source::Kind::value && forms_->domain().fact(s.id).base != kNoBase))
          return std::nullopt;
      const auto holds = compare(function, instruction, *a, *b);
      if (!holds) return std::nullopt;
      return static_cast<uint64_t>(*holds != (operation.part == 1));
    }
    case Op::selp: {
      const auto predicate = input(2, 1);
      if (!predicate) return std::nullopt;
      return input(*predicate ? 0 : 1, width);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace ptxkit::flow
