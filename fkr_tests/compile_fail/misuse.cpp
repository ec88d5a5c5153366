// Every misuse that the type system of the DSL catches, beside the text that says the same thing rightly.
//
// A template refuses the same types once only, so cases that meet in one template differ in a type.
//
// The file is compiled twice. Without MISUSE all of it must compile: the twins. With MISUSE the compiler must refuse
// every line that ends in "expect: <phrase>", with a diagnostic that mentions the line and contains the phrase; the
// tests of misuse_test.cpp are made from these comments. A line is one misuse with its expectation, so the formatter
// keeps out.
// clang-format off
#include "builder/dsl.hpp"

namespace ptxkit::dsl {
namespace {

using Lanes = Expr<u32, Rate::thread>;
using Uniform = Expr<u32, Rate::warp>;
using Whole = Expr<u32, Rate::block>;

void takes_global(Span<global, const u8>) {}
void takes_uniform(Uniform) {}
void takes_words(Ptr<global, const u32>) {}

// --- alignment ---

[[maybe_unused]] void load_wider_than_the_span(Span<read_only, u8> src, Lanes i) {
#ifdef MISUSE
  (void)src.load<u32>(i);  // expect: misaligned access: the proven alignment of this address is below the width
#else
  (void)src.load_bytewise<u32>(i);
  (void)src.load_unaligned_u32(i);
#endif
}

[[maybe_unused]] void load_at_a_byte_cursor(Span<global, const u8, 4> src, Lanes i) {
#ifdef MISUSE
  (void)src.load<u32>(i + 4);  // expect: misaligned access
#else
  (void)src.load<u32>(times<4>(i));
  (void)src.load<u32>(align_down<4>(i));
#endif
}

[[maybe_unused]] void store_at_a_byte_cursor(Span<global, u8, 4> dst, Lanes i) {
#ifdef MISUSE
  dst.store_as<u32>(i, 0);  // expect: misaligned access
#else
  dst.store_as<u32>(times<4>(i), 0);
#endif
}

[[maybe_unused]] void pointer_loses_its_alignment(Ptr<global, u8, 16> p, Lanes i) {
#ifdef MISUSE
  (void)p.at(times<4>(i)).as<u64>().load();  // expect: misaligned access
#else
  (void)p.at(times<8>(i)).as<u64>().load();
#endif
}

[[maybe_unused]] void vector_of_words(Ptr<global, u32> p) {
#ifdef MISUSE
  (void)p.load_vector<4>();  // expect: misaligned access
#else
  (void)p.assume_aligned<16>("a twin").load_vector<4>();
#endif
}

[[maybe_unused]] void weaker_pointer_passed_on(Ptr<global, u32, 4> words, Ptr<global, u32, 2> halves) {
#ifdef MISUSE
  takes_words(halves);  // expect: could not convert
  (void)words;
#else
  takes_words(words);
  (void)halves;
#endif
}

[[maybe_unused]] void scaled_by_no_power_of_two(Lanes i) {
#ifdef MISUSE
  (void)times<12>(i);  // expect: times takes a power of two
#else
  (void)times<4>(i * 3);
#endif
}

[[maybe_unused]] void shared_array_below_its_element(Kernel& k) {
#ifdef MISUSE
  (void)k.shared<u32, 8, 2>("table");  // expect: the alignment of an array is a power of two from its element's size to 16
#else
  (void)k.shared<u32, 8, 4>("table");
#endif
}

// --- state spaces and the right to write ---

[[maybe_unused]] void store_through_const(Span<global, const u8> src, Span<global, u8> dst) {
#ifdef MISUSE
  src.store(0, 1);  // expect: a store through a read-only pointer
  (void)dst;
#else
  dst.store(0, 1);
  (void)src;
#endif
}

[[maybe_unused]] void store_through_read_only(Ptr<read_only, u32> src, Ptr<global, u32> dst) {
#ifdef MISUSE
  src.store(1);  // expect: a store through a read-only pointer
  (void)dst;
#else
  dst.store(1);
  (void)src;
#endif
}

[[maybe_unused]] void const_cast_by_as(Ptr<global, const u8, 4> src) {
#ifdef MISUSE
  src.as<u32>().store(1);  // expect: the pointer is read-only: ask for a const type
#else
  (void)src.as<const u32>().load();
#endif
}

[[maybe_unused]] void mixed_spaces(Span<shared, u8> table, Span<global, u8> src) {
#ifdef MISUSE
  takes_global(table);  // expect: could not convert
  (void)src;
#else
  takes_global(src);
  (void)table;
#endif
}

[[maybe_unused]] void prefetch_of_shared_memory(Ptr<shared, u8> table, Ptr<read_only, u8> src) {
#ifdef MISUSE
  table.prefetch_l2();  // expect: only global memory is prefetched
  (void)src;
#else
  src.prefetch_l2();
  (void)table;
#endif
}

[[maybe_unused]] void prefetch_of_local_memory(Ptr<local, u16> mine, Ptr<global, u16> theirs) {
#ifdef MISUSE
  mine.prefetch_l2();  // expect: only global memory is prefetched
  (void)theirs;
#else
  theirs.prefetch_l2();
  (void)mine;
#endif
}

[[maybe_unused]] void shared_pointer_as_a_parameter() {
#ifdef MISUSE
  (void)define({.name = "k", .block = 32}, [](Kernel&, Arg<"p", Ptr<shared, u32>>) {});  // expect: a kernel's pointers are global or read_only
#else
  (void)define({.name = "k", .block = 32}, [](Kernel&, Arg<"p", Ptr<global, u32>>) {});
#endif
}

[[maybe_unused]] void narrow_scalar_as_a_parameter() {
#ifdef MISUSE
  (void)define({.name = "k", .block = 32}, [](Kernel&, Arg<"n", u8>) {});  // expect: a scalar parameter has 32 or 64 bits
#else
  (void)define({.name = "k", .block = 32}, [](Kernel&, Arg<"n", u32>) {});
#endif
}

[[maybe_unused]] void predicate_in_memory(Span<global, u8> flags, Expr<bool, Rate::thread> seen) {
#ifdef MISUSE
  flags.store(0, seen);  // expect: the operands differ in width or sign
#else
  flags.store(0, zext<u8>(seen));
#endif
}

// --- rates ---

[[maybe_unused]] void lane_value_into_a_warp_variable(Kernel& k, Lanes lanes) {
  Var<u32, Rate::warp> ip(k, 0);
#ifdef MISUSE
  ip = lanes;  // expect: a more divergent value cannot be assigned to a uniform variable
#else
  ip = broadcast(lanes);
#endif
}

[[maybe_unused]] void lane_value_added_to_a_warp_variable(Kernel& k, Lanes lanes) {
  Var<u32, Rate::block> ip(k, 0);
#ifdef MISUSE
  ip += lanes & 1;  // expect: a more divergent value cannot be assigned to a uniform variable
#else
  Var<u32, Rate::warp> each(k, ip);
  each += reduce_add(lanes & 1);
#endif
}

[[maybe_unused]] void lane_value_as_initial_value(Kernel& k, Expr<i32, Rate::thread> lanes) {
#ifdef MISUSE
  Var<i32, Rate::warp> ip(k, lanes);  // expect: a more divergent value cannot be assigned to a uniform variable
#else
  Var<i32, Rate::thread> ip(k, lanes);
#endif
}

[[maybe_unused]] void warp_value_into_a_block_variable(Kernel& k) {
  Var<u32, Rate::block> turn(k, 0);
#ifdef MISUSE
  turn = k.warp();  // expect: a more divergent value cannot be assigned to a uniform variable
#else
  turn = k.block();
#endif
}

[[maybe_unused]] void lane_value_as_a_uniform_argument(Lanes lanes, Whole whole) {
#ifdef MISUSE
  takes_uniform(lanes);  // expect: could not convert
  (void)whole;
#else
  takes_uniform(whole);
  takes_uniform(broadcast(lanes));
#endif
}

[[maybe_unused]] void loaded_value_is_lane_varying(Kernel& k, Span<shared, u16> table, Span<read_only, u16> src) {
  Var<u16, Rate::warp> head(k, 0);
#ifdef MISUSE
  head = table.load(0);  // expect: a more divergent value cannot be assigned to a uniform variable
  (void)src;
#else
  head = src.load(0);
  head = broadcast(table.load(0));
#endif
}

[[maybe_unused]] void lane_condition_breaks_a_warp_loop(Kernel& k, Lanes lanes) {
  k.warp_loop([&](auto& loop) {
#ifdef MISUSE
    loop.break_if(lanes == 0);  // expect: a condition that differs between lanes (or warps) in a loop that is uniform
#else
    loop.break_if(any(lanes == 0));
#endif
  });
}

[[maybe_unused]] void warp_condition_continues_a_block_loop(Kernel& k) {
  k.block_loop([&](auto& loop) {
#ifdef MISUSE
    loop.continue_if(k.warp() == 0);  // expect: a condition that differs between lanes (or warps) in a loop that is uniform
#else
    loop.break_if(k.block() == 0);
#endif
  });
}

// --- native control flow ---

[[maybe_unused]] void native_if(Kernel& k, Uniform a) {
#ifdef MISUSE
  if (a == 0) k.trap_if(a == 0);  // expect: a device value is not known while the kernel is written
#else
  k.if_(a == 0, [&] { k.trap_if(a == 0); });
#endif
}

[[maybe_unused]] void native_while(Kernel& k) {
  Var<u32, Rate::warp> n(k, 4);
#ifdef MISUSE
  while (n) n -= 1;  // expect: a device value is not known while the kernel is written
#else
  k.warp_loop([&](auto& loop) {
    n -= 1;
    loop.break_if(n == 0);
  });
#endif
}

[[maybe_unused]] void native_conditional(Lanes a, Lanes b) {
#ifdef MISUSE
  (void)((a < b) ? a : b);  // expect: a device value is not known while the kernel is written
#else
  (void)select(a < b, a, b);
#endif
}

[[maybe_unused]] void native_break(Kernel& k) {
  k.warp_loop([&]([[maybe_unused]] auto& loop) {
#ifdef MISUSE
    break;  // expect: break statement not within loop or switch
#else
    loop.break_();
#endif
  });
}

[[maybe_unused]] void native_continue(Kernel& k) {
  k.warp_loop([&]([[maybe_unused]] auto& loop) {
#ifdef MISUSE
    continue;  // expect: continue statement not within a loop
#else
    loop.continue_if(k.block() == 0);
    loop.break_();
#endif
  });
}

[[maybe_unused]] void short_circuit_and(Uniform a, Uniform b) {
#ifdef MISUSE
  (void)(a == 0 && b == 0);  // expect: && cannot skip its right side on a device
#else
  (void)((a == 0) & (b == 0));
#endif
}

[[maybe_unused]] void short_circuit_or(Uniform a, Uniform b) {
#ifdef MISUSE
  (void)(a == 0 || b == 0);  // expect: || cannot skip its right side on a device
#else
  (void)((a == 0) | (b == 0));
#endif
}

[[maybe_unused]] void chained_comparison(Uniform a, Uniform x, Uniform b) {
#ifdef MISUSE
  (void)(a < x < b);  // expect: a comparison was chained (a < x < b is (a < x) & (x < b))
#else
  (void)((a < x) & (x < b));
#endif
}

[[maybe_unused]] void integer_as_condition(Kernel& k, Uniform a) {
#ifdef MISUSE
  k.if_(a, [] {});  // expect: the condition is a predicate, e.g. x != 0
#else
  k.if_(a != 0, [] {});
#endif
}

// --- types ---

[[maybe_unused]] void mixed_widths(Uniform a, Expr<u64, Rate::warp> b) {
#ifdef MISUSE
  (void)(a + b);  // expect: the operands differ in width or sign
#else
  (void)(zext<u64>(a) + b);
#endif
}

[[maybe_unused]] void mixed_signs(Uniform a, Expr<i32, Rate::warp> b) {
#ifdef MISUSE
  (void)(a >= b);  // expect: the operands differ in width or sign
#else
  (void)(a >= cast<u32>(b));
#endif
}

[[maybe_unused]] void mixed_equality(Uniform a, Expr<u16, Rate::thread> b) {
#ifdef MISUSE
  (void)(a == b);  // expect: the operands differ in width or sign
#else
  (void)(a == zext<u32>(b));
#endif
}

[[maybe_unused]] void assigned_another_type(Kernel& k, Expr<u64, Rate::warp> wide) {
  Var<u32, Rate::warp> n(k, 0);
#ifdef MISUSE
  n = wide;  // expect: the variable has another type
#else
  n = trunc<u32>(wide);
#endif
}

[[maybe_unused]] void select_of_two_types(Uniform a, Expr<i32, Rate::warp> b) {
#ifdef MISUSE
  (void)select(a == 0, a, b);  // expect: the operands differ in width or sign
#else
  (void)select(a == 0, a, bitcast<u32>(b));
#endif
}

[[maybe_unused]] void literal_too_large(Expr<u8, Rate::warp> a) {
#ifdef MISUSE
  (void)(a + 300);  // expect: error_literal_does_not_fit_the_operand_type
#else
  (void)(a + 200);
#endif
}

[[maybe_unused]] void negative_literal_for_unsigned(Uniform a) {
#ifdef MISUSE
  (void)(a + -1);  // expect: error_literal_does_not_fit_the_operand_type
#else
  (void)(a - 1);
#endif
}

[[maybe_unused]] void fraction_for_an_integer(Uniform a) {
#ifdef MISUSE
  (void)(a * 1.5);  // expect: error_literal_does_not_fit_the_operand_type
#else
  (void)(a * 3 / 2);
#endif
}

[[maybe_unused]] void runtime_number_as_literal(Kernel& k, Uniform a, u32 n) {
#ifdef MISUSE
  (void)(a + n);  // expect: is not a constant expression
  (void)k;
#else
  (void)(a + k.constant(n));
#endif
}

[[maybe_unused]] void arithmetic_on_predicates(Uniform a, Uniform b) {
#ifdef MISUSE
  (void)((a == 0) + (b == 0));  // expect: no match for
#else
  (void)(zext<u32>(a == 0) + zext<u32>(b == 0));
#endif
}

[[maybe_unused]] void zext_narrows(Uniform a) {
#ifdef MISUSE
  (void)zext<u16>(a);  // expect: zext cannot narrow
#else
  (void)trunc<u16>(a);
#endif
}

[[maybe_unused]] void zext_of_signed(Expr<i32, Rate::warp> a) {
#ifdef MISUSE
  (void)zext<u64>(a);  // expect: zext takes an unsigned integer or a predicate
#else
  (void)cast<u64>(a);
#endif
}

[[maybe_unused]] void trunc_widens(Uniform a) {
#ifdef MISUSE
  (void)trunc<u64>(a);  // expect: trunc cannot widen
#else
  (void)zext<u64>(a);
#endif
}

[[maybe_unused]] void bitcast_of_another_width(Uniform a) {
#ifdef MISUSE
  (void)bitcast<f64>(a);  // expect: bitcast keeps the width
#else
  (void)bitcast<f32>(a);
#endif
}

// --- values and places ---

[[maybe_unused]] void assigned_to_an_expr(Kernel& k, Uniform a, Uniform b) {
#ifdef MISUSE
  a = b;  // expect: use of deleted function
  (void)k;
#else
  Var<u32, Rate::warp> place(k, a);
  place = b;
#endif
}

[[maybe_unused]] void copied_variable(Kernel& k) {
  Var<u32, Rate::warp> a(k, 0);
#ifdef MISUSE
  auto b = a;  // expect: use of deleted function
#else
  auto b = *a;
#endif
  (void)b;
}

[[maybe_unused]] void dropped_result(Uniform a) {
#ifdef MISUSE
  popc(a);  // expect: ignoring returned value of type
#else
  (void)popc(a);
#endif
}

// --- atomics and collectives ---

[[maybe_unused]] void atomic_on_bytes(Ptr<global, u8, 4> p) {
#ifdef MISUSE
  atomic_add(p, 1, Order::relaxed, Scope::gpu);  // expect: atomics take 32- or 64-bit integers
#else
  atomic_add(p.as<u32>(), 1, Order::relaxed, Scope::gpu);
#endif
}

[[maybe_unused]] void atomic_on_local(Ptr<local, u32> mine, Ptr<shared, u32> ours) {
#ifdef MISUSE
  atomic_or(mine, 1, Order::relaxed, Scope::cta);  // expect: atomics work on global and shared memory
  (void)ours;
#else
  atomic_or(ours, 1, Order::relaxed, Scope::cta);
  (void)mine;
#endif
}

[[maybe_unused]] void atomic_misaligned(Ptr<global, u32, 2> p) {
#ifdef MISUSE
  atomic_exchange(p, 1, Order::relaxed, Scope::gpu);  // expect: misaligned atomic
#else
  atomic_exchange(p.assume_aligned<4>("a twin"), 1, Order::relaxed, Scope::gpu);
#endif
}

[[maybe_unused]] void predicated_atomic_misaligned(Expr<bool, Rate::thread> wanted, Ptr<global, u64, 4> p) {
#ifdef MISUSE
  atomic_max_if(wanted, p, 1, Order::relaxed, Scope::gpu);  // expect: misaligned atomic
#else
  atomic_max_if(wanted, p.assume_aligned<8>("allocations are"), 1, Order::relaxed, Scope::gpu);
#endif
}

[[maybe_unused]] void match_on_bytes(Expr<u8, Rate::thread> b) {
#ifdef MISUSE
  (void)match_any(b);  // expect: match takes a 32- or 64-bit integer
#else
  (void)match_any(zext<u32>(b));
#endif
}

[[maybe_unused]] void reduction_of_u64(Expr<u64, Rate::thread> b) {
#ifdef MISUSE
  (void)reduce_add(b);  // expect: warp reductions take u32
#else
  (void)reduce_add(trunc<u32>(b));
#endif
}

}  // namespace
}  // namespace ptxkit::dsl
