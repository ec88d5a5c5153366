// For every pair of accesses that can be in one interval the addresses of all threads are computed by evaluation, not
// by approximation; what a thread cannot know cancels where it is the same for both, and otherwise leaves only a
// residue. An overlap between two threads that surely get there is a refutation with both named; no overlap for any
// pair, in a kernel whose block is known, is a proof; everything else is undecided.
#include "analyzer/rules/engine/race_search.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/evaluate.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/intervals.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/flow/step_budget.hpp"
#include "analyzer/flow/tested_range.hpp"
#include "analyzer/flow/uniformity.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/footprint.hpp"
#include "analyzer/rules/engine/pair_prover.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/thread_sample.hpp"
#include "support/plural.hpp"

namespace ptxkit::rules {

using flow::Atom;
using flow::LoopId;
using flow::Uniformity;
using ptx::Access;
using ptx::AccessKind;
using ptx::Op;
using ptx::Space;

namespace {

constexpr size_t kMaxOrigins = 64;  // of one block
constexpr size_t kMaxPairs = 20'000;
constexpr size_t kMaxComparisons = 6'400'000;   // pair and thread
constexpr uint64_t kMaxWalkSteps = 20'000'000;  // of the walks between the two accesses of a pair

// Accesses of different keys do not meet: whether it is global, and the variable of shared memory or the base.
using ObjectKey = std::pair<bool, uint32_t>;

// What is the same for the threads of a block, or of a row of it.
class CtaSameness : public Sameness {
 public:
  explicit CtaSameness(const flow::UniformityAnalysis& uniformity) : uniformity_(&uniformity) {}
  bool is_same(const Atom& atom) const override {
    return atom.kind == Atom::Kind::parameter ||
           (atom.kind == Atom::Kind::special && atom.id != static_cast<uint32_t>(ptx::SpecialRegister::laneid)) ||
           ((atom.kind == Atom::Kind::value || atom.kind == Atom::Kind::whole) && is_same(atom.id));
  }
  bool is_same(flow::ValueId value) const override { return uniformity_->of(value) <= Uniformity::loaded; }

 private:
  const flow::UniformityAnalysis* uniformity_;
};

class RaceSearch {
 public:
  RaceSearch(Context& context, RacePairs pairs)
      : context_(&context), analyses_(&context.analyses()), pairs_(pairs), footprints_(*analyses_, accesses_) {
    use_sample(Sample::row);
  }

  RuleResult run();

 private:
  struct TestedEdge {
    flow::Edge edge;
    flow::TestedRange range;  // of what is tested, where control goes over the edge
  };
  void use_sample(Sample sample);
  bool depends_on_thread() const;
  void collect();
  bool is_in_shared(const Access& access) const;
  std::set<flow::BaseId> global_objects() const;
  bool may_differ(const RacingAccess& one, LoopIteration one_moment, const RacingAccess& other,
                  LoopIteration other_moment, const std::pair<Place, Place>& places);
  void drop_out_of_bounds_threads();
  bool is_by_lane(const RacingAccess& access) const;
  const flow::UniformityAnalysis& uniformity() const;
  void judge(size_t first, size_t second);
  bool judge_iteration(size_t first, size_t second, LoopIteration first_moment, LoopIteration second_moment,
                       bool same_iteration, bool warp_level);
  bool exclusive(const RacingAccess& a, const RacingAccess& b) const;
  const std::vector<TestedEdge>& tested_edges();
  std::set<flow::Edge> closed_edges(const RacingAccess& a, const RacingAccess& b);
  bool can_be_concurrent(const RacingAccess& a, const RacingAccess& b);

  bool is_examined(const Access& a, const Access& b) const;
  bool judge_pairs(const std::map<ObjectKey, std::vector<size_t>>& groups);
  bool may_prove() const;
  void settle_undecided();
  void report_met(const RacingAccess& a, const RacingAccess& b, const MetThreads& met);
  bool is_any_examined() const;
  std::string nothing_examined() const;
  void judge_two_rows(std::map<ObjectKey, std::vector<size_t>> groups);

  Context* context_;
  Analyses* analyses_;
  RacePairs pairs_;
  Sample sample_ = Sample::row;
  unsigned row_ = 0;  // of %tid, in which threads of a block without a shape differ
  std::vector<RacingAccess> accesses_;
  std::optional<CtaSameness> sameness_;
  Footprints footprints_;
  std::optional<flow::Intervals> cta_, warp_;
  std::vector<bool> cta_separates_, warp_separates_;
  std::optional<std::vector<TestedEdge>> tested_edges_;  // found when first asked for
  std::vector<bool> parts_;                              // per block: threads of the CTA may leave it different ways
  std::vector<Finding> findings_;
  std::set<ptx::InstructionId> reported_;
  struct UndecidedPair {
    size_t first = 0, second = 0;
    bool is_of_one_warp = true;  // lanes of a warp count too
    auto operator<=>(const UndecidedPair&) const = default;
  };
  std::vector<UndecidedPair> undecided_;
  size_t proved_ = 0;  // of these
  std::string open_;   // why the rule cannot say "survived"
  bool lockstep_warps_ = false;
  flow::StepBudget walk_steps_left_{kMaxWalkSteps};
};

bool RaceSearch::depends_on_thread() const {
  const std::vector<ptx::Operand>& operands = context_->function().operand_pool;
  return std::any_of(operands.begin(), operands.end(), [](const ptx::Operand& operand) {
    const auto special = static_cast<ptx::SpecialRegister>(operand.id);
    return operand.kind == ptx::OperandKind::special &&
           (special == ptx::SpecialRegister::tid || special == ptx::SpecialRegister::laneid);
  });
}

void RaceSearch::use_sample(Sample sample) {
  ThreadSample of = sample_threads(*context_, sample, pairs_ == RacePairs::shared);
  sample_ = sample;
  row_ = of.row;
  sameness_.emplace(uniformity());
  footprints_.set_threads(std::move(of.threads), *sameness_);
}

// Without a shape the threads looked at are of one row, where values that %tid.y and %tid.z make are the same.
const flow::UniformityAnalysis& RaceSearch::uniformity() const {
  return analyses_->shape().is_exact || sample_ != Sample::row ? analyses_->uniformity()
                                                               : analyses_->uniformity_of_row(row_);
}

// Threads that would leave a shared object are in no block that the kernel is meant for.
void RaceSearch::drop_out_of_bounds_threads() {
  if (analyses_->shape().is_exact) return;
  std::vector<flow::Thread> threads = footprints_.threads();
  size_t limit = threads.size();
  for (const RacingAccess& shared : accesses_) {
    if (!shared.is_evaluated) continue;
    const flow::Base& base = analyses_->domain().base(shared.form.base);
    if (base.kind != flow::Base::Kind::variable || context_->module.variables[base.id].is_unsized) continue;
    const Footprint& print =
        footprints_.of(static_cast<size_t>(&shared - accesses_.data()), {analyses_->loops().innermost(shared.block)});
    if (!print.known || !print.common.empty() || !print.free.empty()) continue;
    const auto size = static_cast<int64_t>(context_->module.variables[base.id].size_bytes);
    for (const Place& place : print.places)
      if (place.certain && (place.offset < 0 || place.offset + shared.access.extent_bytes > size))
        limit = std::min<size_t>(limit, place.thread);
  }
  threads.resize(std::max<size_t>(limit, std::min<size_t>(threads.size(), kThreadsWithoutShape)));
  footprints_.set_threads(std::move(threads), *sameness_);
}

// Such accesses do not distinguish warps, so they do not show that the block has several.
bool RaceSearch::is_by_lane(const RacingAccess& access) const {
  const flow::Ssa& ssa = analyses_->ssa();
  std::vector<flow::ValueId> work;
  std::set<flow::ValueId> seen;
  bool has_lane = false, has_other = false;
  const auto visit_special = [&](uint32_t id) {
    const auto special = static_cast<ptx::SpecialRegister>(id);
    has_lane = has_lane || special == ptx::SpecialRegister::laneid;
    has_other = has_other || special == ptx::SpecialRegister::tid || special == ptx::SpecialRegister::warpid;
  };
  const auto visit = [&](const flow::Source& source) {
    if (source.kind == flow::Source::Kind::special) visit_special(source.id);
    if (source.kind == flow::Source::Kind::value && seen.insert(source.id).second) work.push_back(source.id);
  };
  const auto visit_value = [&](flow::ValueId id) {
    if (id != flow::kNone && seen.insert(id).second) work.push_back(id);
  };
  visit(flow::address_base(ssa, access.access.address));
  for (const flow::Condition& condition : access.conditions) visit_value(condition.predicate);
  while (!work.empty() && !has_other) {
    const flow::ValueId id = work.back();
    work.pop_back();
    const flow::Value& value = ssa.value(id);
    if (value.kind == flow::Value::Kind::phi)
      for (const flow::ValueId argument : ssa.arguments(id)) visit_value(argument);
    if (value.kind != flow::Value::Kind::result) continue;
    visit_value(value.old);
    if (value.old != flow::kNone) visit_value(ssa.guard(value.instruction));
    const flow::Operation operation = flow::operation_of(ssa, id);
    for (unsigned i = 0; i < operation.source_count; ++i) visit(flow::source_of(ssa, operation.first_source + i));
  }
  return has_lane && !has_other;
}

bool RaceSearch::is_in_shared(const Access& access) const {
  if (access.space != Space::generic) return access.space == Space::shared;
  const flow::Source base = flow::address_base(analyses_->ssa(), access.address);
  return base.kind == flow::Source::Kind::value && (analyses_->domain().fact(base.id).points_to & flow::kSharedSet);
}

// Global objects that are examined: variables, and what parameters point to, which is one object for all threads.
// Without a shape a kernel that does not tell its threads apart is taken to be for one.
std::set<flow::BaseId> RaceSearch::global_objects() const {
  std::set<flow::BaseId> found;
  const bool asks_global = pairs_ == RacePairs::mixed || pairs_ == RacePairs::global;
  if (!asks_global || (!analyses_->shape().is_exact && !depends_on_thread())) return found;
  for (const Access& access : analyses_->accesses()) {
    const bool is_global = access.space == Space::global || (access.space == Space::generic && !is_in_shared(access));
    const AccessKind wanted = pairs_ == RacePairs::mixed ? AccessKind::atomic : AccessKind::store;
    if (access.kind != wanted || !is_global) continue;
    const flow::BaseId id = analyses_->forms().address(access).base;
    const flow::Base& base = analyses_->domain().base(id);
    if (base.kind == flow::Base::Kind::parameter || base.kind == flow::Base::Kind::variable) found.insert(id);
  }
  return found;
}

void RaceSearch::collect() {
  flow::Forms& forms = analyses_->forms();
  const flow::Domain& domain = analyses_->domain();
  const ptx::Function& function = context_->function();
  cta_separates_.assign(function.instructions.size(), false);
  warp_separates_.assign(function.instructions.size(), false);
  for (ptx::InstructionId id = 0; id < function.instructions.size(); ++id) {
    const ptx::Instruction& instruction = function.instructions[id];
    const bool cluster = instruction.op == Op::barrier &&
                         ptx::facts_of(function, instruction).barrier.level == ptx::Barrier::Level::cluster;
    cta_separates_[id] = ptx::is_cta_barrier(function, instruction) || cluster || instruction.op == Op::call ||
                         instruction.op == Op::mbarrier;
    warp_separates_[id] = cta_separates_[id] || ptx::is_warp_barrier(function, instruction);
    const bool plain_barrier = ptx::is_whole_cta_barrier(function, instruction) && !instruction.guard;
    if (cta_separates_[id] && !plain_barrier && open_.empty())
      open_ = fmt::format("the synchronisation in line {} is not followed", line_of(*context_, id));
  }
  const std::set<flow::BaseId> globals = global_objects();
  const bool may_be_one_warp =
      pairs_ == RacePairs::shared && !analyses_->shape().is_exact && !computes_warp_number(*context_);
  for (const Access& access : analyses_->accesses()) {
    const bool is_shared = is_in_shared(access);
    const bool is_outside = !is_shared && (access.space == Space::global || access.space == Space::generic);
    const flow::BaseId object = forms.address(access).base;
    const bool is_global = is_outside && globals.contains(object);
    if (pairs_ == RacePairs::global) {
      const flow::Base::Kind kind = domain.base(object).kind;
      if (is_outside && kind != flow::Base::Kind::parameter && kind != flow::Base::Kind::variable && open_.empty())
        open_ = fmt::format("which object the access in line {} touches is not known",
                            line_of(*context_, access.instruction));
    }
    if (pairs_ == RacePairs::global ? !is_global : !is_shared && !is_global) continue;
    RacingAccess shared{access, is_global, forms.expand(forms.address(access)),
                        analyses_->graph().block_of(access.instruction),
                        analyses_->conditions().of_instruction(access.instruction)};
    const flow::Base& base = domain.base(shared.form.base);
    const bool known_object = is_global || base.kind == flow::Base::Kind::none ||
                              base.kind == flow::Base::Kind::variable || base.kind == flow::Base::Kind::parameter;
    shared.may_wrap = shared.form.modulus_bits < (is_global ? 64u : 32u);
    const bool is_index = pairs_ == RacePairs::global && is_plain_index(shared.form);
    shared.is_evaluated = !shared.may_wrap || is_index;
    if (access.extent_bytes == 0 || !known_object || (!shared.is_evaluated && !may_prove())) {
      if (open_.empty())
        open_ = fmt::format("what the access in line {} touches cannot be followed",
                            line_of(*context_, access.instruction));
      continue;
    }
    shared.is_by_lane = may_be_one_warp && is_by_lane(shared);
    accesses_.push_back(std::move(shared));
  }
}

// One runs only where the other does not: the same uniform predicate with opposite outcome.
bool RaceSearch::exclusive(const RacingAccess& a, const RacingAccess& b) const {
  for (const flow::Condition& x : a.conditions)
    for (const flow::Condition& y : b.conditions)
      if (x.predicate == y.predicate && x.expected != y.expected && uniformity().of(x.predicate) <= Uniformity::loaded)
        return true;
  return false;
}

// What each branch on a test leaves of the tested integer, on either side.
const std::vector<RaceSearch::TestedEdge>& RaceSearch::tested_edges() {
  if (tested_edges_) return *tested_edges_;
  tested_edges_.emplace();
  const flow::Ssa& ssa = analyses_->ssa();
  const flow::Graph& graph = analyses_->graph();
  for (flow::BlockId block = 0; block < graph.size(); ++block) {
    if (!graph.is_reachable(block)) continue;
    const auto sides = graph.successors(block);
    const ptx::Instruction& last = context_->function().instructions[graph.last(block)];
    if (last.op != Op::bra || !last.guard || sides.size() != 2) continue;
    for (const bool is_taken : {true, false}) {
      const auto range =
          flow::tested_range(analyses_->domain(), {ssa.guard(graph.last(block)), is_taken != last.guard.negated});
      if (range) tested_edges_->push_back({{block, sides[is_taken ? 0 : 1]}, *range});
    }
  }
  return *tested_edges_;
}

// Edges that no thread takes that reaches both accesses: a number that is the same for all threads all the time was
// tested before one of the two, and a branch tests it again. `ntid.x > 32` and the signed `ntid.x < 33` do not hold
// together.
std::set<flow::Edge> RaceSearch::closed_edges(const RacingAccess& a, const RacingAccess& b) {
  const flow::Ssa& ssa = analyses_->ssa();
  const flow::Domain& domain = analyses_->domain();
  // One number for all threads and iterations.
  const auto is_single = [&](const flow::Source& source) {
    if (source.kind == flow::Source::Kind::value)
      return uniformity().of(source.id) <= Uniformity::loaded &&
             analyses_->loops().innermost(ssa.value(source.id).block) == flow::kNone;
    const auto special = static_cast<ptx::SpecialRegister>(source.id);
    return special == ptx::SpecialRegister::ntid || special == ptx::SpecialRegister::nctaid ||
           special == ptx::SpecialRegister::ctaid;
  };
  const auto is_same = [](const flow::Source& x, const flow::Source& y) {
    return x.kind == y.kind && x.id == y.id && x.component == y.component;
  };
  std::vector<flow::TestedRange> known;
  for (const RacingAccess* access : {&a, &b})
    for (const flow::Condition& condition : access->conditions)
      if (const auto range = flow::tested_range(domain, condition); range && is_single(range->source))
        known.push_back(*range);
  std::set<flow::Edge> closed;
  if (known.empty()) return closed;
  for (const auto& [edge, range] : tested_edges()) {
    if (std::ranges::any_of(known, [&](const flow::TestedRange& each) {
          return is_same(each.source, range.source) && std::max(each.low, range.low) > std::min(each.high, range.high);
        }))
      closed.insert(edge);
  }
  return closed;
}

// Where the walks have become too many the answer is false, and the rule stays open.
bool RaceSearch::can_be_concurrent(const RacingAccess& a, const RacingAccess& b) {
  if (!walk_steps_left_.is_spent()) {
    walk_steps_left_.take(tested_edges().size() * 4);
    if (cta_->can_be_concurrent(a.access.instruction, b.access.instruction, parts_, analyses_->post_dominators(),
                                closed_edges(a, b), walk_steps_left_))
      return true;
  }
  if (walk_steps_left_.is_spent()) open_ = "not decided: budget: too many ways lead from one shared access to another";
  return false;
}

bool RaceSearch::is_examined(const Access& a, const Access& b) const {
  switch (pairs_) {
    case RacePairs::shared:
      return (a.is_plain || a.is_volatile) && (b.is_plain || b.is_volatile);
    case RacePairs::lockstep:
      return (a.is_plain || a.is_volatile) && (b.is_plain || b.is_volatile) && (a.is_volatile || b.is_volatile);
    case RacePairs::global:
      return a.is_plain && b.is_plain && !a.is_read_only && !b.is_read_only;
    case RacePairs::mixed:
      return (a.kind == AccessKind::atomic && b.is_plain) || (b.kind == AccessKind::atomic && a.is_plain);
  }
  return false;
}

// Whether two stores write different values. Two stores of one value are no race with an effect: lanes often hold the
// same reduced number.
bool RaceSearch::may_differ(const RacingAccess& one, LoopIteration one_moment, const RacingAccess& other,
                            LoopIteration other_moment, const std::pair<Place, Place>& places) {
  const auto data = [&](const RacingAccess& of, LoopIteration moment, uint32_t thread) -> std::optional<uint64_t> {
    if (of.access.data == ptx::kNone) return std::nullopt;
    const flow::Source source = flow::source_of(analyses_->ssa(), of.access.data);
    if (source.kind == flow::Source::Kind::constant) return source.constant;
    if (source.kind != flow::Source::Kind::value) return std::nullopt;
    return footprints_.evaluator(of, moment).column(source.id)[thread];
  };
  const auto one_data = data(one, one_moment, places.first.thread);
  const auto other_data = data(other, other_moment, places.second.thread);
  return one_data && other_data && *one_data != *other_data;
}

// Returns whether the pair is proved free of races in this relation.
bool RaceSearch::judge_iteration(size_t first, size_t second, LoopIteration first_moment, LoopIteration second_moment,
                                 bool same_iteration, bool warp_level) {
  const RacingAccess &a = accesses_[first], &b = accesses_[second];
  if (same_iteration && exclusive(a, b)) return true;
  footprints_.trim();
  const Footprint &x = footprints_.of(first, first_moment), &y = footprints_.of(second, second_moment);
  if (!x.known || !y.known) return false;
  const uint64_t modulus = remaining_modulus(*analyses_, x, y, same_iteration);

  // Lanes of a warp that hand values on through volatile memory are F050's business.
  const bool has_volatile = pairs_ == RacePairs::shared && !(a.access.is_plain && b.access.is_plain);
  const bool is_weak_in_warp = x.is_bounded || y.is_bounded || has_volatile;
  const auto meet = [&](const Place& one, const Place& other) {
    if (one.thread == other.thread) return Meeting::apart;
    const bool one_warp = one.thread / 32 == other.thread / 32;
    if (one_warp ? !warp_level : pairs_ == RacePairs::lockstep) return Meeting::apart;
    const bool is_far = !analyses_->shape().is_exact && std::max(one.thread, other.thread) >= kThreadsWithoutShape;
    const bool is_open = one_warp ? is_far || is_weak_in_warp : a.is_by_lane && b.is_by_lane;
    return is_open ? Meeting::possible : Meeting::sure;
  };
  const Overlap found = find_overlap(x, y, a.access.extent_bytes, b.access.extent_bytes, modulus, meet);
  if (!found.possible) return analyses_->shape().is_exact || analyses_->shape().max_threads == 1;
  if (!found.sure || modulus) return false;
  // Conditions that only one of them has may still exclude each other where both have some.
  auto extra = [](const Footprint& from, const Footprint& of) {
    return std::any_of(from.unknown_uniform.begin(), from.unknown_uniform.end(), [&](const flow::Condition& condition) {
      return std::find(of.unknown_uniform.begin(), of.unknown_uniform.end(), condition) == of.unknown_uniform.end();
    });
  };
  if (extra(x, y) && extra(y, x)) return false;
  if (!is_examined(a.access, b.access)) return false;
  if (!can_be_concurrent(a, b)) return false;
  if (a.access.kind == AccessKind::store && b.access.kind == AccessKind::store &&
      !may_differ(a, first_moment, b, second_moment, *found.sure))
    return false;
  if (pairs_ == RacePairs::global) {
    const auto is_idle = [&](const RacingAccess& of, LoopIteration moment, const Place& place) {
      return of.access.kind == AccessKind::load && !footprints_.uses_value(*context_, of, moment, place.thread);
    };
    if (is_idle(a, first_moment, found.sure->first) || is_idle(b, second_moment, found.sure->second)) return false;
  }
  // Without a shape a block may have one thread, unless the kernel gives its threads places of their own.
  if (pairs_ == RacePairs::global && !analyses_->shape().is_exact && !footprints_.tells_threads_apart(a) &&
      !footprints_.tells_threads_apart(b))
    return false;
  if (!reported_.insert(a.access.instruction).second) return false;

  const auto& [here, there] = *found.sure;
  const flow::Thread &one = footprints_.threads()[here.thread], &other = footprints_.threads()[there.thread];
  const bool certain = analyses_->shape().is_exact && x.unknown_uniform.empty() && y.unknown_uniform.empty() &&
                       !x.is_bounded && !y.is_bounded && !has_volatile && same_iteration && !a.may_wrap &&
                       !b.may_wrap && first_moment.inner == flow::kNone && second_moment.inner == flow::kNone;
  Finding finding = finding_at(
      *context_, a.access.instruction,
      pairs_ == RacePairs::shared || (pairs_ == RacePairs::global && certain) ? Severity::high : Severity::medium,
      certain ? Tier::proved : Tier::likely,
      fmt::format("thread ({}, {}, {}) {} what thread ({}, {}, {}) {} in line {}, with no {} between", one.tid[0],
                  one.tid[1], one.tid[2], verb_of(a.access), other.tid[0], other.tid[1], other.tid[2],
                  verb_of(b.access), line_of(*context_, b.access.instruction),
                  pairs_ == RacePairs::lockstep ? "bar.warp.sync" : "barrier"),
      warp_level ? "put bar.warp.sync or bar.sync between the two accesses" : "put bar.sync between the two accesses");
  Witness witness;
  for (unsigned d = 0; d < 3; ++d) {
    witness.tid[d] = one.tid[d];
    witness.other_tid[d] = other.tid[d];
  }
  witness.address = static_cast<uint64_t>(std::max(here.offset, there.offset));
  witness.note =
      a.form.base == flow::kNoBase ? "a shared address" : "offset from " + analyses_->domain().describe(a.form.base);
  if (!x.common.empty() || !y.common.empty()) witness.note += ", less what is the same for all threads";
  finding.witness = witness;
  finding.path.push_back({context_->function().instructions[b.access.instruction].at, "the other access"});
  for (unsigned d = 0; d < 3 && !analyses_->shape().is_exact; ++d)
    if (one.tid[d] != other.tid[d])
      finding.assumptions.push_back(
          fmt::format("the block has at least {} threads in {}", std::max(one.tid[d], other.tid[d]) + 1, "xyz"[d]));
  if (a.may_wrap || b.may_wrap) finding.assumptions.push_back("no 32-bit index wraps");
  if (!same_iteration) finding.assumptions.push_back("the loop runs another iteration");
  if (!x.unknown_uniform.empty() || !y.unknown_uniform.empty())
    finding.assumptions.push_back("control reaches both accesses");
  if (has_volatile)
    finding.assumptions.push_back("the two are meant to come in an order, which volatile does not keep");
  if (x.is_bounded || y.is_bounded) finding.assumptions.push_back("the bounds on the way let both threads through");
  findings_.push_back(std::move(finding));
  return false;
}

void RaceSearch::judge(size_t first, size_t second) {
  const RacingAccess &a = accesses_[first], &b = accesses_[second];
  if (a.access.kind == AccessKind::load && b.access.kind == AccessKind::load) return;
  if (a.access.kind == AccessKind::atomic && b.access.kind == AccessKind::atomic) return;
  if (pairs_ != RacePairs::shared && !is_examined(a.access, b.access)) return;
  const ptx::InstructionId x = a.access.instruction, y = b.access.instruction;
  if (first == second && a.access.data != ptx::kNone &&
      analyses_->uniformity().of(flow::source_of(analyses_->ssa(), a.access.data)) <= Uniformity::loaded &&
      context_->function().operand_pool[a.access.data].child_count == 0)
    return;  // every thread writes the same value
  const bool is_evaluated = a.is_evaluated && b.is_evaluated;
  if (pairs_ == RacePairs::global && is_evaluated && analyses_->shape().is_exact &&
      are_digits_apart(*context_, a, b, ptx::SpecialRegister::tid, *sameness_))
    return;
  const flow::Concurrency cta = cta_->concurrency(x, y);
  if (!cta.any()) return;
  const flow::Concurrency warp = lockstep_warps_ ? flow::Concurrency{} : warp_->concurrency(x, y);
  if (!is_evaluated) {
    undecided_.push_back({first, second, warp.any()});
    return;
  }
  bool proved = true;
  auto inner = [&](const RacingAccess& shared) { return analyses_->loops().innermost(shared.block); };
  auto try_both = [&](LoopIteration m, LoopIteration n, bool same, bool in_warp) {
    if (!judge_iteration(first, second, m, n, same, in_warp)) proved = false;
  };
  if (cta.same_iteration) try_both({inner(a)}, {inner(b)}, true, warp.same_iteration);
  if (cta.first_is_later != flow::kNone && analyses_->loops().contains(cta.first_is_later, a.block))
    try_both({inner(a), cta.first_is_later}, {inner(b)}, false, warp.first_is_later != flow::kNone);
  if (cta.second_is_later != flow::kNone && analyses_->loops().contains(cta.second_is_later, b.block) &&
      first != second)
    try_both({inner(a)}, {inner(b), cta.second_is_later}, false, warp.second_is_later != flow::kNone);
  if (cta.unbounded) proved = false;
  // Iterations other than those tried are proved only where no address depends on one.
  if (inner(a) != flow::kNone || inner(b) != flow::kNone) {
    for (const RacingAccess* shared : {&a, &b})
      for (const flow::Term& term : shared->form.terms) {
        const Atom& atom = analyses_->forms().atom(term.atom);
        const bool depends = atom.kind == Atom::Kind::iteration ||
                             (atom.kind == Atom::Kind::value &&
                              analyses_->loops().innermost(analyses_->ssa().value(atom.id).block) != flow::kNone);
        if (depends) proved = false;
      }
    for (const RacingAccess* shared : {&a, &b})
      for (const flow::Condition& condition : shared->conditions)
        if (analyses_->loops().innermost(analyses_->ssa().value(condition.predicate).block) != flow::kNone &&
            analyses_->uniformity().of(condition.predicate) > Uniformity::loaded)
          proved = false;
  }
  if (!proved) undecided_.push_back({first, second, warp.any()});
}

// Volatile and lockstep are no matter of addresses alone.
bool RaceSearch::may_prove() const {
  return context_->options.solver != nullptr && analyses_->shape().is_exact && pairs_ != RacePairs::lockstep;
}

// Asks the solver, where nothing else leaves the rule open.
void RaceSearch::settle_undecided() {
  std::ranges::sort(undecided_);
  std::optional<PairProver> prover;
  if (may_prove() && open_.empty() && findings_.empty() && !undecided_.empty())
    prover.emplace(*context_, &cta_separates_, undecided_.size());
  for (const auto& [first, second, is_of_one_warp] : undecided_) {
    const RacingAccess &a = accesses_[first], &b = accesses_[second];
    using Kind = PairProver::Answer::Kind;
    const PairProver::Answer answer = prover ? prover->ask(a, b, !is_of_one_warp) : PairProver::Answer{};
    proved_ += answer.kind == Kind::apart;
    if (answer.kind == Kind::apart) continue;
    if (answer.kind == Kind::meet && is_examined(a.access, b.access) && a.access.is_plain && b.access.is_plain &&
        can_be_concurrent(a, b))
      report_met(a, b, *answer.threads);
    else if (open_.empty())
      open_ = fmt::format("that the accesses in lines {} and {} stay apart could not be proved",
                          line_of(*context_, a.access.instruction), line_of(*context_, b.access.instruction));
  }
}

void RaceSearch::report_met(const RacingAccess& a, const RacingAccess& b, const MetThreads& met) {
  if (!reported_.insert(a.access.instruction).second) return;
  const flow::Thread &one = met.one, &other = met.other;
  Finding finding =
      finding_at(*context_, a.access.instruction, met.assumptions.empty() ? Severity::high : Severity::medium,
                 met.assumptions.empty() ? Tier::proved : Tier::likely,
                 fmt::format("thread ({}, {}, {}) {} what thread ({}, {}, {}) {} in line {}, with no barrier between",
                             one.tid[0], one.tid[1], one.tid[2], verb_of(a.access), other.tid[0], other.tid[1],
                             other.tid[2], verb_of(b.access), line_of(*context_, b.access.instruction)),
                 "put bar.sync between the two accesses");
  Witness witness;
  for (unsigned d = 0; d < 3; ++d) {
    witness.tid[d] = one.tid[d];
    witness.other_tid[d] = other.tid[d];
  }
  witness.note = "in " + analyses_->domain().describe(a.form.base);
  finding.witness = witness;
  finding.assumptions = met.assumptions;
  finding.path.push_back({context_->function().instructions[b.access.instruction].at, "the other access"});
  findings_.push_back(std::move(finding));
}

// Accesses of one object with each other. Returns whether the budget was enough.
bool RaceSearch::judge_pairs(const std::map<ObjectKey, std::vector<size_t>>& groups) {
  const size_t budget = std::min(kMaxPairs, kMaxComparisons / footprints_.threads().size());
  size_t pairs = 0;
  for (const auto& [object, members] : groups)
    for (size_t i = 0; i < members.size(); ++i)
      for (size_t j = i; j < members.size(); ++j) {
        if (++pairs > budget) {
          open_ = fmt::format("not decided: budget: only {} pairs of shared accesses were looked at", budget);
          return false;
        }
        judge(members[i], members[j]);
      }
  return true;
}

// A block of unknown shape may have several rows, where the kernel asks for both numbers of a thread.
void RaceSearch::judge_two_rows(std::map<ObjectKey, std::vector<size_t>> groups) {
  if (pairs_ != RacePairs::shared || analyses_->shape().is_exact || analyses_->shape().max_tid(1) == 0 ||
      !reads_thread_number(context_->function(), 0) || !reads_thread_number(context_->function(), 1))
    return;
  use_sample(Sample::diagonal);
  if (!judge_pairs(groups) || !findings_.empty()) return;
  use_sample(Sample::column);
  // What does not tell rows apart may be for blocks of one.
  for (auto& [object, members] : groups)
    std::erase_if(members, [&](size_t member) { return !footprints_.tells_threads_apart(accesses_[member]); });
  judge_pairs(groups);
}

bool RaceSearch::is_any_examined() const {
  const auto any_access = [&](auto&& is) {
    return std::any_of(accesses_.begin(), accesses_.end(), [&](const RacingAccess& each) { return is(each.access); });
  };
  switch (pairs_) {
    case RacePairs::shared:
    case RacePairs::global:
      return true;
    case RacePairs::lockstep:
      return any_access([](const Access& each) { return each.is_volatile; });
    case RacePairs::mixed:
      return any_access([](const Access& each) { return each.kind == AccessKind::atomic; }) &&
             any_access([](const Access& each) { return each.is_plain; });
  }
  return true;
}

// Why the rule does not apply.
std::string RaceSearch::nothing_examined() const {
  switch (pairs_) {
    case RacePairs::shared:
      return "the kernel does not access shared memory";
    case RacePairs::lockstep:
      return accesses_.empty() ? "the kernel does not access shared memory"
                               : "the kernel has no volatile shared access";
    case RacePairs::mixed:
      return accesses_.empty() ? "no atomic that several threads share has a known object"
                               : "no object is reached atomically and plainly";
    case RacePairs::global:
      return "the kernel stores to no global object that several threads share";
  }
  return {};
}

RuleResult RaceSearch::run() {
  const auto& all = analyses_->accesses();
  const bool any =
      std::any_of(all.begin(), all.end(), [](const Access& access) { return access.space == Space::shared; });
  collect();
  if (accesses_.empty() && !(any && pairs_ != RacePairs::global)) return not_applicable(nothing_examined());
  if (!is_any_examined()) return not_applicable(nothing_examined());
  if (footprints_.threads().size() < 2) return survived("the block has one thread");
  drop_out_of_bounds_threads();
  lockstep_warps_ = context_->module.target_sm != 0 && context_->module.target_sm < 70;
  for (flow::BlockId block = 0; block < analyses_->graph().size(); ++block)
    parts_.push_back(analyses_->uniformity().branch(block) > Uniformity::loaded);
  cta_.emplace(analyses_->graph(), analyses_->loops(), cta_separates_, kMaxOrigins);
  warp_.emplace(analyses_->graph(), analyses_->loops(), warp_separates_, 16 * kMaxOrigins);
  if (!cta_->is_complete() || !warp_->is_complete())
    return undecided("not decided: budget: too many barriers reach one place to follow them all");

  // Objects apart do not meet; dynamic arrays all start at the same place, and bare numbers are anywhere.
  std::map<ObjectKey, std::vector<size_t>> groups;
  constexpr uint32_t kDynamic = flow::kNone - 1, kParameters = 1u << 31;
  bool has_bare = false, has_object = false;
  std::set<uint32_t> parameters;
  for (size_t i = 0; i < accesses_.size(); ++i) {
    const flow::Base& base = analyses_->domain().base(accesses_[i].form.base);
    if (accesses_[i].is_global) {
      groups[{true, accesses_[i].form.base}].push_back(i);
      continue;
    }
    uint32_t key = base.id;
    if (base.kind == flow::Base::Kind::parameter) {
      key = kParameters + accesses_[i].form.base;
      parameters.insert(key);
    } else if (base.kind == flow::Base::Kind::none) {
      has_bare = true;
    } else {
      has_object = true;
      if (context_->module.variables[base.id].is_unsized) key = kDynamic;
    }
    groups[{false, key}].push_back(i);
  }
  if (parameters.size() + has_bare + has_object > 1 && !parameters.empty() && open_.empty())
    open_ = "what a parameter points to in shared memory may be part of another object";
  if (has_bare && has_object && open_.empty())
    open_ = "some shared addresses are bare numbers, others are into variables";

  const bool is_complete = judge_pairs(groups);
  if (is_complete && findings_.empty()) judge_two_rows(groups);
  settle_undecided();
  std::stable_sort(findings_.begin(), findings_.end(),
                   [](const Finding& x, const Finding& y) { return x.instruction < y.instruction; });
  if (is_complete && findings_.empty() && !analyses_->shape().is_exact && analyses_->shape().max_threads > 1)
    open_ = "the block's shape is not known; .reqntid or a launch file says it";
  if (findings_.empty() && !open_.empty()) return undecided(open_);
  std::string basis = "every two threads' accesses are apart, atomic or separated by a barrier";
  if (proved_ > 0) basis += fmt::format("; Z3 proved {}", plural(proved_, "pair"));
  return conclude(std::move(findings_), std::move(basis));
}

}  // namespace

std::string_view verb_of(const Access& access) {
  return access.kind == AccessKind::load ? "reads" : access.kind == AccessKind::store ? "writes" : "updates atomically";
}

RuleResult search_races(Context& context, RacePairs pairs) { return RaceSearch(context, pairs).run(); }

}  // namespace ptxkit::rules
