// F047: barriers in memory. An mbarrier is 8 bytes of shared memory that mbarrier.init makes one; it counts arrivals
// and goes through phases, numbered from 0. A wait names a phase by its parity or by the token that an arrival of it
// gave, and is over where that phase is (PTX ISA, mbarrier.test_wait): it must be the current phase or the one before.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/evaluate.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/launch.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/isa.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/object_uses.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/engine/walk.hpp"
#include "support/plural.hpp"

namespace ptxkit::rules {

using flow::BaseId;
using flow::BlockId;
using flow::Form;
using flow::LoopId;
using flow::Source;
using flow::ValueId;
using ptx::Asynchronous;
using ptx::InstructionId;
using ptx::Op;
using ptx::Purpose;

namespace {

// PTX ISA, mbarrier.init: valid range of the expected arrival count.
constexpr uint64_t kMaxArrivals = (1u << 20) - 1;

enum class Role : uint8_t {
  init,
  wait,    // test_wait, try_wait
  arrive,  // of this thread, and nothing else
  other,   // may complete a phase: arrivals with bytes to wait for, copies, arrivals of other units
  none,    // completes none: inval
};

Role role_of(const ptx::Function& function, const ptx::Instruction& instruction) {
  if (instruction.op != Op::mbarrier) return Role::other;
  const ptx::Mbarrier mbarrier = ptx::facts_of(function, instruction).mbarrier;
  switch (mbarrier.action) {
    case ptx::Mbarrier::Action::init:
      return Role::init;
    case ptx::Mbarrier::Action::inval:
      return Role::none;
    case ptx::Mbarrier::Action::wait:
      return Role::wait;
    case ptx::Mbarrier::Action::arrive:
      return mbarrier.expects_bytes || mbarrier.is_partial ? Role::other : Role::arrive;
    default:
      return Role::other;
  }
}

struct Use {
  InstructionId instruction = ptx::kNone;
  Role role = Role::other;
  uint32_t address = 0;  // operand, in the pool
};

// The uses of one mbarrier: 8 bytes at a constant offset in a variable.
struct Mbarrier {
  BaseId base = flow::kNoBase;
  std::vector<Use> uses;
  bool is_whole = true;  // no other use may be of it
};

class MbarrierProtocol {
 public:
  explicit MbarrierProtocol(Context& context)
      : context_(&context), analyses_(&context.analyses()), function_(&context.function()) {}
  RuleResult run();

 private:
  Form form_of(uint32_t address) const;
  BaseId base_of(const ptx::Instruction& instruction) const;
  std::optional<uint32_t> address_of(const ptx::Instruction& instruction) const;
  BlockId block_of(InstructionId id) const { return analyses_->graph().block_of(id); }
  void find();
  void judge_uninitialised();
  void judge_counts();
  void judge_phase_operand(InstructionId wait);
  void judge_phase_of_loop(const Mbarrier& barrier, const Use& wait);
  void judge_deadlock(const Mbarrier& barrier, const Use& wait);
  void judge_arrivals(const Mbarrier& barrier);
  void judge_bytes(const Mbarrier& barrier);
  bool has_one_guard(InstructionId one, InstructionId other) const;
  std::optional<uint64_t> arrivals(const Use& use) const;
  LoopId spin_of(const Use& wait) const;
  bool is_invariant(const Source& source, LoopId loop) const;
  bool is_by_parity(InstructionId wait) const {
    return ptx::facts_of(*function_, function_->instructions[wait]).mbarrier.by_parity;
  }
  bool brings_bytes(const ptx::Instruction& instruction) const;
  Source phase_of(InstructionId wait) const;
  Finding& report(InstructionId id, Tier tier, std::string message, std::string remedy);

  Context* context_;
  Analyses* analyses_;
  const ptx::Function* function_;
  std::vector<InstructionId> uses_;  // that need an mbarrier
  std::map<BaseId, std::vector<InstructionId>> initialised_;
  bool initialised_unknown_ = false;
  std::map<std::pair<BaseId, int64_t>, Mbarrier> barriers_;
  std::vector<Finding> findings_;
};

Finding& MbarrierProtocol::report(InstructionId id, Tier tier, std::string message, std::string remedy) {
  return findings_.emplace_back(
      finding_at(*context_, id, Severity::medium, tier, std::move(message), std::move(remedy)));
}

std::optional<uint32_t> MbarrierProtocol::address_of(const ptx::Instruction& instruction) const {
  for (uint32_t i = 0; i < instruction.operand_count; ++i)
    if (function_->operand_pool[instruction.first_operand + i].kind == ptx::OperandKind::address)
      return instruction.first_operand + i;
  return std::nullopt;
}

BaseId MbarrierProtocol::base_of(const ptx::Instruction& instruction) const {
  const auto address = address_of(instruction);
  if (!address) return flow::kNoBase;
  return analyses_->domain().fact_of(flow::address_base(analyses_->ssa(), *address), 64).base;
}

Form MbarrierProtocol::form_of(uint32_t address) const {
  ptx::Access access;
  access.space = ptx::Space::shared;
  access.address = address;
  return analyses_->forms().expand(analyses_->forms().address(access));
}

void MbarrierProtocol::find() {
  for_each_instruction(*context_, [&](InstructionId id, const ptx::Instruction& instruction) {
    if (instruction.op == Op::call) initialised_unknown_ = true;
    if (instruction.op != Op::mbarrier) return;
    const ptx::Mbarrier::Action action = ptx::facts_of(*function_, instruction).mbarrier.action;
    if (action == ptx::Mbarrier::Action::count) return;
    if (action != ptx::Mbarrier::Action::init) return uses_.push_back(id);
    const BaseId base = base_of(instruction);
    if (base == flow::kNoBase) initialised_unknown_ = true;
    initialised_[base].push_back(id);
  });
  if (initialised_.empty()) return;
  for (const auto& [variable, object] : object_uses(*context_)) {
    std::map<std::pair<BaseId, int64_t>, Mbarrier> found;
    bool is_whole = !object.is_open && !context_->module.variables[variable].is_unsized;
    for (const ObjectUse& use : object.uses) {
      const Role role = role_of(*function_, function_->instructions[use.instruction]);
      const Form form = form_of(use.operand);
      if (!form.terms.empty()) {
        is_whole = false;
        continue;
      }
      Mbarrier& barrier = found[{form.base, form.constant}];
      barrier.base = form.base;
      barrier.uses.push_back({use.instruction, role, use.operand});
    }
    for (auto& [key, barrier] : found) {
      barrier.is_whole = is_whole;
      if (std::any_of(barrier.uses.begin(), barrier.uses.end(), [](const Use& use) { return use.role == Role::init; }))
        barriers_.emplace(key, std::move(barrier));
    }
  }
}

// Made somewhere from which control can come to the use.
void MbarrierProtocol::judge_uninitialised() {
  if (initialised_unknown_) return;
  const flow::Graph& graph = analyses_->graph();
  for (const InstructionId id : uses_) {
    const BaseId base = base_of(function_->instructions[id]);
    if (analyses_->domain().base(base).kind != flow::Base::Kind::variable) continue;
    bool reaches = false;
    if (const auto found = initialised_.find(base); found != initialised_.end())
      for (const InstructionId init : found->second) {
        const BlockId from = graph.block_of(init), to = graph.block_of(id);
        const bool is_in_loop = analyses_->loops().innermost(to) != flow::kNone;
        reaches = reaches || is_in_loop || (from == to ? init < id : graph.order_index(from) <= graph.order_index(to));
      }
    if (reaches) continue;
    report(id, Tier::proved,
           fmt::format("expected an mbarrier that mbarrier.init has initialised, found {} uninitialised",
                       analyses_->domain().describe(base)),
           "initialise it in one thread, then pass a barrier with the block");
  }
}

void MbarrierProtocol::judge_counts() {
  for (const auto& [base, inits] : initialised_)
    for (const InstructionId id : inits) {
      const flow::Fact count = fact_at(*context_, function_->instructions[id].first_operand + 1);
      if (count.low > kMaxArrivals || count.high == 0)
        report(id, Tier::proved,
               fmt::format("expected an arrival count from 1 to {}, found {}", kMaxArrivals, count.low),
               "count the threads, and the one that expects bytes, that arrive in a phase");
    }
}

Source MbarrierProtocol::phase_of(InstructionId wait) const {
  return flow::source_of(analyses_->ssa(), function_->instructions[wait].first_operand + 2);
}

// The operand by itself: a parity is 0 or 1, a token is of this mbarrier.
void MbarrierProtocol::judge_phase_operand(InstructionId wait) {
  const ptx::Instruction& instruction = function_->instructions[wait];
  if (is_by_parity(wait)) {
    const flow::Fact parity = fact_at(*context_, instruction.first_operand + 2);
    if (parity.reached && parity.base == flow::kNoBase && parity.low > 1)
      report(wait, Tier::proved, fmt::format("expected a phase parity of 0 or 1, found {}", parity.low),
             "keep the lowest bit of the phase's number");
    return;
  }
  const Source token = phase_of(wait);
  const ptx::Instruction* arrive = token.kind == Source::Kind::value ? definition_of(*context_, token.id) : nullptr;
  if (!arrive || arrive->op != Op::mbarrier) return;
  const auto from = address_of(*arrive), to = address_of(instruction);
  if (!from || !to) return;
  const Form one = form_of(*from), other = form_of(*to);
  const auto is_variable = [&](const Form& form) {
    return analyses_->domain().base(form.base).kind == flow::Base::Kind::variable && form.terms.empty();
  };
  if (!is_variable(one) || !is_variable(other) || (one.base == other.base && one.constant == other.constant)) return;
  Finding& finding = report(wait, Tier::proved, "expected a token of this mbarrier, found one of another",
                            "wait with the token that an arrival at this mbarrier gave");
  finding.path.push_back({arrive->at, "the token comes from here"});
}

bool MbarrierProtocol::is_invariant(const Source& source, LoopId loop) const {
  if (source.kind == Source::Kind::constant) return true;
  return source.kind == Source::Kind::value &&
         !analyses_->loops().contains(loop, analyses_->ssa().value(source.id).block);
}

// In a loop of which every turn has an arrival, every turn has a phase of its own. A wait that names the same one in
// all of them is over before it began, from the second or third turn on.
void MbarrierProtocol::judge_phase_of_loop(const Mbarrier& barrier, const Use& wait) {
  const flow::Loops& loops = analyses_->loops();
  const BlockId block = block_of(wait.instruction);
  auto arrives = [&](LoopId loop) -> const Use* {
    for (const Use& use : barrier.uses)
      if ((use.role == Role::arrive || use.role == Role::other) && loops.contains(loop, block_of(use.instruction)))
        return &use;
    return nullptr;
  };
  LoopId loop = loops.innermost(block);
  while (loop != flow::kNone && !arrives(loop)) loop = loops.loop(loop).parent;
  if (loop == flow::kNone) return;
  const Source phase = phase_of(wait.instruction);
  if (!is_invariant(phase, loop)) return;
  const auto runs_every_turn = [&](BlockId each) {
    const auto& latches = loops.loop(loop).latches;
    return std::all_of(latches.begin(), latches.end(),
                       [&](BlockId latch) { return analyses_->dominators().dominates(each, latch); });
  };
  if (!runs_every_turn(block)) return;
  for (const Use& use : barrier.uses) {
    if (!loops.contains(loop, block_of(use.instruction))) continue;
    if (use.role == Role::init || use.role == Role::none) return;
    if (use.role != Role::wait) {
      // Whether this turn arrives must not depend on the turn.
      for (const flow::Condition& condition : analyses_->conditions().of_instruction(use.instruction))
        if (loops.contains(loop, analyses_->ssa().value(condition.predicate).block) &&
            !runs_every_turn(block_of(use.instruction)))
          return;
      continue;
    }
    const Source other = phase_of(use.instruction);
    if (other.kind != phase.kind || other.id != phase.id || other.constant != phase.constant) return;
  }
  const Use& arrival = *arrives(loop);
  const bool is_parity = is_by_parity(wait.instruction);
  Finding& finding =
      report(wait.instruction, Tier::likely,
             fmt::format("every iteration of the loop waits for the same {}, but line {} arrives in every iteration: "
                         "from the {} iteration on this waits for a phase that is over",
                         is_parity ? "parity" : "token", line_of(*context_, arrival.instruction),
                         is_parity ? "second" : "third"),
             is_parity ? "flip the parity in every iteration" : "wait with the token of this iteration's arrival");
  finding.path.push_back({function_->instructions[arrival.instruction].at, "the arrival"});
  finding.assumptions.push_back("every iteration completes one phase");
}

// The loop that does nothing but wait: left only where the wait says that the phase is over.
LoopId MbarrierProtocol::spin_of(const Use& wait) const {
  const flow::Graph& graph = analyses_->graph();
  const flow::Loops& loops = analyses_->loops();
  const LoopId spin = loops.innermost(block_of(wait.instruction));
  if (spin == flow::kNone || function_->instructions[wait.instruction].guard) return flow::kNone;
  const ValueId is_over = analyses_->ssa().at(function_->instructions[wait.instruction].first_operand);
  for (const BlockId block : graph.reverse_postorder()) {
    if (!loops.contains(spin, block)) continue;
    bool leaves = graph.block(block).exits;
    for (const BlockId next : graph.successors(block)) leaves = leaves || !loops.contains(spin, next);
    if (leaves && analyses_->ssa().guard(graph.last(block)) != is_over) return flow::kNone;
  }
  return spin;
}

// Phase 0 ends by arrivals only. Where every one of them comes behind a wait for it, nobody gets there.
void MbarrierProtocol::judge_deadlock(const Mbarrier& barrier, const Use& wait) {
  const ptx::Instruction& instruction = function_->instructions[wait.instruction];
  if (!barrier.is_whole || !is_by_parity(wait.instruction)) return;
  if (constant_at(*context_, instruction.first_operand + 2) != 0) return;
  const LoopId spin = spin_of(wait);
  if (spin == flow::kNone) return;
  const BlockId header = analyses_->loops().loop(spin).header;
  const Use* first = nullptr;
  for (const Use& use : barrier.uses) {
    if (use.role != Role::arrive && use.role != Role::other) continue;
    const BlockId block = block_of(use.instruction);
    if (analyses_->loops().contains(spin, block) || !analyses_->dominators().dominates(header, block)) return;
    if (!first) first = &use;
  }
  Finding& finding = report(
      wait.instruction, Tier::likely,
      first
          ? fmt::format(
                "this waits for phase 0, and all arrivals come after it, the first in line {}, which no thread reaches",
                line_of(*context_, first->instruction))
          : "this waits for phase 0, and nothing in the kernel arrives",
      "arrive first, or let another thread arrive that does not wait");
  if (first) finding.path.push_back({function_->instructions[first->instruction].at, "an arrival"});
  finding.assumptions.push_back("control reaches this instruction");
}

// How many arrivals the threads of the block make there; nothing where that is not known.
std::optional<uint64_t> MbarrierProtocol::arrivals(const Use& use) const {
  const ptx::Instruction& instruction = function_->instructions[use.instruction];
  const BlockId block = block_of(use.instruction);
  if (analyses_->loops().innermost(block) != flow::kNone) return std::nullopt;
  uint64_t each = 1;
  if (const uint32_t count = use.address + 1; count < instruction.first_operand + instruction.operand_count) {
    const auto known = constant_at(*context_, count);
    if (!known) return std::nullopt;
    each = *known;
  }
  const flow::LaunchShape& shape = analyses_->shape();
  std::vector<flow::Thread> threads;
  for (uint32_t n = 0; n < std::min(shape.max_threads, 1024u); ++n) threads.push_back(flow::thread_of(shape, n));
  flow::Evaluator evaluator(analyses_->forms(), threads);
  std::vector<bool> comes(threads.size(), true);
  for (const flow::Condition& condition : analyses_->conditions().of_instruction(use.instruction)) {
    const flow::Column& holds = evaluator.column(condition.predicate);
    for (size_t n = 0; n < threads.size(); ++n) {
      if (!holds[n]) return std::nullopt;
      if ((*holds[n] != 0) != condition.expected) comes[n] = false;
    }
  }
  return each * static_cast<uint64_t>(std::count(comes.begin(), comes.end(), true));
}

// Fewer arrivals than the count never complete a phase.
void MbarrierProtocol::judge_arrivals(const Mbarrier& barrier) {
  if (!barrier.is_whole || !analyses_->shape().is_exact) return;
  const Use* init = nullptr;
  const Use* wait = nullptr;
  uint64_t total = 0;
  for (const Use& use : barrier.uses) {
    if (use.role == Role::other || (use.role == Role::init && init)) return;
    if (use.role == Role::init) init = &use;
    if (use.role == Role::wait) wait = &use;
    if (use.role != Role::arrive) continue;
    const auto known = arrivals(use);
    if (!known) return;
    total += *known;
  }
  if (!init || !wait || total == 0) return;
  const auto count = constant_at(*context_, function_->instructions[init->instruction].first_operand + 1);
  if (!count || *count <= total || *count > kMaxArrivals) return;
  Finding& finding = report(
      init->instruction, Tier::proved,
      fmt::format("expected a count of at most {}, the arrivals of the block, found {}: the wait in line {} never ends",
                  total, *count, line_of(*context_, wait->instruction)),
      "count the arrivals of one phase");
  finding.path.push_back({function_->instructions[wait->instruction].at, "the wait"});
}

bool MbarrierProtocol::has_one_guard(InstructionId one, InstructionId other) const {
  const flow::Ssa& ssa = analyses_->ssa();
  return block_of(one) == block_of(other) && ssa.guard(one) == ssa.guard(other) &&
         function_->instructions[one].guard.negated == function_->instructions[other].guard.negated;
}

// A bulk copy of so many bytes from global memory into this CTA's mbarrier alone.
bool MbarrierProtocol::brings_bytes(const ptx::Instruction& instruction) const {
  if (instruction.op != Op::cp || instruction.second_space != ptx::Space::global) return false;
  const Asynchronous copy = ptx::facts_of(*function_, instruction).asynchronous;
  return copy.step == Asynchronous::Step::copy && copy.completion == Asynchronous::Completion::mbarrier &&
         !copy.is_tensor && !copy.is_multicast;
}

// A phase ends where as many bytes have come as were expected. Judged where one block has all of both, so that they run
// equally often, and every number is known: other blocks of a cluster may send bytes where anything is multicast.
void MbarrierProtocol::judge_bytes(const Mbarrier& barrier) {
  if (!barrier.is_whole) return;
  const Use* expects = nullptr;
  const Use* brings = nullptr;
  const Use* wait = nullptr;
  uint64_t expected_bytes = 0, brought_bytes = 0;
  for (const Use& use : barrier.uses) {
    if (use.role == Role::wait) wait = &use;
    if (use.role != Role::other) continue;
    const ptx::Instruction& instruction = function_->instructions[use.instruction];
    const bool expects_bytes = ptx::facts_of(*function_, instruction).mbarrier.expects_bytes;
    if (!expects_bytes &&
        !(brings_bytes(instruction) && use.address == ptx::operand_of(*function_, instruction, Purpose::barrier)))
      return;
    const auto size = expects_bytes ? use.address + 1 : ptx::operand_of(*function_, instruction, Purpose::size).value();
    const auto bytes = constant_at(*context_, size);
    if (!bytes) return;
    (expects_bytes ? expected_bytes : brought_bytes) += *bytes;
    const Use*& first = expects_bytes ? expects : brings;
    if (!first) first = &use;
    if (!has_one_guard(use.instruction, (expects ? expects : brings)->instruction)) return;
  }
  if (!expects || !brings || !wait || expected_bytes == brought_bytes) return;
  Finding& finding =
      report(expects->instruction, Tier::proved,
             fmt::format("expected the {} bytes that the copies bring, found {}: the wait in line {} {}", brought_bytes,
                         expected_bytes, line_of(*context_, wait->instruction),
                         brought_bytes < expected_bytes ? "never ends" : "ends before all have come, or never"),
             "expect as many bytes as the copies of one phase bring");
  finding.path.push_back({function_->instructions[brings->instruction].at, "a copy"});
  finding.path.push_back({function_->instructions[wait->instruction].at, "the wait"});
}

RuleResult MbarrierProtocol::run() {
  find();
  if (uses_.empty() && initialised_.empty()) return not_applicable("the kernel has no mbarrier");
  judge_counts();
  judge_uninitialised();
  for (const InstructionId id : uses_)
    if (role_of(*function_, function_->instructions[id]) == Role::wait) judge_phase_operand(id);
  for (const auto& [key, barrier] : barriers_) {
    judge_arrivals(barrier);
    judge_bytes(barrier);
    for (const Use& use : barrier.uses) {
      if (use.role != Role::wait) continue;
      judge_phase_of_loop(barrier, use);
      judge_deadlock(barrier, use);
    }
  }
  in_program_order(findings_);
  return conclude(std::move(findings_), plural(uses_.size(), "use") +
                                            " of mbarriers; those whose object is known are initialised before, and "
                                            "no wait is for a phase that is over or cannot end");
}

}  // namespace

RuleResult mbarrier_protocol(Context& context) { return MbarrierProtocol(context).run(); }

}  // namespace ptxkit::rules
