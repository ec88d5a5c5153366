// Rules about the pattern in which a warp touches memory: F052, F053, F057, F059.
#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/engine/warp_access.hpp"
#include "support/plural.hpp"

namespace ptxkit::rules {

using ptx::Access;
using ptx::AccessKind;
using ptx::Op;
using ptx::Space;

namespace {

constexpr unsigned kFairDegree = 2;

void note_shape(Context& context, Finding& finding) {
  if (!context.analyses().shape().is_exact) finding.assumptions.push_back("the block's rows are whole warps");
}

}  // namespace

// F052. A request whose lanes fall into one bank is served as often as lanes differ there. Transposes and reductions of
// correct libraries do it, so it is advice: each access is listed with its degree.
RuleResult bank_conflicts(Context& context) {
  Analyses& analyses = context.analyses();
  std::vector<Finding> findings;
  size_t known = 0, all = 0;
  unsigned worst = 1;
  for (const Access& access : analyses.accesses()) {
    if (access.space != Space::shared || access.kind == AccessKind::atomic || access.extent_bytes == 0) continue;
    ++all;
    const auto footprint = warp_footprint(context, access);
    if (!footprint) continue;
    ++known;
    const unsigned degree = conflict_degree(*footprint, access.extent_bytes);
    worst = std::max(worst, degree);
    if (degree <= kFairDegree) continue;
    Finding finding =
        finding_at(context, access.instruction, Severity::info, Tier::likely,
                   fmt::format("{} lanes meet in one bank: the request is served {} times", degree, degree),
                   "pad the rows by one word, or swizzle the index with the row");
    note_shape(context, finding);
    findings.push_back(std::move(finding));
  }
  if (all == 0) return not_applicable("the kernel does not access shared memory");
  if (known == 0) return undecided("no shared address is a known function of the lane");
  return advise(std::move(findings),
                fmt::format("{} of {} known, at worst {} in one bank", known,
                            plural(all, "shared access", "shared accesses"), plural(worst, "lane")),
                fmt::format("{} of {} known, at worst {} in one bank", known,
                            plural(all, "shared access", "shared accesses"), plural(worst, "lane")));
}

// F053. The same for global memory and its sectors of 32 bytes.
RuleResult coalescing(Context& context) {
  Analyses& analyses = context.analyses();
  std::vector<Finding> findings;
  size_t known = 0, all = 0;
  for (const Access& access : analyses.accesses()) {
    if (access.space != Space::global || access.extent_bytes == 0) continue;
    ++all;
    const auto footprint = warp_footprint(context, access);
    if (!footprint) continue;
    ++known;
    const Sectors sectors = sectors_of(*footprint, access.extent_bytes);
    if (sectors.touched <= 2 * sectors.least) continue;
    Finding finding = finding_at(
        context, access.instruction, Severity::info, Tier::likely,
        fmt::format("a warp touches {} sectors of 32 bytes where {} would do", sectors.touched, sectors.least),
        "let neighbouring lanes access neighbouring addresses, if need be through shared memory");
    note_shape(context, finding);
    finding.assumptions.push_back("the first lane's address is a multiple of 32");
    findings.push_back(std::move(finding));
  }
  if (all == 0) return not_applicable("the kernel does not access global memory");
  if (known == 0) return undecided("no global address is a known function of the lane");
  return advise(std::move(findings),
                fmt::format("{} of {} known and coalesced", known, plural(all, "global access", "global accesses")),
                "requests touch more sectors than they need");
}

// F057. What the assembler lets pass and makes no sense: giving up a line that the kernel reads again.
RuleResult cache_operator(Context& context) {
  Analyses& analyses = context.analyses();
  flow::Forms& forms = analyses.forms();
  std::vector<Finding> findings;
  bool any = false;
  for (const Access& access : analyses.accesses()) {
    if (access.kind != AccessKind::load || !access.hints_last_use) continue;
    any = true;
    const flow::Form form = forms.address(access);
    if (form.base == flow::kNoBase) continue;
    const flow::BlockId block = analyses.graph().block_of(access.instruction);
    // Again in the next iteration: nothing in the address moves.
    const flow::LoopId loop = analyses.loops().innermost(block);
    bool moves = loop == flow::kNone || forms.address(access).modulus_bits < 64;
    for (const flow::Term& term : form.terms) {
      const flow::Atom& atom = forms.atom(term.atom);
      if (atom.kind == flow::Atom::Kind::value || atom.kind == flow::Atom::Kind::whole)
        moves = moves || analyses.loops().contains(loop, analyses.ssa().value(atom.id).block);
    }
    const flow::Base& base = analyses.domain().base(form.base);
    if (base.kind == flow::Base::Kind::loaded || base.kind == flow::Base::Kind::merged)
      moves = moves || analyses.loops().contains(loop, analyses.ssa().value(base.id).block);
    ptx::InstructionId again = moves ? ptx::kNone : access.instruction;
    for (const Access& other : analyses.accesses())
      if (again == ptx::kNone && other.kind == AccessKind::load && other.instruction > access.instruction &&
          forms.address(other) == form &&
          analyses.dominators().dominates(block, analyses.graph().block_of(other.instruction)))
        again = other.instruction;
    if (again == ptx::kNone) continue;
    Finding finding =
        finding_at(context, access.instruction, Severity::low, Tier::proved,
                   again == access.instruction
                       ? "the line is given up here, and read again in the next iteration"
                       : fmt::format("the line is given up here, and read again in line {}", line_of(context, again)),
                   "give up the line at its last use, or keep the value in a register");
    findings.push_back(std::move(finding));
  }
  if (!any) return not_applicable("no load gives up its cache line");
  return conclude(std::move(findings), "no line that is given up is read again at the same address");
}

namespace {

// Whether accesses before and after it cannot become one.
bool orders_accesses(const ptx::Instruction& instruction) {
  switch (instruction.op) {
    case Op::bar:
    case Op::barrier:
    case Op::call:
    case Op::fence:
    case Op::mbarrier:
    case Op::membar:
      return true;
    default:
      return false;
  }
}

// How many of `ids`, ascending, are greater than `low` and less than `high`.
ptrdiff_t count_between(const std::vector<ptx::InstructionId>& ids, ptx::InstructionId low, ptx::InstructionId high) {
  return std::max<ptrdiff_t>(0, std::ranges::lower_bound(ids, high) - std::ranges::upper_bound(ids, low));
}

}  // namespace

// F059. Neighbours at one base whose pair is aligned as a whole.
RuleResult missed_vector_access(Context& context) {
  Analyses& analyses = context.analyses();
  const ptx::Function& function = context.function();
  flow::Forms& forms = analyses.forms();
  std::map<std::tuple<flow::BlockId, uint32_t, Space, bool, uint32_t>, std::vector<const Access*>> groups;
  bool any = false;
  for (const Access& access : analyses.accesses()) {
    const ptx::Instruction& instruction = function.instructions[access.instruction];
    const ptx::Operand& operand = function.operand_pool[access.address];
    if (access.kind == AccessKind::atomic || !access.is_plain || instruction.guard || instruction.op == Op::cp)
      continue;
    any = true;
    if (operand.base != ptx::AddressBase::reg || access.width_bytes < 4 || access.width_bytes > 8) continue;
    groups[{analyses.graph().block_of(access.instruction), analyses.ssa().at(access.address), access.space,
            access.kind == AccessKind::store, access.width_bytes}]
        .push_back(&access);
  }
  if (!any) return not_applicable("the kernel has no plain access");
  std::vector<ptx::InstructionId> orders, writes;
  for (ptx::InstructionId id = 0; id < function.instructions.size(); ++id) {
    const ptx::Accesses found = ptx::accesses_of(function, id);
    if (orders_accesses(function.instructions[id]))
      orders.push_back(id);
    else if (std::any_of(found.items, found.items + found.count,
                         [](const Access& each) { return each.kind != AccessKind::load; }))
      writes.push_back(id);
  }
  std::vector<Finding> findings;
  for (const auto& [key, members] : groups) {
    const uint32_t width = std::get<4>(key);
    std::unordered_map<int64_t, const Access*> by_offset;  // the first one
    std::vector<ptx::InstructionId> own;                   // of the members, those that write
    for (const Access* access : members) {
      by_offset.try_emplace(static_cast<int64_t>(function.operand_pool[access->address].value), access);
      if (access->kind == AccessKind::store) own.push_back(access->instruction);
    }
    for (const Access* access : members) {
      const int64_t at = static_cast<int64_t>(function.operand_pool[access->address].value);
      const auto next = by_offset.find(at + width);
      if (next == by_offset.end()) continue;
      // A store or a barrier between them may be what keeps them apart.
      const auto [low, high] = std::minmax(access->instruction, next->second->instruction);
      const bool between =
          count_between(orders, low, high) != 0 || count_between(writes, low, high) != count_between(own, low, high);
      const unsigned wanted = static_cast<unsigned>(std::countr_zero(2 * width));
      const flow::Form form = forms.address(*access);
      const auto [known, residue] = forms.residue(form, wanted);
      if (between || known < wanted || residue || analyses.alignment().contract_bytes(form.base) < 2 * width) continue;
      findings.push_back(finding_at(context, access->instruction, Severity::info, Tier::proved,
                                    fmt::format("this and line {} access neighbouring {}-byte words at an aligned pair",
                                                line_of(context, next->second->instruction), width),
                                    "use one .v2 access"));
    }
  }
  in_program_order(findings);
  return advise(std::move(findings), "no two neighbouring accesses are surely aligned as a pair",
                "neighbouring accesses could be one");
}

}  // namespace ptxkit::rules
