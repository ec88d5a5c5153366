// Kernel: the interface with which a kernel's body is written. Control flow takes lambdas, which run once, while the
// kernel is traced. The DSL has no macros and no global state, so a helper function takes the Kernel that it writes
// into.
#pragma once

#include <type_traits>
#include <utility>

#include "builder/intrinsic.hpp"
#include "builder/pointer.hpp"
#include "builder/trace.hpp"
#include "builder/types.hpp"
#include "builder/value.hpp"

namespace ptxkit::dsl {

class If;
template <Rate R>
class Loop;

class Kernel {
 public:
  explicit Kernel(Trace& trace, u32 block) : trace_(&trace), block_(block) {}
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  Trace& trace() { return *trace_; }

  // --- indices ---
  // The thread's index in the CTA.
  Expr<u32, Rate::thread> thread(Where where = Where::current()) {
    return special<Rate::thread>(Intrinsic::thread_x, where);
  }
  // The lane's index in the warp.
  Expr<u32, Rate::thread> lane(Where where = Where::current()) { return special<Rate::thread>(Intrinsic::lane, where); }
  // The CTA's index in the grid, and the number of CTAs.
  Expr<u32, Rate::block> block(Where where = Where::current()) {
    return special<Rate::block>(Intrinsic::block_x, where);
  }
  Expr<u32, Rate::block> grid(Where where = Where::current()) { return special<Rate::block>(Intrinsic::grid_x, where); }
  // The warp's index in the CTA: thread / 32, since CTAs are one-dimensional.
  Expr<u32, Rate::warp> warp(Where where = Where::current());
  // The mask of the lanes below this one (%lanemask_lt).
  Expr<u32, Rate::thread> lanes_below(Where where = Where::current()) {
    return special<Rate::thread>(Intrinsic::lane_mask_lt, where);
  }
  // The CTA's size in threads and in warps, as C++ numbers.
  u32 block_threads() const { return block_; }
  u32 block_warps() const { return block_ / 32; }
  // Whether this variant has bounds checks (checked and debug builds), and whether it has markers (debug builds).
  bool is_checked() const { return trace_->is_checked(); }
  bool is_debug() const { return trace_->is_debug(); }

  // A number that C++ computed, as a value of the kernel.
  template <DeviceScalar T>
  Expr<T, Rate::block> constant(T value) {
    return Expr<T, Rate::block>({trace_, trace_->constant(kScalarOf<T>, detail::bits_of_value(value))});
  }

  // --- memory of the CTA and of the thread ---
  // An array in shared memory, one for each CTA, uninitialised. Count is in elements, Align in bytes. The PTX calls it
  // <kernel>_<name>; two arrays of one name throw DslError.
  template <class T, u32 Count, size_t Align>
  Span<Space::shared, T, Align> shared(const char* name, Where where = Where::current()) {
    return array<Space::shared, T, Count, Align, Rate::block>(name, where);
  }
  // An array for each thread, uninitialised. It is in local memory unless every index is known while tracing.
  template <class T, u32 Count, size_t Align = sizeof(T)>
  Span<Space::local, T, Align> local(const char* name, Where where = Where::current()) {
    return array<Space::local, T, Count, Align, Rate::block>(name, where);
  }

  // --- control flow ---
  // Runs `body` in the threads where `condition` holds. The result takes `.else_(body)`.
  template <DeviceOperand Condition, class Body>
  If if_(const Condition& condition, Body&& body, Where where = Where::current());

  // Loops until break_if. The conditions of a block_loop are the same in the whole CTA, those of a warp_loop in each
  // warp; a thread_loop has no such limit. Hence barriers are allowed in block_loops only, collectives in block_loops
  // and warp_loops.
  template <class Body>
  void block_loop(Body&& body, Where where = Where::current()) {
    loop<Rate::block>(body, where);
  }
  template <class Body>
  void warp_loop(Body&& body, Where where = Where::current()) {
    loop<Rate::warp>(body, where);
  }
  template <class Body>
  void thread_loop(Body&& body, Where where = Where::current()) {
    loop<Rate::thread>(body, where);
  }

  // body(i) or body(i, loop) for i = begin, begin + step, ... while i < end. The loop is as divergent as its bounds and
  // step. The last addition of `step` must not wrap.
  template <class B, class E, class S, class Body>
    requires(DeviceOperand<B> || DeviceOperand<E>)
  void range(const B& begin, const E& end, const S& step, Body&& body, Where where = Where::current());
  template <class E, class Body>
  void range(const E& end, Body&& body, Where where = Where::current()) {
    range(0, end, 1, std::forward<Body>(body), where);
  }

  // Runs `body` in lane 0 of each warp, or in thread 0 of the CTA.
  template <class Body>
  void once_per_warp(Body&& body, Where where = Where::current());
  template <class Body>
  void once_per_block(Body&& body, Where where = Where::current());

  // The threads for which `condition` holds leave the kernel. A later barrier or collective that needs them is refused.
  template <DeviceOperand Condition>
  void return_if(const Condition& condition, Where where = Where::current()) {
    trace_->return_if(detail::predicate(condition).value(), kRateOf<Condition>, where);
  }
  // Traps in the threads for which `condition` holds, in every variant.
  template <DeviceOperand Condition>
  void trap_if(const Condition& condition, Where where = Where::current()) {
    trace_->trap_if(detail::predicate(condition).value(), where);
  }

  // --- synchronisation ---
  // bar.sync 0: waits for all threads of the CTA; their earlier memory accesses are visible after it.
  void barrier(Where where = Where::current()) {
    trace_->require_together(Rate::block, "barrier", where);
    trace_->intrinsic(Intrinsic::barrier, Scalar::pred, {}, where);
  }
  // bar.warp.sync: the same for the lanes of the warp.
  void sync_warp(Where where = Where::current()) {
    trace_->require_together(Rate::warp, "sync_warp", where);
    trace_->intrinsic(Intrinsic::sync_warp, Scalar::pred, {}, where);
  }
  // fence.acq_rel at `scope`, for every order but relaxed, which throws DslError.
  void fence(Order order, Scope scope, Where where = Where::current()) { trace_->fence(order, scope, where); }

  // --- markers ---
  // Writes one record (id, thread, value) to the debug buffer, in debug builds only. docs/dsl.md describes the layout.
  void mark(u32 id, Where where = Where::current()) {
    if (is_debug()) trace_->mark(id, trace_->constant(Scalar::uint64, 0), where);
  }
  template <DeviceOperand V>
  void mark(u32 id, const V& value, Where where = Where::current()) {
    if (is_debug()) trace_->mark(id, cast<u64>(value, where).value(), where);
  }

 private:
  template <Rate R>
  Expr<u32, R> special(Intrinsic id, Where where) {
    return Expr<u32, R>({trace_, trace_->intrinsic(id, Scalar::uint32, {}, where)});
  }
  template <Space S, class T, u32 Count, size_t Align, Rate R>
  Span<S, T, Align, R> array(const char* name, Where where) {
    static_assert(detail::is_power_of_two(Align) && Align >= sizeof(T) && Align <= kMaxAlign,
                  "the alignment of an array is a power of two from its element's size to 16");
    const Place data = trace_->array(S, name, kScalarOf<T>, Count, Align, where);
    return {Ptr<S, T, Align, R>(*trace_, data), constant<u32>(Count), where};
  }
  template <Rate R, class Body>
  void loop(Body& body, Where where);

  Trace* trace_;
  u32 block_;
};

inline Trace& trace_of(Kernel& kernel) { return kernel.trace(); }

// The result of if_. else_ must follow in the same statement.
class If {
 public:
  If(Trace& trace, Trace::If* branch) : trace_(&trace), branch_(branch) {}
  template <class Body>
  void else_(Body&& body, Where where = Where::current()) {
    trace_->open_else(branch_, where);
    body();
    trace_->close_else(branch_);
  }

 private:
  Trace* trace_;
  Trace::If* branch_;
};

// The handle of a loop, passed to its body. It must not outlive the body.
template <Rate R>
class Loop {
 public:
  Loop(Trace& trace, Trace::Loop* loop) : trace_(&trace), loop_(loop) {}
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Leaves the loop, or goes on with its next iteration, in the threads for which `condition` holds.
  template <DeviceOperand Condition>
  void break_if(const Condition& condition, Where where = Where::current()) {
    jump(true, condition, where);
  }
  template <DeviceOperand Condition>
  void continue_if(const Condition& condition, Where where = Where::current()) {
    jump(false, condition, where);
  }
  // Leaves unconditionally. Code after it in the same branch is unreachable.
  void break_(Where where = Where::current()) {
    trace_->jump_if(loop_, true, trace_->constant(Scalar::pred, 1), Rate::block, where);
  }

 private:
  template <DeviceOperand Condition>
  void jump(bool leave, const Condition& condition, Where where) {
    static_assert(
        kRateOf<Condition> <= R,
        "a condition that differs between lanes (or warps) in a loop that is uniform: make it uniform with any "
        "or all, or use thread_loop");
    trace_->jump_if(loop_, leave, detail::predicate(condition).value(), kRateOf<Condition>, where);
  }

  Trace* trace_;
  Trace::Loop* loop_;
};

template <DeviceOperand Condition, class Body>
If Kernel::if_(const Condition& condition, Body&& body, Where where) {
  Trace::If* branch = trace_->open_if(detail::predicate(condition).value(), kRateOf<Condition>, where);
  body();
  trace_->close_if(branch);
  return If(*trace_, branch);
}

template <Rate R, class Body>
void Kernel::loop(Body& body, Where where) {
  Trace::Loop* opened = trace_->open_loop(R, where);
  Loop<R> handle(*trace_, opened);
  body(handle);
  trace_->close_loop(opened);
}

template <class B, class E, class S, class Body>
  requires(DeviceOperand<B> || DeviceOperand<E>)
void Kernel::range(const B& begin, const E& end, const S& step, Body&& body, Where where) {
  using T = typename detail::CommonType<E, B>::Type;
  constexpr Rate rate = widest(detail::rate_or_block<B>(), detail::rate_or_block<E>(), detail::rate_or_block<S>());
  const auto value = [&](const auto& number) {
    return Expr<T, rate>({trace_, materialise(*trace_, kScalarOf<T>, detail::operand<T>(number, where))});
  };
  const Expr<T, rate> last = value(end);
  const Expr<T, rate> stride = value(step);
  Var<T, rate> counter(*this, AssignedValue<T, rate>(value(begin), where));
  Trace::Loop* opened = trace_->open_loop(rate, where);
  Loop<rate> handle(*trace_, opened);
  const Expr<T, rate> i = counter.read(where);
  const Traced done = apply(Compare::ge, kScalarOf<T>, Located<T, rate>(i, where), Located<T, rate>(last, where));
  handle.break_if(Expr<bool, rate>(done), where);
  if constexpr (requires { body(i, handle); }) {
    body(i, handle);
  } else {
    body(i);
  }
  trace_->open_latch(opened);
  const Traced next = apply(Binary::add, kScalarOf<T>, Located<T, rate>(i, where), Located<T, rate>(stride, where));
  counter = AssignedValue<T, rate>(Expr<T, rate>(next), where);
  trace_->close_loop(opened);
}

inline Expr<u32, Rate::warp> Kernel::warp(Where where) {
  const Value index =
      trace_->binary(Binary::shr, Scalar::uint32, thread(where).value(), trace_->constant(Scalar::uint32, 5), where);
  return Expr<u32, Rate::warp>({trace_, index});
}

template <class Body>
void Kernel::once_per_warp(Body&& body, Where where) {
  const Traced first = apply(Compare::eq, Scalar::uint32, Located<u32, Rate::thread>(lane(where), where),
                             Operand{nullptr, {}, 0, where});
  if_(Expr<bool, Rate::thread>(first), std::forward<Body>(body), where);
}
template <class Body>
void Kernel::once_per_block(Body&& body, Where where) {
  const Traced first = apply(Compare::eq, Scalar::uint32, Located<u32, Rate::thread>(thread(where), where),
                             Operand{nullptr, {}, 0, where});
  if_(Expr<bool, Rate::thread>(first), std::forward<Body>(body), where);
}

// body(0), ..., body(N - 1) with compile-time constants as arguments: the C++ loop runs while the kernel is traced.
template <size_t N, class Body>
void unrolled(Body&& body) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    (body(std::integral_constant<u32, static_cast<u32>(I)>{}), ...);
  }(std::make_index_sequence<N>{});
}

}  // namespace ptxkit::dsl
