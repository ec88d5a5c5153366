// Atomic operations with an explicit order and scope, on global and shared memory.
#pragma once

#include "builder/pointer.hpp"

namespace ptxkit::dsl {

// The value in memory before an atomic operation: an Expr that, unlike others, may be discarded.
template <DeviceScalar T>
class OldValue : public Expr<T, Rate::thread> {
 public:
  using Expr<T, Rate::thread>::Expr;
};
template <DeviceScalar T>
struct OperandTraits<OldValue<T>> : OperandTraits<Expr<T, Rate::thread>> {};

namespace detail {

template <Space S, class T, size_t A>
constexpr void require_atomic() {
  static_assert(S == Space::global || S == Space::shared, "atomics work on global and shared memory");
  static_assert(DeviceInteger<T> && sizeof(T) >= 4, "atomics take 32- or 64-bit integers that may be written");
  static_assert(A >= sizeof(T),
                "misaligned atomic: the proven alignment of this address is below the width of the access");
}

template <Space S, class T, size_t A, Rate R, class V>
OldValue<T> atomic(AtomicOp op, const Ptr<S, T, A, R>& pointer, const V& value, Order order, Scope scope, Where where) {
  require_atomic<S, T, A>();
  Trace& trace = pointer.trace();
  const Value by = materialise(trace, kScalarOf<T>, operand<T>(value, where));
  return OldValue<T>({&trace, trace.atomic(op, S, kScalarOf<T>, pointer.place(), by, order, scope, where)});
}

}  // namespace detail

// Each returns the value in memory before the operation. `value` has the pointer's element type.
#define PTXKIT_ATOMIC(name, op)                                                              \
  template <Space S, class T, size_t A, Rate R, class V>                                     \
  OldValue<T> name(const Ptr<S, T, A, R>& pointer, const V& value, Order order, Scope scope, \
                   Where where = Where::current()) {                                         \
    return detail::atomic(AtomicOp::op, pointer, value, order, scope, where);                \
  }
PTXKIT_ATOMIC(atomic_add, add)
PTXKIT_ATOMIC(atomic_min, min)
PTXKIT_ATOMIC(atomic_max, max)
PTXKIT_ATOMIC(atomic_exchange, exch)
PTXKIT_ATOMIC(atomic_and, and_)
PTXKIT_ATOMIC(atomic_or, or_)
PTXKIT_ATOMIC(atomic_xor, xor_)
#undef PTXKIT_ATOMIC

// atomic_max in the threads where `condition` holds, without a result: one predicated `red` instead of the branch that
// `if_` makes. `order` is relaxed or release. In checked builds the address must be inside its object in the other
// threads too.
template <DeviceOperand Condition, Space S, class T, size_t A, Rate R, class V>
void atomic_max_if(const Condition& condition, const Ptr<S, T, A, R>& pointer, const V& value, Order order, Scope scope,
                   Where where = Where::current()) {
  detail::require_atomic<S, T, A>();
  Trace& trace = pointer.trace();
  trace.atomic_if(detail::predicate(condition).value(), AtomicOp::max, S, kScalarOf<T>, pointer.place(),
                  materialise(trace, kScalarOf<T>, detail::operand<T>(value, where)), order, scope, where);
}

// Stores `desired` where *pointer equals `expected`. Returns the value in memory before the operation.
template <Space S, class T, size_t A, Rate R, class E, class D>
OldValue<T> atomic_compare_exchange(const Ptr<S, T, A, R>& pointer, const E& expected, const D& desired, Order order,
                                    Scope scope, Where where = Where::current()) {
  static_assert(S == Space::global || S == Space::shared, "atomics work on global and shared memory");
  static_assert(DeviceInteger<T> && sizeof(T) >= 4, "atomics take 32- or 64-bit integers that may be written");
  static_assert(A >= sizeof(T),
                "misaligned atomic: the proven alignment of this address is below the width of the access");
  Trace& trace = pointer.trace();
  const Value old = materialise(trace, kScalarOf<T>, detail::operand<T>(expected, where));
  const Value next = materialise(trace, kScalarOf<T>, detail::operand<T>(desired, where));
  return OldValue<T>(
      {&trace, trace.compare_exchange(S, kScalarOf<T>, pointer.place(), old, next, order, scope, where)});
}

// Loads and stores that may race with other threads without a data race. A load is relaxed or acquire, a store relaxed
// or release; another order throws DslError.
template <Space S, class T, size_t A, Rate R>
Expr<std::remove_const_t<T>, Rate::thread> atomic_load(const Ptr<S, T, A, R>& pointer, Order order, Scope scope,
                                                       Where where = Where::current()) {
  static_assert(S == Space::global || S == Space::shared, "atomics work on global and shared memory");
  static_assert(sizeof(T) >= 4, "atomic loads take 32- or 64-bit values");
  static_assert(A >= sizeof(T),
                "misaligned atomic: the proven alignment of this address is below the width of the access");
  return Expr<std::remove_const_t<T>, Rate::thread>(
      {&pointer.trace(),
       pointer.trace().load_ordered(S, kScalarOf<std::remove_const_t<T>>, pointer.place(), order, scope, where)});
}
template <Space S, class T, size_t A, Rate R, class V>
void atomic_store(const Ptr<S, T, A, R>& pointer, const V& value, Order order, Scope scope,
                  Where where = Where::current()) {
  static_assert(Ptr<S, T, A, R>::kWritable,
                "a store through a read-only pointer: the parameter is declared const or read_only");
  static_assert(sizeof(T) >= 4, "atomic stores take 32- or 64-bit values");
  static_assert(A >= sizeof(T),
                "misaligned atomic: the proven alignment of this address is below the width of the access");
  Trace& trace = pointer.trace();
  trace.store_ordered(S, kScalarOf<T>, pointer.place(),
                      materialise(trace, kScalarOf<T>, detail::operand<T>(value, where)), order, scope, where);
}

}  // namespace ptxkit::dsl
