// define(): a kernel as one value. Name, launch bounds, budgets, cost and signature are stated once, so that the
// emitted PTX, the launch file and the host's launch agree.
#pragma once

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "builder/kernel.hpp"

namespace ptxkit::dsl {

// The size in bytes of an item's buffer, in the @pz_cost grammar: a sum of `integer`, `N`, `N*int`, `N/int` and
// `N/int*int`, where a division rounds up, and of the same terms of M. N is the size of the item in bytes, M that of
// its coded form. Expressions outside the grammar throw DslError.
class SizeExpr {
 public:
  constexpr SizeExpr(u64 bytes) : plus_(bytes) {}  // NOLINT: a number is a size
  static constexpr SizeExpr of(char variable) { return SizeExpr(Term{variable}); }
  friend constexpr SizeExpr operator*(SizeExpr size, u64 factor) {
    for (Term& term : size.terms_) term.times *= factor;
    size.plus_ *= factor;
    return size;
  }
  friend constexpr SizeExpr operator/(SizeExpr size, u64 divisor) {
    const Term& term = size.terms_[0];
    const bool is_variable = term.times == 1 && term.over == 1 && size.terms_[1].times == 0 && size.plus_ == 0;
    if (!is_variable || divisor == 0) refuse_quotient();
    size.terms_[0].over = divisor;
    return size;
  }
  friend constexpr SizeExpr operator+(SizeExpr sum, const SizeExpr& more) {
    sum.plus_ += more.plus_;
    Term* at = sum.terms_;
    for (const Term& term : more.terms_) {
      if (term.times == 0) continue;
      while (at != sum.terms_ + kMaxTerms && at->times != 0) ++at;
      if (at == sum.terms_ + kMaxTerms) refuse_sum();
      *at = term;
    }
    return sum;
  }
  std::string text() const;

 private:
  static constexpr size_t kMaxTerms = 4;
  struct Term {
    char variable = 0;
    u64 times = variable == 0 ? 0 : 1, over = 1;
  };
  constexpr explicit SizeExpr(Term term) : terms_{term} {}
  [[noreturn]] static void refuse_quotient();
  [[noreturn]] static void refuse_sum();
  Term terms_[kMaxTerms] = {};
  u64 plus_ = 0;
};
inline constexpr SizeExpr N = SizeExpr::of('N'), M = SizeExpr::of('M');

// A buffer that an item needs, by name.
struct Buffer {
  std::string name;
  SizeExpr size;
};

// Limits that the build checks against ptxas's report. A kernel that exceeds one fails the build.
struct Budget {
  u32 registers = 0;
  u32 shared_bytes = 0;
  u32 spill_bytes = 0;
};

// The kernel's cost as the @pz_cost block before its entry states it (docs/scheduling.md). The block's `local_mem`, the
// shared memory of a CTA, is Budget::shared_bytes. A kernel with a cost whose shared arrays take another number of
// bytes throws DslError when it is emitted.
struct Cost {
  double threads_per_element = 0;
  u32 passes = 1;
  std::vector<Buffer> buffers{};
  std::string note{};
};

struct KernelSpec {
  std::string name;
  u32 block = 0;       // threads of a CTA: a multiple of 32 up to 1024; the kernel can be launched with this size only
  u32 min_blocks = 0;  // CTAs that must fit an SM (.minnctapersm); 0: no demand
  Budget budget{};
  Cost cost{};
};

// What define() returns. `body` writes the kernel each time it is called; `where` is the place of the definition.
struct KernelDefinition {
  KernelSpec spec;
  std::vector<Parameter> parameters;
  std::function<void(Kernel&)> body;
  Where where;
};

namespace detail {

template <class X>
struct ArgOf;

template <DeviceScalar T>
struct ArgOf<T> {
  using Base = Expr<T, Rate::block>;
  static constexpr size_t kCount = 1;
  static void describe(std::string name, std::vector<Parameter>& out) {
    static_assert(sizeof(T) >= 4 && !std::is_same_v<T, bool>, "a scalar parameter has 32 or 64 bits");
    Parameter parameter;
    parameter.name = std::move(name);
    parameter.scalar = kScalarOf<T>;
    out.push_back(std::move(parameter));
  }
  static Base make(Kernel& k, size_t index) { return Base({&k.trace(), k.trace().parameter(index)}); }
};

template <Space S, class T, size_t A>
struct ArgOf<Ptr<S, T, A, Rate::block>> {
  static_assert(is_wide(S), "a kernel's pointers are global or read_only");
  using Base = Ptr<S, T, A, Rate::block>;
  static constexpr size_t kCount = 1;
  static void describe(std::string name, std::vector<Parameter>& out) {
    Parameter parameter;
    parameter.name = std::move(name);
    parameter.kind = ParameterKind::pointer;
    parameter.scalar = kScalarOf<typename Base::Element>;
    parameter.space = S;
    parameter.align = A;
    parameter.writable = Base::kWritable;
    out.push_back(std::move(parameter));
  }
  static Base make(Kernel& k, size_t index) { return Base(k.trace(), {k.trace().parameter(index)}); }
};

template <Space S, class T, size_t A>
struct ArgOf<Span<S, T, A, Rate::block>> {
  using Base = Span<S, T, A, Rate::block>;
  using Pointer = Ptr<S, T, A, Rate::block>;
  static constexpr size_t kCount = 2;
  static void describe(const std::string& name, std::vector<Parameter>& out) {
    ArgOf<Pointer>::describe(name, out);
    out.back().size_parameter = name + "_size";
    ArgOf<u32>::describe(name + "_size", out);
  }
  static Base make(Kernel& k, size_t index) {
    return Base(ArgOf<Pointer>::make(k, index), ArgOf<u32>::make(k, index + 1));
  }
};

template <class Body>
struct BodyTraits : BodyTraits<decltype(&Body::operator())> {};

}  // namespace detail

// A parameter of a kernel, named and typed: Arg<"n", u32>, Arg<"status", Ptr<global, u32>>, Arg<"src", Span<read_only,
// u8>>.
template <Name Text, class X>
struct Arg : detail::ArgOf<X>::Base {
  using Base = typename detail::ArgOf<X>::Base;
  explicit Arg(const Base& base) : Base(base) {}
};
template <Name Text, DeviceScalar T>
struct OperandTraits<Arg<Text, T>> : OperandTraits<Expr<T, Rate::block>> {};

namespace detail {

template <class A>
struct ArgTraits;
template <Name Text, class X>
struct ArgTraits<Arg<Text, X>> {
  using Maker = ArgOf<X>;
  static void describe(std::vector<Parameter>& out) { Maker::describe(Text.text, out); }
};

template <class Body, class... Args>
struct BodyTraits<void (Body::*)(Kernel&, Args...) const> {
  static std::vector<Parameter> parameters() {
    std::vector<Parameter> out;
    (ArgTraits<std::remove_cvref_t<Args>>::describe(out), ...);
    return out;
  }
  template <class Callable>
  static void call(const Callable& body, Kernel& k) {
    [[maybe_unused]] size_t next = 0;
    [[maybe_unused]] const auto take = [&]<class A>(std::type_identity<A>) {
      using Maker = typename ArgTraits<A>::Maker;
      const size_t index = next;
      next += Maker::kCount;
      return A(Maker::make(k, index));
    };
    // The braces order the calls, so that parameters are numbered in the order of the signature.
    const std::tuple<std::remove_cvref_t<Args>...> arguments{take(std::type_identity<std::remove_cvref_t<Args>>{})...};
    std::apply([&](const auto&... args) { body(k, args...); }, arguments);
  }
};

// Throws DslError for a name that is no PTX identifier in lower case or a CTA size that cannot be launched.
void check_spec(const KernelSpec& spec, Where where);

}  // namespace detail

// Defines the kernel `spec`. `body` is a lambda (Kernel&, Arg<"name", ...>...) that writes the kernel. It runs once for
// each emission and must write the same kernel each time. Throws DslError for an invalid `spec`.
template <class Body>
KernelDefinition define(KernelSpec spec, Body body, Where where = Where::current()) {
  detail::check_spec(spec, where);
  using Traits = detail::BodyTraits<Body>;
  return {std::move(spec), Traits::parameters(), [body](Kernel& k) { Traits::call(body, k); }, where};
}

}  // namespace ptxkit::dsl
