// Expr and Var: values of the kernel that is being traced.
//
// An Expr is immutable and has one definition; a Var is a variable that can be assigned. Both carry the scalar type and
// the rate. Both operands of an operator have the same type, so widths and signs never mix silently. A literal takes
// the type of the other operand if it fits, which the compiler checks. Operands are passed as `Located`, whose
// converting constructors record the author's line: an operator cannot have default arguments, a constructor can.
#pragma once

#include <bit>
#include <type_traits>

#include "builder/trace.hpp"
#include "builder/types.hpp"

namespace ptxkit::dsl {

template <DeviceScalar T, Rate R>
class Expr;
template <DeviceScalar T, Rate R>
class Var;

namespace detail {

// Deliberately not constexpr: a call in a constant expression is an error, and the name is its message.
void error_literal_does_not_fit_the_operand_type();

template <class T>
constexpr u64 bits_of_value(T value) {
  if constexpr (std::is_same_v<T, f32>) return std::bit_cast<u32>(value);
  if constexpr (std::is_same_v<T, f64>) return std::bit_cast<u64>(value);
  if constexpr (!std::is_floating_point_v<T>) return static_cast<u64>(value);
}

template <class T, class I>
constexpr bool fits(I literal) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<I, bool>) {
    return std::is_same_v<T, I>;
  } else if constexpr (std::is_floating_point_v<T> || std::is_floating_point_v<I>) {
    return static_cast<I>(static_cast<T>(literal)) == literal && std::is_floating_point_v<T>;
  } else {
    return static_cast<I>(static_cast<T>(literal)) == literal && (static_cast<T>(literal) < T{}) == (literal < I{});
  }
}

template <class I>
concept HostNumber = std::is_arithmetic_v<I>;

template <class T, HostNumber I>
consteval u64 literal_bits(I literal) {
  if (!fits<T>(literal)) error_literal_does_not_fit_the_operand_type();
  return bits_of_value(static_cast<T>(literal));
}

}  // namespace detail

// An operand that is a C++ constant. It must be a constant expression and must fit T.
template <DeviceScalar T>
struct Literal : Operand {
  template <detail::HostNumber I>
  consteval Literal(I literal, Where at = Where::current())
      : Operand{nullptr, {}, detail::literal_bits<T>(literal), at} {}
  template <class I, I V>
  consteval Literal(std::integral_constant<I, V>, Where at = Where::current())
      : Operand{nullptr, {}, detail::literal_bits<T>(V), at} {}
};

// An operand of type T whose rate is exactly R, with the source line that uses it.
template <DeviceScalar T, Rate R>
struct Located : Operand {
  Located(const Expr<T, R>& expr, Where at = Where::current());
  Located(const Var<T, R>& var, Where at = Where::current());
  template <detail::HostNumber I>
    requires(R == Rate::block)
  consteval Located(I literal, Where at = Where::current())
      : Operand{nullptr, {}, detail::literal_bits<T>(literal), at} {}
  template <class I, I V>
    requires(R == Rate::block)
  consteval Located(std::integral_constant<I, V>, Where at = Where::current())
      : Operand{nullptr, {}, detail::literal_bits<T>(V), at} {}
};

template <class A>
struct OperandTraits {
  static constexpr bool kIsDevice = false;
};
template <class A>
concept DeviceOperand = OperandTraits<std::remove_cvref_t<A>>::kIsDevice;
template <class A>
using ValueType = typename OperandTraits<std::remove_cvref_t<A>>::Type;
template <DeviceOperand A>
inline constexpr Rate kRateOf = OperandTraits<std::remove_cvref_t<A>>::kRate;

// The operators of Expr<T, R> and Var<T, R>, found by argument-dependent lookup through this base. Each operator has
// one overload for each rate of the right operand, and one for a literal on the left.
template <DeviceScalar T, Rate R>
class Operands {
#define PTXKIT_ONE(op, code, result, S, condition)                                \
  friend Expr<result, widest(R, S)> operator op(Located<T, R> a, Located<T, S> b) \
    requires(condition)                                                           \
  {                                                                               \
    return Expr<result, widest(R, S)>(apply(code, kScalarOf<T>, a, b));           \
  }
#define PTXKIT_OPERATOR(op, code, result, condition)                \
  PTXKIT_ONE(op, code, result, Rate::block, condition)              \
  PTXKIT_ONE(op, code, result, Rate::warp, condition)               \
  PTXKIT_ONE(op, code, result, Rate::thread, condition)             \
  friend Expr<result, R> operator op(Literal<T> a, Located<T, R> b) \
    requires(R != Rate::block && (condition))                       \
  {                                                                 \
    return Expr<result, R>(apply(code, kScalarOf<T>, a, b));        \
  }
  PTXKIT_OPERATOR(+, Binary::add, T, DeviceNumber<T>)
  PTXKIT_OPERATOR(-, Binary::sub, T, DeviceNumber<T>)
  PTXKIT_OPERATOR(*, Binary::mul, T, DeviceNumber<T>)
  PTXKIT_OPERATOR(/, Binary::div, T, DeviceNumber<T>)
  PTXKIT_OPERATOR(%, Binary::rem, T, DeviceInteger<T>)
  PTXKIT_OPERATOR(&, Binary::and_, T, DeviceInteger<T> || (std::is_same_v<T, bool>))
  PTXKIT_OPERATOR(|, Binary::or_, T, DeviceInteger<T> || (std::is_same_v<T, bool>))
  PTXKIT_OPERATOR(^, Binary::xor_, T, DeviceInteger<T> || (std::is_same_v<T, bool>))
  PTXKIT_OPERATOR(<<, Binary::shl, T, DeviceInteger<T>)
  PTXKIT_OPERATOR(>>, Binary::shr, T, DeviceInteger<T>)
  PTXKIT_OPERATOR(==, Compare::eq, bool, DeviceNumber<T> || (std::is_same_v<T, bool>))
  PTXKIT_OPERATOR(!=, Compare::ne, bool, DeviceNumber<T> || (std::is_same_v<T, bool>))
  PTXKIT_OPERATOR(<, Compare::lt, bool, DeviceNumber<T>)
  PTXKIT_OPERATOR(<=, Compare::le, bool, DeviceNumber<T>)
  PTXKIT_OPERATOR(>, Compare::gt, bool, DeviceNumber<T>)
  PTXKIT_OPERATOR(>=, Compare::ge, bool, DeviceNumber<T>)
#undef PTXKIT_OPERATOR
#undef PTXKIT_ONE

  friend Expr<T, R> operator~(Located<T, R> a)
    requires(DeviceInteger<T>)
  {
    return Expr<T, R>(apply(Binary::xor_, kScalarOf<T>, a, Operand{nullptr, {}, ~u64{0}, a.where}));
  }
  friend Expr<T, R> operator-(Located<T, R> a)
    requires(DeviceNumber<T>)
  {
    return Expr<T, R>({a.trace, a.trace->negate(kScalarOf<T>, a.value, a.where)});
  }
};

template <DeviceScalar T, Rate R>
class [[nodiscard]] Expr : public Operands<T, R> {
 public:
  using Type = T;
  static constexpr Rate kRate = R;

  explicit Expr(Traced traced) : trace_(traced.trace), value_(traced.value) {}
  Expr(const Expr&) = default;
  Expr& operator=(const Expr&) = delete;  // an Expr is a value, not a variable: use a Var

  // A uniform value converts to a less uniform one.
  template <Rate S>
    requires(S < R)
  Expr(const Expr<T, S>& narrower) : trace_(&narrower.trace()), value_(narrower.value()) {}  // NOLINT
  template <Rate S>
    requires(S <= R)
  Expr(const Var<T, S>& var, Where where = Where::current()) : Expr(var.read(where)) {}  // NOLINT

  // Takes Expr itself, so that it is preferred to the built-in ! through operator bool. The operand's line is kept.
  friend Expr operator!(const Expr& a)
    requires(std::is_same_v<T, bool>)
  {
    return Expr(
        apply(Binary::xor_, Scalar::pred, Operand{a.trace_, a.value_, 0, Where{}}, Operand{nullptr, {}, 1, Where{}}));
  }

  template <class Never = void>
  explicit operator bool() const {
    static_assert(!std::is_void_v<Never>,
                  "a device value is not known while the kernel is written: use k.if_(condition, ...) or select");
    return false;
  }

  Trace& trace() const { return *trace_; }
  Value value() const { return value_; }

 private:
  Trace* trace_;
  Value value_;
};

template <DeviceScalar T, Rate R>
struct OperandTraits<Expr<T, R>> {
  static constexpr bool kIsDevice = true;
  using Type = T;
  static constexpr Rate kRate = R;
};
template <DeviceScalar T, Rate R>
struct OperandTraits<Var<T, R>> : OperandTraits<Expr<T, R>> {};

// The right side of an assignment to a Var<T, R>: of type T, and at most as divergent as R. A literal must fit T.
template <DeviceScalar T, Rate R>
struct AssignedValue : Operand {
  template <Rate S>
  AssignedValue(const Expr<T, S>& expr, Where at = Where::current()) : Operand{&expr.trace(), expr.value(), 0, at} {
    static_assert(
        S <= R,
        "a more divergent value cannot be assigned to a uniform variable: make it uniform with broadcast, any, "
        "all, ballot or a reduction, or declare the variable at Rate::thread");
  }
  template <Rate S>
  AssignedValue(const Var<T, S>& var, Where at = Where::current()) : AssignedValue(*var, at) {}
  template <detail::HostNumber I>
  consteval AssignedValue(I literal, Where at = Where::current())
      : Operand{nullptr, {}, detail::literal_bits<T>(literal), at} {}
  template <class I, I V>
  consteval AssignedValue(std::integral_constant<I, V>, Where at = Where::current())
      : Operand{nullptr, {}, detail::literal_bits<T>(V), at} {}
  template <DeviceOperand A>
    requires(!std::is_same_v<ValueType<A>, T>)
  AssignedValue(const A&) {
    static_assert(kNever<A>, "the variable has another type: convert with cast<T>, zext<T> or trunc<T>");
  }
};

class Kernel;
Trace& trace_of(Kernel& kernel);
// A variable of the kernel. The constructor takes the initial value, so a Var is never uninitialised. An assignment to
// a block- or warp-uniform variable inside a more divergent branch or loop throws DslError.

template <DeviceScalar T, Rate R>
class Var : public Operands<T, R> {
 public:
  using Type = T;
  static constexpr Rate kRate = R;

  Var(Kernel& kernel, AssignedValue<T, R> initial)
      : trace_(&trace_of(kernel)),
        slot_(trace_->declare(kScalarOf<T>, materialise(*trace_, kScalarOf<T>, initial), initial.where)) {}
  Var(const Var&) = delete;  // pass by reference; copy the value with *var
  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): stores its own value
  Var& operator=(const Var& other) { return *this = AssignedValue<T, R>(*other); }

  // *var is the variable's value at this point. A friend, so that the conversion to Now can record the line.
  struct Now {
    Now(const Var& of, Where at = Where::current()) : var(of), where(at) {}  // NOLINT
    const Var& var;
    Where where;
  };
  friend Expr<T, R> operator*(Now now) { return now.var.read(now.where); }
  Expr<T, R> read(Where where) const { return Expr<T, R>({trace_, trace_->read(kScalarOf<T>, slot_, where)}); }

  Var& operator=(AssignedValue<T, R> value) {
    trace_->assign(slot_, R, materialise(*trace_, kScalarOf<T>, value), value.where);
    return *this;
  }
#define PTXKIT_COMPOUND(op, code)                                                              \
  Var& operator op(AssignedValue<T, R> value) {                                                \
    const Operand now{trace_, trace_->read(kScalarOf<T>, slot_, value.where), 0, value.where}; \
    trace_->assign(slot_, R, apply(code, kScalarOf<T>, now, value).value, value.where);        \
    return *this;                                                                              \
  }
  PTXKIT_COMPOUND(+=, Binary::add)
  PTXKIT_COMPOUND(-=, Binary::sub)
  PTXKIT_COMPOUND(*=, Binary::mul)
  PTXKIT_COMPOUND(&=, Binary::and_)
  PTXKIT_COMPOUND(|=, Binary::or_)
  PTXKIT_COMPOUND(^=, Binary::xor_)
  PTXKIT_COMPOUND(<<=, Binary::shl)
  PTXKIT_COMPOUND(>>=, Binary::shr)
#undef PTXKIT_COMPOUND

  friend Expr<T, R> operator!(const Var& var)
    requires(std::is_same_v<T, bool>)
  {
    return !var.read(Where{});
  }

  template <class Never = void>
  explicit operator bool() const {
    static_assert(!std::is_void_v<Never>,
                  "a device value is not known while the kernel is written: use k.if_(condition, ...) or select");
    return false;
  }

 private:
  Trace* trace_;
  Slot slot_;
};

template <DeviceScalar T, Rate R>
Located<T, R>::Located(const Expr<T, R>& expr, Where at) : Operand{&expr.trace(), expr.value(), 0, at} {}
template <DeviceScalar T, Rate R>
Located<T, R>::Located(const Var<T, R>& var, Where at) : Located(var.read(at), at) {}

// Overloads that refuse to compile and give the reason. Each is chosen only where no operator above fits.
#define PTXKIT_REFUSE_MIXED(op)                                                                      \
  template <DeviceOperand A, DeviceOperand B>                                                        \
    requires(!std::is_same_v<ValueType<A>, ValueType<B>>)                                            \
  Expr<ValueType<A>, widest(kRateOf<A>, kRateOf<B>)> operator op(const A & a, const B&) {            \
    static_assert(kNever<A>,                                                                         \
                  "the operands differ in width or sign, or a comparison was chained (a < x < b is " \
                  "(a < x) & (x < b)): convert with cast<T>, zext<T> or trunc<T>");                  \
    return a;                                                                                        \
  }
PTXKIT_REFUSE_MIXED(+)
PTXKIT_REFUSE_MIXED(-)
PTXKIT_REFUSE_MIXED(*)
PTXKIT_REFUSE_MIXED(/)
PTXKIT_REFUSE_MIXED(%)
PTXKIT_REFUSE_MIXED(&)
PTXKIT_REFUSE_MIXED(|)
PTXKIT_REFUSE_MIXED(^)
PTXKIT_REFUSE_MIXED(<<)
PTXKIT_REFUSE_MIXED(>>)
PTXKIT_REFUSE_MIXED(==)
PTXKIT_REFUSE_MIXED(<)
PTXKIT_REFUSE_MIXED(<=)
PTXKIT_REFUSE_MIXED(>)
PTXKIT_REFUSE_MIXED(>=)
#undef PTXKIT_REFUSE_MIXED

template <class A, class B>
  requires(DeviceOperand<A> || DeviceOperand<B>)
void operator&&(const A&, const B&) {
  static_assert(kNever<A>, "&& cannot skip its right side on a device: use & (both sides are evaluated) or k.if_");
}
template <class A, class B>
  requires(DeviceOperand<A> || DeviceOperand<B>)
void operator||(const A&, const B&) {
  static_assert(kNever<A>, "|| cannot skip its right side on a device: use | (both sides are evaluated) or k.if_");
}

// --- conversions ---

// cast<T>: integers are reduced modulo 2^width and widened by the source's sign; floats are rounded.
template <DeviceNumber T, DeviceOperand A>
Expr<T, kRateOf<A>> cast(const A& a, Where where = Where::current()) {
  const Expr<ValueType<A>, kRateOf<A>> from(a);
  return Expr<T, kRateOf<A>>(
      {&from.trace(), from.trace().convert(kScalarOf<ValueType<A>>, kScalarOf<T>, from.value(), where)});
}

// zext<T>: widens an unsigned integer, or a predicate as 0 or 1; T is at least as wide.
template <DeviceInteger T, DeviceOperand A>
Expr<T, kRateOf<A>> zext(const A& a, Where where = Where::current()) {
  static_assert(!is_signed(kScalarOf<ValueType<A>>) && !is_float(kScalarOf<ValueType<A>>),
                "zext takes an unsigned integer or a predicate: use cast<T>");
  static_assert(bits_of(kScalarOf<ValueType<A>>) <= bits_of(kScalarOf<T>), "zext cannot narrow: use trunc<T>");
  return cast<T>(a, where);
}

// trunc<T>: the low bits of an integer; T is at most as wide.
template <DeviceInteger T, DeviceOperand A>
Expr<T, kRateOf<A>> trunc(const A& a, Where where = Where::current()) {
  static_assert(DeviceInteger<ValueType<A>>, "trunc takes an integer: use cast<T>");
  static_assert(bits_of(kScalarOf<ValueType<A>>) >= bits_of(kScalarOf<T>),
                "trunc cannot widen: use zext<T> or cast<T>");
  return cast<T>(a, where);
}

// bitcast<T>: the same bits read as another type of the same width.
template <DeviceNumber T, DeviceOperand A>
Expr<T, kRateOf<A>> bitcast(const A& a, Where where = Where::current()) {
  static_assert(bits_of(kScalarOf<ValueType<A>>) == bits_of(kScalarOf<T>), "bitcast keeps the width");
  const Expr<ValueType<A>, kRateOf<A>> from(a);
  return Expr<T, kRateOf<A>>(
      {&from.trace(), from.trace().bitcast(kScalarOf<ValueType<A>>, kScalarOf<T>, from.value(), where)});
}

// --- select, min, max ---

namespace detail {

// For functions of several operands, where a literal takes its type from another argument.
void check_literal_fits(bool fits, const char* type, Where where);

template <DeviceScalar T, class A>
Operand operand(const A& a, Where where) {
  if constexpr (DeviceOperand<A>) {
    static_assert(std::is_same_v<ValueType<A>, T>,
                  "the operands differ in width or sign: convert with cast<T>, zext<T> "
                  "or trunc<T>");
    if constexpr (std::is_same_v<ValueType<A>, T>) {
      const Expr<T, kRateOf<A>> expr(a);
      return Operand{&expr.trace(), expr.value(), 0, where};
    } else {
      return Operand{};  // refused by the static_assert above
    }
  } else {
    constexpr bool is_number = HostNumber<A> || requires { A::value; };
    static_assert(is_number, "expected a device value or a number");
    if constexpr (HostNumber<A>) {
      check_literal_fits(fits<T>(a), name_of(kScalarOf<T>), where);
      return Operand{nullptr, {}, bits_of_value(static_cast<T>(a)), where};
    } else {
      static_assert(fits<T>(A::value), "the literal does not fit the operand type");
      return Operand{nullptr, {}, bits_of_value(static_cast<T>(A::value)), where};
    }
  }
}

template <class C>
Expr<bool, kRateOf<C>> predicate(const C& condition) {
  if constexpr (std::is_same_v<ValueType<C>, bool>) {
    return Expr<bool, kRateOf<C>>(condition);
  } else {
    static_assert(kNever<C>, "the condition is a predicate, e.g. x != 0");
    return Expr<bool, kRateOf<C>>(Traced{});
  }
}

template <class A>
constexpr Rate rate_or_block() {
  if constexpr (DeviceOperand<A>) {
    return kRateOf<A>;
  } else {
    return Rate::block;
  }
}

template <class A, class B>
struct CommonType {
  using Type = ValueType<A>;
};
template <class A, class B>
  requires(!DeviceOperand<A>)
struct CommonType<A, B> {
  using Type = ValueType<B>;
};

}  // namespace detail

// condition ? a : b. Both sides are evaluated.
template <DeviceOperand C, class A, class B>
  requires(DeviceOperand<A> || DeviceOperand<B>)
auto select(const C& condition, const A& a, const B& b, Where where = Where::current()) {
  using T = typename detail::CommonType<A, B>::Type;
  const auto chosen = detail::predicate(condition);
  Trace& trace = chosen.trace();
  const Value first = materialise(trace, kScalarOf<T>, detail::operand<T>(a, where));
  const Value second = materialise(trace, kScalarOf<T>, detail::operand<T>(b, where));
  return Expr<T, widest(kRateOf<C>, detail::rate_or_block<A>(), detail::rate_or_block<B>())>(
      {&trace, trace.select(chosen.value(), first, second, where)});
}

template <class A, class B>
  requires(DeviceOperand<A> || DeviceOperand<B>)
auto min(const A& a, const B& b, Where where = Where::current()) {
  using T = typename detail::CommonType<A, B>::Type;
  return Expr<T, widest(detail::rate_or_block<A>(), detail::rate_or_block<B>())>(
      apply(Binary::min, kScalarOf<T>, detail::operand<T>(a, where), detail::operand<T>(b, where)));
}

template <class A, class B>
  requires(DeviceOperand<A> || DeviceOperand<B>)
auto max(const A& a, const B& b, Where where = Where::current()) {
  using T = typename detail::CommonType<A, B>::Type;
  return Expr<T, widest(detail::rate_or_block<A>(), detail::rate_or_block<B>())>(
      apply(Binary::max, kScalarOf<T>, detail::operand<T>(a, where), detail::operand<T>(b, where)));
}

}  // namespace ptxkit::dsl
