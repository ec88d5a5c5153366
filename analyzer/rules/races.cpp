// F036, F050, F058: two threads of a CTA touch the same shared byte, one of them writing, in one barrier interval; F058
// asks the same of global memory.
//
// For every pair of accesses that can be in one interval the addresses of all threads are computed by evaluation, not
// by approximation; what a thread cannot know cancels where it is the same for both, and otherwise leaves only a
// residue. An overlap between two threads that surely get there is a refutation with both named; no overlap for any
// pair, in a kernel whose block is known, is a proof; everything else is undecided.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>

#include <fmt/format.h>

#include "analyzer/flow/intervals.hpp"
#include "analyzer/flow/tested_range.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/rules/all.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/thread_sample.hpp"
#include "analyzer/rules/engine/walk.hpp"

namespace ptxkit::rules {

using flow::Atom;
using flow::Form;
using flow::LoopId;
using flow::Uniformity;
using ptx::Access;
using ptx::AccessKind;
using ptx::Op;
using ptx::Space;

namespace {

constexpr size_t kMaxOrigins = 64;  // of one block
constexpr size_t kMaxPairs = 20'000;
constexpr size_t kMaxComparisons = 6'400'000;  // pair and thread
constexpr size_t kMaxPlaces = 1'000'000;       // remembered at a time
struct SharedAccess {
  Access access;
  bool is_global = false;
  Form form;  // expanded
  flow::BlockId block = 0;
  std::vector<flow::Condition> conditions;
};

// Accesses of different keys do not meet: whether it is global, and the variable of shared memory or the base.
using ObjectKey = std::pair<bool, uint32_t>;

// One iteration of the loops around an access: 0, or 1 of `later`.
struct LoopIteration {
  LoopId inner = flow::kNone;
  LoopId later = flow::kNone;
  auto operator<=>(const LoopIteration&) const = default;
};

struct Place {
  int64_t offset = 0;
  uint32_t thread = 0;  // index
  bool certain = true;  // the thread surely gets there once control does
};

// Which threads touch where, and what of the address is the same unknown number for all of them.
struct Footprint {
  bool known = true;
  std::vector<Place> places;       // sorted by offset
  std::vector<flow::Term> common;  // terms whose atoms are unknown but uniform
  std::vector<flow::Term> free;    // terms that differ from thread to thread in unknown ways
  std::vector<flow::Condition> unknown_uniform;
  bool is_bounded = false;  // a bound that nothing decides lets threads through
};

// Which pairs of accesses are asked about.
enum class PairKind : uint8_t {
  race,      // F036: plain ones of any two threads
  lockstep,  // F050: of two lanes of one warp, one of them volatile: written for warps that run in step
  mixed,     // F058: one atomic, one plain
};

class RaceSearch {
 public:
  RaceSearch(Context& context, PairKind pair_kind)
      : context_(&context), analyses_(&context.analyses()), pair_kind_(pair_kind) {
    use_sample(Sample::row);
  }

  RuleResult run();

 private:
  struct TestedEdge {
    flow::Edge edge;
    flow::TestedRange range;  // of what is tested, where control goes over the edge
  };
  struct Overlap {
    bool possible = false;
    std::optional<std::pair<Place, Place>> sure;
  };
  void use_sample(Sample sample);
  bool depends_on_thread(const SharedAccess& shared);
  bool depends_on_thread() const;
  void collect();
  bool is_in_shared(const Access& access) const;
  std::set<flow::BaseId> atomic_global_objects() const;
  void drop_out_of_bounds_threads();
  const flow::UniformityAnalysis& uniformity() const;
  void judge(size_t first, size_t second);
  bool judge_iteration(size_t first, size_t second, LoopIteration first_moment, LoopIteration second_moment,
                       bool same_iteration, bool warp_level);
  Footprint footprint(const SharedAccess& shared, LoopIteration moment);
  const Footprint& footprint_of(size_t access, LoopIteration moment);
  Overlap overlap(const Footprint& a, const Footprint& b, int64_t width_a, int64_t width_b, bool warp_level,
                  bool has_volatile, uint64_t modulus) const;
  bool exclusive(const SharedAccess& a, const SharedAccess& b) const;
  const std::vector<TestedEdge>& tested_edges();
  std::set<flow::Edge> closed_edges(const SharedAccess& a, const SharedAccess& b);
  flow::Evaluator& evaluator(const SharedAccess& shared, LoopIteration moment);

  bool is_examined(const Access& a, const Access& b) const;
  void leave_undecided_across_blocks(const std::vector<size_t>& members);
  bool judge_pairs(const std::map<ObjectKey, std::vector<size_t>>& groups);
  void judge_two_rows(std::map<ObjectKey, std::vector<size_t>> groups);

  Context* context_;
  Analyses* analyses_;
  PairKind pair_kind_;
  Sample sample_ = Sample::row;
  std::vector<flow::Thread> threads_;
  unsigned row_ = 0;  // of %tid, in which threads of a block without a shape differ
  std::vector<SharedAccess> accesses_;
  std::map<LoopIteration, flow::Evaluator> evaluators_;               // of `threads_`
  std::map<std::pair<size_t, LoopIteration>, Footprint> footprints_;  // of an access in a moment
  size_t footprint_places_ = 0;                                       // in all of them
  std::optional<flow::Intervals> cta_, warp_;
  std::vector<bool> cta_separates_, warp_separates_;
  std::optional<std::vector<TestedEdge>> tested_edges_;  // found when first asked for
  std::vector<bool> parts_;                              // per block: threads of the CTA may leave it different ways
  std::vector<Finding> findings_;
  std::set<ptx::InstructionId> reported_;
  std::string open_;  // why the rule cannot say "survived"
  bool lockstep_warps_ = false;
};

flow::Evaluator& RaceSearch::evaluator(const SharedAccess& shared, LoopIteration moment) {
  const auto found = evaluators_.find(moment);
  if (found != evaluators_.end()) return found->second;
  auto iterations = flow::first_iterations(analyses_->loops(), shared.block);
  if (moment.later != flow::kNone) iterations[moment.later] = 1;
  return evaluators_.try_emplace(moment, analyses_->forms(), threads_, std::move(iterations)).first->second;
}

bool RaceSearch::depends_on_thread() const {
  const std::vector<ptx::Operand>& operands = context_->function().operand_pool;
  return std::any_of(operands.begin(), operands.end(), [](const ptx::Operand& operand) {
    const auto special = static_cast<ptx::SpecialRegister>(operand.id);
    return operand.kind == ptx::OperandKind::special &&
           (special == ptx::SpecialRegister::tid || special == ptx::SpecialRegister::laneid);
  });
}

void RaceSearch::use_sample(Sample sample) {
  ThreadSample of = sample_threads(*context_, sample, pair_kind_ == PairKind::race);
  sample_ = sample;
  threads_ = std::move(of.threads);
  row_ = of.row;
  evaluators_.clear();
  footprints_.clear();
  footprint_places_ = 0;
}

// Whether the address is known to differ between the threads looked at.
bool RaceSearch::depends_on_thread(const SharedAccess& shared) {
  flow::Evaluator& of_threads = evaluator(shared, {analyses_->loops().innermost(shared.block)});
  return std::any_of(shared.form.terms.begin(), shared.form.terms.end(),
                     [&](const flow::Term& term) { return !of_threads.column_of_atom(term.atom).is_same(); });
}

// Without a shape the threads looked at are of one row, where values that %tid.y and %tid.z make are the same.
const flow::UniformityAnalysis& RaceSearch::uniformity() const {
  return analyses_->shape().is_exact || sample_ != Sample::row ? analyses_->uniformity()
                                                               : analyses_->uniformity_of_row(row_);
}

// Threads that would leave a shared object are in no block that the kernel is meant for.
void RaceSearch::drop_out_of_bounds_threads() {
  if (analyses_->shape().is_exact) return;
  size_t limit = threads_.size();
  for (const SharedAccess& shared : accesses_) {
    const flow::Base& base = analyses_->domain().base(shared.form.base);
    if (base.kind != flow::Base::Kind::variable || context_->module.variables[base.id].is_unsized) continue;
    const Footprint& print =
        footprint_of(static_cast<size_t>(&shared - accesses_.data()), {analyses_->loops().innermost(shared.block)});
    if (!print.known || !print.common.empty() || !print.free.empty()) continue;
    const auto size = static_cast<int64_t>(context_->module.variables[base.id].size_bytes);
    for (const Place& place : print.places)
      if (place.certain && (place.offset < 0 || place.offset + shared.access.extent_bytes > size))
        limit = std::min<size_t>(limit, place.thread);
  }
  threads_.resize(std::max<size_t>(limit, std::min<size_t>(threads_.size(), kThreadsWithoutShape)));
  evaluators_.clear();
  footprints_.clear();
  footprint_places_ = 0;
}

bool RaceSearch::is_in_shared(const Access& access) const {
  if (access.space != Space::generic) return access.space == Space::shared;
  const flow::Source base = flow::address_base(analyses_->ssa(), access.address);
  return base.kind == flow::Source::Kind::value && (analyses_->domain().fact(base.id).points_to & flow::kSharedSet);
}

// Global objects that an atomic reaches: variables, and what parameters point to, which is one object for all threads.
// Without a shape a kernel that does not tell its threads apart is taken to be for one.
std::set<flow::BaseId> RaceSearch::atomic_global_objects() const {
  std::set<flow::BaseId> found;
  if (pair_kind_ != PairKind::mixed || (!analyses_->shape().is_exact && !depends_on_thread())) return found;
  for (const Access& access : analyses_->accesses()) {
    const bool is_global = access.space == Space::global || (access.space == Space::generic && !is_in_shared(access));
    if (access.kind != AccessKind::atomic || !is_global) continue;
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
  const std::set<flow::BaseId> atomic_globals = atomic_global_objects();
  for (const Access& access : analyses_->accesses()) {
    const bool is_shared = is_in_shared(access);
    const bool is_global = !is_shared && (access.space == Space::global || access.space == Space::generic) &&
                           atomic_globals.contains(forms.address(access).base);
    if (!is_shared && !is_global) continue;
    SharedAccess shared{access, is_global, forms.expand(forms.address(access)),
                        analyses_->graph().block_of(access.instruction),
                        analyses_->conditions().of_instruction(access.instruction)};
    const flow::Base& base = domain.base(shared.form.base);
    const bool known_object =
        is_global || base.kind == flow::Base::Kind::none || base.kind == flow::Base::Kind::variable;
    if (access.extent_bytes == 0 || !known_object || shared.form.modulus_bits < (is_global ? 64u : 32u)) {
      if (open_.empty())
        open_ = fmt::format("what the access in line {} touches cannot be followed",
                            line_of(*context_, access.instruction));
      continue;
    }
    accesses_.push_back(std::move(shared));
  }
}

Footprint RaceSearch::footprint(const SharedAccess& shared, LoopIteration moment) {
  Footprint print;
  const auto& uniformity = this->uniformity();
  const flow::Forms& forms = analyses_->forms();
  struct Summand {
    int64_t coefficient;
    flow::Column factor;
  };
  std::vector<Summand> own;
  flow::Evaluator& of_threads = evaluator(shared, moment);
  for (const flow::Term& term : shared.form.terms) {
    const Atom& atom = forms.atom(term.atom);
    if (flow::Column factor = of_threads.column_of_atom(term.atom); factor[0]) {
      own.push_back({term.coefficient, std::move(factor)});
      continue;
    }
    const bool is_uniform =
        atom.kind == Atom::Kind::parameter ||
        (atom.kind == Atom::Kind::special && atom.id != static_cast<uint32_t>(ptx::SpecialRegister::laneid)) ||
        ((atom.kind == Atom::Kind::value || atom.kind == Atom::Kind::whole) &&
         uniformity.of(atom.id) <= Uniformity::loaded);
    (is_uniform ? print.common : print.free).push_back(term);
  }
  struct Test {
    const flow::Column* holds;
    bool expected;
    bool admits_unknown;  // threads that do not know
  };
  std::vector<Test> tests;
  for (const flow::Condition& condition : shared.conditions) {
    Test& test = tests.emplace_back(&of_threads.column(condition.predicate), condition.expected, true);
    bool is_known = true;
    for (uint32_t thread = 0; thread < threads_.size() && is_known; ++thread)
      is_known = (*test.holds)[thread].has_value();
    if (is_known) continue;
    if (uniformity.of(condition.predicate) <= Uniformity::loaded)
      print.unknown_uniform.push_back(condition);
    else if (flow::is_bound(analyses_->ssa(), condition.predicate))
      print.is_bounded = true;
    else
      test.admits_unknown = false;
  }
  for (uint32_t thread = 0; thread < threads_.size(); ++thread) {
    Place place{shared.form.constant, thread, true};
    bool gets_here = true;
    for (const auto& [holds, expected, admits_unknown] : tests) {
      if (!(*holds)[thread])
        place.certain = place.certain && admits_unknown;
      else if ((*(*holds)[thread] != 0) != expected)
        gets_here = false;
    }
    if (!gets_here) continue;
    for (const auto& [coefficient, factor] : own) {
      if (!factor[thread]) {
        print.known = false;
        return print;
      }
      place.offset += coefficient * static_cast<int64_t>(*factor[thread]);
    }
    // Shared addresses are 32-bit numbers.
    if (!shared.is_global) place.offset = static_cast<int32_t>(place.offset);
    print.places.push_back(place);
  }
  std::sort(print.places.begin(), print.places.end(), [](const Place& a, const Place& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.thread < b.thread;
  });
  return print;
}

// Every access stands in many pairs.
const Footprint& RaceSearch::footprint_of(size_t access, LoopIteration moment) {
  const auto [place, is_new] = footprints_.try_emplace({access, moment});
  if (is_new) {
    place->second = footprint(accesses_[access], moment);
    footprint_places_ += place->second.places.size();
  }
  return place->second;
}

// With a modulus other than 0 the offsets are residues: an overlap is then only possible.
RaceSearch::Overlap RaceSearch::overlap(const Footprint& a, const Footprint& b, int64_t width_a, int64_t width_b,
                                        bool warp_level, bool has_volatile, uint64_t modulus) const {
  Overlap found;
  std::span<const Place> left = a.places, right = b.places;
  std::vector<Place> left_residues, right_residues;
  if (modulus) {
    const int64_t m = static_cast<int64_t>(modulus);
    if (width_a + width_b > m) {
      found.possible = !left.empty() && !right.empty() && threads_.size() > 1;
      return found;
    }
    const auto is_before = [](const Place& x, const Place& y) { return x.offset < y.offset; };
    const auto residue = [m](Place place) {
      place.offset = ((place.offset % m) + m) % m;
      return place;
    };
    // Sorted offsets less than m apart have residues that are sorted up to a turn.
    const auto sorted = [&](std::span<const Place> places) {
      std::vector<Place> turned(places.size());
      std::transform(places.begin(), places.end(), turned.begin(), residue);
      const auto turn = std::is_sorted_until(turned.begin(), turned.end(), is_before);
      std::rotate(turned.begin(), turn, turned.end());
      if (!std::is_sorted(turned.begin(), turned.end(), is_before)) std::sort(turned.begin(), turned.end(), is_before);
      return turned;
    };
    left_residues = sorted(left);
    const std::vector<Place> once = sorted(right);
    for (const int64_t shift : {-m, int64_t{0}, m})  // on either side again, for intervals that wrap round
      for (const Place& place : once) right_residues.push_back({place.offset + shift, place.thread, place.certain});
    left = left_residues;
    right = right_residues;
  }
  const auto any_certain = [](std::span<const Place> places) {
    return std::any_of(places.begin(), places.end(), [](const Place& place) { return place.certain; });
  };
  const bool may_be_sure = !modulus && any_certain(left) && any_certain(right);
  const bool is_lockstep = pair_kind_ == PairKind::lockstep, is_exact = analyses_->shape().is_exact;
  const bool is_weak_in_warp = a.is_bounded || b.is_bounded || has_volatile;
  size_t begin = 0;
  for (const Place& x : left) {
    while (begin < right.size() && right[begin].offset + width_b <= x.offset) ++begin;
    for (size_t i = begin; i < right.size() && right[i].offset < x.offset + width_a; ++i) {
      const Place& y = right[i];
      if (x.thread == y.thread) continue;
      const bool one_warp = x.thread / 32 == y.thread / 32;
      if (one_warp ? !warp_level : is_lockstep) continue;
      found.possible = true;
      if (!may_be_sure) return found;
      const bool is_far = !is_exact && std::max(x.thread, y.thread) >= kThreadsWithoutShape;
      if (one_warp && (is_far || is_weak_in_warp)) continue;
      if (x.certain && y.certain) {
        found.sure = {x, y};
        return found;
      }
    }
  }
  return found;
}

// One runs only where the other does not: the same uniform predicate with opposite outcome.
bool RaceSearch::exclusive(const SharedAccess& a, const SharedAccess& b) const {
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

// Edges that nobody takes who gets to both: what is the same for all threads and all the time was tested before one of
// the two, and a branch tests it again. `ntid.x > 32` and the signed `ntid.x < 33` do not hold together.
std::set<flow::Edge> RaceSearch::closed_edges(const SharedAccess& a, const SharedAccess& b) {
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
  for (const SharedAccess* access : {&a, &b})
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

bool RaceSearch::is_examined(const Access& a, const Access& b) const {
  switch (pair_kind_) {
    case PairKind::race:
      return (a.is_plain || a.is_volatile) && (b.is_plain || b.is_volatile);
    case PairKind::lockstep:
      return (a.is_plain || a.is_volatile) && (b.is_plain || b.is_volatile) && (a.is_volatile || b.is_volatile);
    case PairKind::mixed:
      return (a.kind == AccessKind::atomic && b.is_plain) || (b.kind == AccessKind::atomic && a.is_plain);
  }
  return false;
}

// Returns whether the pair is proved free of races in this relation.
bool RaceSearch::judge_iteration(size_t first, size_t second, LoopIteration first_moment, LoopIteration second_moment,
                                 bool same_iteration, bool warp_level) {
  const SharedAccess &a = accesses_[first], &b = accesses_[second];
  if (same_iteration && exclusive(a, b)) return true;
  if (footprint_places_ > kMaxPlaces) {
    footprints_.clear();
    footprint_places_ = 0;
  }
  const Footprint &x = footprint_of(first, first_moment), &y = footprint_of(second, second_moment);
  if (!x.known || !y.known) return false;
  // Unknown numbers cancel where both threads have the same one.
  uint64_t modulus = 0;  // 0: exact
  auto leave = [&](const flow::Term& term, int64_t coefficient) {
    const unsigned zeros = static_cast<unsigned>(std::countr_zero(static_cast<uint64_t>(coefficient))) +
                           analyses_->forms().bits(term.atom).trailing_zeros();
    const uint64_t step = zeros >= 31 ? uint64_t{1} << 31 : uint64_t{1} << zeros;
    modulus = modulus ? std::min(modulus, step) : step;
  };
  std::map<flow::AtomId, int64_t> balance;
  for (const flow::Term& term : x.common) balance[term.atom] += term.coefficient;
  for (const flow::Term& term : y.common) balance[term.atom] -= term.coefficient;
  for (const auto& [atom, coefficient] : balance) {
    const Atom& of = analyses_->forms().atom(atom);
    const bool moves = of.kind == Atom::Kind::value &&
                       analyses_->loops().innermost(analyses_->ssa().value(of.id).block) != flow::kNone;
    if (coefficient != 0) {
      leave({atom, coefficient}, coefficient);
    } else if (!same_iteration && moves) {
      for (const flow::Term& term : x.common)
        if (term.atom == atom) leave(term, term.coefficient);
    }
  }
  for (const auto* list : {&x.free, &y.free})
    for (const flow::Term& term : *list) leave(term, term.coefficient);

  // Lanes of a warp that hand values on through volatile memory are F050's business.
  const bool has_volatile = pair_kind_ == PairKind::race && !(a.access.is_plain && b.access.is_plain);
  const Overlap found = overlap(x, y, a.access.extent_bytes, b.access.extent_bytes, warp_level, has_volatile, modulus);
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
  if (!cta_->can_be_concurrent(a.access.instruction, b.access.instruction, parts_, analyses_->post_dominators(),
                               closed_edges(a, b)))
    return false;
  // Two stores of one value are no race that anyone sees: lanes often hold the same reduced number.
  if (a.access.kind == AccessKind::store && b.access.kind == AccessKind::store) {
    auto data = [&](const SharedAccess& shared, LoopIteration moment, uint32_t thread) -> std::optional<uint64_t> {
      if (shared.access.data == ptx::kNone) return std::nullopt;
      const flow::Source source = flow::source_of(analyses_->ssa(), shared.access.data);
      if (source.kind == flow::Source::Kind::constant) return source.constant;
      if (source.kind != flow::Source::Kind::value) return std::nullopt;
      return evaluator(shared, moment).column(source.id)[thread];
    };
    const auto one_data = data(a, first_moment, found.sure->first.thread);
    const auto other_data = data(b, second_moment, found.sure->second.thread);
    if (!one_data || !other_data || *one_data == *other_data) return false;
  }
  if (!reported_.insert(a.access.instruction).second) return false;

  const auto& [here, there] = *found.sure;
  const flow::Thread &one = threads_[here.thread], &other = threads_[there.thread];
  const bool certain = analyses_->shape().is_exact && x.unknown_uniform.empty() && y.unknown_uniform.empty() &&
                       !x.is_bounded && !y.is_bounded && !has_volatile && same_iteration &&
                       first_moment.inner == flow::kNone && second_moment.inner == flow::kNone;
  auto verb = [](const SharedAccess& shared) {
    return shared.access.kind == AccessKind::load    ? "reads"
           : shared.access.kind == AccessKind::store ? "writes"
                                                     : "updates atomically";
  };
  Finding finding = finding_at(
      *context_, a.access.instruction, pair_kind_ == PairKind::race ? Severity::high : Severity::medium,
      certain ? Tier::proved : Tier::likely,
      fmt::format("thread ({}, {}, {}) {} what thread ({}, {}, {}) {} in line {}, with no {} between", one.tid[0],
                  one.tid[1], one.tid[2], verb(a), other.tid[0], other.tid[1], other.tid[2], verb(b),
                  line_of(*context_, b.access.instruction),
                  pair_kind_ == PairKind::lockstep ? "bar.warp.sync" : "barrier"),
      warp_level ? "put bar.warp.sync or bar.sync between the two accesses" : "put bar.sync between the two accesses");
  Witness witness;
  for (unsigned d = 0; d < 3; ++d) {
    witness.tid[d] = one.tid[d];
    witness.other_tid[d] = other.tid[d];
  }
  witness.address = static_cast<uint64_t>(std::max(here.offset, there.offset));
  witness.note =
      a.form.base == flow::kNoBase ? "a shared address" : "offset from " + analyses_->domain().describe(a.form.base);
  if (!balance.empty()) witness.note += ", less what is the same for all threads";
  finding.witness = witness;
  finding.path.push_back({context_->function().instructions[b.access.instruction].at, "the other access"});
  for (unsigned d = 0; d < 3 && !analyses_->shape().is_exact; ++d)
    if (one.tid[d] != other.tid[d])
      finding.assumptions.push_back(
          fmt::format("the block has at least {} threads in {}", std::max(one.tid[d], other.tid[d]) + 1, "xyz"[d]));
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
  const SharedAccess &a = accesses_[first], &b = accesses_[second];
  if (a.access.kind == AccessKind::load && b.access.kind == AccessKind::load) return;
  if (a.access.kind == AccessKind::atomic && b.access.kind == AccessKind::atomic) return;
  if (pair_kind_ != PairKind::race && !is_examined(a.access, b.access)) return;
  const ptx::InstructionId x = a.access.instruction, y = b.access.instruction;
  if (first == second && a.access.data != ptx::kNone &&
      analyses_->uniformity().of(flow::source_of(analyses_->ssa(), a.access.data)) <= Uniformity::loaded &&
      context_->function().operand_pool[a.access.data].child_count == 0)
    return;  // every thread writes the same value
  const flow::Concurrency cta = cta_->concurrency(x, y);
  if (!cta.any()) return;
  const flow::Concurrency warp = lockstep_warps_ ? flow::Concurrency{} : warp_->concurrency(x, y);
  bool proved = true;
  auto inner = [&](const SharedAccess& shared) { return analyses_->loops().innermost(shared.block); };
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
    for (const SharedAccess* shared : {&a, &b})
      for (const flow::Term& term : shared->form.terms) {
        const Atom& atom = analyses_->forms().atom(term.atom);
        const bool depends = atom.kind == Atom::Kind::iteration ||
                             (atom.kind == Atom::Kind::value &&
                              analyses_->loops().innermost(analyses_->ssa().value(atom.id).block) != flow::kNone);
        if (depends) proved = false;
      }
    for (const SharedAccess* shared : {&a, &b})
      for (const flow::Condition& condition : shared->conditions)
        if (analyses_->loops().innermost(analyses_->ssa().value(condition.predicate).block) != flow::kNone &&
            analyses_->uniformity().of(condition.predicate) > Uniformity::loaded)
          proved = false;
  }
  if (!proved && open_.empty())
    open_ = fmt::format("that the accesses in lines {} and {} stay apart could not be proved", line_of(*context_, x),
                        line_of(*context_, y));
}

// Accesses of one object with each other. Returns whether the budget was enough.
bool RaceSearch::judge_pairs(const std::map<ObjectKey, std::vector<size_t>>& groups) {
  const size_t budget = std::min(kMaxPairs, kMaxComparisons / threads_.size());
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
  if (pair_kind_ != PairKind::race || analyses_->shape().is_exact || analyses_->shape().max_tid(1) == 0 ||
      !reads_thread_number(context_->function(), 0) || !reads_thread_number(context_->function(), 1))
    return;
  use_sample(Sample::diagonal);
  if (!judge_pairs(groups) || !findings_.empty()) return;
  use_sample(Sample::column);
  // What does not tell rows apart may be for blocks of one.
  for (auto& [object, members] : groups)
    std::erase_if(members, [&](size_t member) { return !depends_on_thread(accesses_[member]); });
  judge_pairs(groups);
}

// A barrier orders the threads of one block only, and which blocks run at a time the text does not say.
void RaceSearch::leave_undecided_across_blocks(const std::vector<size_t>& members) {
  const uint32_t* grid = analyses_->shape().grid;
  if (grid[0] == 1 && grid[1] == 1 && grid[2] == 1) return;
  for (const size_t first : members)
    for (const size_t second : members) {
      const SharedAccess &a = accesses_[first], &b = accesses_[second];
      if (a.access.kind != AccessKind::atomic || !b.access.is_plain ||
          !may_overlap(analyses_->forms(), a.form, a.access.extent_bytes, b.form, b.access.extent_bytes))
        continue;
      open_ = fmt::format(
          "line {} reaches {} atomically and line {} plainly, and other blocks may run at that time; a "
          "launch file with a grid of one block says that none do",
          line_of(*context_, a.access.instruction), analyses_->domain().describe(a.form.base),
          line_of(*context_, b.access.instruction));
      return;
    }
}

RuleResult RaceSearch::run() {
  const auto& all = analyses_->accesses();
  const bool any =
      std::any_of(all.begin(), all.end(), [](const Access& access) { return access.space == Space::shared; });
  collect();
  if (!any && accesses_.empty())
    return not_applicable(pair_kind_ == PairKind::mixed ? "no atomic that several threads share has a known object"
                                                        : "the kernel does not access shared memory");
  if (pair_kind_ != PairKind::race) {
    const auto any_access = [&](auto&& is) {
      return std::any_of(accesses_.begin(), accesses_.end(), [&](const SharedAccess& each) { return is(each.access); });
    };
    const bool is_any_asked = pair_kind_ == PairKind::mixed
                                  ? any_access([](const Access& each) { return each.kind == AccessKind::atomic; }) &&
                                        any_access([](const Access& each) { return each.is_plain; })
                                  : any_access([&](const Access& each) { return each.is_volatile; });
    if (!is_any_asked)
      return not_applicable(pair_kind_ == PairKind::mixed ? "no object is reached atomically and plainly"
                                                          : "the kernel has no volatile shared access");
  }
  if (threads_.size() < 2) return survived("the block has one thread");
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
  constexpr uint32_t kDynamic = flow::kNone - 1;
  bool has_bare = false, has_object = false;
  for (size_t i = 0; i < accesses_.size(); ++i) {
    const flow::Base& base = analyses_->domain().base(accesses_[i].form.base);
    if (accesses_[i].is_global) {
      groups[{true, accesses_[i].form.base}].push_back(i);
      continue;
    }
    uint32_t key = base.id;
    if (base.kind == flow::Base::Kind::variable && context_->module.variables[base.id].is_unsized) key = kDynamic;
    (base.kind == flow::Base::Kind::none ? has_bare : has_object) = true;
    groups[{false, key}].push_back(i);
  }
  if (has_bare && has_object && open_.empty())
    open_ = "some shared addresses are bare numbers, others are into variables";

  const bool is_complete = judge_pairs(groups);
  for (const auto& [key, members] : groups)
    if (key.first && open_.empty()) leave_undecided_across_blocks(members);
  if (is_complete && findings_.empty()) judge_two_rows(groups);
  std::stable_sort(findings_.begin(), findings_.end(),
                   [](const Finding& x, const Finding& y) { return x.instruction < y.instruction; });
  if (is_complete && findings_.empty() && !analyses_->shape().is_exact && analyses_->shape().max_threads > 1)
    open_ = "the block's shape is not known; .reqntid or a launch file says it";
  if (findings_.empty() && !open_.empty()) return undecided(open_);
  return conclude(std::move(findings_), "every two threads' accesses are apart, atomic or separated by a barrier");
}

}  // namespace

RuleResult missing_barrier(Context& context) { return RaceSearch(context, PairKind::race).run(); }

// F050. Before sm_70 the lanes of a warp ran in step, and volatile was enough to pass values between them.
RuleResult implicit_warp_sync(Context& context) {
  if (context.module.target_sm != 0 && context.module.target_sm < 70)
    return not_applicable("the warps of the target run in step");
  return RaceSearch(context, PairKind::lockstep).run();
}

// F058. An atomic is atomic only towards other atomics.
RuleResult mixed_atomicity(Context& context) { return RaceSearch(context, PairKind::mixed).run(); }

}  // namespace ptxkit::rules
