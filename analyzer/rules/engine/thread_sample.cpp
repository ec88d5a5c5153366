#include "analyzer/rules/engine/thread_sample.hpp"

#include <algorithm>

#include "analyzer/ptx/facts.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"

namespace ptxkit::rules {

using flow::Atom;
using flow::Form;
using ptx::Op;

namespace {

bool is_for_several_warps(Context& context) {
  const ptx::Function& function = context.function();
  const auto is_other_dimension = [](const ptx::Operand& operand) {
    return operand.kind == ptx::OperandKind::special && operand.component != 'x' &&
           (static_cast<ptx::SpecialRegister>(operand.id) == ptx::SpecialRegister::tid ||
            static_cast<ptx::SpecialRegister>(operand.id) == ptx::SpecialRegister::ntid);
  };
  if (std::any_of(function.operand_pool.begin(), function.operand_pool.end(), is_other_dimension)) return false;
  return std::any_of(function.instructions.begin(), function.instructions.end(),
                     [&](const ptx::Instruction& each) { return ptx::is_whole_cta_barrier(function, each); }) ||
         computes_warp_number(context);
}

// A kernel that tells its threads apart by %tid.y or %tid.z alone is for blocks that are one thread wide in the others.
unsigned row_dimension(const ptx::Function& function) {
  for (const unsigned dimension : {0u, 1u, 2u})
    if (reads_thread_number(function, dimension)) return dimension;
  return 0;
}

}  // namespace

bool computes_warp_number(Context& context) {
  Analyses& analyses = context.analyses();
  const flow::Forms& forms = analyses.forms();
  const auto is_thread = [](uint32_t special, uint32_t component) {
    return static_cast<ptx::SpecialRegister>(special) == ptx::SpecialRegister::tid && component == 'x';
  };
  const auto is_number_of_thread = [&](const flow::Source& source) {
    if (source.kind == flow::Source::Kind::special) return is_thread(source.id, source.component);
    if (source.kind != flow::Source::Kind::value) return false;
    const Form form = forms.of(source.id);
    if (form.terms.size() != 1 || form.constant != 0 || form.terms[0].coefficient != 1) return false;
    const Atom& atom = forms.atom(form.terms[0].atom);
    return atom.kind == Atom::Kind::special && is_thread(atom.id, static_cast<uint32_t>(atom.detail));
  };
  const auto& instructions = context.function().instructions;
  return std::any_of(instructions.begin(), instructions.end(), [&](const ptx::Instruction& each) {
    if (each.op != Op::shr || each.operand_count != 3) return false;
    const flow::Source count = flow::source_of(analyses.ssa(), each.first_operand + 2);
    return count.kind == flow::Source::Kind::constant && count.constant == 5 &&
           is_number_of_thread(flow::source_of(analyses.ssa(), each.first_operand + 1));
  });
}

bool reads_thread_number(const ptx::Function& function, unsigned dimension) {
  const std::vector<ptx::Operand>& operands = function.operand_pool;
  return std::any_of(operands.begin(), operands.end(), [&](const ptx::Operand& operand) {
    return operand.kind == ptx::OperandKind::special && operand.component == 'x' + dimension &&
           static_cast<ptx::SpecialRegister>(operand.id) == ptx::SpecialRegister::tid;
  });
}

ThreadSample sample_threads(Context& context, Sample sample, bool may_be_of_several_warps) {
  if (sample != Sample::row) return {{{.tid = {sample == Sample::diagonal, 0, 0}}, {.tid = {0, 1, 0}}}, 1};
  const flow::LaunchShape& shape = context.analyses().shape();
  const bool is_wide = may_be_of_several_warps && !shape.is_exact && is_for_several_warps(context);
  const uint32_t count = shape.is_exact
                             ? std::min(shape.max_threads, 1024u)
                             : std::min(shape.max_threads, is_wide ? kThreadsOfSeveralWarps : kThreadsWithoutShape);
  ThreadSample found;
  found.row = shape.is_exact ? 0 : row_dimension(context.function());
  for (uint32_t n = 0; n < count; ++n) {
    flow::Thread thread = flow::thread_of(shape, n);
    std::swap(thread.tid[0], thread.tid[found.row]);
    found.threads.push_back(thread);
  }
  return found;
}

}  // namespace ptxkit::rules
