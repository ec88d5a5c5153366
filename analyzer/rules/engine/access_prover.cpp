#include "analyzer/rules/engine/access_prover.hpp"

#include <optional>
#include <string>

#include <fmt/format.h>

#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/launch.hpp"
#include "analyzer/prove/solver.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/analyses.hpp"

namespace ptxkit::rules {

using prove::Moment;
using prove::Query;
using prove::Reply;
using prove::Term;
using prove::Threads;

namespace {

constexpr unsigned kMaxQuestions = 200;  // of one rule and kernel

// Whether the threads in question are those of a launch that is not known.
bool asks_about_size(const std::string& question) {
  return question.find("(declare-const ntid.") != question.npos ||
         question.find("(declare-const nctaid.") != question.npos;
}

}  // namespace

AccessProver::AccessProver(Context& context)
    : analyses_(&context.analyses()),
      questions_left_(context.options.solver ? kMaxQuestions : 0),
      budget_(context.options) {}

AccessProver::Answer AccessProver::misaligned(const ptx::Access& access, flow::BaseId base, uint32_t start_bytes) {
  const uint64_t low_bits = access.width_bytes - 1;
  return ask(access, base, start_bytes, [&](Query& query, const Term& offset) {
    const Term rest = query.apply("bvand", offset.width, {offset, Query::constant(low_bits, offset.width)});
    return query.negation(query.test("=", rest, Query::constant(0, offset.width)));
  });
}

AccessProver::Answer AccessProver::outside(const ptx::Access& access, flow::BaseId base, uint64_t size_bytes) {
  return ask(access, base, 1, [&](Query& query, const Term& offset) {
    if (access.extent_bytes > size_bytes) return Query::truth(true);
    return query.test("bvugt", offset, Query::constant(size_bytes - access.extent_bytes, offset.width));
  });
}

AccessProver::Answer AccessProver::ask(const ptx::Access& access, flow::BaseId base, uint32_t start_bytes,
                                       const Fails& fails) {
  if (questions_left_ == 0 || budget_.is_spent() || analyses_->loops().is_irreducible()) return {};
  --questions_left_;
  if (!kernel_)
    kernel_.emplace(prove::Kernel{analyses_->dominators(), analyses_->post_dominators(), analyses_->forms(),
                                  analyses_->uniformity(), analyses_->accesses()});
  Query query(SolverBudget::kMaxTerms);
  Threads threads(*kernel_, query);
  const Moment at{};
  Term offset = threads.address(access, at);
  if (base != flow::kNoBase) {
    const std::optional<Term> start = threads.start(base, start_bytes);
    if (!start) return {};
    offset = query.resized(offset, start->width);
    offset = query.apply("bvsub", start->width, {offset, *start});
  }
  const Term fails_here = fails(query, offset), reaches = threads.reaches(access.instruction, at);
  query.require(fails_here);
  query.require(reaches);
  const auto open = [&] {
    budget_.count_open();
    return Answer();
  };
  if (query.is_full()) return open();
  Reply reply = budget_.ask(query.text());
  if (reply.kind == Reply::Kind::unsatisfiable) return {Answer::Kind::never};
  if (reply.kind == Reply::Kind::unknown || (fails_here.rests | reaches.rests) || asks_about_size(query.text()))
    return open();

  Answer answer{Answer::Kind::in_thread};
  const flow::LaunchShape& shape = analyses_->shape();
  for (unsigned d = 0; d < 3; ++d) {
    answer.thread.tid[d] = static_cast<uint32_t>(reply.model[fmt::format("tid.{}.a", "xyz"[d])]);
    answer.thread.ctaid[d] = static_cast<uint32_t>(reply.model[fmt::format("ctaid.{}", "xyz"[d])]);
    answer.thread.ntid[d] = shape.threads[d];
    answer.thread.nctaid[d] = shape.grid[d];
  }
  answer.offset = offset.constant ? *offset.constant : reply.model[offset.text];
  // The same on concrete numbers, as far as they can be computed.
  flow::Evaluator evaluator(
      analyses_->forms(), answer.thread,
      flow::first_iterations(analyses_->loops(), analyses_->graph().block_of(access.instruction)));
  for (const flow::Condition& condition : analyses_->conditions().of_instruction(access.instruction)) {
    const auto holds = evaluator.value(condition.predicate);
    if (holds && (*holds != 0) != condition.expected) return open();
  }
  return answer;
}

}  // namespace ptxkit::rules
