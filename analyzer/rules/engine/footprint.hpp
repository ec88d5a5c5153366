// Where each of several threads touches memory at one access, and where two accesses overlap.
//
// Addresses are computed by evaluation for every thread. Of what a thread cannot know, terms that are the same for all
// threads are kept apart: they cancel between two accesses of one moment.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "analyzer/flow/conditions.hpp"
#include "analyzer/flow/evaluate.hpp"
#include "analyzer/flow/forms.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/loops.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/rules/engine/analyses.hpp"

namespace ptxkit::rules {

struct RacingAccess {
  ptx::Access access;
  bool is_global = false;
  flow::Form form{};  // expanded
  flow::BlockId block = 0;
  std::vector<flow::Condition> conditions{};
  bool may_wrap = false;     // a 32-bit index on the way to the address may have wrapped; taken as one that does not
  bool is_evaluated = true;  // false: its address is for the solver alone
  bool is_by_lane = false;   // where and whether it runs depends on the thread by %laneid alone
};

// Whether the form, which holds modulo less than 2^64, is that of a 32-bit index that programs do not let wrap: threads
// and blocks add little to it.
bool is_plain_index(const flow::Form& form);

// One iteration of the loops around an access: 0, or 1 of `later`.
struct LoopIteration {
  flow::LoopId inner = flow::kNone;
  flow::LoopId later = flow::kNone;
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
  std::vector<Place> places{};       // sorted by offset
  std::vector<flow::Term> common{};  // terms whose atoms are unknown but the same for all threads
  std::vector<flow::Term> free{};    // terms that differ from thread to thread in unknown ways
  std::vector<flow::Condition> unknown_uniform{};
  bool is_bounded = false;  // a bound that nothing decides lets threads through
};

// Which unknown values are the same for all threads that are compared.
class Sameness {
 public:
  virtual ~Sameness() = default;
  virtual bool is_same(const flow::Atom& atom) const = 0;
  virtual bool is_same(flow::ValueId value) const = 0;
};

// The footprints of some accesses for some threads. Remembers what it computed, up to a limit.
class Footprints {
 public:
  Footprints(Analyses& analyses, const std::vector<RacingAccess>& accesses)
      : analyses_(&analyses), accesses_(&accesses) {}

  // Forgets everything. `sameness` must live as long as it is used.
  void set_threads(std::vector<flow::Thread> threads, const Sameness& sameness);
  const std::vector<flow::Thread>& threads() const { return threads_; }

  const Footprint& of(size_t access, LoopIteration moment);
  flow::Evaluator& evaluator(const RacingAccess& access, LoopIteration moment);
  // Whether the address is known to differ between the threads looked at.
  bool tells_threads_apart(const RacingAccess& access);
  // Whether anything that the thread does depends on what it loads here. Layouts that keep several copies of a value
  // load it in threads that store nothing.
  bool uses_value(Context& context, const RacingAccess& load, LoopIteration moment, uint32_t thread);
  // Makes room; references to footprints end.
  void trim();

 private:
  Footprint compute(const RacingAccess& access, LoopIteration moment);
  // For the loads among the accesses: the branches, stores, calls and exits that depend on what they give.
  const std::map<ptx::InstructionId, std::vector<ptx::InstructionId>>& effects_of_loads(Context& context);

  Analyses* analyses_;
  const std::vector<RacingAccess>* accesses_;
  const Sameness* sameness_ = nullptr;
  std::vector<flow::Thread> threads_;
  std::map<LoopIteration, flow::Evaluator> evaluators_;
  std::map<std::pair<size_t, LoopIteration>, Footprint> footprints_;  // of an access in a moment
  size_t place_count_ = 0;                                            // in all of them
  std::optional<std::map<ptx::InstructionId, std::vector<ptx::InstructionId>>> effects_of_loads_;
};

// Whether two accesses have different addresses in any two threads of one block (`which` is %tid) or of two blocks
// (%ctaid): the coefficients of those numbers, and all that are larger, exceed what is below them, as the digits of a
// number do. Iterations and the threads of a block are digits too. %ctaid counts in the dimensions that the kernel
// reads, and in those of a known grid.
bool are_digits_apart(Context& context, const RacingAccess& a, const RacingAccess& b, ptx::SpecialRegister which,
                      const Sameness& sameness);

// The modulus that is left of the offsets of two footprints once what is the same for all threads has cancelled: 0 if
// they are exact. Where the two are not of one moment, values that change in a loop do not cancel.
uint64_t remaining_modulus(Analyses& analyses, const Footprint& a, const Footprint& b, bool same_moment);

enum class Meeting : uint8_t { apart, possible, sure };

struct Overlap {
  bool possible = false;
  std::optional<std::pair<Place, Place>> sure;
};

// Offsets as residues modulo `modulus`, sorted.
std::vector<Place> residues(std::span<const Place> places, int64_t modulus);

// Looks for a pair of places that overlap. `meet(x, y)` says whether the two threads can meet. With a modulus other
// than 0 the offsets are residues: an overlap is then only possible.
template <class Meet>
Overlap find_overlap(const Footprint& a, const Footprint& b, int64_t width_a, int64_t width_b, uint64_t modulus,
                     const Meet& meet) {
  Overlap found;
  std::span<const Place> left = a.places, right = b.places;
  std::vector<Place> left_residues, right_residues;
  if (modulus) {
    const int64_t m = static_cast<int64_t>(modulus);
    if (width_a + width_b > m) {
      found.possible = !left.empty() && !right.empty();
      return found;
    }
    left_residues = residues(left, m);
    const std::vector<Place> once = residues(right, m);
    for (const int64_t shift : {-m, int64_t{0}, m})  // on either side again, for intervals that wrap round
      for (const Place& place : once) right_residues.push_back({place.offset + shift, place.thread, place.certain});
    left = left_residues;
    right = right_residues;
  }
  const auto any_certain = [](std::span<const Place> places) {
    return std::any_of(places.begin(), places.end(), [](const Place& place) { return place.certain; });
  };
  const bool may_be_sure = !modulus && any_certain(left) && any_certain(right);
  size_t begin = 0;
  for (const Place& x : left) {
    while (begin < right.size() && right[begin].offset + width_b <= x.offset) ++begin;
    for (size_t i = begin; i < right.size() && right[i].offset < x.offset + width_a; ++i) {
      const Place& y = right[i];
      const Meeting meeting = meet(x, y);
      if (meeting == Meeting::apart) continue;
      found.possible = true;
      if (!may_be_sure) return found;
      if (meeting == Meeting::sure && x.certain && y.certain) {
        found.sure = {x, y};
        return found;
      }
    }
  }
  return found;
}

}  // namespace ptxkit::rules
