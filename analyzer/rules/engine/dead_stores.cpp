#include "analyzer/rules/engine/dead_stores.hpp"

#include <algorithm>

#include "analyzer/ptx/facts.hpp"
#include "analyzer/rules/engine/object_uses.hpp"
#include "analyzer/rules/engine/walk.hpp"

namespace ptxkit::rules {

using flow::Base;
using flow::BlockId;
using flow::Form;
using ptx::Access;
using ptx::AccessKind;
using ptx::Op;
using ptx::OperandKind;
using ptx::Space;

namespace {

constexpr size_t kMaxPending = 32;  // stores of a block that a later one may overwrite; the oldest are given up

// The bytes of an object that are read, as constant offsets; everything where one is not constant.
class ReadBytes {
 public:
  void add(const Form& form, uint32_t size) {
    if (!form.terms.empty() || size == 0)
      is_everything_ = true;
    else
      ranges_.emplace_back(form.constant, form.constant + size);
  }
  // No range is added after this.
  void merge() {
    std::sort(ranges_.begin(), ranges_.end());
    size_t kept = 0;
    for (const auto& range : ranges_) {
      if (kept && range.first <= ranges_[kept - 1].second)
        ranges_[kept - 1].second = std::max(ranges_[kept - 1].second, range.second);
      else
        ranges_[kept++] = range;
    }
    ranges_.resize(kept);
  }
  bool any_of(const Form& form, uint32_t size) const {
    if (is_everything_ || ((!form.terms.empty() || size == 0) && !ranges_.empty())) return true;
    const auto after = std::partition_point(ranges_.begin(), ranges_.end(),
                                            [&](const auto& range) { return range.second <= form.constant; });
    return after != ranges_.end() && after->first < form.constant + size;
  }

 private:
  bool is_everything_ = false;
  std::vector<std::pair<int64_t, int64_t>> ranges_;
};

// Stores to shared and local variables of which nothing in the kernel reads these bytes.
void add_unread(Context& context, std::vector<DeadStore>& found) {
  Analyses& analyses = context.analyses();
  const auto is_private = [&](ptx::VariableId id) {
    const ptx::Variable& declared = context.module.variables[id];
    return (declared.space == Space::shared || declared.space == Space::local) && !declared.is_unsized;
  };
  const auto& operands = context.function().operand_pool;
  const bool names_private = std::any_of(operands.begin(), operands.end(), [&](const ptx::Operand& operand) {
    const bool is_name = operand.kind == OperandKind::symbol ||
                         (operand.kind == OperandKind::address && operand.base == ptx::AddressBase::variable);
    return is_name && is_private(operand.id);
  });
  if (!names_private) return;
  for (const auto& [variable, object] : object_uses(context)) {
    if (!is_private(variable) || object.is_open) continue;
    ReadBytes read;
    std::vector<Access> stores;
    for (const ObjectUse& use : object.uses) {
      const ptx::Accesses accesses = ptx::accesses_of(context.function(), use.instruction);
      const Access* end = accesses.items + accesses.count;
      const Access* access =
          std::find_if(accesses.items, end, [&](const Access& each) { return each.address == use.operand; });
      if (access == end)
        read.add({}, 0);
      else if (access->kind == AccessKind::store && access->is_plain)
        stores.push_back(*access);
      else
        read.add(analyses.forms().address(*access), access->extent_bytes);
    }
    read.merge();
    for (const Access& store : stores)
      if (!read.any_of(analyses.forms().address(store), store.extent_bytes))
        found.push_back({store.instruction, ptx::kNone, variable});
  }
}

// Whether an instruction lets other threads see what was stored, or looks at memory in a way that is not followed.
bool publishes(const ptx::Function& function, ptx::InstructionId id) {
  const ptx::Instruction& instruction = function.instructions[id];
  switch (instruction.op) {
    case Op::ld:
    case Op::st: {
      const ptx::Accesses accesses = ptx::accesses_of(function, id);
      return accesses.count == 1 ? !accesses.items[0].is_plain : instruction.space != Space::param;
    }
    case Op::bar:
    case Op::barrier:
    case Op::call:
    case Op::cp:
    case Op::fence:
    case Op::mbarrier:
    case Op::membar:
    case Op::tcgen05:
    case Op::wgmma:
      return true;
    default:
      break;
  }
  const auto operands = function.operands(instruction);
  return ptx::is_warp_barrier(function, instruction) || ptx::destination_count(function, instruction) == 0 ||
         std::any_of(operands.begin(), operands.end(),
                     [](const ptx::Operand& operand) { return operand.kind == OperandKind::address; });
}

struct Pending {
  Access access;
  Form form;
};

// Whether two accesses surely share no byte.
bool are_apart(const flow::Domain& domain, const Pending& a, const Pending& b) {
  const Space x = a.access.space, y = b.access.space;
  if (x != y && x != Space::generic && y != Space::generic) return true;
  const Base &one = domain.base(a.form.base), &other = domain.base(b.form.base);
  const auto is_own = [&](const Base& base) {
    return base.kind == Base::Kind::variable && !domain.module().variables[base.id].is_unsized;
  };
  if (is_own(one) && is_own(other) && one.id != other.id) return true;
  if (a.form.base != b.form.base) return false;
  const Form apart = subtract(a.form, b.form);
  return apart.terms.empty() &&
         (apart.constant >= b.access.extent_bytes || apart.constant + static_cast<int64_t>(a.access.extent_bytes) <= 0);
}

// Whether `later` writes every byte of `earlier`: their addresses differ by a number.
bool covers(const Pending& later, const Pending& earlier) {
  if (later.form.base != earlier.form.base || later.access.space != earlier.access.space) return false;
  const unsigned wanted_bits = later.access.space == Space::shared ? 32 : 64;
  if (std::min(later.form.modulus_bits, earlier.form.modulus_bits) < wanted_bits) return false;
  const Form apart = subtract(earlier.form, later.form);
  return apart.terms.empty() && apart.constant >= 0 &&
         apart.constant + static_cast<int64_t>(earlier.access.extent_bytes) <= later.access.extent_bytes;
}

// Within one block, where what comes between is seen.
void add_overwritten(Context& context, std::vector<DeadStore>& found) {
  Analyses& analyses = context.analyses();
  const ptx::Function& function = context.function();
  const flow::Graph& graph = analyses.graph();
  std::vector<uint32_t> stores(graph.size(), 0);
  for (const Access& access : analyses.accesses())
    if (access.kind == AccessKind::store && access.is_plain) ++stores[graph.block_of(access.instruction)];
  for (const BlockId block : graph.reverse_postorder()) {
    if (stores[block] < 2) continue;
    std::vector<Pending> pending;
    for (ptx::InstructionId id = graph.block(block).first; id < graph.block(block).end; ++id) {
      if (publishes(function, id)) {
        pending.clear();
        continue;
      }
      const ptx::Accesses accesses = ptx::accesses_of(function, id);
      if (accesses.count == 0) continue;
      const Pending now{accesses.items[0], analyses.forms().address(accesses.items[0])};
      if (now.access.kind == AccessKind::load) {
        std::erase_if(pending, [&](const Pending& each) { return !are_apart(analyses.domain(), each, now); });
        continue;
      }
      if (function.instructions[id].guard) continue;
      std::erase_if(pending, [&](const Pending& each) {
        if (!covers(now, each)) return false;
        found.push_back({each.access.instruction, id, object_of(context, each.access)});
        return true;
      });
      if (pending.size() == kMaxPending) pending.erase(pending.begin());
      pending.push_back(now);
    }
  }
}

}  // namespace

std::vector<DeadStore> dead_stores(Context& context) {
  std::vector<DeadStore> found;
  add_unread(context, found);
  add_overwritten(context, found);
  return found;
}

}  // namespace ptxkit::rules
