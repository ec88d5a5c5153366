#include "analyzer/prove/arithmetic.hpp"

#include <string_view>

#include <fmt/format.h>

#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::prove {

using ptx::Comparison;
using ptx::Op;
using ptx::TypeKind;

namespace {

class Computation {
 public:
  Computation(Query& query, const flow::Ssa& ssa, const flow::Operation& operation, const Inputs& inputs)
      : query_(&query),
        function_(&ssa.graph().function()),
        operation_(&operation),
        instruction_(operation.instruction),
        inputs_(&inputs),
        width_(operation.width),
        bits_(ptx::bit_width(instruction_->type()) ? ptx::bit_width(instruction_->type()) : width_),
        is_signed_(ptx::kind(instruction_->type()) == TypeKind::signed_int) {}

  std::optional<Term> run();

 private:
  bool is_integer() const;
  Term input(unsigned i, unsigned width) const { return inputs_->operand(operation_->first_source + i, width); }
  std::optional<uint64_t> immediate(unsigned i) const;
  std::optional<Term> binary(std::string_view operation) {
    return query_->resized(query_->apply(operation, bits_, {input(0, bits_), input(1, bits_)}), width_);
  }
  Term move();
  std::optional<Term> convert();
  Term product();
  Term shifted();
  Term divided();
  std::optional<Term> compared();
  std::optional<Term> looked_up();
  std::optional<Term> permuted();
  std::optional<Term> funnel();
  Term field();
  Term inserted();
  Term count_ones();
  // `shift` by any number of bits, of which SMT-LIB's shifts do as PTX's: beyond the width all is shifted out.
  Term shift(std::string_view function, const Term& term, const Term& by) {
    return query_->apply(function, term.width, {term, query_->resized(by, term.width)});
  }
  // Position or length of a field: with 32 bits the low byte of the operand counts, with 64 bits all of it.
  Term place(unsigned i) {
    return query_->resized(bits_ == 64 ? input(i, 32) : query_->part(input(i, 32), 0, 8), bits_);
  }
  Term below(const Term& length, unsigned width) {  // so many ones at the bottom
    return query_->apply("bvnot", width, {shift("bvshl", Query::constant(~0ull, width), length)});
  }

  Query* query_;
  const ptx::Function* function_;
  const flow::Operation* operation_;
  const ptx::Instruction* instruction_;
  const Inputs* inputs_;
  unsigned width_, bits_;  // of the result's register, of the instruction's type
  bool is_signed_;
};

bool Computation::is_integer() const {
  const TypeKind kind = ptx::kind(instruction_->type());
  const bool is_any = instruction_->op == Op::mov || instruction_->op == Op::selp || instruction_->op == Op::cvta;
  return width_ * operation_->parts <= 64 && bits_ <= 64 && kind != TypeKind::packed &&
         (is_any || kind != TypeKind::floating);
}

std::optional<uint64_t> Computation::immediate(unsigned i) const {
  if (i >= operation_->source_count) return std::nullopt;
  const ptx::Operand& operand = function_->operand_pool[operation_->first_source + i];
  return operand.kind == ptx::OperandKind::integer ? std::optional(operand.value) : std::nullopt;
}

Term Computation::move() {
  const uint32_t first = operation_->first_source;
  const ptx::Operand& from = function_->operand_pool[first];
  if (operation_->parts > 1)
    return query_->part(input(0, width_ * operation_->parts), operation_->part * width_, width_);
  if (from.child_count == 0) return input(0, width_);
  const unsigned part = width_ / from.child_count;
  Term whole = inputs_->operand(from.first_child, part);
  for (unsigned i = 1; i < from.child_count; ++i)
    whole = query_->apply("concat", part * (i + 1), {inputs_->operand(from.first_child + i, part), whole});
  return whole;
}

std::optional<Term> Computation::convert() {
  if (instruction_->type_count < 2 || ptx::facts_of(*function_, *instruction_).saturates) return std::nullopt;
  const ptx::Type to = instruction_->types[0], from = instruction_->types[1];
  for (const ptx::Type type : {to, from})
    if (ptx::kind(type) == TypeKind::floating || ptx::kind(type) == TypeKind::packed || ptx::bit_width(type) > 64 ||
        ptx::bit_width(type) == 0)
      return std::nullopt;
  const Term number =
      query_->resized(input(0, ptx::bit_width(from)), ptx::bit_width(to), ptx::kind(from) == TypeKind::signed_int);
  return query_->resized(number, width_, ptx::kind(to) == TypeKind::signed_int);
}

Term Computation::product() {
  const ptx::Product kind = ptx::facts_of(*function_, *instruction_).product;
  const bool is_low = kind == ptx::Product::low;
  const unsigned wide = is_low ? bits_ : 2 * bits_;
  const auto factor = [&](unsigned i) { return query_->resized(input(i, bits_), wide, is_signed_); };
  Term found = query_->apply("bvmul", wide, {factor(0), factor(1)});
  if (kind == ptx::Product::high) found = query_->part(found, bits_, bits_);
  if (instruction_->op == Op::mad) found = query_->apply("bvadd", found.width, {found, input(2, found.width)});
  return query_->resized(found, width_);
}

Term Computation::shifted() {
  const Term number = input(0, bits_), by = input(1, 32);
  const std::string_view function = instruction_->op == Op::shl ? "bvshl" : is_signed_ ? "bvashr" : "bvlshr";
  if (bits_ >= 32) return query_->resized(shift(function, number, by), width_);
  // The amount may not fit into the number's width.
  const Term wide = query_->resized(number, 32, instruction_->op == Op::shr && is_signed_);
  return query_->resized(query_->part(query_->apply(function, 32, {wide, by}), 0, bits_), width_);
}

Term Computation::divided() {
  const bool is_quotient = instruction_->op == Op::div;
  const Term a = input(0, bits_), b = input(1, bits_);
  const Term found = query_->apply(
      is_quotient ? (is_signed_ ? "bvsdiv" : "bvudiv") : (is_signed_ ? "bvsrem" : "bvurem"), bits_, {a, b});
  Term is_open = query_->test("=", b, Query::constant(0, bits_));
  if (is_signed_) is_open = query_->either(is_open, query_->test("=", b, Query::constant(~0ull, bits_)));
  // The open case alone rests on what is not known; programs do not come to it.
  Term result =
      query_->resized(query_->choose(is_open, is_open.constant ? found : inputs_->unknown(bits_), found), width_);
  if (!is_open.constant) result.rests = static_cast<Rests>(found.rests | kOnParameter);
  return result;
}

std::optional<Term> Computation::compared() {
  if (operation_->source_count != 2) return std::nullopt;
  const Term a = input(0, bits_), b = input(1, bits_);
  const auto order = [&](std::string_view is_unsigned, std::string_view has_sign) {
    return query_->test(is_signed_ ? has_sign : is_unsigned, a, b);
  };
  std::optional<Term> found;
  switch (ptx::comparison_of(*function_, *instruction_)) {
    case Comparison::eq:
      found = query_->test("=", a, b);
      break;
    case Comparison::ne:
      found = query_->negation(query_->test("=", a, b));
      break;
    case Comparison::lt:
      found = order("bvult", "bvslt");
      break;
    case Comparison::le:
      found = order("bvule", "bvsle");
      break;
    case Comparison::gt:
      found = order("bvugt", "bvsgt");
      break;
    case Comparison::ge:
      found = order("bvuge", "bvsge");
      break;
    case Comparison::lo:
      found = query_->test("bvult", a, b);
      break;
    case Comparison::ls:
      found = query_->test("bvule", a, b);
      break;
    case Comparison::hi:
      found = query_->test("bvugt", a, b);
      break;
    case Comparison::hs:
      found = query_->test("bvuge", a, b);
      break;
    default:
      return std::nullopt;
  }
  return operation_->part == 1 ? query_->negation(*found) : *found;
}

// lop3: bit 4a + 2b + c of the table is the result for those three bits.
std::optional<Term> Computation::looked_up() {
  const auto table = immediate(3);
  if (!table || operation_->source_count != 4 || operation_->parts > 1) return std::nullopt;
  const Term sources[] = {input(0, bits_), input(1, bits_), input(2, bits_)};
  Term found = Query::constant(0, bits_);
  for (unsigned row = 0; row < 8; ++row) {
    if (!(*table >> row & 1)) continue;
    Term term = Query::constant(~0ull, bits_);
    for (unsigned i = 0; i < 3; ++i) {
      const bool is_set = row >> (2 - i) & 1;
      term = query_->apply("bvand", bits_, {term, is_set ? sources[i] : query_->apply("bvnot", bits_, {sources[i]})});
    }
    found = query_->apply("bvor", bits_, {found, term});
  }
  return query_->resized(found, width_);
}

std::optional<Term> Computation::permuted() {
  const auto selector = immediate(2);
  if (!selector || instruction_->modifier_count != 0) return std::nullopt;
  const Term sources[] = {input(0, 32), input(1, 32)};
  Term found;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned nibble = *selector >> (4 * i) & 15, byte = nibble & 7;
    Term next = query_->part(sources[byte / 4], byte % 4 * 8, 8);
    if (nibble & 8) next = query_->part(query_->resized(query_->part(next, 7, 1), 8, true), 0, 8);
    found = i == 0 ? next : query_->apply("concat", 8 * (i + 1), {next, found});
  }
  return query_->resized(found, width_);
}

// By a constant below 32, where .clamp and .wrap do the same.
std::optional<Term> Computation::funnel() {
  const auto by = immediate(2);
  if (!by || *by >= 32) return std::nullopt;
  const Term pair = query_->apply("concat", 64, {input(1, 32), input(0, 32)});
  const bool is_left = ptx::facts_of(*function_, *instruction_).shifts_left;
  return query_->resized(query_->part(pair, static_cast<unsigned>(is_left ? 32 - *by : *by), 32), width_);
}

Term Computation::field() {
  const Term number = input(0, bits_), first = place(1), length = place(2);
  const Term field = query_->apply("bvand", bits_, {shift("bvlshr", number, first), below(length, bits_)});
  if (!is_signed_) return query_->resized(field, width_);
  // The sign is the field's last bit, or the register's where the field goes beyond it (PTX ISA 9.0, bfe).
  const Term end =
      query_->apply("bvsub", bits_, {query_->apply("bvadd", bits_, {first, length}), Query::constant(1, bits_)});
  const Term last = Query::constant(bits_ - 1, bits_);
  const Term sign = query_->choose(query_->test("bvugt", end, last), last, end);
  const Term is_negative = query_->both(query_->negation(query_->test("=", length, Query::constant(0, bits_))),
                                        query_->part(shift("bvlshr", number, sign), 0, 1));
  const Term kept =
      query_->apply("bvsub", bits_, {query_->apply("bvadd", bits_, {sign, Query::constant(1, bits_)}), first});
  const Term kept_or_none = query_->choose(query_->test("bvult", sign, first), Query::constant(0, bits_), kept);
  const Term ones = query_->apply("bvnot", bits_, {below(kept_or_none, bits_)});
  return query_->resized(query_->choose(is_negative, query_->apply("bvor", bits_, {field, ones}), field), width_);
}

Term Computation::inserted() {
  const Term number = input(0, bits_), into = input(1, bits_), first = place(2), length = place(3);
  const Term mask = shift("bvshl", below(length, bits_), first);
  const Term kept = query_->apply("bvand", bits_, {into, query_->apply("bvnot", bits_, {mask})});
  const Term put = query_->apply("bvand", bits_, {shift("bvshl", number, first), mask});
  return query_->resized(query_->apply("bvor", bits_, {kept, put}), width_);
}

Term Computation::count_ones() {
  const Term number = input(0, bits_);
  Term sum = Query::constant(0, width_);
  for (unsigned i = 0; i < bits_; ++i)
    sum = query_->apply("bvadd", width_, {sum, query_->resized(query_->part(number, i, 1), width_)});
  return sum;
}

std::optional<Term> Computation::run() {
  if (!is_integer()) return std::nullopt;
  const ptx::Facts facts = ptx::facts_of(*function_, *instruction_);
  if (facts.saturates && instruction_->op != Op::cvt) return std::nullopt;
  switch (instruction_->op) {
    case Op::mov:
      return move();
    case Op::cvta:
      return input(0, width_);
    case Op::cvt:
      return convert();
    case Op::add:
      return binary("bvadd");
    case Op::sub:
      return binary("bvsub");
    case Op::mul:
    case Op::mad:
      return product();
    case Op::and_:
      return binary("bvand");
    case Op::or_:
      return binary("bvor");
    case Op::xor_:
      return binary("bvxor");
    case Op::not_:
      return query_->resized(query_->apply("bvnot", bits_, {input(0, bits_)}), width_);
    case Op::neg:
      return query_->resized(query_->apply("bvneg", bits_, {input(0, bits_)}), width_);
    case Op::abs: {
      const Term number = input(0, bits_);
      const Term is_negative = query_->part(number, bits_ - 1, 1);
      return query_->resized(query_->choose(is_negative, query_->apply("bvneg", bits_, {number}), number), width_);
    }
    case Op::min:
    case Op::max: {
      const Term a = input(0, bits_), b = input(1, bits_);
      const Term is_less = query_->test(is_signed_ ? "bvslt" : "bvult", a, b);
      const bool is_minimum = instruction_->op == Op::min;
      return query_->resized(query_->choose(is_less, is_minimum ? a : b, is_minimum ? b : a), width_);
    }
    case Op::popc:
      return count_ones();
    case Op::shl:
    case Op::shr:
      return shifted();
    case Op::div:
    case Op::rem:
      return divided();
    case Op::bfe:
      return field();
    case Op::bfi:
      return inserted();
    case Op::shf:
      return funnel();
    case Op::lop3:
      return looked_up();
    case Op::prmt:
      return permuted();
    case Op::setp:
      return compared();
    case Op::selp:
      return query_->choose(input(2, 1), input(0, width_), input(1, width_));
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Term> computed(Query& query, const flow::Ssa& ssa, const flow::Operation& operation,
                             const Inputs& inputs) {
  return Computation(query, ssa, operation, inputs).run();
}

}  // namespace ptxkit::prove
