// F056: what a kernel reads through the read-only path (ld.global.nc, textures), and who may write it meanwhile.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/launch.hpp"
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

using flow::Base;
using flow::BaseId;
using flow::Form;
using flow::Source;
using ptx::Access;
using ptx::AccessKind;
using ptx::Op;
using ptx::Space;

namespace {

struct MemoryUse {
  ptx::InstructionId instruction = ptx::kNone;
  BaseId base = flow::kNoBase;  // of the address, or of the handle
  bool is_handle = false;       // a texture's or a surface's
  Form form{};                  // of the address, expanded
  uint32_t bytes = 0;           // 0: not known
};

// What the read-only path reads, and what is written to memory that it may read.
struct MemoryUses {
  std::vector<MemoryUse> reads, writes;
};

MemoryUse handle_use(Context& context, ptx::InstructionId id) {
  const ptx::Instruction& instruction = context.function().instructions[id];
  for (uint32_t i = 0; i < instruction.operand_count; ++i) {
    const uint32_t index = instruction.first_operand + i;
    if (context.function().operand_pool[index].kind != ptx::OperandKind::address) continue;
    const Source handle = flow::address_base(context.analyses().ssa(), index);
    return {id, context.analyses().domain().fact_of(handle, 64).base, true, {}, 0};
  }
  return {id, flow::kNoBase, true, {}, 0};
}

// Whether the memory of an access may be what global addresses reach.
bool may_be_global(Context& context, const Access& access) {
  if (access.space == Space::global) return true;
  if (access.space != Space::generic) return false;
  const Source base = flow::address_base(context.analyses().ssa(), access.address);
  if (base.kind != Source::Kind::value) return true;
  const auto space = flow::only_space(context.analyses().domain().fact(base.id).points_to);
  return !space || *space == Space::global;
}

MemoryUses memory_uses_of(Context& context) {
  Analyses& analyses = context.analyses();
  const ptx::Function& function = context.function();
  MemoryUses found;
  for (const Access& access : analyses.accesses()) {
    const bool is_read_only = access.kind == AccessKind::load && access.is_read_only;
    const bool is_write = access.kind != AccessKind::load && may_be_global(context, access);
    if (!is_read_only && !is_write) continue;
    MemoryUse use{access.instruction, flow::kNoBase, false, analyses.forms().expand(analyses.forms().address(access)),
                  access.extent_bytes};
    use.base = use.form.base;
    (is_write ? found.writes : found.reads).push_back(std::move(use));
  }
  for_each_instruction(context, [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
    if (instruction.op == Op::tex || instruction.op == Op::tld4) found.reads.push_back(handle_use(context, id));
    if (instruction.op == Op::sust || instruction.op == Op::sured)
      found.writes.push_back(handle_use(context, id));
    else if (ptx::facts_of(function, instruction).writes_global_elsewhere)
      found.writes.push_back({id, flow::kNoBase, false, {}, 0});
  });
  return found;
}

bool may_alias(const flow::Forms& forms, const MemoryUse& read, const MemoryUse& write) {
  if (read.is_handle || write.is_handle || read.bytes == 0 || write.bytes == 0) return true;
  return may_overlap(forms, read.form, read.bytes, write.form, write.bytes);
}

// Whether nobody writes the object while the kernel runs, as far as its declaration and the launch say.
bool is_promised(Context& context, const Base& base) {
  if (base.kind != Base::Kind::parameter || base.offset_bytes != 0) return false;
  const flow::ParameterFacts* facts = context.analyses().shape().parameter(context.module.variables[base.id].name);
  return facts && facts->is_read_only;
}

}  // namespace

// F056. Through one pointer or handle the two surely mean one object. Two pointers may be to one, and what memory a
// texture lies over only the host knows.
RuleResult stale_read_only(Context& context) {
  Analyses& analyses = context.analyses();
  const ptx::Function& function = context.function();
  const flow::Domain& domain = analyses.domain();
  const MemoryUses uses = memory_uses_of(context);
  if (uses.reads.empty()) return not_applicable("the kernel reads nothing through the read-only path");
  std::vector<Finding> findings;
  std::string open;
  for (const MemoryUse& read : uses.reads) {
    const Base& base = domain.base(read.base);
    for (const MemoryUse& write : uses.writes) {
      const bool is_known = read.base != flow::kNoBase && write.base != flow::kNoBase;
      if (is_known && read.base == write.base && read.is_handle == write.is_handle) {
        if (!may_alias(analyses.forms(), read, write)) continue;
        const std::string_view remedy =
            read.is_handle ? "read it with suld, or write another surface" : "read it with ld.global, without .nc";
        Finding finding = finding_at(context, read.instruction, Severity::medium, Tier::likely,
                                     fmt::format("read through the read-only path, but line {} writes {}",
                                                 line_of(context, write.instruction), domain.describe(read.base)),
                                     std::string(remedy));
        finding.path.push_back({function.instructions[write.instruction].at, "written here"});
        finding.assumptions.push_back("the two accesses meet");
        findings.push_back(std::move(finding));
        break;
      }
      const bool are_two_variables = is_known && base.kind == Base::Kind::variable &&
                                     domain.base(write.base).kind == Base::Kind::variable && !read.is_handle;
      if (!open.empty() || are_two_variables || is_promised(context, base)) continue;
      open = fmt::format(
          "whether line {} writes what line {} reads through the read-only path depends on the launch; "
          "a launch file that says \"access\": \"read_only\" promises that it does not",
          line_of(context, write.instruction), line_of(context, read.instruction));
    }
  }
  if (findings.empty() && !open.empty()) return undecided(open);
  in_program_order(findings);
  return conclude(std::move(findings), plural(uses.reads.size(), "read") +
                                           " through the read-only path, of memory that nothing writes meanwhile");
}

}  // namespace ptxkit::rules
