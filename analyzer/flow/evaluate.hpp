// Running a slice of a kernel for one thread: what value does this register have in thread (x, y, z), in iteration k?
//
// This is what turns a suspicion into a witness. It runs the program's own instructions on concrete numbers, not the
// abstract forms, so that a witness never rests on an approximation. What a thread cannot know from its place in the
// block (parameters, memory, other threads' values) has no value here, and neither has what is computed from it. The
// threads of a warp or a block are run at once, instruction by instruction.
#pragma once

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

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

// A register's bits in each of several threads. Nothing where a thread cannot know them.
class Column {
 public:
  using Bits = std::optional<uint64_t>;
  Column() = default;  // known nowhere
  explicit Column(Bits same) : same_(same) {}
  explicit Column(std::vector<Bits> each);

  const Bits& operator[](size_t thread) const { return each_.empty() ? same_ : each_[thread]; }
  bool is_same() const { return each_.empty(); }
  // What `apply` makes of the bits of one thread, for all of them.
  template <class Apply, class... Columns>
  static Column combine(Apply&& apply, const Columns&... columns);

 private:
  Bits same_;               // of all threads, where `each_` is empty
  std::vector<Bits> each_;  // by thread
};

// Numbers of a register, unsigned, both ends included.
struct Range {
  uint64_t low = 0, high = 0;
};

class Evaluator {
 public:
  using Bits = Column::Bits;
  // What a loop that `iterations` does not name computes is not known: neither inside it nor after it.
  Evaluator(const Forms& forms, std::vector<Thread> threads, std::map<LoopId, int64_t> iterations = {});
  Evaluator(const Forms& forms, const Thread& thread, std::map<LoopId, int64_t> iterations = {})
      : Evaluator(forms, std::vector{thread}, std::move(iterations)) {}

  // Bits of the register, or for a value with a base those of its offset. The reference holds until `assume` or
  // `again`.
  const Column& column(ValueId id) { return value(id, 0); }
  Column column_of_atom(AtomId id);
  Column column_of_form(const Form& form);  // the form's number; the base is left out
  // The same of the first thread.
  Bits value(ValueId id) { return column(id)[0]; }
  Bits atom(AtomId id) { return column_of_atom(id)[0]; }
  std::optional<int64_t> form(const Form& form);
  Bits operand(const Source& from, unsigned width) { return source(from, width, 0)[0]; }
  // For runs: what this value is from now on. Values computed from it before keep what they were.
  void assume(ValueId id, Bits bits) { known_[id] = Column(bits); }
  // For runs: its instruction runs again.
  Bits again(ValueId id) {
    known_.erase(id);
    return value(id, 0)[0];
  }
  const std::vector<Thread>& threads() const { return threads_; }

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

// The n-th thread of a block; of one row, where nothing says how the block is made.
Thread thread_of(const LaunchShape& shape, uint32_t n);

// Iteration 0 of every loop around `block`.
std::map<LoopId, int64_t> first_iterations(const Loops& loops, BlockId block);

// A comparison of setp or set on integers, by its modifier and type. Nothing for other comparisons.
std::optional<bool> compare(const ptx::Function& function, const ptx::Instruction& instruction, uint64_t a, uint64_t b);

}  // namespace ptxkit::flow
