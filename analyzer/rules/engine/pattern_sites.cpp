#include "analyzer/rules/engine/pattern_sites.hpp"

#include <algorithm>
#include <utility>

#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/taint.hpp"

namespace ptxkit::rules {

using ptx::Access;
using ptx::AccessKind;
using ptx::Space;

bool is_shared_load(const ptx::Function& function, const Access& access) {
  return access.kind == AccessKind::load && access.space == Space::shared &&
         (function.instructions[access.instruction].op == ptx::Op::ld ||
          function.instructions[access.instruction].op == ptx::Op::ldmatrix);
}

bool is_generic_of_shared(Context& context, const Access& access) {
  if (access.space != Space::generic) return false;
  Analyses& analyses = context.analyses();
  const flow::Source base = flow::address_base(analyses.ssa(), access.address);
  return base.kind == flow::Source::Kind::value && analyses.domain().fact(base.id).from_cvta_shared;
}

std::vector<flow::ValueId> loaded_values(Context& context, const Access& access) {
  const flow::Ssa& ssa = context.analyses().ssa();
  std::vector<flow::ValueId> values;
  ptx::for_each_register(context.function(), context.function().instructions[access.instruction],
                         [&](uint32_t index, const ptx::Operand&, bool written) {
                           if (written && ssa.at(index) != flow::kNone) values.push_back(ssa.at(index));
                         });
  return values;
}

std::vector<flow::ValueId> operand_values(Context& context, const Access& access, StoreOperand operand) {
  const ptx::Function& function = context.function();
  const flow::Ssa& ssa = context.analyses().ssa();
  std::vector<flow::ValueId> values;
  if (access.kind == AccessKind::load) return values;
  const auto add = [&](uint32_t index) {
    if (ssa.at(index) != flow::kNone) values.push_back(ssa.at(index));
  };
  if (operand == StoreOperand::address) {
    if (function.operand_pool[access.address].base == ptx::AddressBase::reg) add(access.address);
  } else if (access.data != ptx::kNone) {
    const ptx::Operand& data = function.operand_pool[access.data];
    if (data.kind == ptx::OperandKind::reg) add(access.data);
    for (uint32_t child = 0; child < data.child_count; ++child)
      if (function.operand_pool[data.first_child + child].kind == ptx::OperandKind::reg) add(data.first_child + child);
  }
  return values;
}

std::vector<bool> accesses_in_sites(Context& context) {
  const auto& accesses = context.analyses().accesses();
  const ptx::Function& function = context.function();
  std::vector<std::vector<flow::ValueId>> stored(accesses.size());
  std::vector<flow::ValueId> loaded;
  std::vector<Sink> sinks;
  for (size_t i = 0; i < accesses.size(); ++i) {
    if (is_shared_load(function, accesses[i]))
      std::ranges::copy(loaded_values(context, accesses[i]), std::back_inserter(loaded));
    for (const StoreOperand operand : {StoreOperand::data, StoreOperand::address})
      std::ranges::copy(operand_values(context, accesses[i], operand), std::back_inserter(stored[i]));
    for (const flow::ValueId value : stored[i]) sinks.push_back({value, accesses[i].instruction});
  }
  const Taint taint(context, std::move(sinks), Profile::root_cause);
  const std::vector<bool> derived = derived_from(context, loaded);
  std::vector<bool> in_site(accesses.size());
  for (size_t i = 0; i < accesses.size(); ++i) {
    const auto reaches = [&](flow::ValueId value) { return taint.reaches(value); };
    in_site[i] =
        is_generic_of_shared(context, accesses[i]) ||
        std::ranges::any_of(stored[i], [&](flow::ValueId value) { return derived[value]; }) ||
        (is_shared_load(function, accesses[i]) && std::ranges::any_of(loaded_values(context, accesses[i]), reaches));
  }
  return in_site;
}

}  // namespace ptxkit::rules
