#include "analyzer/flow/delta.hpp"

#include "analyzer/ptx/facts.hpp"

namespace ptxkit::flow {

using ptx::Op;
using ptx::TypeKind;

namespace {

constexpr unsigned kMaxDepth = 32;

bool is_integer(ptx::Type type) {
  return ptx::bit_width(type) >= 8 && ptx::kind(type) != TypeKind::floating && ptx::kind(type) != TypeKind::packed;
}

}  // namespace

Delta::Delta(const Forms& forms, const UniformityAnalysis& row, const Thread& first, const Thread& second,
             std::map<LoopId, int64_t> iterations)
    : forms_(&forms),
      row_(&row),
      first_(forms, first, iterations),
      second_(forms, second, iterations),
      iterations_(std::move(iterations)) {}

std::optional<uint64_t> Delta::of_atom(AtomId id) {
  const Atom& atom = forms_->atom(id);
  switch (atom.kind) {
    case Atom::Kind::value:
      // The value less its base.
      if (forms_->domain().fact(atom.id).base != kNoBase && row_->of(atom.id) > Uniformity::loaded) return std::nullopt;
      return of(atom.id, 0);
    case Atom::Kind::whole:
      return of(atom.id, 0);
    case Atom::Kind::special:
      return of(Source{.kind = Source::Kind::special, .id = atom.id, .component = static_cast<uint8_t>(atom.detail)},
                atom.width, 0);
    case Atom::Kind::parameter:
    case Atom::Kind::iteration:
      return 0;
  }
  return std::nullopt;
}

std::optional<uint64_t> Delta::of(const Source& source, unsigned width, unsigned depth) {
  if (source.kind == Source::Kind::value) return of(source.id, depth + 1);
  if (row_->of(source) <= Uniformity::loaded && source.kind != Source::Kind::none) return 0;
  const auto a = first_.operand(source, width), b = second_.operand(source, width);
  return a && b ? std::optional((*b - *a) & 0xff) : std::nullopt;
}

// ab - a'b' is 0 where neither differs, and where one factor is the same known number that number times the other's.
std::optional<uint64_t> Delta::product(const Operation& operation, unsigned width, unsigned depth) {
  const Ssa& ssa = forms_->domain().ssa();
  const Source factors[2] = {source_of(ssa, operation.first_source), source_of(ssa, operation.first_source + 1)};
  const auto a = of(factors[0], width, depth), b = of(factors[1], width, depth);
  if (!a || !b) return std::nullopt;
  if (*a == 0 && *b == 0) return 0;
  for (const unsigned same : {0u, 1u}) {
    const auto number = first_.operand(factors[same], width);
    if ((same ? *b : *a) == 0 && number) return (*number * (same ? *a : *b)) & 0xff;
  }
  return std::nullopt;
}

// What a loop's phi is in iteration 0, where that is one value.
ValueId Delta::first_argument(ValueId phi) const {
  const Ssa& ssa = forms_->domain().ssa();
  const Loops& loops = forms_->loops();
  const BlockId header = ssa.value(phi).block;
  const LoopId loop = loops.innermost(header);
  const auto iteration = iterations_.find(loop);
  if (loop == kNone || loops.loop(loop).header != header || iteration == iterations_.end() || iteration->second != 0)
    return kNone;
  ValueId entering = kNone;
  const auto predecessors = ssa.graph().predecessors(header);
  for (uint32_t edge = 0; edge < predecessors.size(); ++edge) {
    if (loops.is_back_edge(predecessors[edge], header)) continue;
    if (entering != kNone) return kNone;
    entering = ssa.arguments(phi)[edge];
  }
  return entering;
}

std::optional<uint64_t> Delta::of(ValueId id, unsigned depth) {
  if (row_->of(id) <= Uniformity::loaded) return 0;
  const auto a = first_.value(id), b = second_.value(id);
  if (a && b && forms_->domain().fact(id).base == kNoBase) return (*b - *a) & 0xff;
  const Ssa& ssa = forms_->domain().ssa();
  const Value& value = ssa.value(id);
  if (depth > kMaxDepth) return std::nullopt;
  if (value.kind == Value::Kind::phi) {
    const ValueId entering = first_argument(id);
    return entering == kNone ? std::nullopt : of(entering, depth + 1);
  }
  if (value.kind != Value::Kind::result || value.old != kNone) return std::nullopt;
  const Operation operation = operation_of(ssa, id);
  const ptx::Instruction& instruction = *operation.instruction;
  const ptx::Function& function = ssa.graph().function();
  if (operation.parts != 1 || operation.width < 8) return std::nullopt;
  const unsigned width = ptx::bit_width(instruction.type()) ? ptx::bit_width(instruction.type()) : operation.width;
  auto input = [&](unsigned i) { return of(source_of(ssa, operation.first_source + i), width, depth); };
  switch (instruction.op) {
    case Op::mov:
    case Op::cvta:
      if (operation.source_count != 1 || function.operand_pool[operation.first_source].child_count) return std::nullopt;
      return input(0);
    case Op::cvt:
      if (instruction.type_count < 2 || ptx::facts_of(function, instruction).saturates ||
          !is_integer(instruction.types[0]) || !is_integer(instruction.types[1]))
        return std::nullopt;
      return input(0);
    case Op::add:
    case Op::sub: {
      const auto x = input(0), y = input(1);
      if (!is_integer(instruction.type()) || !x || !y) return std::nullopt;
      return (instruction.op == Op::add ? *x + *y : *x - *y) & 0xff;
    }
    case Op::mul:
    case Op::mad: {
      if (!is_integer(instruction.type()) || ptx::facts_of(function, instruction).product == ptx::Product::high)
        return std::nullopt;
      const auto x = product(operation, width, depth);
      const auto y = instruction.op == Op::mad ? input(2) : std::optional<uint64_t>(0);
      return x && y ? std::optional((*x + *y) & 0xff) : std::nullopt;
    }
    case Op::shl: {
      const Source count = source_of(ssa, operation.first_source + 1);
      const auto x = input(0);
      if (!x || count.kind != Source::Kind::constant) return std::nullopt;
      return count.constant >= 8 ? 0 : (*x << count.constant) & 0xff;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace ptxkit::flow
