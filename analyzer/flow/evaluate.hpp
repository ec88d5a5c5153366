// Evaluates registers of a kernel for given threads: the value of a register in thread (x, y, z), in iteration k.
//
// This turns a suspected bug into a witness. It runs the program's instructions on concrete numbers, not the abstract
// forms, so a witness never rests on an approximation. Values that do not follow from a thread's indices (parameters,
// memory, other threads' values) are unknown, and so are values computed from them. The threads of a warp or a block
// are evaluated together, instruction by instruction.
#pragma once

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "analyzer/flow/forms.hpp"

namespace ptxkit::flow {

struct Thread {
  uint32_t tid[3] = {0, 0, 0};
  uint32_t ntid[3] = {0, 0, 0};    // 0: unknown
  uint32_t ctaid[3] = {0, 0, 0};   // used only where `nctaid` is known
  uint32_t nctaid[3] = {0, 0, 0};  // 0: unknown
  uint32_t linear() const { return tid[0] + (tid[1] + tid[2] * ntid[1]) * ntid[0]; }
  bool operator==(const Thread&) const = default;
};

// The bits of a register in each of several threads; nothing for a thread in which they are unknown.
class Column {
 public:
  using Bits = std::optional<uint64_t>;
  Column() = default;  // unknown in all threads
  explicit Column(Bits same) : same_(same) {}
  explicit Column(std::vector<Bits> each);

  const Bits& operator[](size_t thread) const { return each_.empty() ? same_ : each_[thread]; }
  bool is_same() const { return each_.empty(); }
  // Applies `apply` to the bits of each thread.
  template <class Apply, class... Columns>
  static Column combine(Apply&& apply, const Columns&... columns);

 private:
  Bits same_;               // for all threads, if `each_` is empty
  std::vector<Bits> each_;  // by thread
};

// A range of unsigned register values, both ends included.
struct Range {
  uint64_t low = 0, high = 0;
};

class Evaluator {
 public:
  using Bits = Column::Bits;
  // Values computed in a loop that `iterations` does not name are unknown, inside the loop and after it.
  Evaluator(const Forms& forms, std::vector<Thread> threads, std::map<LoopId, int64_t> iterations = {});
  Evaluator(const Forms& forms, const Thread& thread, std::map<LoopId, int64_t> iterations = {})
      : Evaluator(forms, std::vector{thread}, std::move(iterations)) {}

  // Bits of the register; for a value with a base, bits of its offset. The reference is valid until the next call of
  // `assume` or `again`.
  const Column& column(ValueId id) { return value(id, 0); }
  Column column_of_atom(AtomId id);
  Column column_of_form(const Form& form);  // value of the form without its base
  // The same for the first thread.
  Bits value(ValueId id) { return column(id)[0]; }
  Bits atom(AtomId id) { return column_of_atom(id)[0]; }
  std::optional<int64_t> form(const Form& form);
  Bits operand(const Source& from, unsigned width) { return source(from, width, 0)[0]; }
  // For emulated runs: sets the value from now on. Values computed from it before do not change.
  void assume(ValueId id, Bits bits) { known_[id] = Column(bits); }
  // For emulated runs: evaluates the value's instruction again.
  Bits again(ValueId id) {
    known_.erase(id);
    return value(id, 0)[0];
  }
  const std::vector<Thread>& threads() const { return threads_; }
  size_t value_count() const { return known_.size(); }  // computed so far, for budgets

 private:
  const Column& value(ValueId id, unsigned depth);
  Column source(const Source& source, unsigned width, unsigned depth);
  Column special(ptx::SpecialRegister special, uint8_t component) const;
  Column result(ValueId id, unsigned depth);
  Range range(const Source& source, unsigned width) const;

  const Forms* forms_;
  std::vector<Thread> threads_;
  std::map<LoopId, int64_t> iterations_;
  std::unordered_map<ValueId, Column> known_;
};

template <class Apply, class... Columns>
Column Column::combine(Apply&& apply, const Columns&... columns) {
  if ((columns.is_same() && ...)) return Column(Bits(apply(columns.same_...)));
  std::vector<Bits> each(std::max({columns.each_.size()...}));
  for (size_t thread = 0; thread < each.size(); ++thread) each[thread] = apply(columns[thread]...);
  return Column(std::move(each));
}

// The n-th thread of a block; if the block's shape is unknown, of a block with one row.
Thread thread_of(const LaunchShape& shape, uint32_t n);

// Iteration 0 for every loop around `block`.
std::map<LoopId, int64_t> first_iterations(const Loops& loops, BlockId block);

// Evaluates a setp or set comparison of integers by its modifier and type; nothing for other comparisons.
std::optional<bool> compare(const ptx::Function& function, const ptx::Instruction& instruction, uint64_t a, uint64_t b);

}  // namespace ptxkit::flow
