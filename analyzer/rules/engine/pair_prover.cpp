#include "analyzer/rules/engine/pair_prover.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "analyzer/flow/launch.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/walk.hpp"

namespace ptxkit::rules {

using flow::LoopId;
using prove::Moment;
using prove::Query;
using prove::Reply;
using prove::Term;
using prove::Threads;
using prove::Turn;
using ptx::AccessKind;
using ptx::SpecialRegister;

namespace {

constexpr size_t kMaxPairs = 200;  // of one rule and kernel
constexpr size_t kMaxOrigins = 64;
// Sizes that hosts pass. A race that needs others says more about the number than about the kernel.
constexpr uint64_t kLeastParameter = 1, kLargestParameter = 1 << 16;

}  // namespace

struct PairProver::Question {
  Query query{SolverBudget::kMaxTerms};
  Threads threads;
  Moment one, other;
  explicit Question(const prove::Kernel& kernel) : threads(kernel, query) {}
};

PairProver::PairProver(Context& context, const std::vector<bool>* separates, size_t pairs)
    : context_(&context),
      analyses_(&context.analyses()),
      kernel_{analyses_->dominators(), analyses_->post_dominators(), analyses_->forms(), analyses_->uniformity(),
              analyses_->accesses()},
      is_of_one_block_(separates != nullptr),
      budget_(context.options) {
  if (pairs > kMaxPairs || analyses_->loops().is_irreducible()) budget_.spend_all();
  if (!separates || budget_.is_spent()) return;
  for (LoopId loop = 0; loop < analyses_->loops().all().size(); ++loop) {
    if (!has_path_without_barrier(loop, *separates)) continue;
    free_.insert(loop);
    for (ptx::InstructionId id = 0; id < separates->size(); ++id)
      if ((*separates)[id] && analyses_->loops().contains(loop, analyses_->graph().block_of(id)))
        has_barrier_.insert(loop);
  }
  intervals_.emplace(analyses_->graph(), analyses_->loops(), *separates, kMaxOrigins, free_);
  if (!intervals_->is_complete()) budget_.spend_all();
}

bool PairProver::has_path_without_barrier(LoopId loop, const std::vector<bool>& separates) const {
  const flow::Graph& graph = analyses_->graph();
  const flow::Loops& loops = analyses_->loops();
  const flow::BlockId header = loops.loop(loop).header;
  std::vector<bool> seen(graph.size(), false);
  std::vector<flow::BlockId> work{header};
  while (!work.empty()) {
    const flow::BlockId block = work.back();
    work.pop_back();
    if (seen[block]) continue;
    seen[block] = true;
    const auto from = separates.begin() + graph.block(block).first, end = separates.begin() + graph.block(block).end;
    if (std::find(from, end, true) != end) continue;
    for (const flow::BlockId next : graph.successors(block)) {
      if (next == header) return true;
      if (loops.contains(loop, next)) work.push_back(next);
    }
  }
  return false;
}

std::set<PairProver::Relation> PairProver::relations(const RacingAccess& a, const RacingAccess& b) const {
  if (!is_of_one_block_) return {Relation{}};
  std::set<Relation> found;
  for (const auto& [x, y] : intervals_->crossings(a.access.instruction, b.access.instruction)) {
    constexpr uint32_t kNo = flow::Origin::kNoCrossing, kMany = flow::Origin::kManyCrossings;
    if (x == kMany || y == kMany || (x != y && x != kNo && y != kNo))
      found.insert({.is_known = false});
    else if (x == y)
      found.insert(Relation{});
    else if (y == kNo)
      found.insert({.first_is_later = x});
    else
      found.insert({.second_is_later = y});
  }
  return found;
}

// Outer loops first, since a loop's turn is one of a turn of the loop around it.
void PairProver::set_turns(const RacingAccess& a, const RacingAccess& b, const Relation& relation, Moment& one,
                           Moment& other) const {
  const flow::Loops& loops = analyses_->loops();
  for (LoopId loop = 0; loop < loops.all().size(); ++loop) {
    const bool has_a = loops.contains(loop, a.block), has_b = loops.contains(loop, b.block);
    const bool is_common = is_of_one_block_ && relation.is_known && !free_.contains(loop);
    for (Moment* const moment : {&one, &other}) {
      const bool is_one = moment == &one;
      if (!(is_one ? has_a : has_b) && !(is_common && (has_a || has_b))) continue;
      std::string symbol = fmt::format("turn{}.{}", loop, is_common ? 's' : moment->thread);
      const LoopId outer = loops.loop(loop).parent;
      const auto around = moment->turns.find(outer);
      if (around != moment->turns.end()) symbol += fmt::format("@{}{:+}", around->second.symbol, around->second.offset);
      const bool is_later = (is_one ? relation.first_is_later : relation.second_is_later) == loop;
      moment->turns[loop] = Turn{symbol, is_later ? 1 : 0};
    }
  }
}

// Whether the thread does anything that depends on what it loads.
Term PairProver::is_used(const RacingAccess& load, const Moment& at, Threads& threads, Query& query) {
  const ptx::Function& function = context_->function();
  const flow::Ssa& ssa = analyses_->ssa();
  const auto is_from_load = [&](flow::ValueId id) {
    return ssa.value(id).kind == flow::Value::Kind::result && ssa.value(id).instruction == load.access.instruction;
  };
  Term used = Query::truth(false);
  for_each_instruction(*context_, [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
    const ptx::Accesses accesses = ptx::accesses_of(function, id);
    const bool has_effect = ptx::is_branch(instruction) || ptx::ends_thread(instruction) ||
                            instruction.op == ptx::Op::call ||
                            std::any_of(accesses.items, accesses.items + accesses.count,
                                        [](const ptx::Access& each) { return each.kind != AccessKind::load; });
    if (!has_effect || used.constant == 1u) return;
    bool depends = instruction.guard && any_ancestor(*context_, ssa.guard(id), is_from_load);
    ptx::for_each_register(function, instruction, [&](uint32_t index, const ptx::Operand&, bool written) {
      depends = depends || (!written && any_ancestor(*context_, ssa.at(index), is_from_load));
    });
    if (depends) used = query.either(used, threads.reaches(id, at));
  });
  return used;
}

PairProver::Answer PairProver::ask(const RacingAccess& a, const RacingAccess& b, bool different_warps) {
  if (budget_.is_spent()) return {};
  Answer answer{Answer::Kind::apart};
  for (const Relation& relation : relations(a, b)) {
    Answer next = ask(a, b, relation, different_warps);
    if (next.kind == Answer::Kind::meet) return next;
    if (next.kind == Answer::Kind::open) answer = next;
  }
  if (answer.kind == Answer::Kind::open) budget_.count_open();
  return answer;
}

PairProver::Answer PairProver::ask(const RacingAccess& a, const RacingAccess& b, const Relation& relation,
                                   bool different_warps) {
  Question question(kernel_);
  Query& query = question.query;
  Threads& threads = question.threads;
  question.one = {'a', is_of_one_block_};
  question.other = {'b', is_of_one_block_};
  set_turns(a, b, relation, question.one, question.other);

  const auto which = is_of_one_block_ ? SpecialRegister::tid : SpecialRegister::ctaid;
  Term is_other = Query::truth(false);
  for (unsigned d = 0; d < 3; ++d)
    is_other = query.either(is_other, query.negation(query.test("=", threads.special(which, d, question.one),
                                                                threads.special(which, d, question.other))));
  query.require(is_other);
  if (different_warps) {
    const auto warp = [&](const Moment& at) {
      return query.apply("bvlshr", 32, {threads.linear_tid(at), Query::constant(5, 32)});
    };
    query.require(query.negation(query.test("=", warp(question.one), warp(question.other))));
  }
  const Term here = threads.address(a.access, question.one), there = threads.address(b.access, question.other);
  const auto is_before_end = [&](const Term& x, const Term& y, uint32_t bytes) {
    return query.test("bvult", query.apply("bvsub", 64, {x, y}), Query::constant(bytes, 64));
  };
  const Term overlap = query.either(is_before_end(here, there, b.access.extent_bytes),
                                    is_before_end(there, here, a.access.extent_bytes));
  const Term one_reaches = threads.reaches(a.access.instruction, question.one),
             other_reaches = threads.reaches(b.access.instruction, question.other);
  query.require(one_reaches);
  query.require(other_reaches);
  query.require(overlap);
  auto rests = static_cast<prove::Rests>(one_reaches.rests | other_reaches.rests | overlap.rests);

  // Two stores of one value to one place are no race with an effect.
  if (a.access.kind == AccessKind::store && b.access.kind == AccessKind::store && a.access.data != ptx::kNone &&
      b.access.data != ptx::kNone && a.access.extent_bytes == b.access.extent_bytes) {
    const auto data = [&](const RacingAccess& of, const Moment& at) {
      const ptx::Operand& operand = context_->function().operand_pool[of.access.data];
      const uint32_t first = operand.child_count ? operand.first_child : of.access.data;
      const uint32_t count = std::max(operand.child_count, 1u);
      std::vector<Term> parts;
      for (uint32_t i = 0; i < count; ++i)
        parts.push_back(threads.operand(first + i, 8 * of.access.extent_bytes / count, at));
      return parts;
    };
    const std::vector<Term> mine = data(a, question.one), others = data(b, question.other);
    Term differs = query.negation(query.test("=", here, there));
    for (size_t i = 0; i < mine.size() && mine.size() == others.size(); ++i)
      differs = query.either(differs, query.negation(query.test("=", mine[i], others[i])));
    if (mine.size() != others.size()) differs = Query::truth(true);
    query.require(differs);
    // What is loaded from other places is taken to differ.
    rests |= differs.rests & ~prove::kOnMemory;
  }
  for (const auto& [load, at] : {std::pair(&a, &question.one), std::pair(&b, &question.other)})
    if (a.is_global && load->access.kind == AccessKind::load) query.require(is_used(*load, *at, threads, query));
  if (query.is_full()) return {};

  Reply reply = budget_.ask(query.text());
  if (reply.kind == Reply::Kind::unsatisfiable) return {Answer::Kind::apart};
  if (reply.kind == Reply::Kind::unknown || !relation.is_known) return {};
  if (rests & (prove::kOnUnknown | prove::kOnMemory)) return {};
  if (std::ranges::any_of(has_barrier_, [&](LoopId loop) {
        return analyses_->loops().contains(loop, a.block) || analyses_->loops().contains(loop, b.block);
      }))
    return {};
  MetThreads met;
  if (rests & prove::kOnParameter) {
    for (const auto& [symbol, name] : threads.parameters()) {
      const Term term = query.symbol(symbol, 0, 0);
      if (term.width < 32) continue;
      query.require(query.test("bvuge", term, Query::constant(kLeastParameter, term.width)));
      query.require(query.test("bvule", term, Query::constant(kLargestParameter, term.width)));
    }
    reply = budget_.ask(query.text());
    if (reply.kind != Reply::Kind::satisfiable) return {};
    for (const auto& [symbol, name] : threads.parameters())
      met.assumptions.push_back(fmt::format("parameter '{}' is {}", name, reply.model[symbol]));
    if (met.assumptions.empty()) return {};  // of a block or grid that is not known
  }
  if (rests & prove::kOnTurn) met.assumptions.push_back("the loops run that far");
  const flow::LaunchShape& shape = analyses_->shape();
  for (flow::Thread* const thread : {&met.one, &met.other}) {
    const char who = thread == &met.one ? 'a' : 'b';
    for (unsigned d = 0; d < 3; ++d) {
      thread->tid[d] = static_cast<uint32_t>(reply.model[fmt::format("tid.{}.{}", "xyz"[d], who)]);
      thread->ntid[d] = shape.threads[d];
      thread->nctaid[d] = shape.grid[d];
      thread->ctaid[d] = static_cast<uint32_t>(
          reply
              .model[is_of_one_block_ ? fmt::format("ctaid.{}", "xyz"[d]) : fmt::format("ctaid.{}.{}", "xyz"[d], who)]);
    }
  }
  return {Answer::Kind::meet, met};
}

}  // namespace ptxkit::rules
