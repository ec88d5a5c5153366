#include "analyzer/flow/evaluate.hpp"

#include <algorithm>
#include <functional>

#include "analyzer/ptx/facts.hpp"

namespace ptxkit::flow {

using ptx::Comparison;
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
  const bool less = kind == TypeKind::signed_int ? sign_extended(a, width) < sign_extended(b, width) : a < b;
  switch (ptx::comparison_of(function, instruction)) {
    case Comparison::eq:
      return a == b;
    case Comparison::ne:
      return a != b;
    case Comparison::lt:
      return less;
    case Comparison::le:
      return less || a == b;
    case Comparison::gt:
      return !less && a != b;
    case Comparison::ge:
      return !less;
    case Comparison::lo:
      return a < b;
    case Comparison::ls:
      return a <= b;
    case Comparison::hi:
      return a > b;
    case Comparison::hs:
      return a >= b;
    default:
      return std::nullopt;
  }
}

namespace {

// The answer where it is the same for all numbers of two ranges.
std::optional<bool> compare_ranges(const ptx::Function& function, const ptx::Instruction& instruction, const Range& a,
                                   const Range& b) {
  const Comparison comparison = ptx::comparison_of(function, instruction);
  const bool is_equality = comparison == Comparison::eq || comparison == Comparison::ne;
  if (is_equality && (a.low != a.high || b.low != b.high)) {
    if (a.low <= b.high && b.low <= a.high) return std::nullopt;
    return comparison == Comparison::ne;
  }
  // Signed numbers are in the order of their bits where none is negative.
  const uint64_t most = low_mask(ptx::bit_width(instruction.type()) - 1);
  const bool is_ordered = ptx::kind(instruction.type()) != TypeKind::signed_int || (a.high <= most && b.high <= most);
  if (!is_ordered && (a.low != a.high || b.low != b.high)) return std::nullopt;
  const auto at_one_end = compare(function, instruction, a.low, b.high);
  return at_one_end == compare(function, instruction, a.high, b.low) ? at_one_end : std::nullopt;
}

}  // namespace

Column::Column(std::vector<Bits> each) : each_(std::move(each)) {
  if (std::adjacent_find(each_.begin(), each_.end(), std::not_equal_to<>{}) != each_.end()) return;
  if (!each_.empty()) same_ = each_.front();
  each_.clear();
}

Evaluator::Evaluator(const Forms& forms, std::vector<Thread> threads, std::map<LoopId, int64_t> iterations)
    : forms_(&forms), threads_(std::move(threads)), iterations_(std::move(iterations)) {}

Thread thread_of(const LaunchShape& shape, uint32_t n) {
  if (!shape.is_exact) return {{n, 0, 0}, {0, 0, 0}};
  return {{n % shape.threads[0], n / shape.threads[0] % shape.threads[1], n / (shape.threads[0] * shape.threads[1])},
          {shape.threads[0], shape.threads[1], shape.threads[2]}};
}

std::map<LoopId, int64_t> first_iterations(const Loops& loops, BlockId block) {
  std::map<LoopId, int64_t> first;
  for (LoopId loop = loops.innermost(block); loop != kNone; loop = loops.loop(loop).parent) first[loop] = 0;
  return first;
}

namespace {

// Of one thread. The range of the register does not tell it.
Column::Bits special_of(const Thread& thread, SpecialRegister special, unsigned dimension) {
  // The first row of threads has its number in it, whatever the block's shape.
  const bool is_first_row = thread.tid[1] == 0 && thread.tid[2] == 0;
  const bool is_linear_known = is_first_row || (thread.ntid[0] && thread.ntid[1] && thread.ntid[2]);
  const unsigned lane = thread.linear() % 32;
  const uint64_t below_lane = low_mask(lane), upto = low_mask(lane + 1);
  auto of_lane = [&](uint64_t bits) { return is_linear_known ? Column::Bits(bits) : std::nullopt; };
  switch (special) {
    case SpecialRegister::tid:
      return thread.tid[dimension];
    case SpecialRegister::ntid:
      return thread.ntid[dimension] ? Column::Bits(thread.ntid[dimension]) : std::nullopt;
    case SpecialRegister::ctaid:
      return thread.nctaid[dimension] ? Column::Bits(thread.ctaid[dimension]) : std::nullopt;
    case SpecialRegister::laneid:
      return of_lane(lane);
    case SpecialRegister::lanemask_eq:
      return of_lane(upto & ~below_lane);
    case SpecialRegister::lanemask_lt:
      return of_lane(below_lane);
    case SpecialRegister::lanemask_le:
      return of_lane(upto);
    case SpecialRegister::lanemask_gt:
      return of_lane(low_mask(32) & ~upto);
    case SpecialRegister::lanemask_ge:
      return of_lane(low_mask(32) & ~below_lane);
    default:
      return std::nullopt;
  }
}

}  // namespace

Column Evaluator::special(SpecialRegister special, uint8_t component) const {
  const SpecialRange range = range_of(special, component, forms_->domain().shape());
  if (range.low == range.high) return Column(Bits(range.low));
  const unsigned dimension = component == 'y' ? 1 : component == 'z' ? 2 : 0;
  std::vector<Bits> each;
  each.reserve(threads_.size());
  for (const Thread& thread : threads_) each.push_back(special_of(thread, special, dimension));
  return Column(std::move(each));
}

Column Evaluator::column_of_atom(AtomId id) {
  const Atom& atom = forms_->atom(id);
  switch (atom.kind) {
    case Atom::Kind::value:
      return value(atom.id, 0);
    case Atom::Kind::special:
      return special(static_cast<SpecialRegister>(atom.id), static_cast<uint8_t>(atom.detail));
    case Atom::Kind::iteration: {
      const auto found = iterations_.find(atom.id);
      if (found == iterations_.end()) return {};
      return Column(Bits(static_cast<uint64_t>(found->second)));
    }
    case Atom::Kind::whole:
    case Atom::Kind::parameter:
      return {};
  }
  return {};
}

Column Evaluator::column_of_form(const Form& form) {
  Column sum(Bits(static_cast<uint64_t>(form.constant)));
  for (const Term& term : form.terms) {
    const auto coefficient = static_cast<uint64_t>(term.coefficient);
    const auto add = [coefficient](const Bits& before, const Bits& factor) {
      return before && factor ? Bits(*before + *factor * coefficient) : std::nullopt;
    };
    sum = Column::combine(add, sum, column_of_atom(term.atom));
    if (sum.is_same() && !sum[0]) break;
  }
  return sum;
}

std::optional<int64_t> Evaluator::form(const Form& form) {
  const Bits sum = column_of_form(form)[0];
  return sum ? std::optional(static_cast<int64_t>(*sum)) : std::nullopt;
}

Column Evaluator::source(const Source& source, unsigned width, unsigned depth) {
  switch (source.kind) {
    case Source::Kind::constant:
      return Column(Bits(source.constant & low_mask(width)));
    case Source::Kind::value: {
      const auto cut = [flip = uint64_t{source.negated}, mask = low_mask(width)](const Bits& bits) {
        return bits ? Bits((*bits ^ flip) & mask) : std::nullopt;
      };
      return Column::combine(cut, value(source.id, depth + 1));
    }
    case Source::Kind::variable:
      return Column(Bits(source.constant));
    case Source::Kind::special:
      return special(static_cast<SpecialRegister>(source.id), source.component);
    default:
      return {};
  }
}

Range Evaluator::range(const Source& source, unsigned width) const {
  const Fact fact = forms_->domain().fact_of(source, width);
  const bool is_whole = source.kind != Source::Kind::value || width_of(forms_->domain().ssa(), source.id) == width;
  const bool is_number = is_whole && fact.reached && fact.base == kNoBase;
  return is_number ? Range{fact.low, fact.high} : Range{0, low_mask(width)};
}

const Column& Evaluator::value(ValueId id, unsigned depth) {
  static const Column kUnknown;
  if (depth > kMaxDepth) {
    const auto found = known_.find(id);
    return found == known_.end() ? kUnknown : found->second;
  }
  const auto [place, is_new] = known_.try_emplace(id);  // unknown while it is being computed, and for cycles
  Column& found = place->second;
  if (!is_new) return found;
  const Ssa& ssa = forms_->domain().ssa();
  const Value& defined = ssa.value(id);
  const Fact& fact = forms_->domain().fact(id);
  Column computed;
  if (defined.kind == Value::Kind::phi) {
    if (const Induction* induction = forms_->induction(id)) {
      const auto iteration = iterations_.find(induction->loop);
      if (iteration != iterations_.end()) {
        const uint64_t moved = static_cast<uint64_t>(induction->step) * static_cast<uint64_t>(iteration->second);
        const auto move = [moved, mask = low_mask(width_of(ssa, id))](const Bits& start) {
          return start ? Bits((*start + moved) & mask) : std::nullopt;
        };
        computed = Column::combine(move, column_of_form(induction->start));
      }
    }
  } else if (defined.kind == Value::Kind::result) {
    computed = result(id, depth);
    if (defined.old != kNone) {
      const bool negated = ssa.graph().function().instructions[defined.instruction].guard.negated;
      const auto choose = [negated](const Bits& predicate, const Bits& now, const Bits& old) {
        return !predicate ? std::nullopt : (*predicate != 0) == negated ? old : now;
      };
      const Column& predicate = value(ssa.guard(defined.instruction), depth + 1);
      const bool is_run_by_all = predicate.is_same() && (!predicate[0] || (*predicate[0] != 0) != negated);
      computed = Column::combine(choose, predicate, computed, is_run_by_all ? kUnknown : value(defined.old, depth + 1));
    }
  }
  // A join of equal constants, say. Only where the instructions do not tell, so that facts can be tested against them.
  if (fact.reached && fact.bits.known() == ~0ull && width_of(ssa, id) <= 64)
    computed = Column::combine([&](const Bits& bits) { return bits ? bits : Bits(fact.bits.one); }, computed);
  found = std::move(computed);
  return found;
}

Column Evaluator::result(ValueId id, unsigned depth) {
  const Ssa& ssa = forms_->domain().ssa();
  const ptx::Function& function = ssa.graph().function();
  const Operation operation = operation_of(ssa, id);
  const ptx::Instruction& instruction = *operation.instruction;
  const unsigned width = operation.width;
  const ptx::Type type = instruction.type();
  const TypeKind kind = ptx::kind(type);
  const unsigned bits = ptx::bit_width(type) ? ptx::bit_width(type) : width;
  const bool is_signed = kind == TypeKind::signed_int;
  if (width > 64 || bits > 64 || kind == TypeKind::packed) return {};
  if (kind == TypeKind::floating && instruction.op != Op::mov && instruction.op != Op::selp) return {};
  const uint64_t mask = low_mask(width);
  auto input = [&](unsigned i, unsigned of_width) -> Column {
    if (i >= operation.source_count) return {};
    return source(source_of(ssa, operation.first_source + i), of_width, depth);
  };
  auto signed_of = [&](uint64_t v) { return sign_extended(v, bits); };
  auto binary = [&](auto&& apply) -> Column {
    const Column a = input(0, bits), b = input(1, bits);
    return Column::combine(
        [&](const Bits& x, const Bits& y) -> Bits {
          if (!x || !y) return std::nullopt;
          const Bits r = apply(*x, *y);
          return r ? Bits(*r & mask) : std::nullopt;
        },
        a, b);
  };
  auto unary = [&](const Column& a, auto&& apply) -> Column {
    return Column::combine([&](const Bits& x) { return x ? Bits(apply(*x) & mask) : std::nullopt; }, a);
  };
  const ptx::Facts facts = ptx::facts_of(function, instruction);
  const bool is_high = facts.product == ptx::Product::high, is_wide = facts.product == ptx::Product::wide;
  auto product = [&](uint64_t a, uint64_t b) -> Bits {
    if (is_high) {
      if (bits != 32) return std::nullopt;
      return is_signed ? static_cast<uint64_t>((signed_of(a) * signed_of(b)) >> 32) : (a * b) >> 32;
    }
    if (is_wide && is_signed) return static_cast<uint64_t>(signed_of(a) * signed_of(b));
    return a * b;
  };
  switch (instruction.op) {
    case Op::mov: {
      const ptx::Operand& from = function.operand_pool[operation.first_source];
      if (operation.parts == 1 && from.child_count == 0) return input(0, width);
      if (operation.parts == 1) {
        Column whole(Bits(0));
        const unsigned part = width / from.child_count;
        for (unsigned i = 0; i < from.child_count; ++i) {
          const auto join = [shift = i * part](const Bits& below, const Bits& piece) {
            return below && piece ? Bits(*below | (*piece << shift)) : std::nullopt;
          };
          whole = Column::combine(join, whole, source(source_of(ssa, from.first_child + i), part, depth));
        }
        return whole;
      }
      return unary(input(0, 64), [&](uint64_t whole) { return whole >> (operation.part * width); });
    }
    case Op::cvta:
      return input(0, width);
    case Op::cvt: {
      if (instruction.type_count < 2 || facts.saturates) return {};
      const ptx::Type to = instruction.types[0], from = instruction.types[1];
      if (ptx::kind(to) == TypeKind::floating || ptx::kind(from) == TypeKind::floating) return {};
      const unsigned to_bits = ptx::bit_width(to), from_bits = ptx::bit_width(from);
      return unary(input(0, from_bits), [&](uint64_t number) {
        if (ptx::kind(from) == TypeKind::signed_int) number = static_cast<uint64_t>(sign_extended(number, from_bits));
        number &= low_mask(to_bits);
        if (ptx::kind(to) == TypeKind::signed_int) number = static_cast<uint64_t>(sign_extended(number, to_bits));
        return number;
      });
    }
    case Op::add:
      return binary([](uint64_t a, uint64_t b) -> Bits { return a + b; });
    case Op::sub:
      return binary([](uint64_t a, uint64_t b) -> Bits { return a - b; });
    case Op::mul:
    case Op::mad: {
      Column c = instruction.op == Op::mad ? input(2, width) : Column(Bits(0));
      if (c.is_same() && !c[0]) return c;
      return Column::combine(
          [&](const Bits& a, const Bits& b, const Bits& sum) -> Bits {
            if (!sum) return std::nullopt;
            // Nothing times what is not known is nothing: block 0 of blocks of any size.
            if (a == Bits(0) || b == Bits(0)) return *sum & mask;
            if (!a || !b) return std::nullopt;
            const Bits p = product(*a, *b);
            return p ? Bits((*p + *sum) & mask) : std::nullopt;
          },
          input(0, bits), input(1, bits), c);
    }
    case Op::and_:
      return binary([](uint64_t a, uint64_t b) -> Bits { return a & b; });
    case Op::or_:
      return binary([](uint64_t a, uint64_t b) -> Bits { return a | b; });
    case Op::xor_:
      return binary([](uint64_t a, uint64_t b) -> Bits { return a ^ b; });
    case Op::not_:
      return unary(input(0, bits), [](uint64_t a) { return ~a; });
    case Op::neg:
      return unary(input(0, bits), [](uint64_t a) { return ~a + 1; });
    case Op::abs:
      return unary(input(0, bits), [&](uint64_t a) { return signed_of(a) < 0 ? ~a + 1 : a; });
    case Op::popc:
      return unary(input(0, bits), [](uint64_t a) { return static_cast<uint64_t>(std::popcount(a)); });
    case Op::shl:
    case Op::shr:
      return Column::combine(
          [&](const Bits& a, const Bits& b) -> Bits {
            if (!a || !b) return std::nullopt;
            if (instruction.op == Op::shl) return *b >= width ? 0 : (*a << *b) & mask;
            if (!is_signed) return *b >= bits ? 0 : *a >> *b;
            return static_cast<uint64_t>(signed_of(*a) >> std::min<uint64_t>(*b, 63)) & mask;
          },
          input(0, bits), input(1, 32));
    case Op::min:
      return binary([&](uint64_t a, uint64_t b) -> Bits {
        return is_signed ? (signed_of(a) < signed_of(b) ? a : b) : std::min(a, b);
      });
    case Op::max:
      return binary([&](uint64_t a, uint64_t b) -> Bits {
        return is_signed ? (signed_of(a) > signed_of(b) ? a : b) : std::max(a, b);
      });
    case Op::div:
    case Op::rem:
      return binary([&](uint64_t a, uint64_t b) -> Bits {
        if (b == 0 || (is_signed && signed_of(b) == -1)) return std::nullopt;
        if (!is_signed) return instruction.op == Op::div ? a / b : a % b;
        return static_cast<uint64_t>(instruction.op == Op::div ? signed_of(a) / signed_of(b)
                                                               : signed_of(a) % signed_of(b));
      });
    case Op::bfe:
      return Column::combine(
          [&](const Bits& a, const Bits& at, const Bits& length) -> Bits {
            if (!a || !at || !length) return std::nullopt;
            const auto first = static_cast<unsigned>(*at & 0xff), count = static_cast<unsigned>(*length & 0xff);
            const uint64_t field = first >= bits ? 0 : (*a >> first) & low_mask(count);
            // The sign is the field's last bit, or the register's where the field goes beyond it (PTX ISA 9.0, bfe).
            const unsigned sign = std::min(first + count - 1, bits - 1);
            if (!is_signed || count == 0 || !(*a >> sign & 1)) return field;
            return (field | ~low_mask(sign < first ? 0 : sign - first + 1)) & mask;
          },
          input(0, bits), input(1, 32), input(2, 32));
    case Op::setp: {
      if (operation.source_count != 2) return {};
      // Pointers are numbers only up to their base.
      const Source x = source_of(ssa, operation.first_source), y = source_of(ssa, operation.first_source + 1);
      for (const Source& s : {x, y})
        if (s.kind == Source::Kind::variable ||
            (s.kind == Source::Kind::value && forms_->domain().fact(s.id).base != kNoBase))
          return {};
      // What a thread does not know lies in a range all the same: of %ntid.x / 32 nothing is above 32.
      const Range range_x = range(x, bits), range_y = range(y, bits);
      return Column::combine(
          [&](const Bits& a, const Bits& b) -> Bits {
            const auto holds =
                compare_ranges(function, instruction, a ? Range{*a, *a} : range_x, b ? Range{*b, *b} : range_y);
            return holds ? Bits(*holds != (operation.part == 1)) : std::nullopt;
          },
          source(x, bits, depth), source(y, bits, depth));
    }
    case Op::selp: {
      const Column predicate = input(2, 1);
      if (predicate.is_same()) return predicate[0] ? input(*predicate[0] ? 0 : 1, width) : Column();
      return Column::combine(
          [](const Bits& is_first, const Bits& first, const Bits& second) {
            return !is_first ? std::nullopt : *is_first ? first : second;
          },
          predicate, input(0, width), input(1, width));
    }
    default:
      return {};
  }
}

}  // namespace ptxkit::flow
