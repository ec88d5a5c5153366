// Bit operations, and the collectives of a warp: shuffles, votes, matches, reductions, prefix sums.
//
// Only collectives turn a lane-varying value into a uniform one. They need every lane of the warp, so tracing refuses
// them inside a divergent branch or loop.
#pragma once

#include <type_traits>

#include "builder/intrinsic.hpp"
#include "builder/kernel.hpp"
#include "builder/trace.hpp"
#include "builder/types.hpp"
#include "builder/value.hpp"

namespace ptxkit::dsl {

inline constexpr u32 kWarpLanes = 32;

namespace detail {

template <DeviceScalar T, Rate R>
Expr<T, R> apply_intrinsic(Trace& trace, Intrinsic id, std::initializer_list<Value> arguments, Where where) {
  return Expr<T, R>({&trace, trace.intrinsic(id, kScalarOf<T>, arguments, where)});
}

template <class T, class A>
Value value_of(Trace& trace, const A& a, Where where) {
  return materialise(trace, kScalarOf<T>, operand<T>(a, where));
}

template <class A>
auto expr_of(const A& a) {
  return Expr<ValueType<A>, kRateOf<A>>(a);
}

// One shuffle for types of up to 32 bits, two for 64.
template <DeviceNumber T, Rate R>
Expr<T, R> shuffle_with(Intrinsic id, Trace& trace, Value value, Value lane, u32 width, const char* what, Where where) {
  trace.require_together(Rate::warp, what, where);
  return Expr<T, R>({&trace, trace.shuffle(id, kScalarOf<T>, R, value, lane, width, where)});
}

}  // namespace detail

// --- bits ---

// Number of one bits.
template <DeviceOperand A>
Expr<u32, kRateOf<A>> popc(const A& a, Where where = Where::current()) {
  static_assert(DeviceInteger<ValueType<A>>, "popc takes an integer");
  const auto bits = detail::expr_of(a);
  return cast<u32>(
      detail::apply_intrinsic<ValueType<A>, kRateOf<A>>(bits.trace(), Intrinsic::popc, {bits.value()}, where), where);
}
// Number of leading zero bits; the type's width for 0.
template <DeviceOperand A>
Expr<u32, kRateOf<A>> clz(const A& a, Where where = Where::current()) {
  static_assert(DeviceInteger<ValueType<A>>, "clz takes an integer");
  const auto bits = detail::expr_of(a);
  return cast<u32>(
      detail::apply_intrinsic<ValueType<A>, kRateOf<A>>(bits.trace(), Intrinsic::clz, {bits.value()}, where), where);
}
// Number of trailing zero bits; the type's width for 0.
template <DeviceOperand A>
Expr<u32, kRateOf<A>> ctz(const A& a, Where where = Where::current()) {
  static_assert(DeviceInteger<ValueType<A>>, "ctz takes an integer");
  const auto bits = detail::expr_of(a);
  return cast<u32>(
      detail::apply_intrinsic<ValueType<A>, kRateOf<A>>(bits.trace(), Intrinsic::ctz, {bits.value()}, where), where);
}
// The position of the lowest one bit counted from 1; 0 if there is none.
template <DeviceOperand A>
Expr<u32, kRateOf<A>> ffs(const A& a, Where where = Where::current()) {
  const auto bits = detail::expr_of(a);
  const auto zero =
      Expr<bool, kRateOf<A>>(apply(Compare::eq, kScalarOf<ValueType<A>>, detail::operand<ValueType<A>>(bits, where),
                                   Operand{nullptr, {}, 0, where}));
  const auto position = Expr<u32, kRateOf<A>>(apply(
      Binary::add, Scalar::uint32, detail::operand<u32>(ctz(bits, where), where), Operand{nullptr, {}, 1, where}));
  return select(zero, 0, position, where);
  // The bits in reverse order.
}
template <DeviceOperand A>
auto brev(const A& a, Where where = Where::current()) {
  const auto bits = detail::expr_of(a);
  return detail::apply_intrinsic<ValueType<A>, kRateOf<A>>(bits.trace(), Intrinsic::brev, {bits.value()}, where);
}
// The high half of the product of two unsigned integers of 32 or 64 bits.
template <DeviceOperand A, class B>
auto mul_hi(const A& a, const B& b, Where where = Where::current()) {
  using T = ValueType<A>;
  static_assert(std::is_same_v<T, u32> || std::is_same_v<T, u64>, "mul_hi takes u32 or u64");
  const auto left = detail::expr_of(a);
  return detail::apply_intrinsic<T, widest(kRateOf<A>, detail::rate_or_block<B>())>(
      left.trace(), sizeof(T) == 4 ? Intrinsic::mul_hi32 : Intrinsic::mul_hi64,
      {left.value(), detail::value_of<T>(left.trace(), b, where)}, where);
}
// Chooses four of the eight bytes low (0-3) and high (4-7): byte i of the result is byte `selector >> 4*i & 7`.
template <DeviceOperand A, class B, class C>
auto prmt(const A& low, const B& high, const C& selector, Where where = Where::current()) {
  const auto first = detail::expr_of(low);
  return detail::apply_intrinsic<u32, widest(kRateOf<A>, detail::rate_or_block<B>(), detail::rate_or_block<C>())>(
      first.trace(), Intrinsic::prmt,
      {detail::value_of<u32>(first.trace(), low, where), detail::value_of<u32>(first.trace(), high, where),
       detail::value_of<u32>(first.trace(), selector, where)},
      where);
}
// The low word of high:low >> (amount & 31).
template <DeviceOperand A, class B, class C>
auto funnel_right(const A& low, const B& high, const C& amount, Where where = Where::current()) {
  const auto first = detail::expr_of(low);
  return detail::apply_intrinsic<u32, widest(kRateOf<A>, detail::rate_or_block<B>(), detail::rate_or_block<C>())>(
      first.trace(), Intrinsic::funnel_right,
      {detail::value_of<u32>(first.trace(), low, where), detail::value_of<u32>(first.trace(), high, where),
       detail::value_of<u32>(first.trace(), amount, where)},
      where);
}
// The high word of high:low << (amount & 31).
template <DeviceOperand A, class B, class C>
auto funnel_left(const A& low, const B& high, const C& amount, Where where = Where::current()) {
  const auto first = detail::expr_of(low);
  return detail::apply_intrinsic<u32, widest(kRateOf<A>, detail::rate_or_block<B>(), detail::rate_or_block<C>())>(
      first.trace(), Intrinsic::funnel_left,
      {detail::value_of<u32>(first.trace(), low, where), detail::value_of<u32>(first.trace(), high, where),
       detail::value_of<u32>(first.trace(), amount, where)},
      where);
}
// bits << amount for any amount: 0 from 32 on, where the << operator is undefined.
template <class A, DeviceOperand B>
auto shift_left(const A& bits, const B& amount, Where where = Where::current()) {
  const auto by = detail::expr_of(amount);
  return detail::apply_intrinsic<u32, widest(detail::rate_or_block<A>(), kRateOf<B>)>(
      by.trace(), Intrinsic::shift_left,
      {detail::value_of<u32>(by.trace(), bits, where), detail::value_of<u32>(by.trace(), amount, where)}, where);
}
// Bits [position, position + length) of a u32; bits beyond 32 read as 0.
template <DeviceOperand A, class B, class C>
auto bit_field(const A& bits, const B& position, const C& length, Where where = Where::current()) {
  const auto first = detail::expr_of(bits);
  return detail::apply_intrinsic<u32, widest(kRateOf<A>, detail::rate_or_block<B>(), detail::rate_or_block<C>())>(
      first.trace(), Intrinsic::bit_field,
      {detail::value_of<u32>(first.trace(), bits, where), detail::value_of<u32>(first.trace(), position, where),
       detail::value_of<u32>(first.trace(), length, where)},
      where);
}

// --- shuffles ---
// `Width` is 32, or a smaller power of two that splits the warp into groups of that many lanes.

// The value of lane `lane` of the same group. The result is warp-uniform if the lane number is and the group is the
// warp.
template <u32 Width = kWarpLanes, DeviceOperand A, class L>
auto shuffle(const A& a, const L& lane, Where where = Where::current()) {
  constexpr Rate rate = Width == kWarpLanes && detail::rate_or_block<L>() <= Rate::warp ? Rate::warp : Rate::thread;
  const auto value = detail::expr_of(a);
  return detail::shuffle_with<ValueType<A>, rate>(Intrinsic::shuffle, value.trace(), value.value(),
                                                  detail::value_of<u32>(value.trace(), lane, where), Width, "shuffle",
                                                  where);
}
// The value of the lane `delta` below in the group; the lane's own value if there is none.
template <u32 Width = kWarpLanes, DeviceOperand A, class D>
auto shuffle_up(const A& a, const D& delta, Where where = Where::current()) {
  const auto value = detail::expr_of(a);
  return detail::shuffle_with<ValueType<A>, Rate::thread>(Intrinsic::shuffle_up, value.trace(), value.value(),
                                                          detail::value_of<u32>(value.trace(), delta, where), Width,
                                                          "shuffle_up", where);
}
// The value of the lane `delta` above in the group; the lane's own value if there is none.
template <u32 Width = kWarpLanes, DeviceOperand A, class D>
auto shuffle_down(const A& a, const D& delta, Where where = Where::current()) {
  const auto value = detail::expr_of(a);
  return detail::shuffle_with<ValueType<A>, Rate::thread>(Intrinsic::shuffle_down, value.trace(), value.value(),
                                                          detail::value_of<u32>(value.trace(), delta, where), Width,
                                                          "shuffle_down", where);
}
// The value of the lane whose number is this lane's xor `mask`.
template <u32 Width = kWarpLanes, DeviceOperand A, class M>
auto shuffle_xor(const A& a, const M& mask, Where where = Where::current()) {
  const auto value = detail::expr_of(a);
  return detail::shuffle_with<ValueType<A>, Rate::thread>(Intrinsic::shuffle_xor, value.trace(), value.value(),
                                                          detail::value_of<u32>(value.trace(), mask, where), Width,
                                                          "shuffle_xor", where);
}
// Lane 0's value in every lane.
template <DeviceOperand A>
auto broadcast(const A& a, Where where = Where::current()) {
  return shuffle(a, 0, where);
}

// --- votes and matches ---

// Whether the condition holds in some lane.
template <DeviceOperand A>
Expr<bool, Rate::warp> any(const A& condition, Where where = Where::current()) {
  const auto value = detail::predicate(condition);
  value.trace().require_together(Rate::warp, "any", where);
  return detail::apply_intrinsic<bool, Rate::warp>(value.trace(), Intrinsic::any, {value.value()}, where);
}
// Whether the condition holds in every lane.
template <DeviceOperand A>
Expr<bool, Rate::warp> all(const A& condition, Where where = Where::current()) {
  const auto value = detail::predicate(condition);
  value.trace().require_together(Rate::warp, "all", where);
  return detail::apply_intrinsic<bool, Rate::warp>(value.trace(), Intrinsic::all, {value.value()}, where);
}
// A mask: bit i is the condition of lane i.
template <DeviceOperand A>
Expr<u32, Rate::warp> ballot(const A& condition, Where where = Where::current()) {
  const auto value = detail::predicate(condition);
  value.trace().require_together(Rate::warp, "ballot", where);
  return detail::apply_intrinsic<u32, Rate::warp>(value.trace(), Intrinsic::ballot, {value.value()}, where);
}
// A mask of the lanes that have the same value as this lane.
template <DeviceOperand A>
Expr<u32, Rate::thread> match_any(const A& a, Where where = Where::current()) {
  static_assert(DeviceInteger<ValueType<A>> && sizeof(ValueType<A>) >= 4,
                "match takes a 32- or 64-bit integer: use zext");
  const auto value = detail::expr_of(a);
  value.trace().require_together(Rate::warp, "match_any", where);
  return detail::apply_intrinsic<u32, Rate::thread>(
      value.trace(), sizeof(ValueType<A>) == 4 ? Intrinsic::match_any32 : Intrinsic::match_any64, {value.value()},
      where);
}
// Whether all lanes have the same value.
template <DeviceOperand A>
Expr<bool, Rate::warp> match_all(const A& a, Where where = Where::current()) {
  static_assert(DeviceInteger<ValueType<A>> && sizeof(ValueType<A>) == 4, "match_all takes a 32-bit integer: use zext");
  const auto value = detail::expr_of(a);
  value.trace().require_together(Rate::warp, "match_all", where);
  return detail::apply_intrinsic<bool, Rate::warp>(value.trace(), Intrinsic::match_all32, {value.value()}, where);
}

// --- reductions and prefix sums ---
// They take u32 values. A reduction's result is warp-uniform: one `redux.sync` from sm_80 on, a shuffle tree before.

namespace detail {
template <class A>
Expr<u32, Rate::warp> reduce(Intrinsic id, const A& a, const char* what, Where where) {
  static_assert(std::is_same_v<ValueType<A>, u32>, "warp reductions take u32: use zext or cast");
  const auto value = expr_of(a);
  value.trace().require_together(Rate::warp, what, where);
  return apply_intrinsic<u32, Rate::warp>(value.trace(), id, {value.value()}, where);
}
}  // namespace detail

template <DeviceOperand A>
Expr<u32, Rate::warp> reduce_add(const A& a, Where where = Where::current()) {
  return detail::reduce(Intrinsic::reduce_add, a, "reduce_add", where);
}
template <DeviceOperand A>
Expr<u32, Rate::warp> reduce_min(const A& a, Where where = Where::current()) {
  return detail::reduce(Intrinsic::reduce_min, a, "reduce_min", where);
}
template <DeviceOperand A>
Expr<u32, Rate::warp> reduce_max(const A& a, Where where = Where::current()) {
  return detail::reduce(Intrinsic::reduce_max, a, "reduce_max", where);
}
template <DeviceOperand A>
Expr<u32, Rate::warp> reduce_and(const A& a, Where where = Where::current()) {
  return detail::reduce(Intrinsic::reduce_and, a, "reduce_and", where);
}
template <DeviceOperand A>
Expr<u32, Rate::warp> reduce_or(const A& a, Where where = Where::current()) {
  return detail::reduce(Intrinsic::reduce_or, a, "reduce_or", where);
}
template <DeviceOperand A>
Expr<u32, Rate::warp> reduce_xor(const A& a, Where where = Where::current()) {
  return detail::reduce(Intrinsic::reduce_xor, a, "reduce_xor", where);
}

// The sum over lanes 0 to this one (inclusive), or to the one below (exclusive): five shuffles and adds.
template <DeviceOperand A>
Expr<u32, Rate::thread> inclusive_sum(const A& a, Where where = Where::current()) {
  static_assert(std::is_same_v<ValueType<A>, u32>, "prefix sums take u32: use zext or cast");
  const auto value = detail::expr_of(a);
  value.trace().require_together(Rate::warp, "inclusive_sum", where);
  return Expr<u32, Rate::thread>({&value.trace(), value.trace().inclusive_sum(value.value(), where)});
}
template <DeviceOperand A>
Expr<u32, Rate::thread> exclusive_sum(const A& a, Where where = Where::current()) {
  const auto value = detail::expr_of(a);
  return Expr<u32, Rate::thread>(apply(Binary::sub, Scalar::uint32,
                                       detail::operand<u32>(inclusive_sum(value, where), where),
                                       detail::operand<u32>(value, where)));
}

}  // namespace ptxkit::dsl
