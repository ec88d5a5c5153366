#include "analyzer/rules/engine/footprint.hpp"

#include <algorithm>
#include <set>

#include "analyzer/rules/engine/walk.hpp"

namespace ptxkit::rules {

using flow::Atom;

namespace {

constexpr size_t kMaxPlaces = 1'000'000;  // remembered at a time

}  // namespace

bool is_plain_index(const flow::Form& form) {
  return form.modulus_bits >= 32 && std::ranges::all_of(form.terms, [](const flow::Term& term) {
           return std::abs(term.coefficient) < int64_t{1} << 20;
         });
}

void Footprints::set_threads(std::vector<flow::Thread> threads, const Sameness& sameness) {
  threads_ = std::move(threads);
  sameness_ = &sameness;
  evaluators_.clear();
  footprints_.clear();
  place_count_ = 0;
}

flow::Evaluator& Footprints::evaluator(const RacingAccess& access, LoopIteration moment) {
  const auto found = evaluators_.find(moment);
  if (found != evaluators_.end()) return found->second;
  auto iterations = flow::first_iterations(analyses_->loops(), access.block);
  if (moment.later != flow::kNone) iterations[moment.later] = 1;
  return evaluators_.try_emplace(moment, analyses_->forms(), threads_, std::move(iterations)).first->second;
}

bool Footprints::tells_threads_apart(const RacingAccess& access) {
  flow::Evaluator& of_threads = evaluator(access, {analyses_->loops().innermost(access.block)});
  return std::any_of(access.form.terms.begin(), access.form.terms.end(),
                     [&](const flow::Term& term) { return !of_threads.column_of_atom(term.atom).is_same(); });
}

bool Footprints::uses_value(Context& context, const RacingAccess& load, LoopIteration moment, uint32_t thread) {
  const auto effects = effects_of_loads(context).find(load.access.instruction);
  if (effects == effects_of_loads_->end()) return false;
  flow::Evaluator& of_threads = evaluator(load, moment);
  return std::ranges::any_of(effects->second, [&](ptx::InstructionId id) {
    return std::ranges::none_of(analyses_->conditions().of_instruction(id), [&](const flow::Condition& condition) {
      const flow::Column::Bits holds = of_threads.column(condition.predicate)[thread];
      return holds && (*holds != 0) != condition.expected;
    });
  });
}

const std::map<ptx::InstructionId, std::vector<ptx::InstructionId>>& Footprints::effects_of_loads(Context& context) {
  if (effects_of_loads_) return *effects_of_loads_;
  auto& found = effects_of_loads_.emplace();
  const ptx::Function& function = context.function();
  const flow::Ssa& ssa = analyses_->ssa();
  std::set<ptx::InstructionId> loads;
  for (const RacingAccess& access : *accesses_) {
    if (access.access.kind == ptx::AccessKind::load) loads.insert(access.access.instruction);
  }
  for_each_instruction(context, [&](ptx::InstructionId id, const ptx::Instruction& instruction) {
    const ptx::Accesses accesses = ptx::accesses_of(function, id);
    const bool has_effect = ptx::is_branch(instruction) || ptx::ends_thread(instruction) ||
                            instruction.op == ptx::Op::call ||
                            std::any_of(accesses.items, accesses.items + accesses.count,
                                        [](const ptx::Access& each) { return each.kind != ptx::AccessKind::load; });
    if (!has_effect) return;
    const auto add_loads_behind = [&](flow::ValueId value) {
      if (value == flow::kNone) return;
      for (const flow::ValueId id_of : ancestors(context, value)) {
        if (ssa.value(id_of).kind != flow::Value::Kind::result || !loads.contains(ssa.value(id_of).instruction))
          continue;
        std::vector<ptx::InstructionId>& effects = found[ssa.value(id_of).instruction];
        if (effects.empty() || effects.back() != id) effects.push_back(id);
      }
    };
    if (instruction.guard) add_loads_behind(ssa.guard(id));
    ptx::for_each_register(function, instruction, [&](uint32_t index, const ptx::Operand&, bool written) {
      if (!written) add_loads_behind(ssa.at(index));
    });
  });
  return found;
}

void Footprints::trim() {
  if (place_count_ <= kMaxPlaces) return;
  footprints_.clear();
  place_count_ = 0;
}

Footprint Footprints::compute(const RacingAccess& access, LoopIteration moment) {
  Footprint print;
  const flow::Forms& forms = analyses_->forms();
  struct Summand {
    int64_t coefficient;
    flow::Column factor;
  };
  std::vector<Summand> own;
  flow::Evaluator& of_threads = evaluator(access, moment);
  for (const flow::Term& term : access.form.terms) {
    if (flow::Column factor = of_threads.column_of_atom(term.atom); factor[0])
      own.push_back({term.coefficient, std::move(factor)});
    else
      (sameness_->is_same(forms.atom(term.atom)) ? print.common : print.free).push_back(term);
  }
  struct Test {
    const flow::Column* holds;
    bool expected;
    bool admits_unknown;  // threads that do not know
  };
  std::vector<Test> tests;
  for (const flow::Condition& condition : access.conditions) {
    Test& test = tests.emplace_back(&of_threads.column(condition.predicate), condition.expected, true);
    bool is_known = true;
    for (uint32_t thread = 0; thread < threads_.size() && is_known; ++thread)
      is_known = (*test.holds)[thread].has_value();
    if (is_known) continue;
    if (sameness_->is_same(condition.predicate))
      print.unknown_uniform.push_back(condition);
    else if (flow::is_bound(analyses_->ssa(), condition.predicate))
      print.is_bounded = true;
    else
      test.admits_unknown = false;
  }
  for (uint32_t thread = 0; thread < threads_.size(); ++thread) {
    Place place{access.form.constant, thread, true};
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
    if (!access.is_global) place.offset = static_cast<int32_t>(place.offset);
    print.places.push_back(place);
  }
  std::sort(print.places.begin(), print.places.end(), [](const Place& a, const Place& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.thread < b.thread;
  });
  return print;
}

// Every access is part of many pairs.
const Footprint& Footprints::of(size_t access, LoopIteration moment) {
  const auto [place, is_new] = footprints_.try_emplace({access, moment});
  if (is_new) {
    place->second = compute((*accesses_)[access], moment);
    place_count_ += place->second.places.size();
  }
  return place->second;
}

bool are_digits_apart(Context& context, const RacingAccess& a, const RacingAccess& b, ptx::SpecialRegister which,
                      const Sameness& sameness) {
  Analyses& analyses = context.analyses();
  const flow::LaunchShape& shape = analyses.shape();
  constexpr auto kThread = ptx::SpecialRegister::tid, kBlock = ptx::SpecialRegister::ctaid;
  struct Digit {
    uint64_t coefficient;
    std::optional<uint64_t> largest;  // difference between two threads
    bool distinguishes;
  };
  std::vector<Digit> digits;
  // What the threads' numbers add to either address where they do not have the same part in both.
  int64_t low_a = a.form.constant, high_a = low_a, low_b = b.form.constant, high_b = low_b;
  const auto spread = [](int64_t coefficient, uint32_t largest, int64_t& low, int64_t& high) {
    (coefficient < 0 ? low : high) += coefficient * largest;
  };
  bool has_dimension[3] = {false, false, false};
  std::map<flow::AtomId, std::pair<int64_t, int64_t>> terms;  // coefficients in a and b
  for (const flow::Term& term : a.form.terms) terms[term.atom].first = term.coefficient;
  for (const flow::Term& term : b.form.terms) terms[term.atom].second = term.coefficient;
  for (const auto& [id, coefficients] : terms) {
    const Atom& atom = analyses.forms().atom(id);
    const auto [of_a, of_b] = coefficients;
    // %tid.w is no number of a thread.
    const bool is_special = atom.kind == Atom::Kind::special && atom.detail >= 'x' && atom.detail <= 'z';
    const auto special = static_cast<ptx::SpecialRegister>(atom.id);
    const unsigned dimension = static_cast<unsigned>(atom.detail) - 'x';
    if (is_special && special == kThread && which == kBlock && of_a != of_b) {
      spread(of_a, shape.max_tid(dimension), low_a, high_a);
      spread(of_b, shape.max_tid(dimension), low_b, high_b);
      continue;
    }
    if (of_a != of_b) return false;
    const auto coefficient = static_cast<uint64_t>(std::abs(of_a));
    if (atom.kind == Atom::Kind::iteration) {
      digits.push_back({coefficient, std::nullopt, false});
    } else if (is_special && special == kBlock && which == kBlock) {
      has_dimension[dimension] = true;
      const uint32_t blocks = shape.grid[dimension];
      digits.push_back({coefficient, blocks ? std::optional<uint64_t>(blocks - 1) : std::nullopt, true});
    } else if (is_special && special == kThread) {
      has_dimension[dimension] = has_dimension[dimension] || which == kThread;
      digits.push_back({coefficient, shape.max_tid(dimension), which == kThread});
    } else if (!sameness.is_same(atom) ||
               (atom.kind == Atom::Kind::value &&
                analyses.loops().innermost(analyses.ssa().value(atom.id).block) != flow::kNone)) {
      return false;
    }
  }
  for (unsigned d = 0; d < 3; ++d) {
    const bool varies = which == kThread ? shape.max_tid(d) > 0
                                         : shape.grid[d] != 1 && (shape.grid[d] || analyses.reads_special(kBlock, d));
    if (varies && !has_dimension[d]) return false;
  }
  std::ranges::sort(digits, {}, &Digit::coefficient);
  uint64_t below = static_cast<uint64_t>(std::max(high_a - low_b, high_b - low_a)) +
                   std::max(a.access.extent_bytes, b.access.extent_bytes);
  bool distinguishes = false, is_bounded = true;
  for (const Digit& digit : digits) {
    distinguishes = distinguishes || digit.distinguishes;
    if (distinguishes && (!is_bounded || digit.coefficient < below)) return false;
    is_bounded = is_bounded && digit.largest;
    if (is_bounded) below += digit.coefficient * *digit.largest;
  }
  return distinguishes;
}

uint64_t remaining_modulus(Analyses& analyses, const Footprint& a, const Footprint& b, bool same_moment) {
  uint64_t modulus = 0;
  const auto leave = [&](const flow::Term& term, int64_t coefficient) {
    const unsigned zeros = static_cast<unsigned>(std::countr_zero(static_cast<uint64_t>(coefficient))) +
                           analyses.forms().bits(term.atom).trailing_zeros();
    const uint64_t step = zeros >= 31 ? uint64_t{1} << 31 : uint64_t{1} << zeros;
    modulus = modulus ? std::min(modulus, step) : step;
  };
  std::map<flow::AtomId, int64_t> balance;
  for (const flow::Term& term : a.common) balance[term.atom] += term.coefficient;
  for (const flow::Term& term : b.common) balance[term.atom] -= term.coefficient;
  for (const auto& [atom, coefficient] : balance) {
    const Atom& of = analyses.forms().atom(atom);
    const bool moves =
        of.kind == Atom::Kind::value && analyses.loops().innermost(analyses.ssa().value(of.id).block) != flow::kNone;
    if (coefficient != 0) {
      leave({atom, coefficient}, coefficient);
    } else if (!same_moment && moves) {
      for (const flow::Term& term : a.common)
        if (term.atom == atom) leave(term, term.coefficient);
    }
  }
  for (const auto* list : {&a.free, &b.free})
    for (const flow::Term& term : *list) leave(term, term.coefficient);
  return modulus;
}

std::vector<Place> residues(std::span<const Place> places, int64_t modulus) {
  const auto is_before = [](const Place& x, const Place& y) { return x.offset < y.offset; };
  std::vector<Place> turned(places.size());
  std::transform(places.begin(), places.end(), turned.begin(), [modulus](Place place) {
    place.offset = ((place.offset % modulus) + modulus) % modulus;
    return place;
  });
  // Sorted offsets less than `modulus` apart have residues that are sorted up to a turn.
  const auto turn = std::is_sorted_until(turned.begin(), turned.end(), is_before);
  std::rotate(turned.begin(), turn, turned.end());
  if (!std::is_sorted(turned.begin(), turned.end(), is_before)) std::sort(turned.begin(), turned.end(), is_before);
  return turned;
}

}  // namespace ptxkit::rules
