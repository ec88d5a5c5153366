// F060: what is read from shared memory before anything was written there.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/engine/walk.hpp"
#include "support/plural.hpp"

namespace ptxkit::rules {

using flow::BlockId;
using ptx::Access;
using ptx::AccessKind;
using ptx::Op;
using ptx::Space;

namespace {

// Whether control can come from `from` to `to`.
bool reaches(Context& context, ptx::InstructionId from, ptx::InstructionId to) {
  const flow::Graph& graph = context.analyses().graph();
  const BlockId start = graph.block_of(from), end = graph.block_of(to);
  if (start == end && from < to) return true;
  std::vector<bool> seen(graph.size(), false);
  std::vector<BlockId> work(graph.successors(start).begin(), graph.successors(start).end());
  while (!work.empty()) {
    const BlockId block = work.back();
    work.pop_back();
    if (block == end) return true;
    if (seen[block]) continue;
    seen[block] = true;
    const auto next = graph.successors(block);
    work.insert(work.end(), next.begin(), next.end());
  }
  return false;
}

// Bytes of a variable, last exclusive.
struct Span {
  int64_t first = 0, end = 0;
  bool overlaps(const Span& other) const { return first < other.end && other.first < end; }
};

// Beyond which an access of any thread never goes. Nothing where only the variable bounds it.
std::optional<Span> span_of(Context& context, const Access& access, const ptx::Variable& variable) {
  flow::Forms& forms = context.analyses().forms();
  const flow::Form form = forms.address(access);
  if (access.extent_bytes == 0 || form.modulus_bits < 32) return std::nullopt;
  const flow::Interval range = forms.interval(form);
  const auto size = static_cast<int64_t>(variable.size_bytes);
  if (range.low < 0 || range.high > size - static_cast<int64_t>(access.extent_bytes)) return std::nullopt;
  return Span{range.low, range.high + access.extent_bytes};
}

}  // namespace

// An exchange whose old value nothing reads: a store.
bool is_store_alone(const Context& context, ptx::InstructionId id) {
  const ptx::Instruction& exchange = context.function().instructions[id];
  if (ptx::facts_of(context.function(), exchange).atomic != ptx::AtomicOperation::exchange) return false;
  const ptx::Operand& old = context.function().operands(exchange)[0];
  if (old.kind != ptx::OperandKind::reg) return old.kind == ptx::OperandKind::sink;
  return std::ranges::count_if(context.function().operand_pool, [&](const ptx::Operand& operand) {
           const bool is_base = operand.kind == ptx::OperandKind::address && operand.base == ptx::AddressBase::reg;
           return (operand.kind == ptx::OperandKind::reg || is_base) && operand.id == old.id;
         }) == 1;
}

// F060. By object: a shared variable that is read, and that nothing wrote on any way to the read, or nothing where it
// is read. Where an address whose object is not known is written, or the variable's address goes where it is not
// followed, nothing is claimed.
RuleResult uninitialised_shared(Context& context) {
  Analyses& analyses = context.analyses();
  struct Object {
    std::vector<ptx::InstructionId> reads, writes;
    std::vector<std::optional<Span>> read_spans, write_spans;
  };
  std::map<ptx::VariableId, Object> objects;
  bool unknown_write = false, any = false;
  for (const Access& access : analyses.accesses()) {
    if (access.space != Space::shared && access.space != Space::generic && access.space != Space::shared_cluster)
      continue;
    const ptx::VariableId object = object_of(context, access);
    if (object == ptx::kNone) {
      const flow::Source base = flow::address_base(analyses.ssa(), access.address);
      const flow::SpaceSet set =
          base.kind == flow::Source::Kind::value ? analyses.domain().fact(base.id).points_to : flow::kSharedSet;
      const bool may_be_shared = access.space != Space::generic || (set & (flow::kSharedSet | flow::kUnknownSpace));
      if (access.kind != AccessKind::load && may_be_shared) unknown_write = true;
      continue;
    }
    if (context.module.variables[object].space != Space::shared) continue;
    any = true;
    const std::optional<Span> span = span_of(context, access, context.module.variables[object]);
    if (access.kind != AccessKind::store && !is_store_alone(context, access.instruction)) {
      objects[object].reads.push_back(access.instruction);
      objects[object].read_spans.push_back(span);
    }
    if (access.kind != AccessKind::load) {
      objects[object].writes.push_back(access.instruction);
      objects[object].write_spans.push_back(span);
    }
  }
  if (!any) return not_applicable("the kernel accesses no shared variable");
  for_each_instruction(context, [&](ptx::InstructionId, const ptx::Instruction& instruction) {
    unknown_write = unknown_write || instruction.op == Op::mapa ||
                    ptx::facts_of(context.function(), instruction).writes_shared_elsewhere;
  });
  if (unknown_write) return undecided("something writes to shared memory at an address that is not followed");
  std::vector<Finding> findings;
  for (const auto& [id, object] : objects) {
    const ptx::Variable& variable = context.module.variables[id];
    // Dynamic arrays all start at the same place, so one's writes are another's.
    if (variable.is_unsized) continue;
    for (size_t i = 0; i < object.reads.size(); ++i) {
      const ptx::InstructionId read = object.reads[i];
      const std::optional<Span>& span = object.read_spans[i];
      const bool is_elsewhere =
          span && std::none_of(object.write_spans.begin(), object.write_spans.end(),
                               [&](const auto& other) { return !other || other->overlaps(*span); });
      if (is_elsewhere && !object.writes.empty()) {
        findings.push_back(finding_at(context, read, Severity::high, Tier::proved,
                                      fmt::format("bytes {} to {} of '{}' are read here, and nothing writes there",
                                                  span->first, span->end - 1, variable.name),
                                      "store to those bytes, and pass a barrier, before they are read"));
        break;
      }
      const bool written = std::any_of(object.writes.begin(), object.writes.end(), [&](ptx::InstructionId write) {
        return write != read && (reaches(context, write, read) || write < read);
      });
      if (written) continue;
      findings.push_back(finding_at(context, read, Severity::high, object.writes.empty() ? Tier::proved : Tier::likely,
                                    object.writes.empty() || (object.writes.size() == 1 && object.writes[0] == read)
                                        ? fmt::format("'{}' is read here, and nothing writes it", variable.name)
                                        : fmt::format("'{}' is read here, and is first written in line {}",
                                                      variable.name, line_of(context, object.writes.front())),
                                    "store to the variable, and pass a barrier, before it is read"));
      if (!object.writes.empty()) findings.back().assumptions.push_back("no other thread has run ahead to the store");
      break;
    }
  }
  in_program_order(findings);
  return conclude(std::move(findings),
                  plural(objects.size(), "shared variable") + ", each written, where it is read, before it is");
}

}  // namespace ptxkit::rules
