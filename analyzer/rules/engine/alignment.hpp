// Is every access aligned? The judgement of F051 for each access of a kernel, shared with F021, F074, F081 and F082.
//
// An address is base + offset. The offset's residue comes from its affine form and the known bits of its atoms; the
// base's alignment is a declaration or a contract that the report names: a pointer that arrives whole is aligned to the
// widest type accessed through it at offset 0. What is left over is named by its origin, because the catalogue
// treats a cursor of a loop, a byte offset loaded from memory and a scalar parameter differently.
#pragma once

#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/rule.hpp"

namespace ptxkit::rules {

struct Context;
struct Analyses;

enum class AlignmentStatus : uint8_t { proved, undecided, refuted };

// Where the part of an address comes from that is not proved a multiple of the width.
enum class Origin : uint8_t {
  none,       // everything is known
  constant,   // a displacement that is no multiple
  thread,     // the thread's place in the block
  cursor,     // a loop advances by steps that are no multiples
  loaded,     // a byte offset from memory
  parameter,  // a scalar parameter, added or as a stride
  base,       // the object itself is not aligned enough
  layout,     // a variable is declared less aligned, but its size is a multiple of the width
  unknown,
};

struct AccessAlignment {
  AlignmentStatus status = AlignmentStatus::proved;
  Origin origin = Origin::none;
  Tier tier = Tier::proved;
  // The part is added as it is, byte by byte: a cursor, a loaded offset or a scalar parameter with coefficient one
  // in the address. In a site of F021, F081 or F082 this refutes.
  bool byte_granular = false;
  bool is_tested = false;  // a test on the way may make up for what is added
  // The scalar parameters whose values alone decide: strides, and members of aggregates. Empty where more is open.
  std::vector<ptx::VariableId> launch_facts;
  std::string reason;  // "the cursor advances by 3 bytes per iteration", lower case
  std::vector<std::string> assumptions;
  std::optional<Witness> witness;
  std::vector<Step> path;
  bool checked_at_run_time = false;  // a dominating test of the address's low bits proves it
  bool proved_by_solver = false;
};

// Severity of an access that is neither proved nor refuted. Strides that the host or the data give are how libraries
// address matrices: correct code has them in one kernel of eight, so they are listed as info. Vectors in an array that
// is declared as scalars are low: where all sizes are multiples, layouts in use keep them aligned, until somebody
// declares another variable. Anything else is medium.
constexpr Severity severity_of_undecided(const AccessAlignment& alignment) {
  if (alignment.origin == Origin::layout) return Severity::low;
  const bool is_given = alignment.origin == Origin::parameter || alignment.origin == Origin::loaded;
  return is_given && !alignment.byte_granular ? Severity::info : Severity::medium;
}

constexpr Severity severity_of(const AccessAlignment& alignment) {
  if (alignment.status == AlignmentStatus::proved) return Severity::info;
  return alignment.status == AlignmentStatus::refuted ? Severity::critical : severity_of_undecided(alignment);
}

// Orders verdicts on accesses: 0 is proved aligned; a greater severity is worse, then a greater tier.
constexpr unsigned rank_of(const AccessAlignment& alignment) {
  if (alignment.status == AlignmentStatus::proved) return 0;
  return 1 + 4 * static_cast<unsigned>(severity_of(alignment)) + static_cast<unsigned>(alignment.tier);
}

class Alignment {
 public:
  explicit Alignment(Context& context);

  // Parallel to Analyses::accesses().
  const std::vector<AccessAlignment>& of_accesses() const { return results_; }
  // Worst of the instruction's accesses; null where it has none.
  const AccessAlignment* of_instruction(ptx::InstructionId id) const;
  // What the object is known or taken to be aligned to.
  uint32_t contract_bytes(flow::BaseId id) const { return contracts_[id].bytes; }

 private:
  struct Contract {
    uint32_t bytes = 1;
    ptx::InstructionId evidence_access = ptx::kNone;  // the access at offset 0 that the alignment comes from
    bool is_declared = false;                         // .align, or --assume-align
  };
  void make_contracts();
  void judge(size_t index);
  bool proved_by_test(const ptx::Access& access, const flow::Form& form);
  // `given`: what the address is computed from and the host or the memory gave.
  enum class TestedPart : uint8_t { base, base_or_terms, given };
  std::vector<flow::ValueId> tests_of_low_bits(const ptx::Access& access, flow::BaseId base, TestedPart what);
  void explain_unaligned_part(const ptx::Access& access, const flow::Form& form, const flow::Form& expanded,
                              AccessAlignment& result);
  bool refute_by_pair(const ptx::Access& access, std::span<const flow::Term> left, AccessAlignment& result);
  bool refute_by_run(const ptx::Access& access, bool may_assume_data, AccessAlignment& result);
  bool refute_by_thread(const ptx::Access& access, std::span<const flow::Term> left, uint64_t rest, bool is_whole,
                        std::span<const flow::ValueId> tests, AccessAlignment& result);
  void refute_by_neighbours();
  void ask_solver();
  void refute_in_sites();

  Context* context_;
  Analyses* analyses_;
  std::vector<AccessAlignment> results_;
  std::vector<Contract> contracts_;  // per base
  // SearchKey of addresses, with the width, dimension and loop that they were looked at for.
  using SearchKey = std::tuple<std::vector<flow::Term>, uint32_t, unsigned, flow::LoopId>;
  std::map<SearchKey, bool> differing_;
  static constexpr unsigned kMaxRuns = 24;  // of those that look for a misaligned turn
  unsigned runs_left_ = kMaxRuns;
  std::vector<std::pair<ptx::InstructionId, size_t>> by_instruction_;
};

}  // namespace ptxkit::rules
