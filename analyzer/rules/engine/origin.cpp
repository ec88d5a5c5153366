#include "analyzer/rules/engine/origin.hpp"

#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"

namespace ptxkit::rules {

using flow::Atom;
using flow::Base;
using flow::Form;
using flow::Source;
using flow::Value;
using flow::ValueId;
using ptx::Op;

namespace {

constexpr size_t kMaxVisited = 256;

// The kinds of sources found by a backward walk over definitions.
struct Sources {
  bool loaded = false, parameter = false, thread = false, opaque = false, product = false;
  bool scalar = false;  // a parameter that is not a member of an aggregate
  ValueId load = flow::kNone;
  std::vector<ValueId> phis;
  std::set<ptx::VariableId> parameters;
};

Sources walk_back(Analyses& analyses, ValueId start) {
  const flow::Ssa& ssa = analyses.ssa();
  Sources found;
  std::set<ValueId> seen;
  std::vector<ValueId> work{start};
  auto leaf = [&](const Source& source) {
    if (source.kind == Source::Kind::value) work.push_back(source.id);
    if (source.kind == Source::Kind::special) {
      const auto special = static_cast<ptx::SpecialRegister>(source.id);
      // In block (0, 0, 0) the block's number is known too, and so is its product with the block's size.
      const bool is_place = special == ptx::SpecialRegister::tid || special == ptx::SpecialRegister::laneid ||
                            special == ptx::SpecialRegister::ctaid || special == ptx::SpecialRegister::ntid;
      (is_place ? found.thread : found.opaque) = true;
    }
  };
  while (!work.empty()) {
    const ValueId id = work.back();
    work.pop_back();
    if (!seen.insert(id).second) continue;
    if (seen.size() > kMaxVisited) {
      found.opaque = true;
      break;
    }
    const Value& value = ssa.value(id);
    if (value.kind == Value::Kind::undefined) continue;
    if (value.kind == Value::Kind::phi) {
      found.phis.push_back(id);
      for (const ValueId argument : ssa.arguments(id))
        if (argument != flow::kNone) work.push_back(argument);
      continue;
    }
    if (value.old != flow::kNone) work.push_back(value.old);
    const flow::Operation operation = flow::operation_of(ssa, id);
    const ptx::Instruction& instruction = *operation.instruction;
    switch (instruction.op) {
      case Op::ld:
        if (instruction.space == ptx::Space::param) {
          const Source base = flow::address_base(ssa, operation.first_source);
          const ptx::Variable* variable =
              base.kind == Source::Kind::variable ? &analyses.domain().module().variables[base.id] : nullptr;
          const bool own = variable && variable->parameter_index != flow::kNone;
          (own ? found.parameter : found.opaque) = true;
          if (own) found.parameters.insert(base.id);
          found.scalar = found.scalar || (own && !variable->is_array);
          break;
        }
        [[fallthrough]];
      case Op::ldu:
      case Op::atom:
        found.loaded = true;
        if (found.load == flow::kNone) found.load = id;
        break;
      case Op::call:
        found.opaque = true;
        break;
      case Op::mul:
      case Op::mad: {
        const Source a = flow::source_of(ssa, operation.first_source),
                     b = flow::source_of(ssa, operation.first_source + 1);
        if (a.kind != Source::Kind::constant && b.kind != Source::Kind::constant) found.product = true;
        [[fallthrough]];
      }
      default:
        for (unsigned i = 0; i < operation.source_count; ++i) {
          const ptx::Operand& operand = ssa.graph().function().operand_pool[operation.first_source + i];
          leaf(flow::source_of(ssa, operation.first_source + i));
          for (unsigned child = 0; child < operand.child_count; ++child)
            leaf(flow::source_of(ssa, operand.first_child + child));
        }
    }
  }
  return found;
}

// The constant steps by which a loop advances a phi, and whether other steps exist.
struct Steps {
  std::vector<std::pair<int64_t, ValueId>> constants;  // with the value that takes the step
  ValueId variable = flow::kNone;                      // a step that is not constant
};

Steps cursor_steps(Analyses& analyses, ValueId phi) {
  const flow::Ssa& ssa = analyses.ssa();
  flow::Forms& forms = analyses.forms();
  const flow::Loops& loops = analyses.loops();
  Steps steps;
  const flow::BlockId header = ssa.value(phi).block;
  const flow::LoopId loop = loops.innermost(header);
  if (loop == flow::kNone || loops.loop(loop).header != header) return steps;
  std::set<std::pair<ValueId, int64_t>> seen;
  std::vector<std::pair<ValueId, int64_t>> work;
  const auto predecessors = ssa.graph().predecessors(header);
  for (uint32_t edge = 0; edge < predecessors.size(); ++edge)
    if (loops.is_back_edge(predecessors[edge], header) && ssa.arguments(phi)[edge] != flow::kNone)
      work.emplace_back(ssa.arguments(phi)[edge], 0);
  while (!work.empty() && seen.size() < kMaxVisited) {
    const auto [id, so_far] = work.back();
    work.pop_back();
    if (!seen.insert({id, so_far}).second) continue;
    const Form form = forms.of(id);
    bool has_self = false, has_other = false;
    ValueId inner = flow::kNone;
    for (const flow::Term& term : form.terms) {
      const Atom& atom = forms.atom(term.atom);
      const bool is_value = atom.kind == Atom::Kind::value && term.coefficient == 1;
      if (is_value && atom.id == phi) {
        has_self = true;
      } else if (is_value && inner == flow::kNone && ssa.value(atom.id).block != flow::kNone &&
                 loops.contains(loop, ssa.value(atom.id).block) &&
                 (ssa.value(atom.id).kind == Value::Kind::phi || ssa.value(atom.id).old != flow::kNone ||
                  flow::operation_of(ssa, atom.id).instruction->op == Op::selp)) {
        inner = atom.id;
      } else {
        has_other = true;
      }
    }
    const int64_t step = so_far + form.constant;
    if (has_self && !has_other && inner == flow::kNone) {
      steps.constants.emplace_back(step, id);
    } else if (has_self) {
      if (steps.variable == flow::kNone) steps.variable = id;
    } else if (inner != flow::kNone && !has_other) {
      const Value& value = ssa.value(inner);
      if (value.kind == Value::Kind::phi) {
        for (const ValueId argument : ssa.arguments(inner))
          if (argument != flow::kNone) work.emplace_back(argument, step);
      } else if (value.old != flow::kNone) {
        work.emplace_back(value.old, step);
      } else {
        const flow::Operation operation = flow::operation_of(ssa, inner);
        for (unsigned i = 0; i < 2; ++i) {
          const Source source = flow::source_of(ssa, operation.first_source + i);
          if (source.kind == Source::Kind::value) work.emplace_back(source.id, step);
        }
      }
    }
  }
  return steps;
}

}  // namespace

int UnalignedPart::rank() const {
  switch (origin) {
    case Origin::cursor:
      return 6;
    case Origin::loaded:
      return byte_granular ? 5 : 4;
    case Origin::parameter:
      return byte_granular ? 3 : 2;
    case Origin::unknown:
      return 1;
    default:
      return 0;
  }
}

UnalignedPart trace_unaligned_part(Analyses& analyses, const Context& context, const flow::Term& term,
                                   flow::BaseId into, uint32_t width) {
  const flow::Forms& forms = analyses.forms();
  const Atom atom = forms.atom(term.atom);
  const flow::Ssa& ssa = analyses.ssa();
  const ptx::Function& function = context.function();
  auto at = [&](ValueId id) {
    const Value& value = ssa.value(id);
    return value.kind == Value::Kind::result ? function.instructions[value.instruction].at
                                             : function.instructions[ssa.graph().block(value.block).first].at;
  };
  UnalignedPart left;
  if (atom.kind == Atom::Kind::parameter) {
    left.origin = Origin::parameter;
    left.parameters = {atom.id};
    // A member of an aggregate is internal data of a library: undecided, but not a counter-example.
    left.byte_granular = term.coefficient % 2 != 0 && !context.module.variables[atom.id].is_array;
    left.reason = fmt::format("scalar parameter '{}' is added with factor {}", context.module.variables[atom.id].name,
                              term.coefficient);
    return left;
  }
  if (atom.kind == Atom::Kind::special) {
    left.reason = fmt::format("{} is added with factor {}", ptx::text(static_cast<ptx::SpecialRegister>(atom.id)),
                              term.coefficient);
    return left;
  }
  if (atom.kind == Atom::Kind::whole) {
    const Base& base = analyses.domain().base(analyses.domain().fact(atom.id).base);
    left.origin = base.kind == Base::Kind::parameter ? Origin::parameter
                  : base.kind == Base::Kind::loaded  ? Origin::loaded
                                                     : Origin::unknown;
    // If the sum of two 64-bit parameters is accessed, either may be the pointer, and the host may have passed values
    // whose sum is one valid pointer: undecided.
    left.byte_granular = left.origin == Origin::loaded && term.coefficient % 2 != 0;
    if (left.origin == Origin::parameter && into != flow::kNoBase)
      left.byte_granular = analyses.domain().base(into).kind == Base::Kind::variable && term.coefficient % 2 != 0 &&
                           !context.module.variables[base.id].is_array;
    // Where the roles of two words are unknown, the word from an array of pointers may be the pointer.
    if (base.kind == Base::Kind::loaded && !analyses.domain().is_surely_pointer(into)) {
      const flow::Operation load = flow::operation_of(ssa, base.id);
      if (load.instruction->space != ptx::Space::shared) left.byte_granular = false;
    }
    left.reason = left.origin == Origin::parameter ? "a scalar parameter is added as a byte offset"
                  : left.origin == Origin::loaded  ? "a 64-bit value from memory is added as a byte offset"
                                                   : "two objects' addresses are added";
    if (left.origin == Origin::parameter) left.parameters = {base.id};
    left.path.push_back({at(atom.id), "this is added to the address"});
    return left;
  }

  // Whether the part moves the address by single bytes. Steps of a narrower element are undecided, but not
  // byte-granular.
  const bool by_bytes = term.coefficient % 2 != 0 && forms.bits(term.atom).trailing_zeros() == 0;
  const Sources sources = walk_back(analyses, atom.id);
  left.parameters.assign(sources.parameters.begin(), sources.parameters.end());
  for (const ValueId phi : sources.phis) {
    const flow::LoopId loop = analyses.loops().innermost(ssa.value(phi).block);
    const bool is_head = loop != flow::kNone && analyses.loops().loop(loop).header == ssa.value(phi).block;
    if (is_head && sources.loaded) left.moved_by_loaded_value = true;
    const Steps steps = cursor_steps(analyses, phi);
    // Only if the phi itself is added: operations after it may have aligned the sum.
    if (phi != atom.id) continue;
    for (const auto& [step, value] : steps.constants) {
      const uint64_t moved = static_cast<uint64_t>(step) * static_cast<uint64_t>(term.coefficient);
      if (moved % width == 0) continue;
      left.origin = Origin::cursor;
      left.byte_granular = true;
      left.reason =
          fmt::format("the cursor moves by {} on one way round the loop, which is no multiple of {}", step, width);
      left.path.push_back({at(phi), "the loop that moves the cursor starts here"});
      left.path.push_back({at(value), fmt::format("the cursor moves by {} here", step)});
      return left;
    }
    if (steps.variable != flow::kNone && sources.loaded) {
      left.path.push_back({at(steps.variable), "the cursor moves by a varying step here"});
    }
  }
  if (sources.loaded) {
    left.origin = Origin::loaded;
    left.byte_granular = !sources.product && by_bytes;
    left.reason = sources.product
                      ? "a value from memory takes part in a product that is added to the address"
                      : fmt::format("a byte offset that comes from memory is added with factor {}", term.coefficient);
    left.path.insert(left.path.begin(), {at(sources.load), "the offset is loaded here"});
  } else if (sources.parameter) {
    left.origin = Origin::parameter;
    left.byte_granular = !sources.product && by_bytes && sources.scalar;
    left.reason = sources.product ? "a byte stride that comes from a scalar parameter is added"
                                  : "a byte offset that comes from a scalar parameter is added";
    left.path.push_back({at(atom.id), "the offset is computed here"});
  } else if (sources.thread && !sources.opaque) {
    left.origin = Origin::thread;
    left.reason = "an offset computed from the thread's place is added";
    left.path.push_back({at(atom.id), "the offset is computed here"});
  } else {
    left.reason = "an offset that cannot be followed is added";
    left.path.push_back({at(atom.id), "the offset is computed here"});
  }
  return left;
}

}  // namespace ptxkit::rules
