#include "analyzer/prove/thread.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "analyzer/flow/bits.hpp"
#include "analyzer/flow/launch.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/prove/arithmetic.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"

namespace ptxkit::prove {

using flow::BlockId;
using flow::kNone;
using flow::LoopId;
using flow::low_mask;
using flow::Source;
using flow::Uniformity;
using flow::ValueId;
using ptx::AccessKind;
using ptx::Op;
using ptx::Space;
using ptx::SpecialRegister;

namespace {

constexpr unsigned kMaxDepth = 400;
constexpr unsigned kTurnBits = 32;
constexpr uint64_t kLargestStart = 1 << 24;  // of a variable in shared or local memory

}  // namespace

Threads::Threads(const Kernel& kernel, Query& query)
    : kernel_(&kernel),
      query_(&query),
      ssa_(&kernel.forms.domain().ssa()),
      loops_(&kernel.forms.loops()),
      domain_(&kernel.forms.domain()),
      function_(&ssa_->graph().function()) {
  for (const ptx::Access& access : kernel.accesses) {
    const flow::BaseId base = kernel.forms.address(access).base;
    accessed_.insert(base);
    if (access.kind == AccessKind::load) continue;
    const flow::Base::Kind kind = domain_->base(base).kind;
    if (kind == flow::Base::Kind::parameter || kind == flow::Base::Kind::variable)
      written_.insert(base);
    else
      writes_anywhere_ = true;
  }
  for (const ptx::Instruction& instruction : function_->instructions) {
    const ptx::Facts facts = ptx::facts_of(*function_, instruction);
    if (facts.writes_global_elsewhere || facts.writes_shared_elsewhere || instruction.op == Op::call)
      writes_anywhere_ = true;
  }
}

bool Threads::has_same_turns(LoopId loop) const {
  const flow::Graph& graph = ssa_->graph();
  for (const BlockId block : graph.reverse_postorder()) {
    if (!loops_->contains(loop, block)) continue;
    const auto next = graph.successors(block);
    const bool leaves =
        graph.block(block).exits || std::ranges::any_of(next, [&](BlockId to) { return !loops_->contains(loop, to); });
    if (leaves && kernel_->uniformity.branch(block) > Uniformity::loaded) return false;
  }
  return true;
}

Turn Threads::turn_of(LoopId loop, const Moment& at) const {
  const auto found = at.turns.find(loop);
  if (found != at.turns.end()) return found->second;
  const bool is_shared = at.shares_block && has_same_turns(loop);
  const LoopId outer = loops_->loop(loop).parent;
  return {fmt::format("turn{}.{}{}", loop, is_shared ? 's' : at.thread,
                      outer == kNone ? "" : place_of(loops_->loop(outer).header, at))};
}

// The turns of the loops around a block, for names.
std::string Threads::place_of(BlockId block, const Moment& at) const {
  std::string name;
  for (LoopId loop = loops_->innermost(block); loop != kNone; loop = loops_->loop(loop).parent) {
    const Turn turn = turn_of(loop, at);
    name += fmt::format("@{}{:+}", turn.symbol, turn.offset);
  }
  return name;
}

std::string Threads::key_of(const Moment& at) const {
  std::string key(1, at.thread);
  for (const auto& [loop, turn] : at.turns) key += fmt::format(" {}={}{:+}", loop, turn.symbol, turn.offset);
  return key;
}

Term Threads::number_of(const Turn& turn) {
  if (turn.symbol.empty()) return Query::constant(static_cast<uint64_t>(turn.offset), kTurnBits);
  Term number = query_->symbol(turn.symbol, kTurnBits, kOnTurn);
  if (turn.offset == 0) return number;
  return query_->apply("bvadd", kTurnBits, {number, Query::constant(static_cast<uint64_t>(turn.offset), kTurnBits)});
}

Moment Threads::before(LoopId loop, const Moment& at) const {
  Moment earlier = at;
  Turn turn = turn_of(loop, at);
  --turn.offset;
  earlier.turns[loop] = turn;
  return earlier;
}

Term Threads::value(ValueId id, const Moment& at) {
  const auto key = std::pair(id, key_of(at));
  if (const auto found = values_.find(key); found != values_.end()) return found->second;
  if (depth_ >= kMaxDepth || query_->is_full()) return unknown(id, at);
  ++depth_;
  const Term term = compute(id, at);
  --depth_;
  values_.insert_or_assign(key, term);
  return term;
}

Term Threads::compute(ValueId id, const Moment& at) {
  const flow::Value& value = ssa_->value(id);
  const unsigned width = flow::width_of(*ssa_, id);
  const flow::Fact& fact = domain_->fact(id);
  if (width <= 64 && fact.reached && fact.base == flow::kNoBase && fact.low == fact.high)
    return Query::constant(fact.low, width);
  switch (value.kind) {
    case flow::Value::Kind::undefined:
      return unknown(id, at);
    case flow::Value::Kind::phi: {
      const LoopId loop = loops_->innermost(value.block);
      const bool is_header = loop != kNone && loops_->loop(loop).header == value.block;
      return is_header ? phi_of_header(id, loop, at) : phi_of_join(id, at);
    }
    case flow::Value::Kind::result: {
      Term now = result(id, at);
      if (value.old == kNone) return now;
      Term runs = this->value(ssa_->guard(value.instruction), at);
      if (function_->instructions[value.instruction].guard.negated) runs = query_->negation(runs);
      return query_->choose(runs, now, this->value(value.old, at));
    }
  }
  return unknown(id, at);
}

// Anything within what the domain knows. What is the same for all threads of a block has one symbol for both.
Term Threads::unknown(ValueId id, const Moment& at) {
  const flow::Value& value = ssa_->value(id);
  const unsigned width = flow::width_of(*ssa_, id);
  const bool is_shared = at.shares_block && kernel_->uniformity.of(id) <= Uniformity::loaded;
  bool is_new = false;
  const Term term = query_->symbol(fmt::format("v{}.{}{}", id, is_shared ? 's' : at.thread, place_of(value.block, at)),
                                   width, kOnUnknown, &is_new);
  const flow::Fact& fact = domain_->fact(id);
  if (!is_new || width > 64 || !fact.reached || fact.base != flow::kNoBase) return term;
  if (fact.low > 0) query_->require(query_->test("bvuge", term, Query::constant(fact.low, width)));
  if (fact.high < low_mask(width)) query_->require(query_->test("bvule", term, Query::constant(fact.high, width)));
  if (const uint64_t known = fact.bits.known() & low_mask(width); known != 0)
    query_->require(query_->test("=", query_->apply("bvand", width, {term, Query::constant(known, width)}),
                                 Query::constant(fact.bits.one, width)));
  return term;
}

void Threads::require_multiple(const Term& term, uint64_t of) {
  query_->require(query_->test("=", query_->apply("bvand", term.width, {term, Query::constant(of - 1, term.width)}),
                               Query::constant(0, term.width)));
}

Term Threads::start_of_variable(ptx::VariableId id) {
  const ptx::Variable& variable = domain_->module().variables[id];
  // Shared and local addresses have 32 bits.
  const bool is_short = variable.space == Space::shared || variable.space == Space::local;
  const unsigned bits = is_short ? 32 : 64;
  bool is_new = false;
  const Term start = query_->symbol(fmt::format("start{}", id), bits, 0, &is_new);
  if (is_new && variable.align > 1) require_multiple(start, variable.align);
  if (is_new && is_short) query_->require(query_->test("bvult", start, Query::constant(kLargestStart, bits)));
  return start;
}

std::optional<Term> Threads::start(flow::BaseId base, uint32_t multiple_of) {
  const flow::Base& of = domain_->base(base);
  std::optional<Term> start;
  if (of.kind == flow::Base::Kind::variable) start = start_of_variable(of.id);
  if (of.kind == flow::Base::Kind::parameter) {
    const ptx::Variable& variable = domain_->module().variables[of.id];
    const unsigned bits = domain_->module().address_size;
    // The symbol of parameter().
    if (variable.parameter_index != kNone)
      start = query_->symbol(fmt::format("param{}+{}.{}", variable.parameter_index, of.offset_bytes, bits), bits, 0);
  }
  if (start && multiple_of > 1) require_multiple(*start, multiple_of);
  return start;
}

Term Threads::source(const Source& source, unsigned width, const Moment& at) {
  switch (source.kind) {
    case Source::Kind::constant:
      return Query::constant(source.constant, width);
    case Source::Kind::value: {
      Term term = value(source.id, at);
      if (source.negated) term = query_->negation(term);
      return query_->resized(term, width);
    }
    case Source::Kind::variable:
      return query_->apply(
          "bvadd", width,
          {query_->resized(start_of_variable(source.id), width), Query::constant(source.constant, width)});
    case Source::Kind::special:
      return query_->resized(special(static_cast<SpecialRegister>(source.id),
                                     source.component == 'y'   ? 1
                                     : source.component == 'z' ? 2
                                                               : 0,
                                     at),
                             width);
    default:
      return query_->symbol(fmt::format("u{}", unknown_count_++), width, kOnUnknown);
  }
}

Term Threads::operand(uint32_t pool_index, unsigned width, const Moment& at) {
  const ptx::Operand& operand = function_->operand_pool[pool_index];
  if (operand.kind == ptx::OperandKind::float32 || operand.kind == ptx::OperandKind::float64)
    return Query::constant(operand.value, width);
  return source(flow::source_of(*ssa_, pool_index), width, at);
}

Term Threads::special(SpecialRegister special, unsigned dimension, const Moment& at) {
  const flow::LaunchShape& shape = domain_->shape();
  const auto component = static_cast<uint8_t>('x' + dimension);
  const flow::SpecialRange range = flow::range_of(special, component, shape);
  const unsigned width = std::max(8u, ptx::bit_width(ptx::type(special)));
  if (range.low == range.high) return Query::constant(range.low, width);
  const char name = "xyz"[dimension];
  bool is_new = false;
  Term term;
  switch (special) {
    case SpecialRegister::tid:
      term = query_->symbol(fmt::format("tid.{}.{}", name, at.thread), 32, 0, &is_new);
      if (is_new) query_->require(query_->test("bvult", term, this->special(SpecialRegister::ntid, dimension, at)));
      return term;
    case SpecialRegister::ctaid:
      term =
          query_->symbol(at.shares_block ? fmt::format("ctaid.{}", name) : fmt::format("ctaid.{}.{}", name, at.thread),
                         32, 0, &is_new);
      if (is_new) query_->require(query_->test("bvult", term, this->special(SpecialRegister::nctaid, dimension, at)));
      return term;
    case SpecialRegister::ntid:
    case SpecialRegister::nctaid: {
      const bool is_block = special == SpecialRegister::ntid;
      term = query_->symbol(fmt::format("{}.{}", is_block ? "ntid" : "nctaid", name), 32, kOnParameter, &is_new);
      if (is_new) {
        query_->require(query_->test("bvuge", term, Query::constant(range.low, 32)));
        query_->require(query_->test("bvule", term, Query::constant(range.high, 32)));
      }
      return term;
    }
    case SpecialRegister::laneid:
      return query_->apply("bvand", 32, {linear_tid(at), Query::constant(31, 32)});
    default:
      term = query_->symbol(fmt::format("{}{}.{}", ptx::text(special).substr(1), name, at.thread), width, kOnUnknown,
                            &is_new);
      if (is_new && range.high < low_mask(width)) {
        query_->require(query_->test("bvuge", term, Query::constant(range.low, width)));
        query_->require(query_->test("bvule", term, Query::constant(range.high, width)));
      }
      return term;
  }
}

Term Threads::linear_tid(const Moment& at) {
  const auto of = [&](SpecialRegister which, unsigned d) { return special(which, d, at); };
  const Term row =
      query_->apply("bvadd", 32,
                    {of(SpecialRegister::tid, 1),
                     query_->apply("bvmul", 32, {of(SpecialRegister::tid, 2), of(SpecialRegister::ntid, 1)})});
  return query_->apply("bvadd", 32,
                       {of(SpecialRegister::tid, 0), query_->apply("bvmul", 32, {row, of(SpecialRegister::ntid, 0)})});
}

Term Threads::result(ValueId id, const Moment& at) {
  const flow::Operation operation = flow::operation_of(*ssa_, id);
  const ptx::Instruction& instruction = *operation.instruction;
  if (instruction.op == Op::ld && instruction.space == Space::param) return parameter(operation, id, at);
  if (instruction.op == Op::ld || instruction.op == Op::ldu) return loaded(operation, id, at);
  const Inputs inputs{[&](uint32_t pool_index, unsigned width) { return operand(pool_index, width, at); },
                      [&](unsigned width) { return query_->resized(unknown(id, at), width); }};
  const auto term = computed(*query_, *ssa_, operation, inputs);
  return term ? *term : unknown(id, at);
}

Term Threads::parameter(const flow::Operation& operation, ValueId id, const Moment& at) {
  const Source base = flow::address_base(*ssa_, operation.first_source);
  const unsigned width = operation.width, bits = ptx::bit_width(operation.instruction->type());
  if (base.kind != Source::Kind::variable || domain_->module().variables[base.id].parameter_index == kNone ||
      operation.instruction->guard || bits > width || width > 64)
    return unknown(id, at);
  const uint64_t offset = function_->operand_pool[operation.first_source].value + uint64_t{operation.part} * (bits / 8);
  const flow::Fact& fact = domain_->fact(id);
  const bool is_pointer =
      fact.base != flow::kNoBase && (domain_->is_surely_pointer(fact.base) || accessed_.contains(fact.base));
  bool is_new = false;
  const std::string name =
      fmt::format("param{}+{}.{}", domain_->module().variables[base.id].parameter_index, offset, bits);
  const Term term = query_->symbol(name, bits, is_pointer ? 0 : kOnParameter, &is_new);
  if (is_new && !is_pointer) parameters_[name] = domain_->module().variables[base.id].name;
  if (is_new && fact.reached && fact.base == flow::kNoBase) {
    if (fact.low > 0) query_->require(query_->test("bvuge", term, Query::constant(fact.low, bits)));
    if (fact.high < low_mask(bits)) query_->require(query_->test("bvule", term, Query::constant(fact.high, bits)));
  }
  if (is_new && is_pointer) {
    const ptx::Variable& variable = domain_->module().variables[base.id];
    const flow::ParameterFacts* facts = domain_->shape().parameter(variable.name);
    const uint32_t align = std::max(variable.pointer_align, facts ? facts->align_bytes : 0u);
    if (align > 1 && offset == 0) require_multiple(term, align);
  }
  return query_->resized(term, width, ptx::kind(operation.instruction->type()) == ptx::TypeKind::signed_int);
}

bool Threads::is_never_written(const ptx::Access& access, flow::BaseId base) const {
  if (access.space == Space::constant || access.is_read_only) return true;
  const flow::Base& of = domain_->base(base);
  if (of.kind == flow::Base::Kind::parameter) {
    const flow::ParameterFacts* facts = domain_->shape().parameter(domain_->module().variables[of.id].name);
    if (facts && facts->is_read_only) return true;
  }
  const bool is_object =
      of.kind == flow::Base::Kind::parameter ||
      (of.kind == flow::Base::Kind::variable && domain_->module().variables[of.id].space != Space::local &&
       domain_->module().variables[of.id].space != Space::shared);
  return is_object && !access.is_volatile && access.is_plain && !writes_anywhere_ && !written_.contains(base);
}

Term Threads::loaded(const flow::Operation& operation, ValueId id, const Moment& at) {
  const ptx::Instruction& instruction = *operation.instruction;
  const unsigned bits = ptx::bit_width(instruction.type());
  const ptx::Accesses accesses = ptx::accesses_of(*function_, ssa_->value(id).instruction);
  if (accesses.count != 1 || operation.width > 64 || bits == 0 || bits > operation.width) return unknown(id, at);
  const ptx::Access& access = accesses.items[0];
  const flow::BaseId base = kernel_->forms.address(access).base;
  if (!is_never_written(access, base)) return unknown(id, at);
  Term place = address(access, at);
  if (operation.part)
    place = query_->apply("bvadd", 64, {place, Query::constant(uint64_t{operation.part} * (bits / 8), 64)});
  const Term read = query_->memory(fmt::format("memory{}.{}", base, bits), place, bits);
  return query_->resized(read, operation.width, ptx::kind(instruction.type()) == ptx::TypeKind::signed_int);
}

Term Threads::address(const ptx::Access& access, const Moment& at) {
  const ptx::Operand& operand = function_->operand_pool[access.address];
  const Term base = source(flow::address_base(*ssa_, access.address), 64, at);
  return query_->apply("bvadd", 64, {base, Query::constant(operand.value, 64)});
}

// What a phi of a header holds when control enters the loop.
std::optional<Term> Threads::entered_with(ValueId phi, LoopId loop, const Moment& at) {
  const BlockId header = loops_->loop(loop).header;
  const auto predecessors = ssa_->graph().predecessors(header);
  std::optional<ValueId> found;
  for (uint32_t edge = 0; edge < predecessors.size(); ++edge) {
    const ValueId argument = ssa_->arguments(phi)[edge];
    if (argument == kNone || loops_->is_back_edge(predecessors[edge], header)) continue;
    if (found && *found != argument) return std::nullopt;
    found = argument;
  }
  if (!found || header == 0) return std::nullopt;
  return value(*found, at);
}

// A counter by a constant step, or one that is shifted by a constant number of bits.
std::optional<Term> Threads::counter(ValueId id, LoopId loop, const Moment& at) {
  const unsigned width = flow::width_of(*ssa_, id);
  const BlockId header = loops_->loop(loop).header;
  const auto start = entered_with(id, loop, at);
  if (!start || width < 8 || width > 64) return std::nullopt;
  const flow::Induction* const induction = kernel_->forms.induction(id);
  std::optional<ValueId> next;
  const auto predecessors = ssa_->graph().predecessors(header);
  for (uint32_t edge = 0; edge < predecessors.size(); ++edge) {
    const ValueId argument = ssa_->arguments(id)[edge];
    if (argument == kNone || !loops_->is_back_edge(predecessors[edge], header)) continue;
    if (next && *next != argument) return std::nullopt;
    next = argument;
  }
  if (!next) return std::nullopt;
  const Term turn = query_->resized(number_of(turn_of(loop, at)), width);
  if (induction && kernel_->forms.of(*next).modulus_bits >= width)
    return query_->apply(
        "bvadd", width,
        {*start,
         query_->apply("bvmul", width, {turn, Query::constant(static_cast<uint64_t>(induction->step), width)})});
  const flow::Value& by = ssa_->value(*next);
  if (by.kind != flow::Value::Kind::result || by.old != kNone || width < 32) return std::nullopt;
  const flow::Operation operation = flow::operation_of(*ssa_, *next);
  if (operation.source_count != 2 || ptx::bit_width(operation.instruction->type()) != width) return std::nullopt;
  const Source x = flow::source_of(*ssa_, operation.first_source),
               y = flow::source_of(*ssa_, operation.first_source + 1);
  if (x.kind != Source::Kind::value || x.id != id) return std::nullopt;
  const Op op = operation.instruction->op;
  const bool doubles = op == Op::add && y.kind == Source::Kind::value && y.id == id;
  const bool is_shift = (op == Op::shl || op == Op::shr) && y.kind == Source::Kind::constant && y.constant < width;
  if (!doubles && !is_shift) return std::nullopt;
  // Turns beyond the width shift everything out; their product with the constant must not wrap.
  const Term most = Query::constant(width, width);
  const Term turns = query_->choose(query_->test("bvult", turn, most), turn, most);
  const Term amount = query_->apply("bvmul", width, {turns, Query::constant(doubles ? 1 : y.constant, width)});
  const bool is_signed = ptx::kind(operation.instruction->type()) == ptx::TypeKind::signed_int;
  return query_->apply(op == Op::shr ? (is_signed ? "bvashr" : "bvlshr") : "bvshl", width, {*start, amount});
}

Term Threads::phi_of_header(ValueId id, LoopId loop, const Moment& at) {
  if (const auto term = counter(id, loop, at)) return *term;
  const Turn turn = turn_of(loop, at);
  const BlockId header = loops_->loop(loop).header;
  if (turn.offset > 0) {
    std::optional<ValueId> next;
    bool is_single = true;
    const auto predecessors = ssa_->graph().predecessors(header);
    for (uint32_t edge = 0; edge < predecessors.size(); ++edge) {
      const ValueId argument = ssa_->arguments(id)[edge];
      if (argument == kNone || !loops_->is_back_edge(predecessors[edge], header)) continue;
      is_single = is_single && (!next || *next == argument);
      next = argument;
    }
    if (next && is_single) return value(*next, before(loop, at));
  }
  const Term term = unknown(id, at);
  values_.insert_or_assign({id, key_of(at)}, term);
  if (turn.offset == 0)
    if (const auto start = entered_with(id, loop, at)) {
      const Term is_first = query_->test("=", number_of(turn), Query::constant(0, kTurnBits));
      query_->require(query_->either(query_->negation(is_first), query_->test("=", term, *start)));
    }
  return term;
}

Term Threads::phi_of_join(ValueId id, const Moment& at) {
  const BlockId block = ssa_->value(id).block, from = kernel_->dominators.parent(block);
  const auto predecessors = ssa_->graph().predecessors(block);
  std::optional<Term> joined;
  for (uint32_t i = 0; i < predecessors.size(); ++i) {
    const ValueId argument = ssa_->arguments(id)[i];
    if (argument == kNone) continue;
    const Term each = value(argument, at);
    if (!joined) {
      joined = each;
      continue;
    }
    if (joined->text == each.text) continue;
    const Term comes = query_->both(path(from, predecessors[i], at), edge(predecessors[i], block, at));
    joined = query_->choose(comes, each, *joined);
  }
  return joined ? *joined : unknown(id, at);
}

Term Threads::edge(BlockId from, BlockId to, const Moment& at) {
  const flow::Graph& graph = ssa_->graph();
  const ptx::Instruction& last = function_->instructions[graph.last(from)];
  const auto next = graph.successors(from);
  if (last.op == Op::brx)
    return query_->symbol(fmt::format("edge{}.{}.{}{}", from, to, at.thread, place_of(from, at)), 1, kOnUnknown);
  if (!last.guard) return Query::truth(true);
  const bool is_branch = last.op == Op::bra && next.size() == 2;
  if (!is_branch && !ptx::ends_thread(last)) return Query::truth(true);
  const Term holds = value(ssa_->guard(graph.last(from)), at);
  const bool is_taken = is_branch && next[0] == to;
  return is_taken != last.guard.negated ? holds : query_->negation(holds);
}

// The test of a turn says nothing of the turns before it. A counter that is tested for equality meets its bound in one
// turn, behind which there is none; one that is tested for its order is taken not to wrap.
Term Threads::within_bound(LoopId loop, BlockId exit, const Moment& at) {
  Term always = Query::truth(true);
  const flow::Graph& graph = ssa_->graph();
  const ptx::Instruction& branch = function_->instructions[graph.last(exit)];
  const auto next = graph.successors(exit);
  if (branch.op != Op::bra || !branch.guard || next.size() != 2) return always;
  const bool taken_stays = loops_->contains(loop, next[0]);
  if (taken_stays == loops_->contains(loop, next[1])) return always;
  const ValueId predicate = ssa_->guard(graph.last(exit));
  if (ssa_->value(predicate).kind != flow::Value::Kind::result || ssa_->value(predicate).old != kNone) return always;
  const flow::Operation test = flow::operation_of(*ssa_, predicate);
  const ptx::TypeKind kind = ptx::kind(test.instruction->type());
  if (test.instruction->op != Op::setp || test.source_count != 2 || test.part != 0 || kind == ptx::TypeKind::floating ||
      kind == ptx::TypeKind::packed)
    return always;
  const unsigned width = ptx::bit_width(test.instruction->type());
  const auto step_of = [&](const Source& of) -> std::optional<int64_t> {  // 0 where it does not change
    const flow::Form form = kernel_->forms.expand(kernel_->forms.of(of, width));
    if (form.modulus_bits < width) return std::nullopt;
    int64_t step = 0;
    for (const flow::Term& term : form.terms) {
      const flow::Atom& atom = kernel_->forms.atom(term.atom);
      const bool is_value = atom.kind == flow::Atom::Kind::value || atom.kind == flow::Atom::Kind::whole;
      if (atom.kind == flow::Atom::Kind::iteration && atom.id == loop)
        step = term.coefficient;
      else if (is_value && loops_->contains(loop, ssa_->value(atom.id).block))
        return std::nullopt;
    }
    return step;
  };
  const Source x = flow::source_of(*ssa_, test.first_source), y = flow::source_of(*ssa_, test.first_source + 1);
  const auto x_step = step_of(x), y_step = step_of(y);
  if (!x_step || !y_step || (*x_step == 0) == (*y_step == 0)) return always;
  const int64_t step = *x_step ? *x_step : *y_step;
  const uint64_t size = static_cast<uint64_t>(step < 0 ? -step : step);
  if (step == INT64_MIN || size > low_mask(width) || width < 8) return always;
  const Term turn = query_->resized(number_of(turn_of(loop, at)), std::max(width, kTurnBits));
  const auto is_at_most = [&](const Term& most) {
    return query_->test("bvule", turn, query_->resized(most, turn.width));
  };
  const ptx::Comparison comparison = ptx::comparison_of(*function_, *test.instruction);
  const bool asks_equal = comparison == ptx::Comparison::eq, asks_different = comparison == ptx::Comparison::ne;
  if (!asks_equal && !asks_different) return is_at_most(Query::constant(low_mask(width) / size, width));
  const bool stays_if = taken_stays != branch.guard.negated;
  if (stays_if == asks_equal) return always;
  Moment first = at;
  first.turns[loop] = {};
  const Term a = source(*x_step ? x : y, width, first), b = source(*x_step ? y : x, width, first);
  const Term far = query_->apply("bvsub", width, {step > 0 ? b : a, step > 0 ? a : b});
  const Term unit = Query::constant(size, width);
  const Term is_exact = query_->test("=", query_->apply("bvurem", width, {far, unit}), Query::constant(0, width));
  return query_->either(query_->negation(is_exact), is_at_most(query_->apply("bvudiv", width, {far, unit})));
}

// By the tests that every turn comes to.
Term Threads::within_bounds(LoopId loop, const Moment& at) {
  const flow::Loop& of = loops_->loop(loop);
  Term bounded = Query::truth(true);
  for (BlockId exit = of.latches.front(); exit != kNone; exit = kernel_->dominators.parent(exit)) {
    if (std::ranges::all_of(of.latches, [&](BlockId latch) { return kernel_->dominators.dominates(exit, latch); }))
      bounded = query_->both(bounded, within_bound(loop, exit, at));
    if (exit == of.header) break;
  }
  return bounded;
}

// Whether a loop lies between: its last turn is the one in which it is left.
bool Threads::leaves_loop(BlockId dominator, BlockId block) const {
  for (LoopId loop = 0; loop < loops_->all().size(); ++loop) {
    const BlockId header = loops_->loop(loop).header;
    const bool is_below = kernel_->dominators.dominates(dominator, header) || loops_->contains(loop, dominator);
    if (is_below && !loops_->contains(loop, block) && !kernel_->dominators.dominates(block, header)) return true;
  }
  return false;
}

// Whether control comes into the block once it is in the block's dominator, and for a header that it has taken the
// turns before.
Term Threads::way_into(BlockId block, const Moment& at) {
  const auto key = std::pair(block, key_of(at));
  if (const auto found = ways_.find(key); found != ways_.end()) return found->second;
  if (depth_ >= kMaxDepth || query_->is_full())
    return query_->symbol(fmt::format("u{}", unknown_count_++), 1, kOnUnknown);
  ++depth_;
  const flow::Graph& graph = ssa_->graph();
  const BlockId dominator = kernel_->dominators.parent(block);
  const LoopId loop = loops_->innermost(block);
  const bool is_header = loop != kNone && loops_->loop(loop).header == block;
  Term comes = Query::truth(true);
  if (dominator != kNone && (!kernel_->post_dominators.dominates(block, dominator) || leaves_loop(dominator, block))) {
    comes = Query::truth(false);
    for (const BlockId before : graph.predecessors(block)) {
      if (!graph.is_reachable(before) || loops_->is_back_edge(before, block)) continue;
      comes = query_->either(comes, query_->both(path(dominator, before, at), edge(before, block, at)));
    }
  }
  if (is_header) {
    const Moment earlier = before(loop, at);
    const Turn turn = turn_of(loop, at);
    Term stays = Query::truth(false);
    for (const BlockId latch : loops_->loop(loop).latches)
      stays = query_->either(stays, query_->both(path(block, latch, earlier), edge(latch, block, earlier)));
    if (turn.offset <= 0)
      stays = query_->either(query_->test("=", number_of(turn), Query::constant(0, kTurnBits)), stays);
    comes = query_->both(comes, query_->both(stays, within_bounds(loop, at)));
  }
  --depth_;
  ways_.insert_or_assign(key, comes);
  return comes;
}

Term Threads::path(BlockId from, BlockId to, const Moment& at) {
  Term comes = Query::truth(true);
  for (BlockId block = to; block != from && block != kNone; block = kernel_->dominators.parent(block))
    comes = query_->both(comes, way_into(block, at));
  return comes;
}

Term Threads::reaches(ptx::InstructionId id, const Moment& at) {
  Term comes = path(0, ssa_->graph().block_of(id), at);
  const ptx::Guard& guard = function_->instructions[id].guard;
  if (!guard) return comes;
  const Term holds = value(ssa_->guard(id), at);
  return query_->both(comes, guard.negated ? query_->negation(holds) : holds);
}

}  // namespace ptxkit::prove
