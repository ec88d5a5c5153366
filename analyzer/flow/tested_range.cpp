#include "analyzer/flow/tested_range.hpp"

#include <algorithm>
#include <utility>

#include "analyzer/ptx/facts.hpp"

namespace ptxkit::flow {

using ptx::Op;

std::optional<TestedRange> tested_range(const Domain& domain, const Condition& condition) {
  const Ssa& ssa = domain.ssa();
  const Value& predicate = ssa.value(condition.predicate);
  if (predicate.kind != Value::Kind::result || predicate.old != kNone) return std::nullopt;
  const Operation test = operation_of(ssa, condition.predicate);
  const ptx::Instruction& instruction = *test.instruction;
  if (instruction.op != Op::setp || test.source_count != 2 || ptx::kind(instruction.type()) == ptx::TypeKind::floating)
    return std::nullopt;
  Source left = source_of(ssa, test.first_source), right = source_of(ssa, test.first_source + 1);
  const bool is_turned = left.kind == Source::Kind::constant;
  if (is_turned) std::swap(left, right);
  const bool is_known = left.kind == Source::Kind::value || left.kind == Source::Kind::special;
  if (!is_known || right.kind != Source::Kind::constant) return std::nullopt;
  const unsigned width = ptx::bit_width(instruction.type());
  const Fact fact = domain.fact_of(left, width);
  const uint64_t most = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1, bound = right.constant & most;
  const bool is_signed = ptx::kind(instruction.type()) == ptx::TypeKind::signed_int;
  if (!fact.reached || fact.base != kNoBase || (is_signed && (fact.high > most / 2 || bound > most / 2)))
    return std::nullopt;
  // What holds of the value: less than, equal to, greater than the bound.
  using enum ptx::Comparison;
  const ptx::Comparison comparison = ptx::comparison_of(ssa.graph().function(), instruction);
  const auto is_one_of = [&](std::initializer_list<ptx::Comparison> all) {
    return std::ranges::find(all, comparison) != all.end();
  };
  bool less = is_one_of({lt, le, ne, lo, ls});
  bool equal = is_one_of({le, ge, eq, ls, hs});
  bool greater = is_one_of({gt, ge, ne, hi, hs});
  if (!less && !equal && !greater) return std::nullopt;
  const bool is_opposite = (test.part == 1) == condition.expected;  // the second predicate is the opposite of the first
  if (is_opposite) less = !less, equal = !equal, greater = !greater;
  if (is_turned) std::swap(less, greater);
  TestedRange range{left, fact.low, fact.high};
  if (less && greater) return range;
  if (!less) range.low = std::max(range.low, equal ? bound : bound + 1);
  if (!greater) range.high = std::min(range.high, equal || bound == 0 ? bound : bound - 1);
  if ((!less && !equal && bound == most) || (!greater && !equal && bound == 0)) range = {left, 1, 0};
  return range;
}

}  // namespace ptxkit::flow
