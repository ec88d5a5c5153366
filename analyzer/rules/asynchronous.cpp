// Rules about copies that run beside the threads: F048, F089.
#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/bits.hpp"
#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/isa.hpp"
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
using ptx::Asynchronous;
using ptx::Op;
using ptx::Purpose;
using Completion = ptx::Asynchronous::Completion;

namespace {

constexpr unsigned kMaxGroups = 16;

// The load that may read what the copy is still writing: followed forward along ways that go round no loop, counting
// the groups committed since.
ptx::InstructionId early_read(Context& context, const Access& copy) {
  Analyses& analyses = context.analyses();
  const flow::Graph& graph = analyses.graph();
  const ptx::Function& function = context.function();
  flow::Forms& forms = analyses.forms();
  const flow::Form target = forms.address(copy);
  std::set<std::pair<BlockId, unsigned>> seen;
  struct Place {
    BlockId block;
    ptx::InstructionId at;
    unsigned groups;
  };
  std::vector<Place> work{{graph.block_of(copy.instruction), copy.instruction + 1, 0}};
  while (!work.empty()) {
    auto [block, at, groups] = work.back();
    work.pop_back();
    bool done = false;
    for (ptx::InstructionId id = at; id < graph.block(block).end && !done; ++id) {
      const ptx::Instruction& instruction = function.instructions[id];
      const Asynchronous asynchronous =
          instruction.op == Op::cp ? ptx::facts_of(function, instruction).asynchronous : Asynchronous{};
      if (asynchronous.completion == Completion::group && !instruction.guard) {
        if (asynchronous.step == Asynchronous::Step::commit) groups = std::min(groups + 1, kMaxGroups);
        // A group is complete when at most `n` younger ones may be open.
        if (asynchronous.step == Asynchronous::Step::wait)
          done = asynchronous.waits_for_all || groups > function.operand_pool[instruction.first_operand].value;
      }
      // Completion through an mbarrier, or in another function, is not followed.
      if (instruction.op == Op::mbarrier || instruction.op == Op::call ||
          asynchronous.step == Asynchronous::Step::arrive)
        done = true;
      const ptx::Accesses found = ptx::accesses_of(function, id);
      for (unsigned i = 0; i < found.count && !done; ++i) {
        const Access& load = found.items[i];
        if (load.kind != AccessKind::load || load.space != ptx::Space::shared) continue;
        const flow::Form form = forms.address(load);
        if (form.base != target.base || form.base == flow::kNoBase) continue;
        const flow::Form apart = subtract(form, target);
        if (!apart.terms.empty()) continue;
        if (apart.constant < copy.extent_bytes && apart.constant + static_cast<int64_t>(load.extent_bytes) > 0)
          return id;
      }
    }
    if (done) continue;
    for (const BlockId next : graph.successors(block))
      if (!analyses.loops().is_back_edge(block, next) && seen.insert({next, groups}).second)
        work.push_back({next, graph.block(next).first, groups});
  }
  return ptx::kNone;
}

}  // namespace

// F048. What a thread reads of its own copy before it has waited for the copy's group is what stood there before.
RuleResult async_copy_wait(Context& context) {
  Analyses& analyses = context.analyses();
  const ptx::Function& function = context.function();
  std::vector<Finding> findings;
  size_t copies = 0;
  for (const Access& access : analyses.accesses()) {
    if (function.instructions[access.instruction].op != Op::cp || access.kind != AccessKind::store) continue;
    ++copies;
    const ptx::InstructionId load = early_read(context, access);
    if (load == ptx::kNone) continue;
    Finding finding = finding_at(context, load, Severity::high, Tier::likely,
                                 fmt::format("this reads what the copy in line {} writes, and nothing waits for it",
                                             line_of(context, access.instruction)),
                                 "commit the copy, and wait for its group with cp.async.wait_group before reading");
    finding.path.push_back({function.instructions[access.instruction].at, "the copy starts here"});
    finding.assumptions.push_back("the way from the copy to the load is taken");
    findings.push_back(std::move(finding));
  }
  if (copies == 0) return not_applicable("the kernel has no cp.async");
  in_program_order(findings);
  return conclude(std::move(findings), plural(copies, "copy", "copies") + ", none read before it is waited for");
}

// F089. The assembler checks constants. A size in a register, or one that does not fit the other operands, it does not.
RuleResult async_copy_size(Context& context) {
  const ptx::Function& function = context.function();
  std::vector<Finding> findings;
  size_t count = 0;
  bool open = false;
  for_each_instruction(context, [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
    const auto size_at =
        instruction.op == Op::cp ? ptx::operand_of(function, instruction, Purpose::size) : std::nullopt;
    if (!size_at) return;
    ++count;
    if (ptx::facts_of(function, instruction).asynchronous.completion == Completion::group) {
      const uint64_t written = function.operand_pool[*size_at].value;
      const auto source_at = ptx::operand_of(function, instruction, Purpose::source_size);
      if (!source_at) return;
      const flow::Fact source = fact_at(context, *source_at);
      if (source.low > written)
        findings.push_back(
            finding_at(context, id, Severity::high, Tier::proved,
                       fmt::format("expected a source size of at most {}, found {}", written, source.low),
                       "read no more than the copy writes"));
      else if (source.high > written)
        open = true;
      return;
    }
    const flow::Fact size = fact_at(context, *size_at);
    const unsigned known = std::min(4u, size.bits.known_low());
    if (size.reached && size.base == flow::kNoBase && (size.bits.one & flow::low_mask(known)))
      findings.push_back(
          finding_at(context, id, Severity::high, Tier::proved,
                     fmt::format("expected a size that is a multiple of 16, found one that is {} modulo {}",
                                 size.bits.one & flow::low_mask(known), 1u << known),
                     "bulk copies move whole 16-byte pieces: round the size, and copy the rest by hand"));
    else if (known < 4)
      open = true;
    for (const Purpose purpose : {Purpose::to, Purpose::from, Purpose::address}) {
      const auto at = ptx::operand_of(function, instruction, purpose);
      if (!at) continue;
      const flow::Fact address =
          context.analyses().domain().fact_of(flow::address_base(context.analyses().ssa(), *at), 64);
      const uint64_t offset = function.operand_pool[*at].value + address.bits.low_value();
      const unsigned bits = std::min(4u, address.bits.known_low());
      const flow::Base& base = context.analyses().domain().base(address.base);
      const bool whole = base.kind != flow::Base::Kind::variable || context.module.variables[base.id].align >= 16;
      if (bits == 4 && (offset & 15) && whole) {
        Finding finding =
            finding_at(context, id, Severity::high, Tier::likely,
                       fmt::format("expected a 16-aligned address, found one that is {} modulo 16 from {}", offset & 15,
                                   context.analyses().domain().describe(address.base)),
                       "align both ends of a bulk copy to 16 bytes");
        finding.assumptions.push_back("the pointer itself is 16-aligned");
        findings.push_back(std::move(finding));
      }
    }
  });
  if (count == 0) return not_applicable("the kernel has no asynchronous copy with a size");
  if (findings.empty() && open) return undecided("the size of an asynchronous copy is computed at run time");
  return conclude(std::move(findings), plural(count, "asynchronous copy", "asynchronous copies") + " of a legal size");
}

}  // namespace ptxkit::rules
