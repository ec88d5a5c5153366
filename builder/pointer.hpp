// Ptr and Span: memory with its state space and its proven alignment in the type.
//
// The alignment of `pointer + index` is the greatest common divisor of the pointer's alignment and the known factor of
// the index, so a typed access compiles only if every address that it can form is aligned. A byte cursor has alignment
// 1. It is read with load_bytewise, with load_unaligned_u32 (two aligned words and a funnel shift), or after
// assume_aligned, which takes a reason and traps in checked builds if it is wrong. So is a pointer that at_address
// makes of a number.
//
// In checked builds a pointer also knows its object: the array or span that it came from, or the range given by
// `within`. The object is kept through arithmetic and casts. An access that leaves it traps on the author's line.
#pragma once

#include <array>
#include <tuple>
#include <type_traits>
#include <utility>

#include "builder/trace.hpp"
#include "builder/types.hpp"
#include "builder/value.hpp"

namespace ptxkit::dsl {

// An integer known to be a multiple of M, so that pointer arithmetic with it keeps alignment.
template <size_t M, DeviceInteger T, Rate R>
class [[nodiscard]] Multiple : public Expr<T, R> {
 public:
  explicit Multiple(const Expr<T, R>& value) : Expr<T, R>(value) {}
};
template <size_t M, DeviceInteger T, Rate R>
struct OperandTraits<Multiple<M, T, R>> : OperandTraits<Expr<T, R>> {};

namespace detail {
template <class A>
inline constexpr size_t kMultipleOf = 1;
template <size_t M, class T, Rate R>
inline constexpr size_t kMultipleOf<Multiple<M, T, R>> = M;
template <class I, I V>
inline constexpr size_t kMultipleOf<std::integral_constant<I, V>> =
    V == 0 ? kMaxAlign : static_cast<size_t>(V < 0 ? -V : V);

constexpr bool is_power_of_two(size_t n) { return n != 0 && (n & (n - 1)) == 0; }
}  // namespace detail

// index * M, known to be a multiple of M. M is a power of two, so the product stays a multiple of M when it wraps.
template <size_t M, DeviceOperand A>
auto times(const A& index, Where where = Where::current()) {
  static_assert(detail::is_power_of_two(M), "times takes a power of two: other multiples do not survive wrapping");
  using T = ValueType<A>;
  return Multiple<M * detail::kMultipleOf<A>, T, kRateOf<A>>(Expr<T, kRateOf<A>>(
      apply(Binary::mul, kScalarOf<T>, detail::operand<T>(index, where), Operand{nullptr, {}, M, where})));
}

// The largest multiple of N that is not above `value`.
template <size_t N, DeviceOperand A>
auto align_down(const A& value, Where where = Where::current()) {
  static_assert(detail::is_power_of_two(N), "align_down takes a power of two");
  using T = ValueType<A>;
  return Multiple<N, T, kRateOf<A>>(Expr<T, kRateOf<A>>(
      apply(Binary::and_, kScalarOf<T>, detail::operand<T>(value, where), Operand{nullptr, {}, ~u64{N - 1}, where})));
}

// Declares, without proof, that `value` is a multiple of N, a power of two. Checked builds trap where it is not. The
// launch file lists the assumption with its reason `why`.
template <size_t N, DeviceOperand A>
auto assume_multiple(const A& value, const char* why, Where where = Where::current()) {
  static_assert(detail::is_power_of_two(N), "assume_multiple takes a power of two");
  using T = ValueType<A>;
  const Expr<T, kRateOf<A>> expr(value);
  expr.trace().assume_multiple(kScalarOf<T>, expr.value(), N, why, where);
  return Multiple<N, T, kRateOf<A>>(expr);
}

// A sum or difference is a multiple of the greatest common divisor of both factors.
template <size_t M, size_t N, DeviceInteger T, Rate R, Rate Q>
auto operator+(const Multiple<M, T, R>& a, const Multiple<N, T, Q>& b) {
  return Multiple<gcd(M, N), T, widest(R, Q)>(Expr<T, widest(R, Q)>(
      apply(Binary::add, kScalarOf<T>, detail::operand<T>(a, Where{}), detail::operand<T>(b, Where{}))));
}
template <size_t M, size_t N, DeviceInteger T, Rate R, Rate Q>
auto operator-(const Multiple<M, T, R>& a, const Multiple<N, T, Q>& b) {
  return Multiple<gcd(M, N), T, widest(R, Q)>(Expr<T, widest(R, Q)>(
      apply(Binary::sub, kScalarOf<T>, detail::operand<T>(a, Where{}), detail::operand<T>(b, Where{}))));
}

// A pointer to elements of type T in state space S, aligned to Align bytes and as uniform as R. `const T` and read_only
// memory have no stores.
template <Space S, class T, size_t Align = sizeof(T), Rate R = Rate::block>
class [[nodiscard]] Ptr {
 public:
  using Element = std::remove_const_t<T>;
  static_assert(DeviceNumber<Element>, "memory holds integers and floats; keep predicates as u8 or in ballots");
  static_assert(detail::is_power_of_two(Align), "an alignment is a power of two");
  static constexpr Space kSpace = S;
  static constexpr size_t kAlign = Align;
  static constexpr Rate kRate = R;
  static constexpr bool kWritable = !std::is_const_v<T> && S != Space::read_only;
  // The rate of a load's result: only read_only memory is uniform at a uniform address.
  static constexpr Rate kLoadRate = S == Space::read_only ? R : Rate::thread;

  Ptr(Trace& trace, const Place& place) : trace_(&trace), place_(place) {}
  Ptr(const Ptr&) = default;
  Ptr& operator=(const Ptr&) = delete;
  // A pointer converts to one with less alignment, less uniformity, or without the right to write.
  template <class U, size_t A, Rate Q>
    requires((std::is_same_v<U, T> || std::is_same_v<const U, T>) && A >= Align && Q <= R &&
             !(std::is_same_v<U, T> && A == Align && Q == R))
  Ptr(const Ptr<S, U, A, Q>& other) : trace_(&other.trace()), place_(other.place()) {}  // NOLINT

  // The pointer moved by `index` elements. Unsigned indices are zero-extended, signed ones sign-extended.
  template <DeviceOperand I>
  auto at(const I& index, Where where = Where::current()) const {
    using U = ValueType<I>;
    static_assert(DeviceInteger<U>, "an index is an integer");
    const Expr<U, kRateOf<I>> offset(index);
    return Ptr<S, T, align_after<detail::kMultipleOf<I>>(), widest(R, kRateOf<I>)>(
        *trace_, trace_->offset(S, place_, kScalarOf<U>, sizeof(T), offset.value(), where));
  }
  template <detail::HostNumber I>
  auto at(I index, Where where = Where::current()) const {
    static_assert(std::is_integral_v<I>, "an index is an integer");
    return Ptr<S, T, align_after<1>(), R>(
        *trace_, trace_->offset(S, place_, static_cast<i64>(index) * static_cast<i64>(sizeof(T)), where));
  }
  // The pointer moved by N elements. A constant keeps more alignment than a run-time index.
  template <i64 N>
  auto at(Where where = Where::current()) const {
    constexpr size_t step = static_cast<size_t>(N < 0 ? -N : N);
    return Ptr<S, T, (step == 0 ? Align : gcd(Align, step * sizeof(T))), R>(
        *trace_, trace_->offset(S, place_, N * static_cast<i64>(sizeof(T)), where));
  }
  template <class I, I V>
  auto at(std::integral_constant<I, V>, Where where = Where::current()) const {
    return at<V>(where);
  }
  template <class I>
  friend auto operator+(const Ptr& pointer, const I& index) {
    return pointer.at(index, Where{});  // the access through the result records the line
  }

  // The same address as a pointer to U, with the same alignment.
  template <class U>
  auto as() const {
    static_assert(std::is_const_v<U> || !std::is_const_v<T>, "the pointer is read-only: ask for a const type");
    return Ptr<S, U, Align, R>(*trace_, place_);
  }

  // The same pointer with an object of `count` elements. Release builds emit nothing. In checked builds an access that
  // leaves this object traps, and `within` itself traps if the new object leaves the pointer's previous one. The object
  // ends at the next multiple of Granule bytes from its start, so that aligned vector reads of its end stay inside.
  template <size_t Granule = sizeof(T), class I>
  Ptr within(const I& count, Where where = Where::current()) const {
    using U = typename detail::CommonType<I, Expr<u32, R>>::Type;
    static_assert(DeviceInteger<U> && std::is_unsigned_v<U>, "a count is an unsigned integer");
    if (!trace_->is_checked()) return *this;
    const Value elements = materialise(*trace_, kScalarOf<U>, detail::operand<U>(count, where));
    return Ptr(*trace_, trace_->within(place_, kScalarOf<U>, elements, sizeof(T), Granule, where));
  }

  // The same memory as Global, to be chosen between with select: its loads are ordinary ones.
  auto as_global() const
    requires(S == Space::read_only)
  {
    return Ptr<Space::global, const Element, Align, R>(*trace_, place_);
  }

  // The author vouches for an alignment; checked builds trap where it does not hold, and the launch file lists it.
  template <size_t N>
  auto assume_aligned(const char* why, Where where = Where::current()) const {
    static_assert(detail::is_power_of_two(N) && N <= kMaxAlign, "assume_aligned takes 1, 2, 4, 8 or 16");
    trace_->assume_aligned(S, place_, N, why, where);
    return Ptr<S, T, (N > Align ? N : Align), R>(*trace_, place_);
  }

  // The pointer rounded down to a multiple of N bytes. It may point before the object.
  template <size_t N>
  auto align_down(Where where = Where::current()) const {
    static_assert(detail::is_power_of_two(N) && N <= kMaxAlign, "align_down takes 1, 2, 4, 8 or 16");
    return Ptr<S, T, (N > Align ? N : Align), R>(*trace_, trace_->align_down(S, place_, N, where));
  }

  // The address as a number: u64 in global, read_only and local, u32 in shared.
  auto address(Where where = Where::current()) const {
    using A = std::conditional_t<is_wide(S), u64, u32>;
    return Expr<A, R>({trace_, trace_->address(S, place_, where)});
  }

  template <class U = Element>
  Expr<U, kLoadRate> load(Where where = Where::current()) const {
    require_alignment<U, sizeof(U)>();
    return Expr<U, kLoadRate>({trace_, trace_->load(S, kScalarOf<U>, Align, place_, where)});
  }
  template <class V>
  void store(const V& value, Where where = Where::current()) const {
    store_as<Element>(value, where);
  }
  template <class U, class V>
  void store_as(const V& value, Where where = Where::current()) const {
    static_assert(kWritable, "a store through a read-only pointer: the parameter is declared const or read_only");
    require_alignment<U, sizeof(U)>();
    trace_->store(kScalarOf<U>, Align, place_, materialise(*trace_, kScalarOf<U>, detail::operand<U>(value, where)),
                  where);
  }

  // Asks for the line of L2 that holds the first byte; a hint, which changes no value.
  void prefetch_l2(Where where = Where::current()) const {
    static_assert(S == Space::global || S == Space::read_only, "only global memory is prefetched");
    trace_->prefetch_l2(place_, where);
  }

  // N elements in one access of N * sizeof(T) bytes.
  template <size_t N>
  auto load_vector(Where where = Where::current()) const {
    static_assert(N == 2 || N == 4, "a vector access has 2 or 4 elements");
    require_alignment<Element, N * sizeof(T)>();
    std::array<Value, N> lanes;
    trace_->load_vector(S, kScalarOf<Element>, Align, place_, lanes, where);
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::array<Expr<Element, kLoadRate>, N>{Expr<Element, kLoadRate>({trace_, lanes[I]})...};
    }(std::make_index_sequence<N>{});
  }
  template <size_t N, Rate Q>
  void store_vector(const std::array<Expr<Element, Q>, N>& values, Where where = Where::current()) const {
    static_assert(N == 2 || N == 4, "a vector access has 2 or 4 elements");
    static_assert(kWritable, "a store through a read-only pointer: the parameter is declared const or read_only");
    require_alignment<Element, N * sizeof(T)>();
    std::array<Value, N> lanes;
    for (size_t i = 0; i < N; ++i) lanes[i] = values[i].value();
    trace_->store_vector(kScalarOf<Element>, Align, place_, lanes, where);
  }

  // A U put together from its bytes, little-endian: sizeof(U) loads of one byte.
  template <DeviceInteger U>
  Expr<U, kLoadRate> load_bytewise(Where where = Where::current()) const {
    return Expr<U, kLoadRate>({trace_, trace_->load_bytewise(S, kScalarOf<U>, place_, where)});
  }

  // A u32 at any byte address, from the one or two aligned words that hold it and a funnel shift. It reads up to three
  // bytes of those words on either side of the value, never a word that holds none of its bytes.
  Expr<u32, kLoadRate> load_unaligned_u32(Where where = Where::current()) const {
    return Expr<u32, kLoadRate>({trace_, trace_->load_unaligned_u32(S, place_, where)});
  }

  Trace& trace() const { return *trace_; }
  const Place& place() const { return place_; }

 private:
  template <size_t M>
  static constexpr size_t align_after() {
    return gcd(Align, M * sizeof(T));
  }
  template <class U, size_t Bytes>
  static constexpr void require_alignment() {
    static_assert(DeviceNumber<U>, "memory holds integers and floats");
    static_assert(Align >= Bytes,
                  "misaligned access: the proven alignment of this address is below the width of the access; use "
                  "load_bytewise<T>, load_unaligned_u32, an index made with times<N> or align_down<N>, or "
                  "assume_aligned<N>(\"why\")");
  }

  Trace* trace_;
  Place place_;
};

// The pointer to elements of T at `address`, a u64 that the kernel loaded or computed, rounded down to a multiple of
// Align. Nothing is known of its object, which `within` gives it.
template <Space S, class T, size_t Align = 1, DeviceOperand A>
auto at_address(const A& address, Where where = Where::current()) {
  static_assert(S == Space::global || S == Space::read_only, "only global memory is reached by addresses from memory");
  static_assert(std::is_same_v<ValueType<A>, u64>, "an address is a u64");
  const Expr<u64, kRateOf<A>> number(address);
  static_assert(detail::is_power_of_two(Align) && Align <= kMaxAlign, "at_address takes 1, 2, 4, 8 or 16");
  return Ptr<S, T, Align, kRateOf<A>>(number.trace(), number.trace().place_at(S, number.value(), Align, where));
}

// condition ? a : b for pointers of one type; in checked builds with the object of the one chosen.
template <DeviceOperand C, Space S, class T, size_t A, Rate R>
auto select(const C& condition, const Ptr<S, T, A, R>& a, const Ptr<S, T, A, R>& b, Where where = Where::current()) {
  const auto chosen = detail::predicate(condition);
  const auto either = [&](Value x, Value y) { return a.trace().select(chosen.value(), x, y, where); };
  Place place{either(a.place().address, b.place().address)};
  if (a.place().bytes.node != nullptr && b.place().bytes.node != nullptr) {
    place.offset = either(a.place().offset, b.place().offset);
    place.bytes = either(a.place().bytes, b.place().bytes);
  }
  return Ptr<S, T, A, widest(kRateOf<C>, R)>(a.trace(), place);
}

// A pointer with its element count: the object of the pointer is these elements.
template <Space S, class T, size_t Align = sizeof(T), Rate R = Rate::block>
class [[nodiscard]] Span {
 public:
  using Pointer = Ptr<S, T, Align, R>;
  using Element = typename Pointer::Element;

  Span(const Pointer& data, Expr<u32, R> size, Where where = Where::current())
      : data_(data.within(size, where)), size_(size) {}
  template <class U, size_t A, Rate Q>
    requires((std::is_same_v<U, T> || std::is_same_v<const U, T>) && A >= Align && Q <= R &&
             !(std::is_same_v<U, T> && A == Align && Q == R))
  Span(const Span<S, U, A, Q>& other) : data_(other.data()), size_(other.size()) {}  // NOLINT
  Span(const Span&) = default;
  Span& operator=(const Span&) = delete;

  const Pointer& data() const { return data_; }
  const Expr<u32, R>& size() const { return size_; }  // in elements

  // The element at `index`, or a U that starts there.
  template <class U = Element, class I>
  auto load(const I& index, Where where = Where::current()) const {
    return pointer_to(index, where).template load<U>(where);
  }
  template <class I, class V>
  void store(const I& index, const V& value, Where where = Where::current()) const {
    pointer_to(index, where).store(value, where);
  }
  template <class U, class I, class V>
  void store_as(const I& index, const V& value, Where where = Where::current()) const {
    pointer_to(index, where).template store_as<U>(value, where);
  }
  template <DeviceInteger U, class I>
  auto load_bytewise(const I& index, Where where = Where::current()) const {
    return pointer_to(index, where).template load_bytewise<U>(where);
  }
  template <class I>
  auto load_unaligned_u32(const I& index, Where where = Where::current()) const {
    return pointer_to(index, where).load_unaligned_u32(where);
  }
  template <class I>
  auto pointer_to(const I& index, Where where = Where::current()) const {
    return data_.at(index, where);
  }

  // `count` elements from `begin`. The alignment follows from `begin` as for a pointer.
  template <class I, class N>
  auto slice(const I& begin, const N& count, Where where = Where::current()) const {
    auto first = pointer_to(begin, where);
    constexpr Rate rate = widest(decltype(first)::kRate, detail::rate_or_block<N>(), R);
    const Value size = materialise(data_.trace(), Scalar::uint32, detail::operand<u32>(count, where));
    using First = decltype(first);
    return Span<S, T, First::kAlign, rate>(Ptr<S, T, First::kAlign, rate>(data_.trace(), first.place()),
                                           Expr<u32, rate>({&data_.trace(), size}), where);
  }

 private:
  Pointer data_;
  Expr<u32, R> size_;
};

template <Space S, class T, size_t A, Rate R, class I>
auto load_unaligned_u32(const Span<S, T, A, R>& span, const I& position, Where where = Where::current()) {
  return span.load_unaligned_u32(position, where);
}

}  // namespace ptxkit::dsl
