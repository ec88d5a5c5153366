// Rules about what a kernel costs: F055, F068, F091, F092, F095.
#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/launch.hpp"
#include "analyzer/flow/liveness.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/flow/uniformity.hpp"
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

using flow::Source;
using flow::Value;
using flow::ValueId;
using ptx::Op;
using ptx::Space;

namespace {

// CUDA C++ Programming Guide, technical specifications per compute capability.
constexpr uint64_t kMaxLocalBytes = 512 * 1024;  // a thread's
constexpr uint32_t kMaxRegisters = 255;          // a thread's
constexpr uint32_t kRegistersPerSm = 64 * 1024;

struct Multiprocessor {
  uint32_t sm;
  uint32_t threads, blocks, shared_bytes;
};
constexpr Multiprocessor kMultiprocessors[] = {
    {50, 2048, 32, 64 << 10},   {52, 2048, 32, 96 << 10},   {53, 2048, 32, 64 << 10},   {60, 2048, 32, 64 << 10},
    {61, 2048, 32, 96 << 10},   {62, 2048, 32, 64 << 10},   {70, 2048, 32, 96 << 10},   {72, 2048, 32, 96 << 10},
    {75, 1024, 16, 64 << 10},   {80, 2048, 32, 164 << 10},  {86, 1536, 16, 100 << 10},  {87, 1536, 16, 164 << 10},
    {88, 1536, 16, 164 << 10},  {89, 1536, 24, 100 << 10},  {90, 2048, 32, 228 << 10},  {100, 2048, 32, 228 << 10},
    {101, 2048, 24, 228 << 10}, {103, 2048, 32, 228 << 10}, {110, 2048, 24, 228 << 10}, {120, 1536, 24, 100 << 10},
    {121, 1536, 24, 100 << 10}};

// Sizes of a text may add up to anything.
uint64_t bounded_sum(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max() : a + b;
}

uint64_t local_bytes(const ptx::Module& module, const ptx::Function& function) {
  uint64_t total = 0;
  for (const ptx::VariableId id : function.variables) {
    const ptx::Variable& variable = module.variables[id];
    if (variable.space != Space::local) continue;
    const uint64_t align = std::max(variable.align, 1u);
    total = bounded_sum(bounded_sum(total, align - 1) / align * align, variable.size_bytes);
  }
  return total;
}

std::vector<ptx::FunctionId> callees_of(const ptx::Function& function) {
  std::vector<ptx::FunctionId> callees;
  for (const ptx::Instruction& instruction : function.instructions) {
    if (instruction.op != Op::call) continue;
    const ptx::CallParts parts = ptx::call_parts(function, instruction);
    if (parts.target && parts.target->kind == ptx::OperandKind::function) callees.push_back(parts.target->id);
  }
  return callees;
}

// The frame of the deepest chain of direct calls; nothing where a function calls itself. A chain is as long as a text
// has functions, so it has a stack of its own.
std::optional<uint64_t> deepest_frame(const ptx::Module& module, ptx::FunctionId kernel) {
  struct Call {
    ptx::FunctionId function;
    std::vector<ptx::FunctionId> callees;  // the first `done` of them are known
    size_t done = 0;
    uint64_t deepest = 0;
  };
  std::map<ptx::FunctionId, uint64_t> known;
  std::set<ptx::FunctionId> open{kernel};
  std::vector<Call> chain{{kernel, callees_of(module.functions[kernel])}};
  while (true) {
    Call& call = chain.back();
    if (call.done < call.callees.size()) {
      const ptx::FunctionId callee = call.callees[call.done];
      if (const auto found = known.find(callee); found != known.end()) {
        call.deepest = std::max(call.deepest, found->second);
        ++call.done;
      } else if (open.insert(callee).second) {
        chain.push_back({callee, callees_of(module.functions[callee])});
      } else {
        return std::nullopt;
      }
      continue;
    }
    const uint64_t frame = bounded_sum(call.deepest, local_bytes(module, module.functions[call.function]));
    known[call.function] = frame;
    open.erase(call.function);
    chain.pop_back();
    if (chain.empty()) return frame;
  }
}

}  // namespace

// F055. Local memory is a thread's own, and hardware has 512 KiB of it.
RuleResult local_overflow(Context& context) {
  const auto bytes = deepest_frame(context.module, context.function_id);
  if (!bytes) return undecided("a function calls itself, so the frame has no size");
  if (*bytes == 0) return not_applicable("the kernel has no local variable");
  std::vector<Finding> findings;
  if (*bytes > kMaxLocalBytes) {
    Finding finding;
    finding.severity = Severity::high;
    finding.tier = Tier::proved;
    finding.at = context.function().at;
    finding.message =
        fmt::format("expected at most {} bytes of local memory a thread, found {}", kMaxLocalBytes, *bytes);
    finding.remedy = "put the arrays into global memory";
    findings.push_back(std::move(finding));
  }
  return conclude(std::move(findings), fmt::format("the frame has {} of {} bytes", *bytes, kMaxLocalBytes));
}

// F091. Local variables are the stack; more live registers than a thread can have are spilled. Unoptimised code keeps
// everything on the stack, so it is advice.
RuleResult local_spills(Context& context) {
  const uint64_t bytes = local_bytes(context.module, context.function());
  const flow::RegisterPressure pressure = context.analyses().pressure();
  const uint32_t limit =
      context.function().attributes.max_registers ? context.function().attributes.max_registers : kMaxRegisters;
  std::vector<Finding> findings;
  if (bytes) {
    Finding finding;
    finding.tier = Tier::proved;
    finding.at = context.function().at;
    for (const ptx::VariableId id : context.function().variables)
      if (context.module.variables[id].space == Space::local) finding.at = context.module.variables[id].declared_at;
    finding.message = "in local memory: " + plural(bytes, "byte") + " of the kernel's variables";
    finding.remedy = "index arrays by constants only, so that they stay in registers";
    findings.push_back(std::move(finding));
  }
  if (pressure.words > limit) {
    Finding finding =
        finding_at(context, pressure.at, Severity::info, Tier::likely,
                   fmt::format("{} words are alive here, and a thread has {} registers", pressure.words, limit),
                   "shorten live ranges, or recompute values where they are used");
    finding.assumptions.push_back("the assembler does not reorder the code");
    findings.push_back(std::move(finding));
  }
  return advise(std::move(findings), "no local variable, and never more alive than " + plural(pressure.words, "word"),
                "the kernel uses local memory");
}

// F092. How many warps the block's size, its shared memory and its registers leave room for. Without an assembler to
// ask registers are an estimate from liveness, so a kernel that fails by them alone is left open.
RuleResult occupancy(Context& context) {
  const flow::LaunchShape& shape = context.analyses().shape();
  const auto& attributes = context.function().attributes;
  if (!shape.is_possible) {
    const auto& [x, y, z] = attributes.req_ntid;
    const std::string block = fmt::format("{} x {} x {}", x, std::max(y, 1u), std::max(z, 1u));
    Finding finding;
    finding.severity = Severity::high;
    finding.tier = Tier::proved;
    finding.at = context.function().at;
    finding.message =
        fmt::format("no GPU starts a block of {} threads: a block has at most 1024, of them at most 64 in z", block);
    finding.remedy = "make .reqntid smaller";
    std::vector<Finding> findings;
    findings.push_back(std::move(finding));
    return conclude(std::move(findings), "no block fits");
  }
  const uint32_t threads = shape.is_exact || attributes.max_ntid[0] ? shape.max_threads : 0;
  if (threads == 0) return undecided("the block's size is not known; .reqntid, .maxntid or a launch file says it");
  const auto* sm = std::find_if(std::begin(kMultiprocessors), std::end(kMultiprocessors),
                                [&](const Multiprocessor& each) { return each.sm == context.module.target_sm; });
  if (sm == std::end(kMultiprocessors))
    return undecided(fmt::format("the limits of {} are not known", context.module.target));
  const uint32_t warps = (threads + 31) / 32, most = sm->threads / 32;
  const uint64_t shared = static_shared_bytes(context) + shape.dynamic_shared_bytes;
  uint64_t blocks = std::min<uint64_t>(sm->blocks, most / warps);
  if (shared) blocks = std::min<uint64_t>(blocks, sm->shared_bytes / (shared + 1024));
  const uint32_t estimate = std::min(context.analyses().pressure().words + 8, kMaxRegisters);
  const auto counted =
      context.options.registers ? context.options.registers(context.module, context.function_id) : std::nullopt;
  const uint32_t registers = counted                    ? *counted
                             : attributes.max_registers ? std::min(attributes.max_registers, estimate)
                                                        : estimate;
  // Registers are given out to warps in units of 256.
  const uint64_t per_warp = (uint64_t{registers} * 32 + 255) / 256 * 256;
  const uint64_t by_registers = kRegistersPerSm / std::max<uint64_t>(per_warp, 1) / warps;
  auto percent = [&](uint64_t count) { return 100 * count * warps / most; };
  const std::string figures =
      fmt::format("{} and {} of shared memory a block: {}, {} % of {} warps; {} registers a thread{}: {} %",
                  plural(threads, "thread"), plural(shared, "byte"), plural(blocks, "block"), percent(blocks), most,
                  counted ? fmt::format("{}", registers) : fmt::format("about {}", registers),
                  counted ? ", as ptxas has it" : "", percent(std::min(blocks, by_registers)));
  std::vector<Finding> findings;
  if (percent(counted ? std::min(blocks, by_registers) : blocks) < 25) {
    Finding finding;
    finding.severity = Severity::low;
    finding.tier = shape.is_exact ? Tier::proved : Tier::likely;
    finding.at = context.function().at;
    finding.message = "fewer than a quarter of the warps fit: " + figures;
    finding.remedy = percent(blocks) < 25 ? "use more threads a block, or less shared memory for each"
                                          : "bound the registers of a thread with .maxnreg or .minnctapersm";
    if (!shape.is_exact) finding.assumptions.push_back("the block has as many threads as .maxntid allows");
    findings.push_back(std::move(finding));
    return advise(std::move(findings), figures, figures);
  }
  if (percent(std::min(blocks, by_registers)) < 25) return undecided("by the estimate of registers: " + figures);
  return conclude(std::move(findings), figures);
}

// F068. A branch on which lanes of one warp part costs both sides, in every iteration. One correct kernel in five has
// one, so it is advice: listed with what makes the lanes differ.
RuleResult divergent_hot_branch(Context& context) {
  Analyses& analyses = context.analyses();
  const flow::Graph& graph = analyses.graph();
  const flow::Ssa& ssa = analyses.ssa();
  if (analyses.loops().all().empty()) return not_applicable("the kernel has no loop");
  // Loops without a loop inside.
  std::set<flow::LoopId> inner;
  for (flow::LoopId id = 0; id < analyses.loops().all().size(); ++id)
    if (analyses.loops().loop(id).last - analyses.loops().loop(id).first <= 1) inner.insert(id);
  std::vector<Finding> findings;
  for (flow::BlockId block = 0; block < graph.size(); ++block) {
    if (!graph.is_reachable(block) || graph.block(block).successor_count < 2) continue;
    const flow::LoopId loop = analyses.loops().innermost(block);
    if (loop == flow::kNone || !inner.contains(loop)) continue;
    if (analyses.uniformity().branch(block) != flow::Uniformity::divergent) continue;
    const ptx::InstructionId branch = graph.last(block);
    // Leaving the loop is not a choice between two sides.
    bool leaves = false;
    for (const flow::BlockId next : graph.successors(block)) leaves = leaves || !analyses.loops().contains(loop, next);
    if (leaves || ssa.guard(branch) == flow::kNone) continue;
    Finding finding = finding_at(context, branch, Severity::info, Tier::proved,
                                 "lanes of one warp may part here in every iteration of the loop",
                                 "hoist the test, select instead of branching, or sort the work by it");
    for (const ValueId id : ancestors(context, ssa.guard(branch), 64)) {
      const ptx::Instruction* definition = definition_of(context, id);
      if (!definition) continue;
      const flow::Operation operation = flow::operation_of(ssa, id);
      bool by_place = false;
      for (unsigned i = 0; i < operation.source_count; ++i) {
        const Source source = flow::source_of(ssa, operation.first_source + i);
        by_place = by_place || (source.kind == Source::Kind::special &&
                                (static_cast<ptx::SpecialRegister>(source.id) == ptx::SpecialRegister::tid ||
                                 static_cast<ptx::SpecialRegister>(source.id) == ptx::SpecialRegister::laneid));
      }
      const bool loads = definition->op == Op::ld && definition->space != Space::param;
      if (!by_place && !loads && definition->op != Op::atom) continue;
      finding.path.push_back({definition->at, by_place ? "the thread's place makes the lanes differ"
                                                       : "what is loaded here makes the lanes differ"});
      break;
    }
    findings.push_back(std::move(finding));
  }
  return advise(std::move(findings), "no branch inside an innermost loop diverges",
                "branches in innermost loops diverge");
}

// F095. A load whose address needs what it loaded an iteration ago: the loop runs at the memory's latency.
RuleResult dependent_load_chain(Context& context) {
  Analyses& analyses = context.analyses();
  const flow::Ssa& ssa = analyses.ssa();
  if (analyses.loops().all().empty()) return not_applicable("the kernel has no loop");
  std::vector<Finding> findings;
  std::set<ptx::InstructionId> reported;
  for (const ptx::Access& access : analyses.accesses()) {
    if (access.kind != ptx::AccessKind::load || access.space == Space::local || access.space == Space::constant)
      continue;
    const flow::LoopId loop = analyses.loops().innermost(analyses.graph().block_of(access.instruction));
    const Source address = flow::address_base(ssa, access.address);
    if (loop == flow::kNone || address.kind != Source::Kind::value) continue;
    // The address, followed back inside the loop, comes to this very load through a phi of the loop.
    std::set<ValueId> seen;
    std::vector<ValueId> work{address.id};
    bool found = false;
    while (!work.empty() && !found && seen.size() < 256) {
      const ValueId id = work.back();
      work.pop_back();
      if (id == flow::kNone || !seen.insert(id).second) continue;
      const Value& value = ssa.value(id);
      if (!analyses.loops().contains(loop, value.block)) continue;
      if (value.kind == Value::Kind::phi)
        for (const ValueId argument : ssa.arguments(id)) work.push_back(argument);
      if (value.kind != Value::Kind::result) continue;
      if (value.instruction == access.instruction) {
        found = true;
        break;
      }
      work.push_back(value.old);
      ptx::for_each_register(context.function(), context.function().instructions[value.instruction],
                             [&](uint32_t index, const ptx::Operand&, bool written) {
                               if (!written) work.push_back(ssa.at(index));
                             });
    }
    if (found && reported.insert(access.instruction).second)
      findings.push_back(finding_at(context, access.instruction, Severity::low, Tier::proved,
                                    "the address of this load comes from what it loaded an iteration ago",
                                    "walk several chains at once, or store the data in the order in which it is read"));
  }
  return advise(std::move(findings), "no loop carries a chain of dependent loads", "a loop waits for its own loads");
}

}  // namespace ptxkit::rules
