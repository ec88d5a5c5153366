#include "analyzer/rules/engine/warp_access.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/evaluate.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/uniformity.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/rules/engine/analyses.hpp"

namespace ptxkit::rules {

using flow::Uniformity;

std::optional<WarpFootprint> warp_footprint(Context& context, const ptx::Access& access) {
  Analyses& analyses = context.analyses();
  flow::Forms& forms = analyses.forms();
  const auto& shape = analyses.shape();
  const flow::Form form = forms.expand(forms.address(access));
  if (access.extent_bytes == 0 || form.modulus_bits < 32) return std::nullopt;
  const flow::BlockId block = analyses.graph().block_of(access.instruction);
  const auto conditions = analyses.conditions().of_instruction(access.instruction);
  if (shape.max_threads < 32) return std::nullopt;
  flow::Evaluator& lanes = analyses.lanes(0, block);
  // Terms that no lane can evaluate must be the same for all of them.
  struct Summand {
    int64_t coefficient;
    bool is_place;
    flow::Column factor;
  };
  std::vector<Summand> own;
  for (const flow::Term& term : form.terms) {
    const flow::Atom& atom = forms.atom(term.atom);
    const bool is_place =
        atom.kind == flow::Atom::Kind::special && (atom.id == static_cast<uint32_t>(ptx::SpecialRegister::tid) ||
                                                   atom.id == static_cast<uint32_t>(ptx::SpecialRegister::laneid));
    const bool is_value = (atom.kind == flow::Atom::Kind::value || atom.kind == flow::Atom::Kind::whole);
    if (is_place || (is_value && analyses.uniformity().of(atom.id) > Uniformity::warp))
      own.push_back({term.coefficient, is_place, lanes.column_of_atom(term.atom)});
  }
  WarpFootprint print;
  uint32_t left_out = 0;
  for (const flow::Condition& condition : conditions) {
    const flow::Column& holds = lanes.column(condition.predicate);
    for (uint32_t lane = 0; lane < 32; ++lane)
      if (holds[lane] && (*holds[lane] != 0) != condition.expected) left_out |= 1u << lane;
  }
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (left_out >> lane & 1) continue;
    int64_t offset = 0;
    for (const auto& [coefficient, is_place, factor] : own) {
      auto value = factor[lane];
      if (!value && is_place) value = lane;  // %laneid in a row of whole warps
      if (!value) return std::nullopt;
      offset += coefficient * static_cast<int64_t>(*value);
    }
    print.offset_bytes[lane] = access.space == ptx::Space::shared ? static_cast<int32_t>(offset) : offset;
    print.active |= 1u << lane;
  }
  return print.active ? std::optional(print) : std::nullopt;
}

unsigned conflict_degree(const WarpFootprint& footprint, uint32_t width_bytes) {
  const unsigned lanes_per_phase = width_bytes >= 16 ? 8 : width_bytes >= 8 ? 16 : 32;
  unsigned worst = 1;
  for (unsigned first = 0; first < 32; first += lanes_per_phase) {
    std::map<unsigned, std::set<int64_t>> words_of_bank;
    for (unsigned lane = first; lane < first + lanes_per_phase; ++lane) {
      if (!(footprint.active >> lane & 1)) continue;
      for (uint32_t byte = 0; byte < width_bytes; byte += 4) {
        const int64_t word = (footprint.offset_bytes[lane] + byte) >> 2;
        words_of_bank[static_cast<unsigned>(word & 31)].insert(word);
      }
    }
    for (const auto& [bank, words] : words_of_bank) worst = std::max(worst, static_cast<unsigned>(words.size()));
  }
  return worst;
}

std::vector<SharedAccess> shared_accesses(Context& context) {
  Analyses& analyses = context.analyses();
  std::vector<SharedAccess> all;
  for (const ptx::Access& access : analyses.accesses()) {
    if (access.space != ptx::Space::shared) continue;
    SharedAccess found{access, ptx::kNone, warp_footprint(context, access)};
    if (const flow::BaseId id = analyses.forms().address(access).base; id != flow::kNoBase) {
      const flow::Base& base = analyses.domain().base(id);
      if (base.kind == flow::Base::Kind::variable) found.object = base.id;
    }
    all.push_back(found);
  }
  return all;
}

Sectors sectors_of(const WarpFootprint& footprint, uint32_t width_bytes) {
  std::set<int64_t> sectors, places;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(footprint.active >> lane & 1)) continue;
    const int64_t from = footprint.offset_bytes[lane];
    places.insert(from);
    for (int64_t sector = from >> 5; sector <= (from + width_bytes - 1) >> 5; ++sector) sectors.insert(sector);
  }
  return {static_cast<unsigned>(sectors.size()), static_cast<unsigned>((places.size() * width_bytes + 31) / 32)};
}

}  // namespace ptxkit::rules
