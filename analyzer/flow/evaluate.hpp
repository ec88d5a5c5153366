// Running a slice of a kernel for one thread: what value does this register have in thread (x, y, z), in iteration k?
//
// This is what turns a suspicion into a witness. It runs the program's own instructions on concrete numbers, not the
// abstract forms, so that a witness never rests on an approximation. What a thread cannot know from its place in the
// block (parameters, memory, other threads' values) has no value here, and neither has what is computed from it.
#pragma once

#include <optional>
#include <unordered_map>

#include "analyzer/flow/forms.hpp"

namespace ptxkit::flow {

struct Thread {
  uint32_t tid[3] = {0, 0, 0};
  uint32_t ntid[3] = {0, 0, 0};    // 0: not known
  uint32_t ctaid[3] = {0, 0, 0};   // read only where `nctaid` is known
  uint32_t nctaid[3] = {0, 0, 0};  // 0: not known
  uint32_t linear() const { return tid[0] + (tid[1] + tid[2] * ntid[1]) * ntid[0]; }
  bool operator==(const Thread&) const = default;
};

class Evaluator {
 public:
  // What a loop that `iterations` does not name computes is not known: neither inside it nor after it.
  Evaluator(const Forms& forms, const Thread& thread, std::map<LoopId, int64_t> iterations = {});

  // Bits of the register, or for a value with a base those of its offset. Nothing where it cannot be known.
  std::optional<uint64_t> value(ValueId id) { return value(id, 0); }
  std::optional<uint64_t> atom(AtomId id);
  // For runs: what this value is from now on. Values computed from it before keep what they were.
  void assume(ValueId id, std::optional<uint64_t> bits) { known_[id] = bits; }
  // For runs: its instruction runs again.
  std::optional<uint64_t> again(ValueId id) {
    known_.erase(id);
    return value(id, 0);
  }
  std::optional<uint64_t> operand(const Source& from, unsigned width) { return source(from, width, 0); }
  // The form's number; the base is left out.
  std::optional<int64_t> form(const Form& form);

 private:
  std::optional<uint64_t> value(ValueId id, unsigned depth);
  std::optional<uint64_t> source(const Source& source, unsigned width, unsigned depth);
  std::optional<uint64_t> special(ptx::SpecialRegister special, uint8_t component) const;
  std::optional<uint64_t> result(ValueId id, unsigned depth);

  const Forms* forms_;
  Thread thread_;
  std::map<LoopId, int64_t> iterations_;
  std::unordered_map<ValueId, std::optional<uint64_t>> known_;
};

// Iteration 0 of every loop around `block`.
std::map<LoopId, int64_t> first_iterations(const Loops& loops, BlockId block);

// A comparison of setp or set on integers, by its modifier and type. Nothing for other comparisons.
std::optional<bool> compare(const ptx::Function& function, const ptx::Instruction& instruction, uint64_t a, uint64_t b);

}  // namespace ptxkit::flow
