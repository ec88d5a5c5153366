#include "analyzer/rules/engine/object_uses.hpp"

#include <set>

#include "analyzer/ptx/facts.hpp"
#include "analyzer/rules/engine/walk.hpp"

namespace ptxkit::rules {

using flow::Base;
using flow::BaseId;
using flow::ValueId;
using ptx::Op;
using ptx::OperandKind;

namespace {

class Collector {
 public:
  explicit Collector(Context& context) : context_(&context), analyses_(&context.analyses()) {}

  std::map<ptx::VariableId, ObjectUses> run() {
    bool has_call = false;
    for_each_instruction(*context_, [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
      has_call = has_call || instruction.op == Op::call;
      look(id, instruction);
    });
    const flow::Ssa& ssa = analyses_->ssa();
    for (ValueId id = 0; id < ssa.size(); ++id) {
      const flow::Value& value = ssa.value(id);
      if (value.kind == flow::Value::Kind::phi)
        for (const ValueId argument : ssa.arguments(id)) open_unless_same(argument, id);
      open_unless_same(value.old, id);
    }
    if (has_call)
      for (auto& [variable, object] : objects_) object.is_open = true;
    return std::move(objects_);
  }

 private:
  bool may_name(BaseId id) const {
    const Base::Kind kind = analyses_->domain().base(id).kind;
    return kind == Base::Kind::variable || kind == Base::Kind::merged;
  }

  void open(BaseId id) {
    if (!may_name(id)) return;
    // Phis of a loop may be made of each other.
    std::set<BaseId> seen{id};
    for (std::vector<BaseId> work{id}; !work.empty();) {
      const Base& base = analyses_->domain().base(work.back());
      work.pop_back();
      if (base.kind == Base::Kind::variable) objects_[base.id].is_open = true;
      for (const BaseId member : base.members)
        if (seen.insert(member).second) work.push_back(member);
    }
  }

  void open_unless_same(ValueId from, ValueId into) {
    if (from == flow::kNone) return;
    const BaseId base = analyses_->domain().fact(from).base;
    if (may_name(base) && base != analyses_->domain().fact(into).base) open(base);
  }

  // Every operand that is or holds the address of a variable: an access through it, a step of its computation, or a way
  // out of what is followed.
  void look(ptx::InstructionId id, const ptx::Instruction& instruction) {
    const ptx::Function& function = context_->function();
    const auto results_have = [&](BaseId base) {
      bool found = false;
      ptx::for_each_register(function, instruction, [&](uint32_t index, const ptx::Operand&, bool written) {
        const ValueId value = written ? analyses_->ssa().at(index) : flow::kNone;
        found = found || (value != flow::kNone && analyses_->domain().fact(value).base == base);
      });
      return found;
    };
    const auto walk = [&](auto&& self, uint32_t first, uint32_t count) -> void {
      for (uint32_t i = first; i < first + count; ++i) {
        const ptx::Operand& operand = function.operand_pool[i];
        if (operand.kind == OperandKind::address) {
          touch({id, i});
        } else if (operand.kind == OperandKind::symbol || operand.kind == OperandKind::reg) {
          const BaseId base = fact_at(*context_, i, 64).base;
          // A comparison of addresses tells nobody what is there.
          if (may_name(base) && instruction.op != Op::setp && !results_have(base)) open(base);
        }
        if (operand.child_count) self(self, operand.first_child, operand.child_count);
      }
    };
    const unsigned destinations = ptx::destination_count(function, instruction);
    walk(walk, instruction.first_operand + destinations, instruction.operand_count - destinations);
  }

  void touch(ObjectUse use) {
    const BaseId id = analyses_->domain().fact_of(flow::address_base(analyses_->ssa(), use.operand), 64).base;
    const Base& base = analyses_->domain().base(id);
    if (base.kind == Base::Kind::variable)
      objects_[base.id].uses.push_back(use);
    else
      open(id);
  }

  Context* context_;
  Analyses* analyses_;
  std::map<ptx::VariableId, ObjectUses> objects_;
};

}  // namespace

std::map<ptx::VariableId, ObjectUses> object_uses(Context& context) { return Collector(context).run(); }

}  // namespace ptxkit::rules
