#include "analyzer/rules/engine/alignment.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <ranges>
#include <set>

#include <fmt/format.h>

#include "analyzer/flow/bits.hpp"
#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/evaluate.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/launch.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/refine.hpp"
#include "analyzer/flow/uniformity.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/rules/engine/access_prover.hpp"
#include "analyzer/rules/engine/analyses.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/cursor.hpp"
#include "analyzer/rules/engine/origin.hpp"
#include "analyzer/rules/engine/pattern_sites.hpp"
#include "analyzer/rules/engine/walk.hpp"

namespace ptxkit::rules {

using flow::Atom;
using flow::Base;
using flow::Form;
using ptx::Op;

namespace {

// CUDA C++ Programming Guide: dynamic shared memory follows the static part; drivers start it at a multiple of 16 at
// least.
constexpr uint32_t kDynamicSharedAlign = 16;
constexpr unsigned kTestDepth = 6;
constexpr size_t kMaxNeighbours = 16;
constexpr size_t kMaxParts = 256;

unsigned log2_of(uint32_t width) { return static_cast<unsigned>(std::bit_width(width)) - 1; }

}  // namespace

Alignment::Alignment(Context& context) : context_(&context), analyses_(&context.analyses()) {
  const auto& accesses = analyses_->accesses();
  analyses_->forms();
  results_.resize(accesses.size());
  make_contracts();
  for (size_t i = 0; i < accesses.size(); ++i) {
    judge(i);
    by_instruction_.emplace_back(accesses[i].instruction, i);
  }
  refute_by_neighbours();
  ask_solver();
  refute_in_sites();
}

const AccessAlignment* Alignment::of_instruction(ptx::InstructionId id) const {
  const AccessAlignment* worst = nullptr;
  for (auto i = std::lower_bound(by_instruction_.begin(), by_instruction_.end(),
                                 std::pair<ptx::InstructionId, size_t>{id, 0});
       i != by_instruction_.end() && i->first == id; ++i)
    if (!worst || rank_of(results_[i->second]) > rank_of(*worst)) worst = &results_[i->second];
  return worst;
}

void Alignment::make_contracts() {
  const flow::Domain& domain = analyses_->domain();
  flow::Forms& forms = analyses_->forms();
  contracts_.resize(domain.base_count());
  for (flow::BaseId id = 0; id < contracts_.size(); ++id) {
    const Base& base = domain.base(id);
    Contract& contract = contracts_[id];
    if (base.kind == Base::Kind::variable) {
      const ptx::Variable& variable = context_->module.variables[base.id];
      contract.is_declared = true;
      contract.bytes = std::max(variable.align, 1u);
      if (variable.is_unsized && variable.space == ptx::Space::shared)
        contract.bytes = std::max(contract.bytes, kDynamicSharedAlign);
    } else if (base.kind == Base::Kind::parameter) {
      const ptx::Variable& variable = context_->module.variables[base.id];
      // `.align 1` is what compilers write when they know nothing.
      if (variable.is_pointer && variable.pointer_align > 1 && base.offset_bytes == 0) {
        contract.is_declared = true;
        contract.bytes = variable.pointer_align;
      }
      const flow::ParameterFacts* promised = base.offset_bytes ? nullptr : analyses_->shape().parameter(variable.name);
      if (promised && promised->align_bytes) {
        contract.is_declared = true;
        contract.bytes = promised->align_bytes;
      }
      if (context_->options.assume_align_bytes) {
        contract.is_declared = true;
        contract.bytes = context_->options.assume_align_bytes;
      }
    }
  }
  for (const ptx::Access& access : analyses_->accesses()) {
    const Form form = forms.address(access);
    if (form.base == flow::kNoBase || contracts_[form.base].is_declared) continue;
    const Form expanded = forms.expand(form);
    if (static_cast<uint64_t>(expanded.constant) % access.width_bytes) continue;
    Contract& contract = contracts_[form.base];
    if (access.width_bytes <= contract.bytes) continue;
    contract.bytes = access.width_bytes;
    contract.evidence_access = access.instruction;
  }
  // A pointer chosen among variables is as aligned as the least of them.
  for (flow::BaseId id = 0; id < contracts_.size(); ++id)
    for (const flow::BaseId member : domain.base(id).members)
      if (contracts_[member].is_declared)
        contracts_[id].bytes = std::min(contracts_[id].bytes, contracts_[member].bytes);
}

// A test of low bits on the way to the access that covers its address: (p & 15) == 0 before a 16-byte load at p + 16 i.
bool Alignment::proved_by_test(const ptx::Access& access, const Form& form) {
  flow::Forms& forms = analyses_->forms();
  const unsigned wanted = log2_of(access.width_bytes);
  const flow::Refinement here(forms, analyses_->conditions().of_instruction(access.instruction));
  for (const flow::TestedBits& test : here.tests()) {
    if (test.bits.trailing_zeros() < wanted) continue;
    const Form tested = forms.of(test.value);
    if (tested.base != form.base) continue;
    const auto [known, residue] = forms.residue(forms.expand(subtract(form, tested)), wanted);
    if (known >= wanted && residue == 0) return true;
  }
  // What is added is a multiple where control is, though not everywhere: lane / 8 behind a test for lane 0.
  if (form.base != flow::kNoBase && contracts_[form.base].bytes < access.width_bytes) return false;
  const auto [known, residue] = here.residue(form, wanted);
  return known >= wanted && residue == 0;
}

// Predicates on the way that look at low bits of a pointer into the same object, or of what is added to it.
std::vector<flow::ValueId> Alignment::tests_of_low_bits(const ptx::Access& access, flow::BaseId base, TestedPart what) {
  const flow::Ssa& ssa = analyses_->ssa();
  const flow::Domain& domain = analyses_->domain();
  const Form form = analyses_->forms().address(access);
  std::set<flow::ValueId> parts;
  const flow::Source address = flow::address_base(ssa, access.address);
  if (what == TestedPart::given && address.kind == flow::Source::Kind::value) {
    const std::vector<flow::ValueId> found = ancestors(*context_, address.id, kMaxParts);
    parts.insert(found.begin(), found.end());
  }
  const auto is_loaded = [&](flow::ValueId id) {
    return ssa.value(id).kind == flow::Value::Kind::result && flow::operation_of(ssa, id).instruction->op == Op::ld;
  };
  const auto is_of_address = [&](flow::ValueId id) {
    if (parts.contains(id) && any_ancestor(*context_, id, is_loaded)) return true;
    if (base != flow::kNoBase && domain.fact(id).base == base) return true;
    if (what == TestedPart::base) return false;
    const Form tested = analyses_->forms().of(id);
    return std::ranges::any_of(tested.terms, [&](const flow::Term& term) {
      return std::ranges::any_of(form.terms, [&](const flow::Term& own) { return term.atom == own.atom; });
    });
  };
  const auto looks_at_low_bits = [&](flow::ValueId predicate) {
    std::vector<std::pair<flow::ValueId, unsigned>> work{{predicate, 0}};
    std::set<flow::ValueId> seen;
    while (!work.empty()) {
      const auto [id, depth] = work.back();
      work.pop_back();
      const flow::Value& value = ssa.value(id);
      if (depth > kTestDepth || value.kind != flow::Value::Kind::result || !seen.insert(id).second) continue;
      const flow::Operation operation = flow::operation_of(ssa, id);
      const Op op = operation.instruction->op;
      const bool is_word = operation.instruction->type() != ptx::Type::pred;
      const bool selects_bits = is_word && (op == Op::and_ || op == Op::rem || op == Op::bfe);
      for (unsigned i = 0; i < operation.source_count; ++i) {
        const flow::Source source = flow::source_of(ssa, operation.first_source + i);
        if (source.kind != flow::Source::Kind::value) continue;
        work.emplace_back(source.id, depth + 1);
        if (selects_bits && is_of_address(source.id)) return true;
      }
    }
    return false;
  };
  std::vector<flow::ValueId> found;
  for (const flow::Condition& condition : analyses_->conditions().of_instruction(access.instruction))
    if (looks_at_low_bits(condition.predicate)) found.push_back(condition.predicate);
  return found;
}

void Alignment::judge(size_t index) {
  const ptx::Access& access = analyses_->accesses()[index];
  AccessAlignment& result = results_[index];
  const uint32_t width = access.width_bytes;
  if (width <= 1) return;
  flow::Forms& forms = analyses_->forms();
  const flow::Domain& domain = analyses_->domain();
  const unsigned wanted = log2_of(width);
  const Form form = forms.address(access);
  const Form expanded = forms.expand(form);
  auto [known, residue] = forms.residue(form, wanted);
  if (known < wanted) std::tie(known, residue) = forms.residue(expanded, wanted);
  if (known < wanted) {
    // Known bits see what forms do not: masks, joins of aligned values.
    const flow::Source base = flow::address_base(analyses_->ssa(), access.address);
    if (base.kind == flow::Source::Kind::value) {
      const flow::Bits bits = flow::add(domain.fact(base.id).bits,
                                        flow::Bits::constant(context_->function().operand_pool[access.address].value));
      if (bits.known_low() >= wanted) {
        known = wanted;
        residue = bits.one & (width - 1);
      }
    }
  }
  if (known < wanted) {
    const Form rounded = forms.without_masks(expanded, wanted);
    if (rounded.base == flow::kNoBase && form.base != flow::kNoBase) {
      const auto [tail, rest] = forms.residue(forms.expand(rounded), wanted);
      if (tail >= wanted && rest == 0) return;  // rounded down, wherever the object is
    } else {
      std::tie(known, residue) = forms.residue(forms.expand(rounded), wanted);
    }
  }
  const Contract& contract = contracts_[form.base];
  const bool has_base = form.base != flow::kNoBase;
  const std::string name = domain.describe(form.base);
  if (has_base) {
    const Base& base = domain.base(form.base);
    const bool is_dynamic = base.kind == Base::Kind::variable && context_->module.variables[base.id].is_unsized;
    if (is_dynamic && context_->module.variables[base.id].align < width && contract.bytes >= width)
      result.assumptions.push_back(
          fmt::format("dynamic shared memory starts at a multiple of {}", kDynamicSharedAlign));
    else if (contract.is_declared && base.kind != Base::Kind::variable)
      result.assumptions.push_back(fmt::format("{} is {}-aligned: declared", name, contract.bytes));
    else if (!contract.is_declared && contract.bytes >= width)
      result.assumptions.push_back(
          fmt::format("{} is {}-aligned: line {} accesses {} bytes through it at offset 0", name, contract.bytes,
                      context_->module.position(context_->function().instructions[contract.evidence_access].at).line,
                      contract.bytes));
  }
  if (known >= wanted) {
    if (has_base && contract.bytes < width && residue % contract.bytes == 0) {
      if (proved_by_test(access, form)) {
        result.checked_at_run_time = true;
        return;
      }
      const bool is_tested = !tests_of_low_bits(access, form.base, TestedPart::base_or_terms).empty();
      if (contract.is_declared || residue == 0 || is_tested) {
        result.status = AlignmentStatus::undecided;
        const Base& base = domain.base(form.base);
        const bool is_whole = base.kind == Base::Kind::variable &&
                              context_->module.variables[base.id].size_bytes != 0 &&
                              context_->module.variables[base.id].size_bytes % width == 0;
        result.origin = is_whole ? Origin::layout : Origin::base;
        result.tier = Tier::possible;
        result.reason = fmt::format("{} is known to be {}-aligned only", name, contract.bytes);
        return;
      }
      result.assumptions.push_back(fmt::format("{} is {}-aligned, as allocations are", name, width));
    }
    if (residue == 0) return;
    // Only a test of the pointer itself can: what is added leaves the same residue whatever it is, and where a variable
    // lies is known.
    if (has_base && contract.bytes >= width && domain.base(form.base).kind != Base::Kind::variable &&
        (proved_by_test(access, form) || !tests_of_low_bits(access, form.base, TestedPart::base).empty())) {
      result.status = AlignmentStatus::undecided;
      result.tier = Tier::possible;
      result.origin = Origin::constant;
      result.reason = "a test of the pointer's low bits on the way here may make up for its displacement";
      return;
    }
    result.status = AlignmentStatus::refuted;
    result.origin = Origin::constant;
    result.tier = !has_base || (contract.is_declared && domain.base(form.base).kind == Base::Kind::variable)
                      ? Tier::proved
                      : Tier::likely;
    result.reason =
        fmt::format("the address is {} modulo {} in every thread that reaches this instruction", residue, width);
    Witness witness;
    witness.address = static_cast<uint64_t>(expanded.constant);
    witness.note =
        has_base ? fmt::format("{} + {}", name, expanded.constant) : fmt::format("address {}", expanded.constant);
    if (!expanded.terms.empty()) {
      witness.address.reset();
      witness.note = fmt::format("the address is {} modulo {} whatever the thread and iteration", residue, width);
    }
    result.witness = witness;
    return;
  }
  if (proved_by_test(access, form)) {
    result.checked_at_run_time = true;
    return;
  }
  explain_unaligned_part(access, form, expanded, result);
}

// Some term is not proved a multiple of the width: says which, and shows a witness where there is one.
void Alignment::explain_unaligned_part(const ptx::Access& access, const Form& form, const Form& expanded,
                                       AccessAlignment& result) {
  flow::Forms& forms = analyses_->forms();
  const uint32_t width = access.width_bytes;
  const unsigned wanted = log2_of(width);
  const std::vector<flow::ValueId> tests = tests_of_low_bits(access, form.base, TestedPart::base_or_terms);
  const bool tested = !tests.empty();
  result.status = AlignmentStatus::undecided;
  result.tier = Tier::possible;
  result.is_tested = tested;
  result.origin = Origin::unknown;
  result.reason = "what is added to the base cannot be followed";

  std::vector<flow::Term> left;
  uint64_t rest = static_cast<uint64_t>(expanded.constant);  // of the terms that are known
  for (const flow::Term& term : expanded.terms) {
    const uint64_t coefficient = static_cast<uint64_t>(term.coefficient);
    const flow::Bits bits = forms.bits(term.atom);
    if (static_cast<unsigned>(std::countr_zero(coefficient)) + bits.known_low() >= wanted)
      rest += coefficient * bits.low_value();
    else
      left.push_back(term);
  }
  const flow::Term* cursor = nullptr;
  const flow::Term* thread = nullptr;
  std::optional<UnalignedPart> worst;
  bool moved_by_loaded_value = false;
  bool host_decides = true;
  std::set<ptx::VariableId> launch_facts;
  for (const flow::Term& term : left) {
    const Atom& atom = forms.atom(term.atom);
    if (atom.kind == Atom::Kind::iteration) {
      if (!cursor) cursor = &term;
      host_decides = false;
    } else if (atom.kind == Atom::Kind::special) {
      const auto special = static_cast<ptx::SpecialRegister>(atom.id);
      if (special == ptx::SpecialRegister::tid || special == ptx::SpecialRegister::laneid ||
          special == ptx::SpecialRegister::ctaid)
        thread = &term;
      host_decides = false;
    } else {
      UnalignedPart found = trace_unaligned_part(*analyses_, *context_, term, expanded.base, width);
      moved_by_loaded_value = moved_by_loaded_value || found.moved_by_loaded_value;
      host_decides = host_decides && found.origin == Origin::parameter && !found.byte_granular;
      launch_facts.insert(found.parameters.begin(), found.parameters.end());
      if (!worst || found.rank() > worst->rank()) worst = std::move(found);
    }
  }
  const flow::BlockId block = analyses_->graph().block_of(access.instruction);

  if (cursor) {
    const flow::LoopId loop = forms.atom(cursor->atom).id;
    result.origin = Origin::cursor;
    result.byte_granular = true;
    result.reason =
        fmt::format("the cursor moves by {} per iteration, which is no multiple of {}", cursor->coefficient, width);
    const flow::Loop& where = analyses_->loops().loop(loop);
    result.path.push_back({context_->function().instructions[analyses_->graph().block(where.header).first].at,
                           "the loop that moves the cursor starts here"});
    const auto last = flow::last_iteration(forms, analyses_->dominators(), loop, block);
    const bool inside = analyses_->loops().contains(loop, block);
    const auto conditions = analyses_->conditions().of_instruction(access.instruction);
    for (int64_t k = 0; k <= std::min<int64_t>(last.value_or(8), 8) && !tested; ++k) {
      const uint64_t address = rest + static_cast<uint64_t>(cursor->coefficient) * static_cast<uint64_t>(k);
      if (left.size() == 1 ? address % width == 0 : k == 0) continue;
      flow::Thread at{{0, 0, 0}, {0, 0, 0}};
      auto iterations = flow::first_iterations(analyses_->loops(), block);
      iterations[loop] = k;
      flow::Evaluator evaluator(forms, at, std::move(iterations));
      bool possible = true, certain = true, thread_0_passes = true;
      for (const flow::Condition& condition : conditions) {
        const auto holds = evaluator.value(condition.predicate);
        if (holds && (*holds != 0) != condition.expected) thread_0_passes = false;
        // A condition that depends on the thread decides for thread 0 only; it may hold for another.
        if (holds && (*holds != 0) != condition.expected &&
            analyses_->uniformity().of(condition.predicate) == flow::Uniformity::uniform)
          possible = false;
        if (!holds) certain = false;
      }
      if (!possible) continue;
      result.status = AlignmentStatus::refuted;
      result.tier = inside && last && certain ? Tier::proved : Tier::likely;
      if (!last || !inside) result.assumptions.push_back(fmt::format("the loop reaches iteration {}", k));
      Witness witness;
      if (thread_0_passes)
        for (auto& place : witness.tid) place = 0;
      witness.iteration = static_cast<uint64_t>(k);
      if (left.size() == 1) witness.address = address;
      witness.note = left.size() == 1 ? fmt::format("offset from {}, which is {} modulo {}",
                                                    analyses_->domain().describe(form.base), address % width, width)
                                      : fmt::format("of iterations {} and {} at least one is misaligned", k - 1, k);
      result.witness = witness;
      return;
    }
    if (tested) result.reason += ", and a test on the way here may make up for it";
    return;
  }
  if (worst) {
    result.origin = worst->origin;
    result.reason = worst->reason;
    result.byte_granular = worst->byte_granular;
    result.path = worst->path;
    if (host_decides) result.launch_facts.assign(launch_facts.begin(), launch_facts.end());
    if (worst->origin == Origin::cursor && !tested) {
      result.status = AlignmentStatus::refuted;
      result.tier = Tier::likely;
      result.assumptions.push_back("the path with that step is taken");
      Witness witness;
      witness.iteration = 1;
      witness.note = fmt::format("after one step the cursor is no multiple of {}", width);
      result.witness = witness;
      return;
    }
    // A cursor that moves by what is loaded, and one that nothing tells about; what is loaded and added as it is, once,
    // is the data's business.
    const bool may_assume_data = moved_by_loaded_value && worst->byte_granular && worst->origin == Origin::loaded;
    if (!tested && refute_by_pair(access, left, result)) return;
    if (!tested && (worst->byte_granular || worst->origin == Origin::unknown) &&
        refute_by_run(access, may_assume_data, result))
      return;
  }
  // What is left depends on the thread alone, directly or through arithmetic: look for a thread.
  if ((thread && !worst) || (worst && worst->origin == Origin::thread)) {
    result.origin = Origin::thread;
    if (!worst) result.reason = fmt::format("the thread's place is added with factor {}", thread->coefficient);
    refute_by_thread(access, left, rest, left.size() == expanded.terms.size(), tests, result);
  }
}

// A thread that is misaligned, of block (0, 0, 0), or of the next one in some dimension. `rest` is what is known of the
// address, `is_whole` if nothing else is added to it than that and `left`.
bool Alignment::refute_by_thread(const ptx::Access& access, std::span<const flow::Term> left, uint64_t rest,
                                 bool is_whole, std::span<const flow::ValueId> tests, AccessAlignment& result) {
  flow::Forms& forms = analyses_->forms();
  const uint32_t width = access.width_bytes;
  const flow::LaunchShape& shape = analyses_->shape();
  const auto conditions = analyses_->conditions().of_instruction(access.instruction);
  const auto iterations = flow::first_iterations(analyses_->loops(), analyses_->graph().block_of(access.instruction));
  const uint32_t limit = std::min(shape.is_exact ? shape.threads[0] : shape.max_threads, 64u);
  for (unsigned block = 0; block <= 3; ++block)
    for (uint32_t n = 0; n < 3 * limit; ++n) {
      const unsigned dimension = n / limit;
      flow::Thread at{{0, 0, 0}, {0, 0, 0}};
      at.tid[dimension] = n % limit;
      if (at.tid[dimension] > shape.max_tid(dimension)) continue;
      for (unsigned d = 0; d < 3; ++d) at.ntid[d] = shape.is_exact ? shape.threads[d] : 0;
      std::fill_n(at.nctaid, 3, 1);
      if (block > 0) {
        const uint32_t blocks = shape.grid[block - 1];
        if (blocks == 1) break;
        at.ctaid[block - 1] = 1;
        at.nctaid[block - 1] = blocks ? blocks : 2;
      }
      flow::Evaluator evaluator(forms, at, iterations);
      uint64_t address = rest;
      bool known = true;
      for (const flow::Term& term : left) {
        std::optional<uint64_t> value = evaluator.atom(term.atom);
        const Atom& atom = forms.atom(term.atom);
        if (!value && atom.kind == Atom::Kind::special &&
            atom.id == static_cast<uint32_t>(ptx::SpecialRegister::laneid))
          value = at.tid[0] % 32;
        if (!value) {
          known = false;
          break;
        }
        address += static_cast<uint64_t>(term.coefficient) * *value;
      }
      if (!known || address % width == 0) continue;
      bool possible = true, certain = shape.is_exact && block == 0;
      for (const flow::Condition& condition : conditions) {
        const auto holds = evaluator.value(condition.predicate);
        if (holds && (*holds != 0) != condition.expected) possible = false;
        if (!holds && std::ranges::find(tests, condition.predicate) != tests.end()) possible = false;
        if (!holds) certain = false;
      }
      if (!possible) continue;
      result.status = AlignmentStatus::refuted;
      result.tier = certain ? Tier::proved : Tier::likely;
      if (!certain) result.assumptions.push_back("such a thread reaches this instruction");
      Witness witness;
      witness.note = fmt::format("the address is {} modulo {}", address % width, width);
      if (block == 0) {
        for (unsigned d = 0; d < 3; ++d) witness.tid[d] = at.tid[d];
        if (is_whole) witness.address = address;
      } else {
        witness.note += fmt::format(" in thread ({}, {}, {}) of block ({}, {}, {})", at.tid[0], at.tid[1], at.tid[2],
                                    at.ctaid[0], at.ctaid[1], at.ctaid[2]);
        result.assumptions.push_back("the grid has that block");
      }
      result.witness = witness;
      return true;
    }
  return false;
}

// Two accesses of one thread whose addresses differ by a constant that is no multiple of either width: whatever the
// rest of the address is, one of them is misaligned.
void Alignment::refute_by_neighbours() {
  const auto& accesses = analyses_->accesses();
  const ptx::Function& function = context_->function();
  flow::Forms& forms = analyses_->forms();
  using Place = std::tuple<flow::BaseId, flow::LoopId, std::vector<flow::Term>>;
  std::map<Place, std::vector<std::pair<size_t, uint64_t>>> places;  // with the displacement
  for (size_t i = 0; i < accesses.size(); ++i) {
    const ptx::Access& access = accesses[i];
    if (results_[i].status != AlignmentStatus::undecided || function.instructions[access.instruction].guard) continue;
    const Form form = forms.expand(forms.address(access));
    const flow::LoopId loop = analyses_->loops().innermost(analyses_->graph().block_of(access.instruction));
    places[{form.base, loop, form.terms}].emplace_back(i, static_cast<uint64_t>(form.constant));
  }
  for (const auto& [place, members] : places)
    for (const auto& [index, displacement] : members) {
      const ptx::Access& access = accesses[index];
      if (results_[index].status != AlignmentStatus::undecided ||
          !tests_of_low_bits(access, std::get<0>(place), TestedPart::base_or_terms).empty())
        continue;
      // Of many a few neighbours tell.
      size_t looked_at = 0;
      for (const auto& [other, other_displacement] : members) {
        const ptx::Access& earlier = accesses[other];
        if (other >= index || ++looked_at > kMaxNeighbours) break;
        const uint64_t width = std::min(access.width_bytes, earlier.width_bytes);
        const uint64_t apart = displacement - other_displacement;
        const flow::Graph& graph = analyses_->graph();
        const bool is_on_the_way =
            analyses_->dominators().dominates(graph.block_of(earlier.instruction), graph.block_of(access.instruction));
        if (apart % width == 0 || !is_on_the_way) continue;
        AccessAlignment& result = results_[index];
        result.status = AlignmentStatus::refuted;
        result.origin = Origin::constant;
        result.tier = Tier::proved;
        const auto signed_apart = static_cast<int64_t>(apart);
        result.reason =
            fmt::format("it lies {} bytes {} the {}-byte access in line {}, so one of the two is misaligned",
                        std::abs(signed_apart), signed_apart < 0 ? "before" : "behind", earlier.width_bytes,
                        context_->module.position(function.instructions[earlier.instruction].at).line);
        result.assumptions.clear();
        result.path = {{function.instructions[earlier.instruction].at, "the other access"}};
        Witness witness;
        witness.note = "of the two addresses one is no multiple of its width, whatever the thread and iteration";
        result.witness = witness;
        break;
      }
    }
}

// What a solver says of the accesses that are left. Those that the host's and the memory's numbers decide come last: it
// can prove them behind a test alone, and is not asked about them without one.
void Alignment::ask_solver() {
  if (!context_->options.solver) return;
  const auto& accesses = analyses_->accesses();
  flow::Forms& forms = analyses_->forms();
  std::vector<size_t> open;
  for (size_t i = 0; i < results_.size(); ++i)
    if (results_[i].status == AlignmentStatus::undecided) open.push_back(i);
  std::ranges::stable_sort(open, {}, [&](size_t i) {
    return results_[i].origin == Origin::loaded ? 2 : results_[i].origin == Origin::parameter ? 1 : 0;
  });
  AccessProver prover(*context_);
  // Unrolled loops access many places that differ by a multiple of the width.
  using Question = std::tuple<std::vector<flow::Term>, uint64_t, flow::BaseId, uint32_t, ptx::InstructionId>;
  std::map<Question, AccessProver::Answer> answers;
  for (const size_t i : open) {
    const ptx::Access& access = accesses[i];
    AccessAlignment& result = results_[i];
    const Form form = forms.expand(forms.address(access));
    const uint32_t start_bytes = form.base == flow::kNoBase ? access.width_bytes : contracts_[form.base].bytes;
    if (start_bytes < access.width_bytes) continue;
    const bool is_given = result.origin == Origin::parameter || result.origin == Origin::loaded;
    if (is_given && tests_of_low_bits(access, form.base, TestedPart::given).empty()) continue;
    const bool is_guarded = bool{context_->function().instructions[access.instruction].guard};
    const ptx::InstructionId where =
        is_guarded ? access.instruction
                   : analyses_->graph().block(analyses_->graph().block_of(access.instruction)).first;
    const uint64_t rest = static_cast<uint64_t>(form.constant) % access.width_bytes;
    const auto [answer, is_new] = answers.try_emplace({form.terms, rest, form.base, access.width_bytes, where});
    if (is_new) answer->second = prover.misaligned(access, form.base, start_bytes);
    const AccessProver::Answer& found = answer->second;
    if (found.kind == AccessProver::Answer::Kind::never) {
      AccessAlignment proved;
      proved.assumptions = result.assumptions;
      proved.proved_by_solver = true;
      result = std::move(proved);
    } else if (found.kind == AccessProver::Answer::Kind::in_thread) {
      const flow::Thread& thread = found.thread;
      result.status = AlignmentStatus::refuted;
      result.tier = Tier::proved;
      result.origin = Origin::thread;
      result.reason = fmt::format("the address is {} modulo {} in thread ({}, {}, {}) of block ({}, {}, {})",
                                  found.offset % access.width_bytes, access.width_bytes, thread.tid[0], thread.tid[1],
                                  thread.tid[2], thread.ctaid[0], thread.ctaid[1], thread.ctaid[2]);
      Witness witness;
      for (unsigned d = 0; d < 3; ++d) witness.tid[d] = thread.tid[d];
      witness.note = result.reason;
      result.witness = std::move(witness);
    }
  }
}

// In the sites of F021, F081 and F082 an offset that counts bytes is the defect that those rules were made from:
// nothing bounds it to multiples of the width.
void Alignment::refute_in_sites() {
  const auto counts_bytes = [](const AccessAlignment& result) {
    return result.status == AlignmentStatus::undecided && result.byte_granular && !result.is_tested;
  };
  if (std::ranges::none_of(results_, counts_bytes)) return;
  const std::vector<bool> in_site = accesses_in_sites(*context_);
  for (size_t i = 0; i < results_.size(); ++i) {
    if (!in_site[i] || !counts_bytes(results_[i])) continue;
    results_[i].status = AlignmentStatus::refuted;
    results_[i].tier = Tier::likely;
    results_[i].assumptions.push_back("the part takes a value that is no multiple of the width");
  }
}

// Where two threads stand to each other is known though neither address is: one of them is misaligned.
bool Alignment::refute_by_pair(const ptx::Access& access, std::span<const flow::Term> left, AccessAlignment& result) {
  const flow::BlockId block = analyses_->graph().block_of(access.instruction);
  for (unsigned dimension = 0; dimension < 3; ++dimension) {
    // Unrolled loops access many places that differ by a constant.
    const auto [differs, is_new] = differing_.try_emplace(
        {{left.begin(), left.end()}, access.width_bytes, dimension, analyses_->loops().innermost(block)});
    if (is_new) differs->second = differs_in_row(*analyses_, left, access.width_bytes, dimension, block);
    if (!differs->second) continue;
    const auto pair = find_misaligned_pair(*analyses_, access, left, dimension);
    if (!pair) continue;
    Witness witness;
    for (unsigned d = 0; d < 3; ++d) witness.tid[d] = witness.other_tid[d] = 0;
    witness.tid[dimension] = pair->second;
    witness.other_tid[dimension] = pair->first;
    witness.note = "the addresses of these two threads differ by no multiple of the width: one is misaligned";
    result.witness = std::move(witness);
    result.assumptions.push_back("both threads reach this instruction");
    result.status = AlignmentStatus::refuted;
    result.tier = Tier::likely;
    return true;
  }
  return false;
}

// A byte offset that the text does not give: a turn of the loop that is misaligned all the same.
bool Alignment::refute_by_run(const ptx::Access& access, bool may_assume_data, AccessAlignment& result) {
  const bool is_in_loop = analyses_->loops().innermost(analyses_->graph().block_of(access.instruction)) != flow::kNone;
  if (!is_in_loop) return false;
  if (runs_left_ == 0) {
    result.reason += fmt::format(" (not decided: budget: loops were run for {} other accesses)", kMaxRuns);
    return false;
  }
  --runs_left_;
  const auto turn = find_misaligned_iteration(*analyses_, access, may_assume_data);
  if (!turn) return false;
  Witness witness;
  for (auto& place : witness.tid) place = 0;
  witness.iteration = turn->iteration;
  witness.address = turn->offset;
  witness.note = fmt::format("{} modulo {}", turn->offset % access.width_bytes, access.width_bytes);
  witness.loaded_byte = turn->byte;
  if (turn->byte) witness.note += fmt::format(", where every byte that is loaded is {}", *turn->byte);
  result.witness = std::move(witness);
  if (turn->byte) result.assumptions.push_back(fmt::format("every byte that is loaded is {}", *turn->byte));
  if (turn->assumed_branch)
    result.assumptions.push_back("branches that depend on parameters or memory are taken that way");
  result.status = AlignmentStatus::refuted;
  result.tier = Tier::likely;
  return true;
}

}  // namespace ptxkit::rules
