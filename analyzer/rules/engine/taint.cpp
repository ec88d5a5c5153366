#include "analyzer/rules/engine/taint.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/rules/engine/analyses.hpp"

namespace ptxkit::rules {

using flow::Value;
using flow::ValueId;
using ptx::Op;

namespace {

constexpr size_t kMaxPathSteps = 16;

// Values stored to a local slot of known offset, for the loads of that slot.
using Slots = std::map<std::pair<flow::BaseId, int64_t>, std::vector<ValueId>>;

std::optional<std::pair<flow::BaseId, int64_t>> slot_of(Analyses& analyses, const ptx::Access& access) {
  const flow::Form form = analyses.forms().address(access);
  if (form.base == flow::kNoBase || !form.terms.empty()) return std::nullopt;
  const flow::Base& base = analyses.domain().base(form.base);
  if (base.kind != flow::Base::Kind::variable ||
      analyses.domain().module().variables[base.id].space != ptx::Space::local)
    return std::nullopt;
  return std::pair{form.base, form.constant};
}

// The values that flow into a value.
class ValueSources {
 public:
  ValueSources(Context& context, Profile profile)
      : ssa_(&context.analyses().ssa()), function_(&context.function()), is_pattern_(profile == Profile::pattern) {
    Analyses& analyses = context.analyses();
    for (const ptx::Access& access : analyses.accesses()) {
      if (access.space != ptx::Space::local && access.space != ptx::Space::generic) continue;
      const auto slot = slot_of(analyses, access);
      if (!slot || access.data == ptx::kNone) continue;
      if (access.kind == ptx::AccessKind::load) loaded_slot_[access.instruction] = *slot;
      if (access.kind == ptx::AccessKind::store && ssa_->at(access.data) != flow::kNone)
        stored_[*slot].push_back(ssa_->at(access.data));
    }
  }

  // Calls `visit` for each; the id may be flow::kNone.
  template <class Visit>
  void for_each_source(ValueId id, Visit visit) const {
    const Value& value = ssa_->value(id);
    if (value.kind == Value::Kind::phi) {
      for (const ValueId argument : ssa_->arguments(id)) visit(argument);
      return;
    }
    if (value.kind != Value::Kind::result) return;
    visit(value.old);
    const ptx::Instruction& instruction = function_->instructions[value.instruction];
    const ptx::Accesses accesses = ptx::accesses_of(*function_, value.instruction);
    const bool is_global_load = instruction.op == Op::ld && accesses.items[0].space == ptx::Space::global;
    if (accesses.count > 0 && !(is_pattern_ && is_global_load)) {
      if (const auto slot = loaded_slot_.find(value.instruction); slot != loaded_slot_.end())
        if (const auto stored = stored_.find(slot->second); stored != stored_.end())
          for (const ValueId source : stored->second) visit(source);
      return;
    }
    if (instruction.op == Op::shfl && is_pattern_) return;
    ptx::for_each_register(*function_, instruction, [&](uint32_t index, const ptx::Operand&, bool written) {
      if (!written) visit(ssa_->at(index));
    });
  }

 private:
  const flow::Ssa* ssa_;
  const ptx::Function* function_;
  bool is_pattern_;
  Slots stored_;
  std::map<ptx::InstructionId, std::pair<flow::BaseId, int64_t>> loaded_slot_;
};

}  // namespace

Taint::Taint(Context& context, std::vector<Sink> sinks, Profile profile) : ssa_(&context.analyses().ssa()) {
  const ValueSources sources(context, profile);
  successors_.resize(ssa_->size());
  alignment_ranks_.assign(ssa_->size(), 0);

  std::stable_sort(sinks.begin(), sinks.end(),
                   [](const Sink& a, const Sink& b) { return a.alignment_rank > b.alignment_rank; });
  std::vector<ValueId> queue;
  for (size_t begin = 0; begin < sinks.size();) {
    const unsigned alignment_rank = sinks[begin].alignment_rank;
    queue.clear();
    auto reach = [&](ValueId id, Successor next) {
      if (id == flow::kNone || successors_[id].kind != Successor::Kind::none) return;
      successors_[id] = next;
      alignment_ranks_[id] = static_cast<uint8_t>(alignment_rank);
      queue.push_back(id);
    };
    for (; begin < sinks.size() && sinks[begin].alignment_rank == alignment_rank; ++begin)
      reach(sinks[begin].value, {Successor::Kind::store, sinks[begin].store});
    for (size_t head = 0; head < queue.size(); ++head) {
      const ValueId id = queue[head];
      sources.for_each_source(id, [&](ValueId source) { reach(source, {Successor::Kind::value, id}); });
    }
  }
}

std::vector<bool> derived_from(Context& context, const std::vector<ValueId>& origins) {
  const ValueSources sources(context, Profile::root_cause);
  const size_t size = context.analyses().ssa().size();
  std::vector<std::vector<ValueId>> users(size);
  for (ValueId id = 0; id < size; ++id)
    sources.for_each_source(id, [&](ValueId source) {
      if (source != flow::kNone) users[source].push_back(id);
    });
  std::vector<bool> derived(size);
  std::vector<ValueId> work;
  auto reach = [&](ValueId id) {
    if (derived[id]) return;
    derived[id] = true;
    work.push_back(id);
  };
  for (const ValueId origin : origins) reach(origin);
  while (!work.empty()) {
    const ValueId id = work.back();
    work.pop_back();
    for (const ValueId user : users[id]) reach(user);
  }
  return derived;
}

ptx::InstructionId Taint::store_of(ValueId id) const {
  while (successors_[id].kind == Successor::Kind::value) id = successors_[id].id;
  return successors_[id].id;
}

std::vector<Step> Taint::path(ValueId id, const Context& context) const {
  const ptx::Function& function = context.function();
  std::vector<Step> steps;
  for (; successors_[id].kind == Successor::Kind::value; id = successors_[id].id) {
    const Value& value = ssa_->value(successors_[id].id);
    const std::string name = function.registers[value.reg].name();
    Step step;
    if (value.kind == Value::Kind::phi) {
      step.at = function.instructions[ssa_->graph().block(value.block).first].at;
      step.what = fmt::format("joins into {} here", name);
    } else {
      const ptx::Instruction& instruction = function.instructions[value.instruction];
      step.at = instruction.at;
      step.what = fmt::format("goes into {} by {}", name, instruction.spelling);
    }
    if (steps.size() < kMaxPathSteps)
      steps.push_back(std::move(step));
    else if (steps.size() == kMaxPathSteps)
      steps.push_back({step.at, "and further"});
  }
  const ptx::Instruction& store = function.instructions[successors_[id].id];
  steps.push_back({store.at, fmt::format("reaches {} here", store.spelling)});
  return steps;
}

}  // namespace ptxkit::rules
