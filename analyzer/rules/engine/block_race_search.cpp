// Nothing orders threads of two blocks but atomics and flags. Where the grid is not known, two blocks are assumed for
// each dimension of %ctaid that the kernel reads; a kernel that reads none is for one block.
#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
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
#include "analyzer/flow/uniformity.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/footprint.hpp"
#include "analyzer/rules/engine/pair_prover.hpp"
#include "analyzer/rules/engine/race_search.hpp"
#include "analyzer/rules/engine/result.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/engine/walk.hpp"
#include "support/plural.hpp"

namespace ptxkit::rules {

using flow::Atom;
using ptx::Access;
using ptx::AccessKind;
using ptx::Op;
using ptx::Space;
using ptx::SpecialRegister;

namespace {

// Of a larger block the threads at its beginning and end are compared, and one of each warp.
constexpr uint32_t kSmallBlock = 64, kEdgeThreads = 16;
constexpr size_t kMaxComparisons = 6'400'000;  // pair and thread
constexpr uint32_t kAssumedThreads = 256;      // of a block whose shape is not known, in x

// What is the same for all threads of the grid.
class GridSameness : public Sameness {
 public:
  explicit GridSameness(Context& context) : context_(&context) {}

  bool is_same(const Atom& atom) const override {
    switch (atom.kind) {
      case Atom::Kind::parameter:
        return true;
      case Atom::Kind::special:
        return is_of_grid(static_cast<SpecialRegister>(atom.id));
      case Atom::Kind::value:
      case Atom::Kind::whole:
        return is_same(atom.id);
      case Atom::Kind::iteration:
        return false;
    }
    return false;
  }
  bool is_same(flow::ValueId value) const override {
    const auto [place, is_new] = known_.try_emplace(value, false);
    if (is_new) place->second = compute(value);
    return place->second;
  }

 private:
  static bool is_of_grid(SpecialRegister special) {
    return special == SpecialRegister::ntid || special == SpecialRegister::nctaid;
  }
  bool compute(flow::ValueId value) const {
    Analyses& analyses = context_->analyses();
    const flow::Ssa& ssa = analyses.ssa();
    if (analyses.uniformity().of(value) > flow::Uniformity::loaded ||
        analyses.loops().innermost(ssa.value(value).block) != flow::kNone)
      return false;
    return !any_ancestor(*context_, value, [&](flow::ValueId id) {
      if (ssa.value(id).kind != flow::Value::Kind::result) return false;
      const ptx::Accesses accesses = ptx::accesses_of(context_->function(), ssa.value(id).instruction);
      for (unsigned i = 0; i < accesses.count; ++i)
        if (accesses.items[i].space != Space::param && !accesses.items[i].is_read_only) return true;
      const flow::Operation operation = flow::operation_of(ssa, id);
      for (unsigned i = 0; i < operation.source_count; ++i) {
        const flow::Source source = flow::source_of(ssa, operation.first_source + i);
        if (source.kind == flow::Source::Kind::special && !is_of_grid(static_cast<SpecialRegister>(source.id)))
          return true;
      }
      return false;
    });
  }

  Context* context_;
  mutable std::map<flow::ValueId, bool> known_;
};

class BlockRaceSearch {
 public:
  BlockRaceSearch(Context& context, RacePairs pairs)
      : context_(&context),
        analyses_(&context.analyses()),
        pairs_(pairs),
        sameness_(context),
        footprints_(*analyses_, accesses_) {}

  RuleResult run();

 private:
  enum class Outcome : uint8_t { apart, open, race };
  // The threads that are compared; false if the kernel does not tell that it is for several blocks.
  bool choose_threads();
  void collect();
  bool is_decided_by_memory(const RacingAccess& access) const;
  bool changes_in_loop(const RacingAccess& access) const;
  bool is_exclusive(const RacingAccess& a, const RacingAccess& b) const;
  bool is_examined(const Access& a, const Access& b) const;
  bool may_differ(const RacingAccess& one, const RacingAccess& other, const std::pair<Place, Place>& places);
  Outcome compare(size_t first, size_t second);
  void report(const RacingAccess& a, const RacingAccess& b, const std::pair<Place, Place>& places, bool is_likely);
  bool may_prove() const { return context_->options.solver != nullptr && analyses_->shape().is_exact; }
  void settle_undecided();
  void report_met(const RacingAccess& a, const RacingAccess& b, const MetThreads& met);
  const flow::Thread& thread(const Place& place) const { return footprints_.threads()[place.thread]; }

  Context* context_;
  Analyses* analyses_;
  RacePairs pairs_;  // global or mixed
  GridSameness sameness_;
  std::vector<RacingAccess> accesses_;
  std::vector<bool> decided_by_memory_;  // per access
  Footprints footprints_;
  bool is_whole_grid_ = true;  // the threads are all that a launch has
  std::vector<Finding> findings_;
  std::set<ptx::InstructionId> reported_;
  std::vector<std::pair<size_t, size_t>> undecided_;
  size_t proved_ = 0;  // of these
  std::string open_;
};

bool BlockRaceSearch::choose_threads() {
  const flow::LaunchShape& shape = analyses_->shape();
  uint32_t grid[3];
  std::vector<std::array<uint32_t, 3>> blocks{{0, 0, 0}};
  for (unsigned d = 0; d < 3; ++d) {
    // Atomics in global memory are for several blocks.
    const bool is_read = analyses_->reads_special(SpecialRegister::ctaid, d) || (pairs_ == RacePairs::mixed && d == 0);
    grid[d] = shape.grid[d] ? shape.grid[d] : is_read ? 2 : 1;
    if (!shape.grid[d] || grid[d] > 2) is_whole_grid_ = false;
    if (grid[d] == 1) continue;
    blocks.push_back({d == 0, d == 1, d == 2});
  }
  if (blocks.size() == 1) return false;
  if (blocks.size() > 2) is_whole_grid_ = false;
  std::vector<flow::Thread> of_block;
  if (shape.is_exact) {
    const uint32_t count = shape.max_threads, last = count - std::min(count, kEdgeThreads);
    const bool is_small = count <= kSmallBlock;
    for (uint32_t n = 0; n < count; ++n)
      if (is_small || n < kEdgeThreads || n >= last || n % 32 == 0) of_block.push_back(flow::thread_of(shape, n));
    is_whole_grid_ = is_whole_grid_ && is_small;
  } else {
    is_whole_grid_ = false;
    const uint32_t threads = std::min(shape.max_threads, kAssumedThreads);
    const bool has_rows = analyses_->reads_special(SpecialRegister::tid, 1);
    const uint32_t rows = has_rows ? std::min(threads, 16u) : 1, columns = threads / rows;
    const std::set<uint32_t> xs{0, std::min(1u, columns - 1), columns - 1}, ys{0, std::min(1u, rows - 1), rows - 1};
    for (const uint32_t y : ys)
      for (const uint32_t x : xs) of_block.push_back({.tid = {x, y, 0}, .ntid = {columns, rows, 1}});
  }
  std::vector<flow::Thread> threads;
  for (const auto& block : blocks)
    for (flow::Thread each : of_block) {
      std::copy(block.begin(), block.end(), each.ctaid);
      std::copy(std::begin(grid), std::end(grid), each.nctaid);
      threads.push_back(each);
    }
  footprints_.set_threads(std::move(threads), sameness_);
  return true;
}

// Whether control reaches the access by what an atomic, another thread or shared memory said: one block of all may be
// picked that way.
bool BlockRaceSearch::is_decided_by_memory(const RacingAccess& access) const {
  return std::ranges::any_of(access.conditions, [&](const flow::Condition& condition) {
    return any_ancestor(*context_, condition.predicate, [&](flow::ValueId id) {
      const ptx::Instruction* const from = definition_of(*context_, id);
      if (from == nullptr) return false;
      if (from->op == Op::shfl || from->op == Op::vote || from->op == Op::match || from->op == Op::elect) return true;
      const ptx::Accesses accesses = ptx::accesses_of(context_->function(), analyses_->ssa().value(id).instruction);
      return std::any_of(accesses.items, accesses.items + accesses.count,
                         [](const Access& each) { return !each.is_plain || each.space == Space::shared; });
    });
  });
}

void BlockRaceSearch::collect() {
  flow::Forms& forms = analyses_->forms();
  std::set<flow::BaseId> examined;
  for (const Access& access : analyses_->accesses())
    if (is_global(access) && access.kind == (pairs_ == RacePairs::mixed ? AccessKind::atomic : AccessKind::store))
      examined.insert(forms.address(access).base);
  for (const Access& access : analyses_->accesses()) {
    if (!is_global(access)) continue;
    const flow::BaseId id = forms.address(access).base;
    const flow::Base::Kind kind = analyses_->domain().base(id).kind;
    RacingAccess each{access, true, forms.expand(forms.address(access)),
                      analyses_->graph().block_of(access.instruction),
                      analyses_->conditions().of_instruction(access.instruction)};
    const bool is_variable = kind == flow::Base::Kind::variable &&
                             context_->module.variables[analyses_->domain().base(id).id].space == Space::global;
    const bool is_known = kind == flow::Base::Kind::parameter || is_variable;
    if (kind == flow::Base::Kind::variable && !is_variable) continue;  // of shared or local memory
    each.may_wrap = each.form.modulus_bits < 64;
    each.is_evaluated = !each.may_wrap || is_plain_index(each.form);
    if (!is_known || access.extent_bytes == 0 || (!each.is_evaluated && !may_prove())) {
      if (open_.empty())
        open_ = fmt::format("what the access in line {} touches cannot be followed",
                            line_of(*context_, access.instruction));
      continue;
    }
    const bool is_atomic = pairs_ == RacePairs::mixed && access.kind == AccessKind::atomic;
    if (!examined.contains(id) || (!access.is_plain && !is_atomic) || access.is_read_only) continue;
    decided_by_memory_.push_back(is_decided_by_memory(each));
    accesses_.push_back(std::move(each));
  }
}

bool BlockRaceSearch::changes_in_loop(const RacingAccess& access) const {
  return std::ranges::any_of(access.form.terms, [&](const flow::Term& term) {
    const Atom& atom = analyses_->forms().atom(term.atom);
    return atom.kind == Atom::Kind::iteration ||
           (atom.kind == Atom::Kind::value &&
            analyses_->loops().innermost(analyses_->ssa().value(atom.id).block) != flow::kNone);
  });
}

// Whether one runs only where the other does not.
bool BlockRaceSearch::is_exclusive(const RacingAccess& a, const RacingAccess& b) const {
  return std::ranges::any_of(a.conditions, [&](const flow::Condition& x) {
    return sameness_.is_same(x.predicate) && std::ranges::any_of(b.conditions, [&](const flow::Condition& y) {
             return x.predicate == y.predicate && x.expected != y.expected;
           });
  });
}

// Whether two stores write different values. What cannot be evaluated differs if it comes from memory that the blocks
// do not share, or from the thread's place.
bool BlockRaceSearch::may_differ(const RacingAccess& one, const RacingAccess& other,
                                 const std::pair<Place, Place>& places) {
  const auto source = [&](const RacingAccess& of) {
    return of.access.data == ptx::kNone ? flow::Source{} : flow::source_of(analyses_->ssa(), of.access.data);
  };
  const auto value = [&](const RacingAccess& of, const Place& place) -> std::optional<uint64_t> {
    const flow::Source from = source(of);
    if (from.kind == flow::Source::Kind::constant) return from.constant;
    if (from.kind != flow::Source::Kind::value) return std::nullopt;
    return footprints_.evaluator(of, {analyses_->loops().innermost(of.block)}).column(from.id)[place.thread];
  };
  const auto a = value(one, places.first), b = value(other, places.second);
  if (a && b) return *a != *b;
  const auto is_of_block = [&](const RacingAccess& of) {
    const flow::Source from = source(of);
    return from.kind == flow::Source::Kind::value && any_ancestor(*context_, from.id, [&](flow::ValueId id) {
             if (depends_on_thread(*context_, id, true)) return true;
             const ptx::Instruction* const by = definition_of(*context_, id);
             if (by == nullptr) return false;
             const ptx::Accesses accesses =
                 ptx::accesses_of(context_->function(), analyses_->ssa().value(id).instruction);
             return std::any_of(accesses.items, accesses.items + accesses.count,
                                [](const Access& each) { return each.space == Space::shared; });
           });
  };
  return is_of_block(one) || is_of_block(other);
}

bool BlockRaceSearch::is_examined(const Access& a, const Access& b) const {
  if (pairs_ == RacePairs::mixed) return (a.kind == AccessKind::atomic) != (b.kind == AccessKind::atomic);
  return a.kind != AccessKind::load || b.kind != AccessKind::load;
}

BlockRaceSearch::Outcome BlockRaceSearch::compare(size_t first, size_t second) {
  const RacingAccess &a = accesses_[first], &b = accesses_[second];
  if (!a.is_evaluated || !b.is_evaluated) return Outcome::open;
  if (!may_overlap(analyses_->forms(), a.form, a.access.extent_bytes, b.form, b.access.extent_bytes))
    return Outcome::apart;
  if (are_digits_apart(*context_, a, b, SpecialRegister::ctaid, sameness_) || is_exclusive(a, b)) return Outcome::apart;
  bool is_apart = is_whole_grid_ && !changes_in_loop(a) && !changes_in_loop(b);
  const auto moments = [&](const RacingAccess& access) {
    const flow::LoopId inner = analyses_->loops().innermost(access.block);
    std::vector<LoopIteration> found{{inner}};
    if (inner != flow::kNone && changes_in_loop(access)) found.push_back({inner, inner});
    return found;
  };
  for (const LoopIteration& one : moments(a))
    for (const LoopIteration& other : moments(b)) {
      footprints_.trim();
      const Footprint &x = footprints_.of(first, one), &y = footprints_.of(second, other);
      if (!x.known || !y.known) {
        is_apart = false;
        continue;
      }
      const bool is_first = one.later == flow::kNone && other.later == flow::kNone;
      const uint64_t modulus = remaining_modulus(*analyses_, x, y, is_first);
      const auto meet = [&](const Place& p, const Place& q) {
        return std::ranges::equal(thread(p).ctaid, thread(q).ctaid) ? Meeting::apart : Meeting::sure;
      };
      const Overlap found = find_overlap(x, y, a.access.extent_bytes, b.access.extent_bytes, modulus, meet);
      if (found.possible) is_apart = false;
      if (!found.sure || modulus || decided_by_memory_[first] || decided_by_memory_[second]) continue;
      const bool both_store = a.access.kind == AccessKind::store && b.access.kind == AccessKind::store;
      if (both_store && !may_differ(a, b, *found.sure)) continue;
      const auto is_idle = [&](const RacingAccess& of, LoopIteration moment, const Place& place) {
        return of.access.kind == AccessKind::load && !footprints_.uses_value(*context_, of, moment, place.thread);
      };
      if (is_idle(a, one, found.sure->first) || is_idle(b, other, found.sure->second)) continue;
      const uint32_t* const grid = analyses_->shape().grid;
      if (pairs_ == RacePairs::mixed && !(grid[0] && grid[1] && grid[2])) {
        open_ = fmt::format(
            "line {} and line {} reach the same bytes of {}, one atomically and one plainly, in two blocks; a launch "
            "file with a grid of one block says that there are no two",
            line_of(*context_, a.access.instruction), line_of(*context_, b.access.instruction),
            analyses_->domain().describe(a.form.base));
        return Outcome::open;
      }
      report(a, b, *found.sure,
             !is_first || a.may_wrap || b.may_wrap || x.is_bounded || y.is_bounded || !x.unknown_uniform.empty() ||
                 !y.unknown_uniform.empty());
      return Outcome::race;
    }
  return is_apart ? Outcome::apart : Outcome::open;
}

void BlockRaceSearch::report(const RacingAccess& a, const RacingAccess& b, const std::pair<Place, Place>& places,
                             bool is_likely) {
  if (!reported_.insert(a.access.instruction).second) return;
  const flow::LaunchShape& shape = analyses_->shape();
  const bool is_launch_known = shape.is_exact && shape.grid[0] && shape.grid[1] && shape.grid[2];
  const flow::Thread &one = thread(places.first), &other = thread(places.second);
  const auto name = [](const flow::Thread& of) {
    return fmt::format("thread ({}, {}, {}) of block ({}, {}, {})", of.tid[0], of.tid[1], of.tid[2], of.ctaid[0],
                       of.ctaid[1], of.ctaid[2]);
  };
  Finding finding = finding_at(
      *context_, a.access.instruction,
      is_launch_known && pairs_ == RacePairs::global ? Severity::high : Severity::medium,
      is_launch_known && !is_likely ? Tier::proved : Tier::likely,
      fmt::format("{} {} what {} {} in line {}, and nothing orders the two blocks", name(one), verb_of(a.access),
                  name(other), verb_of(b.access), line_of(*context_, b.access.instruction)),
      pairs_ == RacePairs::mixed
          ? "make the plain access atomic too, or put one of the two into another launch"
          : "give each block memory of its own, use atomics, or put the second access into another launch");
  Witness witness;
  for (unsigned d = 0; d < 3; ++d) {
    witness.tid[d] = one.tid[d];
    witness.other_tid[d] = other.tid[d];
  }
  witness.address = static_cast<uint64_t>(std::max(places.first.offset, places.second.offset));
  witness.note = "offset from " + analyses_->domain().describe(a.form.base);
  finding.witness = witness;
  finding.path.push_back({context_->function().instructions[b.access.instruction].at, "the other access"});
  if (!shape.is_exact)
    finding.assumptions.push_back(fmt::format("a block has {} x {} threads", one.ntid[0], one.ntid[1]));
  if (!is_launch_known)
    finding.assumptions.push_back(
        fmt::format("the grid has {} x {} x {} blocks", one.nctaid[0], one.nctaid[1], one.nctaid[2]));
  if (a.may_wrap || b.may_wrap) finding.assumptions.push_back("no 32-bit index wraps");
  if (is_likely) finding.assumptions.push_back("control reaches both accesses");
  findings_.push_back(std::move(finding));
}

// Asks the solver, where nothing else leaves the rule open.
void BlockRaceSearch::settle_undecided() {
  std::optional<PairProver> prover;
  if (may_prove() && open_.empty() && findings_.empty() && !undecided_.empty())
    prover.emplace(*context_, nullptr, undecided_.size());
  for (const auto& [first, second] : undecided_) {
    const RacingAccess &a = accesses_[first], &b = accesses_[second];
    using Kind = PairProver::Answer::Kind;
    const PairProver::Answer answer = prover ? prover->ask(a, b, false) : PairProver::Answer{};
    proved_ += answer.kind == Kind::apart;
    if (answer.kind == Kind::apart) continue;
    const uint32_t* const grid = analyses_->shape().grid;
    if (answer.kind == Kind::meet && pairs_ == RacePairs::global && grid[0] && grid[1] && grid[2] &&
        !decided_by_memory_[first] && !decided_by_memory_[second])
      report_met(a, b, *answer.threads);
    else if (open_.empty())
      open_ = fmt::format("that the accesses of two blocks in lines {} and {} stay apart could not be proved",
                          line_of(*context_, a.access.instruction), line_of(*context_, b.access.instruction));
  }
}

void BlockRaceSearch::report_met(const RacingAccess& a, const RacingAccess& b, const MetThreads& met) {
  if (!reported_.insert(a.access.instruction).second) return;
  const auto name = [](const flow::Thread& of) {
    return fmt::format("thread ({}, {}, {}) of block ({}, {}, {})", of.tid[0], of.tid[1], of.tid[2], of.ctaid[0],
                       of.ctaid[1], of.ctaid[2]);
  };
  Finding finding = finding_at(
      *context_, a.access.instruction, met.assumptions.empty() ? Severity::high : Severity::medium,
      met.assumptions.empty() ? Tier::proved : Tier::likely,
      fmt::format("{} {} what {} {} in line {}, and nothing orders the two blocks", name(met.one), verb_of(a.access),
                  name(met.other), verb_of(b.access), line_of(*context_, b.access.instruction)),
      "give each block memory of its own, use atomics, or put the second access into another launch");
  Witness witness;
  for (unsigned d = 0; d < 3; ++d) {
    witness.tid[d] = met.one.tid[d];
    witness.other_tid[d] = met.other.tid[d];
  }
  witness.note = "in " + analyses_->domain().describe(a.form.base);
  finding.witness = witness;
  finding.assumptions = met.assumptions;
  finding.path.push_back({context_->function().instructions[b.access.instruction].at, "the other access"});
  findings_.push_back(std::move(finding));
}

RuleResult BlockRaceSearch::run() {
  collect();
  if (accesses_.empty() && open_.empty()) return not_applicable("no global object is reached that way");
  if (!choose_threads()) return survived("there is one block, as far as the kernel or a launch file tells");
  size_t comparisons = 0;
  for (size_t i = 0; i < accesses_.size(); ++i)
    for (size_t j = i; j < accesses_.size(); ++j) {
      const RacingAccess &a = accesses_[i], &b = accesses_[j];
      if (a.form.base != b.form.base) continue;
      if (!is_examined(a.access, b.access)) continue;
      comparisons += footprints_.threads().size();
      if (comparisons > kMaxComparisons)
        return findings_.empty() ? undecided("not decided: budget: too many pairs of global accesses")
                                 : conclude(std::move(findings_), {});
      if (compare(i, j) == Outcome::open) undecided_.emplace_back(i, j);
    }
  settle_undecided();
  if (findings_.empty() && !open_.empty()) return undecided(open_);
  in_program_order(findings_);
  std::string basis = "every two threads' accesses to global memory are apart or ordered, if no 32-bit index wraps";
  if (proved_ > 0) basis += fmt::format("; Z3 proved {}", plural(proved_, "pair"));
  return conclude(std::move(findings_), std::move(basis));
}

}  // namespace

RuleResult search_block_races(Context& context, RacePairs pairs) { return BlockRaceSearch(context, pairs).run(); }

}  // namespace ptxkit::rules
