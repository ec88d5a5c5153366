// A dataflow analysis of the SSA form. The state of a value is: nothing yet; no address of a shared variable; an
// address into one of a few variables; or unknown. A sum keeps the one address among its operands, and a choice joins
// both sides. A value that mixes two addresses (one array plus the distance to another is an address in the other) is
// unknown, so that a compiler's arithmetic raises no alarm. A loaded value counts as no address; accesses with it as a
// base are not restricted.
#include "runtime/emulator/sanitizer/address_origins.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "analyzer/flow/dominators.hpp"
#include "analyzer/flow/inline.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/ssa.hpp"

namespace ptxkit::emulator {

namespace {

using flow::Source;
using flow::ValueId;
using ptx::Op;
using ptx::Operand;
using ptx::OperandKind;

constexpr size_t kMaxVariables = 8;

struct State {
  enum class Kind : uint8_t { nothing, no_address, address, unknown } kind = Kind::nothing;
  std::vector<ptx::VariableId> variables{};  // of an address, ascending
  bool operator==(const State&) const = default;
};

const State kNoAddress{State::Kind::no_address};
const State kUnknown{State::Kind::unknown};

// The state of a value that is one or the other.
State join(const State& a, const State& b) {
  if (a == b || b.kind == State::Kind::nothing) return a;
  if (a.kind == State::Kind::nothing) return b;
  if (a.kind != State::Kind::address || b.kind != State::Kind::address) return kUnknown;
  State both{State::Kind::address};
  std::ranges::set_union(a.variables, b.variables, std::back_inserter(both.variables));
  return both.variables.size() > kMaxVariables ? kUnknown : both;
}

// The state of a value computed from both: an address and a distance.
State sum(const State& a, const State& b) {
  if (a.kind == State::Kind::nothing || b.kind == State::Kind::nothing) return {};
  if (b.kind == State::Kind::no_address) return a;
  return a.kind == State::Kind::no_address ? b : kUnknown;
}

class OriginAnalysis {
 public:
  OriginAnalysis(const ptx::Module& module, const ptx::Function& function)
      : module_(module), function_(function), graph_(function), ssa_(graph_, dominators()), states_(ssa_.size()) {
    for (bool changes = true; changes;) {
      changes = false;
      for (ValueId id : ssa_.order()) {
        State next = join(states_[id], transfer(id));
        if (next == states_[id]) continue;
        states_[id] = std::move(next);
        changes = true;
      }
    }
  }

  // Collects the operands of the instructions that `takes` accepts.
  template <class Takes>
  AddressOrigins collect(const Takes& takes) const {
    AddressOrigins address_origins;
    std::map<ptx::Offset, State> seen;
    for (ptx::InstructionId id = 0; id < function_.instructions.size(); ++id) {
      if (!graph_.is_reachable(graph_.block_of(id)) || !takes(id)) continue;
      const ptx::Instruction& instruction = function_.instructions[id];
      for (uint32_t i = 0; i < instruction.operand_count; ++i) {
        const uint32_t at = instruction.first_operand + i;
        const Operand& operand = function_.operand_pool[at];
        if (operand.kind != OperandKind::address) continue;
        State& state = seen[operand.at];
        state = join(state, state_of(flow::address_base(ssa_, at)));
        if (state.kind == State::Kind::address)
          address_origins[operand.at] = state.variables;
        else
          address_origins.erase(operand.at);
      }
    }
    return address_origins;
  }

 private:
  flow::DominatorTree dominators() const { return flow::DominatorTree::dominators(graph_); }

  State state_of(const Source& source) const {
    switch (source.kind) {
      case Source::Kind::none:
        return kUnknown;
      case Source::Kind::value:
        return states_[source.id];
      case Source::Kind::variable:
        if (module_.variables[source.id].space == ptx::Space::shared)
          return {State::Kind::address, {static_cast<ptx::VariableId>(source.id)}};
        return kNoAddress;
      default:
        return kNoAddress;
    }
  }

  // The state of an operand, which may be a list.
  State operand_state(uint32_t at) const {
    const Operand& operand = function_.operand_pool[at];
    if (operand.kind == OperandKind::address) return state_of(flow::address_base(ssa_, at));
    if (operand.child_count == 0) {
      // A register, which is followed only as a whole, or a constant of any kind.
      const bool is_number = operand.kind == OperandKind::float32 || operand.kind == OperandKind::float64 ||
                             operand.kind == OperandKind::label || operand.kind == OperandKind::sink;
      return is_number ? kNoAddress : state_of(flow::source_of(ssa_, at));
    }
    State state = kNoAddress;
    for (uint32_t i = 0; i < operand.child_count; ++i) state = mixed(state, operand_state(operand.first_child + i));
    return state;
  }

  // The state of a value made of both by an operation that is not followed.
  static State mixed(const State& a, const State& b) {
    return a.kind == State::Kind::unknown || b.kind == State::Kind::unknown || a.kind == State::Kind::address ||
                   b.kind == State::Kind::address
               ? kUnknown
               : sum(a, b);
  }

  State transfer(ValueId id) const {
    const flow::Value& value = ssa_.value(id);
    if (value.kind == flow::Value::Kind::undefined) return {};
    if (value.kind == flow::Value::Kind::phi) {
      State state;
      for (ValueId argument : ssa_.arguments(id))
        if (argument != flow::kNone) state = join(state, states_[argument]);
      return state;
    }
    State state = computed(flow::operation_of(ssa_, id));
    return value.old == flow::kNone ? state : join(state, states_[value.old]);
  }

  State computed(const flow::Operation& operation) const {
    const ptx::Instruction& instruction = *operation.instruction;
    const auto source = [&](unsigned i) {
      return i < operation.source_count ? operand_state(operation.first_source + i) : kNoAddress;
    };
    switch (instruction.op) {
      case Op::mov:
        if (operation.parts == 1 && function_.operand_pool[operation.first_source].child_count == 0) return source(0);
        break;
      case Op::cvta:
      case Op::cvt:
      case Op::mapa:
      case Op::shfl:
        return source(0);
      case Op::add:
      case Op::and_:
      case Op::or_:
      case Op::xor_:
      case Op::min:
      case Op::max:
        return sum(source(0), source(1));
      case Op::sub: {
        const State b = source(1);
        if (b.kind == State::Kind::address) return kUnknown;
        return sum(source(0), b);
      }
      case Op::lop3:
        return sum(sum(source(0), source(1)), source(2));
      case Op::mad:
      case Op::fma:
      case Op::mad24:
        return sum(mixed(source(0), source(1)), source(2));
      case Op::selp:
        return join(source(0), source(1));
      case Op::ld:
      case Op::ldu:
      case Op::atom:
      case Op::call:
        return kNoAddress;
      default:
        break;
    }
    State state = kNoAddress;
    for (unsigned i = 0; i < operation.source_count; ++i) state = mixed(state, source(i));
    return state;
  }

  const ptx::Module& module_;
  const ptx::Function& function_;
  flow::Graph graph_;
  flow::Ssa ssa_;
  std::vector<State> states_;
};

bool names_shared(const ptx::Module& module, const ptx::Function& function) {
  return std::ranges::any_of(function.operand_pool, [&](const Operand& operand) {
    const bool is_variable = operand.kind == OperandKind::symbol ||
                             (operand.kind == OperandKind::address && operand.base == ptx::AddressBase::variable);
    return is_variable && module.variables[operand.id].space == ptx::Space::shared;
  });
}

// Functions entered by calls that are not followed: their arguments are unknown.
std::set<ptx::FunctionId> entered_by_unfollowed_calls(const ptx::Module& module, const ptx::Function& function) {
  std::set<ptx::FunctionId> entered;
  std::vector<ptx::FunctionId> open;
  const auto add_named = [&](const ptx::Function& by, const Operand& operand) {
    if (operand.kind == OperandKind::function) open.push_back(operand.id);
    if (operand.kind == OperandKind::prototype && operand.id < by.tables.size())
      open.insert(open.end(), by.tables[operand.id].targets.begin(), by.tables[operand.id].targets.end());
  };
  for (const ptx::Instruction& instruction : function.instructions) {
    if (instruction.op != Op::call && instruction.op != Op::mov) continue;
    for (uint32_t i = 0; i < instruction.operand_count; ++i)
      add_named(function, function.operand_pool[instruction.first_operand + i]);
  }
  while (!open.empty()) {
    const ptx::FunctionId id = open.back();
    open.pop_back();
    if (id >= module.functions.size() || !entered.insert(id).second) continue;
    for (const Operand& operand : module.functions[id].operand_pool) add_named(module.functions[id], operand);
  }
  return entered;
}

}  // namespace

AddressOrigins find_address_origins(const ptx::Module& module, ptx::FunctionId entry) {
  const auto inlined = flow::inline_calls(module, entry);
  const ptx::Function& function = inlined ? inlined->function : module.functions[entry];
  if (function.instructions.empty() || !names_shared(module, function)) return {};
  const std::set<ptx::FunctionId> unseen = entered_by_unfollowed_calls(module, function);
  return OriginAnalysis(module, function).collect([&](ptx::InstructionId id) {
    return !inlined || !unseen.contains(inlined->origins[id].function);
  });
}

}  // namespace ptxkit::emulator
