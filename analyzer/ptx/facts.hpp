// What an instruction does: the one place where the meaning of its words, and of its operands, is read.
//
// Words count as a set, since ptxas takes them in nearly any order (word_order.hpp). Which operand is which, the row of
// the ISA table says that the instruction matched. Nothing outside analyzer/ptx/ compares a spelling or names a
// modifier, but for the emulator's decoder, which has a handler for each (fkr_tests/house/spelling.py).
#pragma once

#include <optional>
#include <string_view>

#include "analyzer/ptx/access_kind.hpp"
#include "analyzer/ptx/isa.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::ptx {

// lo, ls, hi, hs compare unsigned whatever the type; of floats, those ending in u hold for NaN too.
enum class Comparison : uint8_t {
  none,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  lo,
  ls,
  hi,
  hs,
  equ,
  neu,
  ltu,
  leu,
  gtu,
  geu,
  num,
  nan
};
enum class Product : uint8_t { low, high, wide };  // the half of it that is the result, or all
enum class Order : uint8_t { weak, relaxed, acquire, release, acq_rel, sc };
enum class Scope : uint8_t { none, cta, cluster, gpu, sys };  // `none` where no word names one
constexpr std::string_view text(Scope scope) {
  constexpr std::string_view kTexts[] = {"", "cta", "cluster", "gpu", "sys"};
  return kTexts[static_cast<size_t>(scope)];
}
enum class AtomicOperation : uint8_t { none, exchange, compare_and_swap, other };
enum class Fence : uint8_t { none, memory, one_space, proxy, mbarrier_init };  // one_space: .sync_restrict
enum class Vote : uint8_t { none, all, any, uniform, ballot };                 // and which lanes match asks for
enum class Shuffle : uint8_t { none, up, down, butterfly, index };

// bar, barrier.
struct Barrier {
  enum class Level : uint8_t { none, warp, cta, cluster } level = Level::none;
  enum class Action : uint8_t { none, arrive, wait, reduce } action = Action::none;
  // Threads of the CTA wait; at arrivals and at the barriers of warps and clusters they do not.
  bool is_of_cta() const { return level == Level::cta && action != Action::none && action != Action::arrive; }
  bool operator==(const Barrier&) const = default;
};

// What runs beside the thread: cp.async, st.async, red.async, with what they complete, and the waits for them.
struct Asynchronous {
  enum class Step : uint8_t { none, copy, reduce, prefetch, commit, wait, arrive } step = Step::none;
  enum class Completion : uint8_t { none, group, bulk_group, mbarrier } completion = Completion::none;
  bool is_tensor = false;     // addressed through a tensor map
  bool is_multicast = false;  // to several CTAs of the cluster
  bool waits_for_all = false;
  bool operator==(const Asynchronous&) const = default;
};

struct Mbarrier {
  enum class Action : uint8_t { none, init, inval, arrive, arrive_drop, expect, complete, wait, count };
  Action action = Action::none;
  bool expects_bytes = false;  // of an arrival, or by itself
  bool is_partial = false;     // an arrival that completes no phase
  bool by_parity = false;      // a wait that names the phase by its parity, not by a token
  bool operator==(const Mbarrier&) const = default;
};

struct Facts {
  // On registers.
  Comparison comparison = Comparison::none;
  Product product = Product::low;
  bool saturates = false;
  bool approximates = false;  // two machines may give different results
  bool shifts_left = false;   // of shf
  // On memory.
  Order order = Order::weak;
  Scope scope = Scope::none;
  bool is_volatile = false, is_mmio = false;
  bool is_read_only = false;    // through the path that takes memory for constant
  bool hints_last_use = false;  // a hint that the cache line is not wanted again
  AtomicOperation atomic = AtomicOperation::none;
  Fence fence = Fence::none;
  // What is written at addresses that are not among accesses_of(): by another unit, by the warp as a whole, by the
  // function that is called.
  bool writes_global_elsewhere = false, writes_shared_elsewhere = false;
  // Between threads.
  Barrier barrier;
  Asynchronous asynchronous;
  Mbarrier mbarrier;
  Vote vote = Vote::none;
  Shuffle shuffle = Shuffle::none;
  bool is_synchronous = false;  // .sync: waits for the lanes that take part
  bool multiplies_matrices = false;
  bool operator==(const Facts&) const = default;

  // As an assembler has it: a plain access, which may be moved and joined with others.
  bool is_weak() const { return order == Order::weak && !is_volatile && !is_mmio; }
  bool acquires() const { return order == Order::acquire || order == Order::acq_rel; }
  bool releases() const { return order == Order::release || order == Order::acq_rel; }
};
Facts facts_of(const Function& function, const Instruction& instruction);
// Of an opcode whose instruction the front end has refused.
Facts facts_of(const Opcode& opcode);
// The same for setp and set alone: analyses ask it for every thread.
Comparison comparison_of(const Function& function, const Instruction& instruction);

// Whether two instructions do the same, to other operands.
bool is_same_operation(const Function& function, const Instruction& one, const Instruction& other);

// The operand that is for something, by its index in the operand pool; nothing where the instruction has none. Where
// several are, as sources may be, the first.
std::optional<uint32_t> operand_of(const Function& function, const Instruction& instruction, Purpose purpose);

// Leading operands that are written; a pair or a vector counts as one and may hold several registers. 0 for an
// instruction that the front end refused.
unsigned destination_count(const Function& function, const Instruction& instruction);

// Calls visit(pool index, operand, is_written) for every register operand, in order; addresses read their base.
// The guard is not an operand.
template <class Visit>
void for_each_register(const Function& function, const Instruction& instruction, Visit&& visit) {
  const unsigned destinations = destination_count(function, instruction);
  auto walk = [&](auto&& self, uint32_t first, uint32_t count, bool written) -> void {
    for (uint32_t i = first; i < first + count; ++i) {
      const Operand& operand = function.operand_pool[i];
      const bool is_address = operand.kind == OperandKind::address;
      if (operand.kind == OperandKind::reg) visit(i, operand, written);
      if (is_address && operand.base == AddressBase::reg) visit(i, operand, false);
      if (operand.child_count) self(self, operand.first_child, operand.child_count, written && !is_address);
    }
  };
  for (uint32_t i = 0; i < instruction.operand_count; ++i)
    walk(walk, instruction.first_operand + i, 1, i < destinations);
}

// One address through which an instruction touches memory that F051 and its neighbours speak of: ld, st, atom, red and
// the copies and matrix loads that demand an alignment. Parameter space is left out: its addresses are constants.
struct Access {
  InstructionId instruction = kNone;
  AccessKind kind = AccessKind::load;
  Space space = Space::generic;
  Order order = Order::weak;
  Scope scope = Scope::none;
  AtomicOperation atomic = AtomicOperation::none;
  bool is_plain = true;  // neither volatile nor ordered nor atomic
  bool is_volatile = false;
  bool is_read_only = false;
  bool hints_last_use = false;
  uint32_t width_bytes = 0;   // alignment that the address needs
  uint32_t extent_bytes = 0;  // bytes touched from the address on by this thread; 0 where another thread's row
  uint32_t address = 0;       // index into the operand pool
  uint32_t data = kNone;      // first data operand, in the operand pool: destination of a load, source of a store
  bool operator==(const Access&) const = default;
};

// The accesses of one instruction: none, one, or two (cp.async).
struct Accesses {
  Access items[2];
  unsigned count = 0;
  bool operator==(const Accesses&) const = default;
};
Accesses accesses_of(const Function& function, InstructionId id);

// Nothing but its destination depends on it, as an assembler has it: a plain load is one, a sum that writes the carry
// is none.
bool only_writes_destination(const Function& function, const Instruction& instruction);
bool ends_thread(const Instruction& instruction);  // ret, exit, trap: no successor when unguarded
bool is_branch(const Instruction& instruction);    // bra, brx
// Barrier::is_of_cta.
bool is_cta_barrier(const Function& function, const Instruction& instruction);
// The same that every thread of the CTA must reach: no thread count is given.
bool is_whole_cta_barrier(const Function& function, const Instruction& instruction);
// Orders memory among the threads of a warp: bar.warp.sync and every `.sync` collective.
bool is_warp_barrier(const Function& function, const Instruction& instruction);

}  // namespace ptxkit::ptx
