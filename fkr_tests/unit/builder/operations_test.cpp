// The PTX of each operation. Kernels here are as small as the operation allows. What they compute is tested on the
// emulator (fkr_tests/emulated).
#include <functional>
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "builder/dsl.hpp"
#include "fkr_tests/unit/builder/assemble.hpp"

namespace ptxkit::dsl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Out = Span<global, u32>;
using In = Span<read_only, u32>;
using Body = std::function<void(Kernel&, const In&, const Out&)>;

KernelDefinition kernel(Body body) {
  return define({.name = "op", .block = 64},
                [body](Kernel& k, Arg<"in", In> in, Arg<"out", Out> out) { body(k, in, out); });
}

// The PTX of a kernel that stores body(k, x), where x is the thread's own input.
template <class F>
std::string ptx_of(F body, EmitOptions options = {}) {
  const std::string ptx = emit_ptx(kernel([body](Kernel& k, const In& in, const Out& out) {
                                     const auto i = k.thread();
                                     out.store(i, body(k, in.load(i)));
                                   }),
                                   options);
  if (testing::has_ptxas()) {
    EXPECT_THAT(testing::assemble(ptx, options.sm), IsEmpty()) << ptx;
  }
  return ptx;
}

using Lanes = Expr<u32, Rate::thread>;

TEST(Operations, PtxasIsHere) {
  if (!testing::has_ptxas()) GTEST_SKIP() << "no ptxas on this machine: what is emitted is not assembled";
}

TEST(Operations, Bits) {
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return popc(x); }), HasSubstr("popc.b32"));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return popc(zext<u64>(x) * 3); }), HasSubstr("popc.b64"));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return clz(x); }), HasSubstr("clz.b32"));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return brev(x); }), HasSubstr("brev.b32"));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return mul_hi(x, 0xcccccccdu); }), HasSubstr("mul.hi.u32"));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return trunc<u32>(mul_hi(zext<u64>(x) * 7, 9)); }),
              HasSubstr("mul.hi.u64"));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return prmt(x, 0, 0x0123); }), HasSubstr("prmt.b32"));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return funnel_right(x, 1, x); }), HasSubstr("shf.r.wrap.b32"));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return funnel_left(x, 1, x); }), HasSubstr("shf.l.wrap.b32"));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return shift_left(1, x); }), HasSubstr("shl.b32"));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return bit_field(x, 3, 5); }), HasSubstr("bfe.u32"));
}

TEST(Operations, Shuffles) {
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return shuffle(x, 5); }), HasSubstr(", 5, 31, -1;"));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return shuffle<8>(x, 5); }), HasSubstr(", 5, 6175, -1;"));  // 24 << 8 | 31
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return shuffle_up(x, 2); }),
              AllOf(HasSubstr("shfl.sync.up.b32"), HasSubstr(", 2, 0, -1;")));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return shuffle_down(x, 2); }),
              AllOf(HasSubstr("shfl.sync.down.b32"), HasSubstr(", 2, 31, -1;")));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return shuffle_xor(x, 16); }),
              AllOf(HasSubstr("shfl.sync.bfly.b32"), HasSubstr(", 16, 31, -1;")));
}

TEST(Operations, Votes) {
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return zext<u32>(any(x == 1)); }), HasSubstr("vote.sync.any.pred"));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return zext<u32>(all(x == 1)); }), HasSubstr("vote.sync.all.pred"));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return ballot(x == 1); }), HasSubstr("vote.sync.ballot.b32"));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return match_any(x); }), HasSubstr("match.any.sync.b32"));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return match_any(zext<u64>(x)); }), HasSubstr("match.any.sync.b64"));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return zext<u32>(match_all(x)); }), HasSubstr("match.all.sync.b32"));
}

TEST(Operations, ReductionsAreOneInstructionFromSm80On) {
  const auto sum = [](Kernel&, Lanes x) { return reduce_add(x); };
  EXPECT_THAT(ptx_of(sum, {.sm = 80}), AllOf(HasSubstr("redux.sync.add.s32"), Not(HasSubstr("shfl"))));
  EXPECT_THAT(ptx_of(sum, {.sm = 75}), AllOf(HasSubstr("shfl.sync.bfly.b32"), Not(HasSubstr("redux"))));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return reduce_min(x); }, {.sm = 90}), HasSubstr("redux.sync.min.u32"));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return reduce_max(x); }, {.sm = 90}), HasSubstr("redux.sync.max.u32"));
  EXPECT_THAT(ptx_of([](Kernel&, Lanes x) { return reduce_or(x); }, {.sm = 90}), HasSubstr("redux.sync.or.b32"));
}

TEST(Operations, Synchronisation) {
  const auto both = [](Kernel& k, Lanes x) {
    k.barrier();
    k.sync_warp();
    k.fence(Order::acq_rel, Scope::sys);
    return x;
  };
  EXPECT_THAT(ptx_of(both),
              AllOf(HasSubstr("bar.sync \t0;"), HasSubstr("bar.warp.sync \t-1;"), HasSubstr("fence.acq_rel.sys;")));
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Operations, PrefetchesStayAlthoughNothingDependsOnThem) {
  const std::string ptx = emit_ptx(define(
      {.name = "op", .block = 32}, [](Kernel& k, Arg<"in", Ptr<read_only, u32>> in, Arg<"out", Ptr<global, u8>> out) {
        in.at(k.thread()).prefetch_l2();
        k.if_(k.thread() < 8, [&] { out.at(k.thread()).prefetch_l2(); });
      }));
  EXPECT_EQ(count(ptx, "prefetch.global.L2 [%rd"), 2u) << ptx;
  if (testing::has_ptxas()) {
    EXPECT_THAT(testing::assemble(ptx, 75), IsEmpty()) << ptx;
  }
}

TEST(Operations, SharedArraysHave32BitAddressesAndTheirAlignment) {
  const std::string ptx = ptx_of([](Kernel& k, Lanes x) {
    const auto table = k.shared<u16, 1024, 16>("table");
    table.store(x & 1023, trunc<u16>(x));
    k.barrier();
    return zext<u32>(table.load((x + 1) & 1023));
  });
  EXPECT_THAT(ptx, AllOf(HasSubstr(".shared .align 16 .b8 op_table[2048];"), HasSubstr("st.shared.u16 \t[%r"),
                         HasSubstr("ld.shared.u16 \t%r"), Not(HasSubstr("cvta"))));
}

TEST(Operations, LocalArraysWithKnownIndicesAreRegisters) {
  const std::string ptx = ptx_of([](Kernel& k, Lanes x) {
    const auto mine = k.local<u32, 4>("mine");
    unrolled<4>([&](auto i) { mine.store(i, x + i); });
    return mine.load(0) * mine.load(3);
  });
  EXPECT_THAT(ptx, AllOf(Not(HasSubstr(".local")), HasSubstr("mul.lo.s32")));
}

TEST(Operations, LocalArraysWithUnknownIndicesAreLocalMemory) {
  const std::string ptx = ptx_of([](Kernel& k, Lanes x) {
    const auto mine = k.local<u32, 4>("mine");
    unrolled<4>([&](auto i) { mine.store(i, x + i); });
    return mine.load(x & 3);
  });
  EXPECT_THAT(ptx, AllOf(HasSubstr(".local .align 4 .b8 \t__local_depot0[16];"), HasSubstr("ld.local.u32 \t%r")));
}

TEST(Operations, UnsignedIndicesAreZeroExtended) {
  const auto at = [](auto index) {
    return emit_ptx(kernel(
        [index](Kernel& k, const In& in, const Out& out) { out.store(0, in.load(index(in.load(k.thread())))); }));
  };
  EXPECT_THAT(at([](Lanes x) { return x; }), AllOf(HasSubstr("mul.wide.u32"), Not(HasSubstr("mul.wide.s32"))));
  EXPECT_THAT(at([](Lanes x) { return bitcast<i32>(x) - 3; }), HasSubstr("mul.wide.s32"));
}

TEST(Operations, VectorAccesses) {
  const std::string ptx =
      emit_ptx(define({.name = "op", .block = 32},
                      [](Kernel& k, Arg<"in", Ptr<read_only, u32, 16>> in, Arg<"out", Ptr<global, u32, 16>> out) {
                        const auto at = times<4>(k.thread());
                        out.at(at).store_vector(in.at(at).load_vector<4>());
                      }));
  EXPECT_THAT(ptx, AllOf(HasSubstr("ld.global.nc.v4.u32"), HasSubstr("st.global.v4.u32")));
}

TEST(Operations, VectorsOfEveryWidthAssemble) {
  const auto copy = [](auto zero, auto lanes) {
    using T = decltype(zero);
    constexpr size_t count = decltype(lanes)::value;
    const std::string ptx =
        emit_ptx(define({.name = "op", .block = 32},
                        [](Kernel& k, Arg<"in", Ptr<read_only, T, 16>> in, Arg<"out", Ptr<global, T, 16>> out) {
                          const auto at = times<16 / sizeof(T)>(k.thread());
                          const auto values = in.at(at).template load_vector<count>();
                          out.at(at).store_vector(std::array{values[0] + 1, values[1]});
                          if constexpr (count == 4) out.at(at).at(4).store(values[2] ^ values[3]);
                        }));
    EXPECT_THAT(ptx, AllOf(HasSubstr("ld.global.nc."), Not(HasSubstr("ld.global.u")))) << ptx;
    if (testing::has_ptxas()) {
      EXPECT_THAT(testing::assemble(ptx, 75), IsEmpty()) << ptx;
    }
  };
  copy(u8{}, std::integral_constant<int, 2>{});
  copy(u8{}, std::integral_constant<int, 4>{});
  copy(u16{}, std::integral_constant<int, 2>{});
  copy(u16{}, std::integral_constant<int, 4>{});
  copy(u32{}, std::integral_constant<int, 2>{});
  copy(u64{}, std::integral_constant<int, 2>{});
}

TEST(Operations, MultiplesKeepTheirAlignmentThroughSums) {
  const auto definition = define({.name = "op", .block = 32}, [](Kernel& k, Arg<"in", Ptr<read_only, u8, 16>> in,
                                                                 Arg<"out", Out> out, Arg<"stride", u32> stride) {
    const auto row = assume_multiple<16>(k.block() * stride, "the host rounds strides up");
    out.store(k.thread(), in.at(row + times<8>(k.lane()) - times<4>(k.warp())).as<u32>().load());
  });
  EXPECT_THAT(emit_ptx(definition), AllOf(HasSubstr("ld.global.nc.u32"), Not(HasSubstr("trap;"))));
  const Emitted checked = emit(definition, {.variant = Variant::checked});
  EXPECT_THAT(checked.ptx, HasSubstr("trap;"));
  EXPECT_THAT(checked.launch, HasSubstr("the host rounds strides up"));
}

TEST(Operations, UnalignedReadsComeFromAlignedWords) {
  const std::string ptx = emit_ptx(
      define({.name = "op", .block = 32}, [](Kernel& k, Arg<"in", Span<read_only, u8>> in, Arg<"out", Out> out) {
        out.store(k.thread(), in.load_unaligned_u32(k.thread()));
      }));
  EXPECT_THAT(
      ptx, AllOf(HasSubstr("and.b64"), HasSubstr(", -4;"), HasSubstr("ld.global.nc.u32"), HasSubstr("shf.r.wrap.b32")));
}

TEST(Operations, BytewiseReadsAreByteLoads) {
  const std::string ptx = emit_ptx(
      define({.name = "op", .block = 32}, [](Kernel& k, Arg<"in", Span<global, const u8>> in, Arg<"out", Out> out) {
        out.store(k.thread(), in.load_bytewise<u32>(k.thread()));
      }));
  EXPECT_THAT(ptx, AllOf(HasSubstr("ld.global.u8"), Not(HasSubstr("ld.global.u32")), Not(HasSubstr("ld.global.nc"))));
}

TEST(Operations, AtomicsSayOrderAndScope) {
  const auto atomics = [](Kernel&, const In&, const Out& out) {
    atomic_add(out.data(), 1, Order::relaxed, Scope::gpu);
    atomic_exchange(out.data(), 2, Order::acq_rel, Scope::sys);
    atomic_max(out.data().as<i32>(), 3, Order::release, Scope::cta);
    atomic_or(out.data(), 4, Order::acquire, Scope::gpu);
    atomic_min(out.data().assume_aligned<8>("a test").as<u64>(), 5, Order::relaxed, Scope::gpu);
    atomic_compare_exchange(out.data(), 0, 6, Order::acq_rel, Scope::gpu);
    atomic_store(out.data(), 7, Order::release, Scope::gpu);
    out.store(1, atomic_load(out.data(), Order::acquire, Scope::cta));
  };
  const std::string ptx = emit_ptx(kernel(atomics));
  for (const char* expected :
       {"atom.relaxed.gpu.global.add.u32 ", "atom.acq_rel.sys.global.exch.b32 ", "atom.release.cta.global.max.s32 ",
        "atom.acquire.gpu.global.or.b32 ", "atom.relaxed.gpu.global.min.u64 ", "atom.acq_rel.gpu.global.cas.b32 ",
        "st.release.gpu.global.b32 ", "ld.acquire.cta.global.b32 "}) {
    EXPECT_THAT(ptx, HasSubstr(expected));
  }
  if (testing::has_ptxas()) {
    EXPECT_THAT(testing::assemble(ptx, 75), IsEmpty());
  }
  const std::string shared = emit_ptx(kernel([](Kernel& k, const In&, const Out&) {
    atomic_add(k.shared<u32, 1, 4>("ticket").data(), 1, Order::relaxed, Scope::cta);
  }));
  EXPECT_THAT(shared, HasSubstr("atom.relaxed.cta.shared.add.u32 %r"));
}

TEST(Operations, APredicatedAtomicHasNoBranch) {
  const std::string ptx = emit_ptx(kernel([](Kernel& k, const In& in, const Out& out) {
    const auto table = k.shared<u32, 64, 4>("table");
    const auto x = in.load(k.thread());
    atomic_max_if(x > 3, table.data().at(x & 63), x, Order::relaxed, Scope::cta);
    atomic_max_if(x < 9, out.data().at(1), x, Order::release, Scope::gpu);
  }));
  EXPECT_THAT(ptx,
              AllOf(HasSubstr(" red.relaxed.cta.shared.max.u32 [%r"), HasSubstr(" red.release.gpu.global.max.u32 [%rd"),
                    Not(HasSubstr("bra")), Not(HasSubstr("atom."))));
  if (testing::has_ptxas()) {
    EXPECT_THAT(testing::assemble(ptx, 75), IsEmpty()) << ptx;
  }
}

TEST(Operations, CollectivesStayBeforeABranchThatAloneUsesThem) {
  const std::string ptx = emit_ptx(kernel([](Kernel& k, const In& in, const Out& out) {
    const auto other = shuffle_down(in.load(k.thread()), 1);
    k.if_(k.lane() < 31, [&] { out.store(k.thread(), other); });
  }));
  EXPECT_LT(ptx.find("shfl.sync.down"), ptx.find("bra")) << ptx;
}

TEST(Operations, ElseAndNestedLoopsAssemble) {
  const std::string ptx = ptx_of([](Kernel& k, Lanes x) {
    Var<u32, Rate::thread> sum(k, 0);
    k.range(0, x, 1, [&](auto i, auto& outer) {
      outer.continue_if(i == 3);
      k.thread_loop([&](auto& inner) {
        sum += i;
        inner.break_if(sum > 100);
        k.if_((sum & 1) == 0, [&] { sum += 7; }).else_([&] { inner.break_(); });
      });
      outer.break_if(sum > 1000);
    });
    return *sum;
  });
  EXPECT_THAT(ptx, HasSubstr("bra"));
}

// --- uniform branches ---

// The number of conditional branches in the PTX of `body`, and how many of them are `bra.uni`.
struct Branches {
  size_t all;
  size_t uniform;
};
bool operator==(const Branches& a, const Branches& b) { return a.all == b.all && a.uniform == b.uniform; }
void PrintTo(const Branches& branches, std::ostream* out) {
  *out << branches.uniform << " of " << branches.all << " uniform";
}

Branches branches_of(const Body& body, EmitOptions options = {}) {
  const std::string ptx = emit_ptx(kernel(body), options);
  if (testing::has_ptxas()) {
    EXPECT_THAT(testing::assemble(ptx, options.sm), IsEmpty()) << ptx;
  }
  const std::regex branch("\\n\\t@!?%p\\d+ bra \\t"), uniform("\\n\\t@!?%p\\d+ bra.uni \\t");
  const auto matches = [&](const std::regex& what) {
    return static_cast<size_t>(
        std::distance(std::sregex_iterator(ptx.begin(), ptx.end(), what), std::sregex_iterator()));
  };
  return {matches(branch) + matches(uniform), matches(uniform)};
}

// A branch on `condition`, with a body that cannot be predicated away.
template <class Condition>
Branches branch_on(Condition condition) {
  return branches_of([condition](Kernel& k, const In& in, const Out& out) {
    k.if_(condition(k, in, out), [&] { atomic_add(out.data(), 1, Order::relaxed, Scope::gpu); });
  });
}

TEST(UniformBranches, FollowTheRateOfTheCondition) {
  const Branches uniform{1, 1}, divergent{1, 0};
  EXPECT_EQ(branch_on([](Kernel& k, In, Out) { return k.block() == 3; }), uniform);
  EXPECT_EQ(branch_on([](Kernel&, In in, Out) { return in.size() > 3; }), uniform);
  EXPECT_EQ(branch_on([](Kernel& k, In, Out) { return k.warp() == 1; }), uniform);
  EXPECT_EQ(branch_on([](Kernel& k, In in, Out) { return in.load(k.warp() * 4 + 1) == 1; }), uniform);
  EXPECT_EQ(branch_on([](Kernel& k, In in, Out) { return ballot(in.load(k.thread()) == 7) != 0; }), uniform);
  EXPECT_EQ(branch_on([](Kernel& k, In in, Out) { return any(in.load(k.thread()) == 7); }), uniform);
  EXPECT_EQ(branch_on([](Kernel& k, In in, Out) { return shuffle(in.load(k.thread()), k.warp()) == 7; }), uniform);
  EXPECT_EQ(branch_on([](Kernel& k, In in, Out) { return ctz(ballot(in.load(k.thread()) == 7)) > 5; }), uniform);
  EXPECT_EQ(branch_on([](Kernel& k, In, Out) { return k.lane() == 3; }), divergent);
  EXPECT_EQ(branch_on([](Kernel& k, In, Out) { return (k.thread() >> 4) == 1; }), divergent);
  EXPECT_EQ(branch_on([](Kernel& k, In in, Out) { return in.load(k.thread()) == 1; }), divergent);
  EXPECT_EQ(branch_on([](Kernel& k, In in, Out) { return shuffle_up(in.load(k.thread()), 1) == 7; }), divergent);
  EXPECT_EQ(branch_on([](Kernel& k, In in, Out) { return shuffle(in.load(k.thread()), k.lane() ^ 3) == 7; }),
            divergent);
  EXPECT_EQ(branch_on([](Kernel& k, In in, Out) { return shuffle<16>(in.load(k.thread()), 3) == 7; }), divergent);
  EXPECT_EQ(branch_on([](Kernel& k, In in, Out) { return match_any(in.load(k.thread())) == 7; }), divergent);
  EXPECT_EQ(branch_on([](Kernel&, In, Out out) { return out.load(0) == 7; }), divergent);
  EXPECT_EQ(branch_on([](Kernel&, In, Out out) { return atomic_add(out.data(), 1, Order::relaxed, Scope::gpu) == 7; }),
            divergent);
}

TEST(UniformBranches, CanBeTurnedOff) {
  const Body body = [](Kernel& k, const In&, const Out& out) {
    k.if_(k.block() == 3, [&] { atomic_add(out.data(), 1, Order::relaxed, Scope::gpu); });
  };
  EXPECT_EQ(branches_of(body, {.uniform_branches = false}), (Branches{1, 0}));
}

TEST(UniformBranches, AVariableIsAsUniformAsTheBranchesAroundItsAssignments) {
  const auto body = [](auto condition) {
    return [condition](Kernel& k, const In&, const Out& out) {
      Var<u32, Rate::thread> n(k, 0);
      k.if_(condition(k), [&] {
         atomic_add(out.data(), 1, Order::relaxed, Scope::gpu);
         n = 1;
       }).else_([&] { atomic_or(out.data(), 4, Order::relaxed, Scope::gpu); });
      k.sync_warp();
      k.if_(n == 1, [&] { atomic_max(out.data(), 1, Order::relaxed, Scope::gpu); });
    };
  };
  EXPECT_EQ(branches_of(body([](Kernel& k) { return k.warp() == 1; })), (Branches{2, 2}));
  EXPECT_EQ(branches_of(body([](Kernel& k) { return k.lane() == 1; })), (Branches{2, 0}));
}

TEST(UniformBranches, WhatLeavesADivergentLoopIsDivergent) {
  // The counter is uniform among the lanes that are still in the loop, and differs between those that have left.
  const auto body = [](Kernel& k, const In& in, const Out& out) {
    Var<u32, Rate::thread> turns(k, 0);
    k.thread_loop([&](auto& loop) {
      turns += 1;
      loop.break_if(in.load(k.thread() + turns * 64) == 0);
    });
    k.sync_warp();
    k.if_(turns > 9, [&] { atomic_add(out.data(), 1, Order::relaxed, Scope::gpu); });
  };
  EXPECT_EQ(branches_of(body), (Branches{2, 0}));
}

TEST(UniformBranches, LinesStayTheAuthors) {
  constexpr u32 here = __LINE__;
  const std::string ptx = emit_ptx(kernel([](Kernel& k, const In&, const Out& out) {
    k.if_(k.block() == 3, [&] { atomic_add(out.data(), 1, Order::relaxed, Scope::gpu); });
  }));
  std::smatch found;
  ASSERT_TRUE(std::regex_search(ptx, found, std::regex("\\.loc\t1 (\\d+) (\\d+)\n\t@!?%p\\d+ bra.uni"))) << ptx;
  EXPECT_EQ(found[1], std::to_string(here + 2));
  EXPECT_LT(std::stoul(found[2]), 200u);
}

// --- variants ---

TEST(Variants, CheckedBuildsTrapWhereReleaseBuildsTrust) {
  const auto body = [](Kernel&, Lanes x) { return (x << (x & 63)) / x; };
  EXPECT_EQ(count(ptx_of(body), "trap;"), 0u);
  // Two spans, a shift and a division are checked.
  EXPECT_EQ(count(ptx_of(body, {.variant = Variant::checked}), "trap;"), 4u);
}

TEST(Variants, AssumedAlignmentIsCheckedAndListed) {
  const auto definition = kernel([](Kernel&, const In& in, const Out& out) {
    const auto words = in.data().assume_aligned<16>("the host allocates it").load_vector<4>();
    out.data().store(words[0] ^ words[1] ^ words[2] ^ words[3]);
  });
  EXPECT_THAT(emit(definition, {.variant = Variant::checked}).ptx, HasSubstr("trap;"));
  const Emitted release = emit(definition);
  EXPECT_THAT(release.ptx, AllOf(Not(HasSubstr("trap;")), HasSubstr("ld.global.nc.v4.u32")));
  EXPECT_THAT(release.launch,
              AllOf(HasSubstr("\"why\": \"the host allocates it\""), HasSubstr("operations_test.cpp:")));
}

TEST(Variants, MarkersExistInDebugBuildsOnly) {
  const auto body = [](Kernel& k, Lanes x) {
    k.mark(7);
    k.mark(8, x);
    return x;
  };
  EXPECT_THAT(ptx_of(body, {.variant = Variant::checked}),
              AllOf(Not(HasSubstr("debug_buffer")), Not(HasSubstr("atom"))));
  const std::string debug = ptx_of(body, {.variant = Variant::debug, .debug_records = 256});
  EXPECT_THAT(debug, AllOf(HasSubstr(".param .u64 .ptr .global .align 16 op_debug_buffer"), HasSubstr("and.b32"),
                           HasSubstr(", 4080;")));
  EXPECT_EQ(count(debug, "atom.relaxed.gpu.global.add.u32"), 2u);
  EXPECT_EQ(count(debug, "st.global.v4.u32"), 2u);
}

TEST(Variants, LaunchFilesOfDebugBuildsListTheMarkers) {
  const auto definition = kernel([](Kernel& k, const In&, const Out&) { k.mark(7); });
  EXPECT_THAT(emit(definition, {.variant = Variant::debug}).launch,
              AllOf(HasSubstr("\"markers\""), HasSubstr("\"id\": 7"), HasSubstr("operations_test.cpp:")));
  EXPECT_THAT(emit(definition).launch, Not(HasSubstr("markers")));
}

TEST(Variants, TrapsKeepTheirOwnLines) {
  constexpr u32 here = __LINE__;
  const std::string ptx = emit_ptx(kernel([](Kernel& k, const In& in, const Out& out) {
                                     const auto x = in.load(k.thread());
                                     const auto y = in.load(k.thread() + 5);
                                     out.store(x, y);
                                   }),
                                   {.variant = Variant::checked});
  std::vector<std::string> lines;
  const std::regex trap("\\.loc\\t1 (\\d+) \\d+\n(?:(?!\\t\\.loc)[^\n]*\n)*?\\ttrap;");
  for (std::sregex_iterator i(ptx.begin(), ptx.end(), trap), end; i != end; ++i) lines.push_back((*i)[1]);
  EXPECT_THAT(lines, ::testing::UnorderedElementsAre(std::to_string(here + 2), std::to_string(here + 3),
                                                     std::to_string(here + 4)))
      << ptx;
}

}  // namespace
}  // namespace ptxkit::dsl
