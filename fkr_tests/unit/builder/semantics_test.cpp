// The results of the DSL's operations on the emulator, compared with the same expression in C++.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fkr_tests/unit/builder/emulate.hpp"

namespace ptxkit::dsl {
namespace {

using ::testing::HasSubstr;
using testing::InWords;
using ::testing::IsEmpty;
using testing::OutWords;
using testing::Ran;
using testing::run;
using testing::RunOptions;
using testing::Words;

// 64 pairs: boundary values of every width, then generated ones.
const std::pair<Words, Words>& pairs() {
  static const std::pair<Words, Words> made = [] {
    const Words edges = {0,
                         1,
                         2,
                         0x7f,
                         0x80,
                         0xff,
                         0x7fff,
                         0x8000,
                         0xffff,
                         0x7fffffff,
                         0x80000000,
                         0xffffffff,
                         0x7fffffffffffffff,
                         0x8000000000000000,
                         ~u64{0},
                         3};
    Words a, b;
    u64 state = 42;
    for (size_t i = 0; i < 64; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      a.push_back(i < 32 ? edges[i % 16] : state);
      state = state * 6364136223846793005u + 1442695040888963407u;
      b.push_back(i < 32 ? edges[(i * 7 + i / 16) % 16] : state >> (state % 60));
    }
    return std::pair{a, b};
  }();
  return made;
}

constexpr EmitOptions kEveryEmission[] = {{.sm = 75}, {.sm = 80}, {.sm = 90}, {.sm = 90, .variant = Variant::checked}};

// Expects out[i] == host(a[i], b[i]) for a and b of type T, with every set of emit options. Both functions return a
// type that widens to u64.
template <class T, class Device, class Host>
void expect_pairwise(Device device, Host host) {
  const auto& [a, b] = pairs();
  for (const EmitOptions& emission : kEveryEmission) {
    const Ran ran = run(
        [&](Kernel& k, const InWords& in_a, const InWords& in_b, const OutWords& out) {
          const auto x = cast<T>(in_a.load(k.thread()));
          const auto y = cast<T>(in_b.load(k.thread()));
          out.store(k.thread(), cast<u64>(device(x, y)));
        },
        a, b, {.emit = emission});
    ASSERT_THAT(ran.report, IsEmpty());
    for (size_t i = 0; i < a.size(); ++i) {
      const auto expected = static_cast<u64>(host(static_cast<T>(a[i]), static_cast<T>(b[i])));
      ASSERT_EQ(ran.out[i], expected) << "a = " << a[i] << ", b = " << b[i] << ", sm_" << emission.sm;
    }
  }
}

// Arithmetic in the width of T, as in C++ but without promotion.
template <class T>
void expect_arithmetic() {
  using U = std::make_unsigned_t<T>;
  using W = std::conditional_t<sizeof(T) < 4, u32, U>;  // no signed overflow on the host
  constexpr W kMask = 8 * sizeof(T) - 1;
  expect_pairwise<T>([](auto x, auto y) { return x + y; }, [](T x, T y) { return static_cast<T>(W(x) + W(y)); });
  expect_pairwise<T>([](auto x, auto y) { return x - y; }, [](T x, T y) { return static_cast<T>(W(x) - W(y)); });
  expect_pairwise<T>([](auto x, auto y) { return x * y; }, [](T x, T y) { return static_cast<T>(W(x) * W(y)); });
  expect_pairwise<T>([](auto x, auto y) { return x / ((y & 0x3f) | 1); },
                     [](T x, T y) { return static_cast<T>(x / ((y & 0x3f) | 1)); });
  expect_pairwise<T>([](auto x, auto y) { return x % ((y & 0x3f) | 1); },
                     [](T x, T y) { return static_cast<T>(x % ((y & 0x3f) | 1)); });
  expect_pairwise<T>([](auto x, auto y) { return (x & y) ^ (x | y); },
                     [](T x, T y) { return static_cast<T>((x & y) ^ (x | y)); });
  expect_pairwise<T>([](auto x, auto y) { return x << (y & static_cast<int>(kMask)); },
                     [](T x, T y) { return static_cast<T>(W(x) << (W(y) & kMask)); });
  expect_pairwise<T>([](auto x, auto y) { return x >> (y & static_cast<int>(kMask)); },
                     [](T x, T y) { return static_cast<T>(x >> (W(y) & kMask)); });
  expect_pairwise<T>([](auto x, auto y) { return min(x, y); }, [](T x, T y) { return std::min(x, y); });
  expect_pairwise<T>([](auto x, auto y) { return max(x, y); }, [](T x, T y) { return std::max(x, y); });
  expect_pairwise<T>([](auto x, auto y) { return ~x - -y; }, [](T x, T y) { return static_cast<T>(~W(x) + W(y)); });
  const auto comparisons = [](auto x, auto y) {
    return zext<u32>(x == y) | zext<u32>(x != y) << 1 | zext<u32>(x < y) << 2 | zext<u32>(x <= y) << 3 |
           zext<u32>(x > y) << 4 | zext<u32>(x >= y) << 5;
  };
  expect_pairwise<T>(comparisons, [](T x, T y) {
    return u32{x == y} | u32{x != y} << 1 | u32{x < y} << 2 | u32{x <= y} << 3 | u32{x > y} << 4 | u32{x >= y} << 5;
  });
}

TEST(Semantics, U8) { expect_arithmetic<u8>(); }
TEST(Semantics, U16) { expect_arithmetic<u16>(); }
TEST(Semantics, U32) { expect_arithmetic<u32>(); }
TEST(Semantics, U64) { expect_arithmetic<u64>(); }
TEST(Semantics, I8) { expect_arithmetic<i8>(); }
TEST(Semantics, I16) { expect_arithmetic<i16>(); }
TEST(Semantics, I32) { expect_arithmetic<i32>(); }
TEST(Semantics, I64) { expect_arithmetic<i64>(); }

TEST(Semantics, Conversions) {
  expect_pairwise<u8>([](auto x, auto) { return cast<i32>(cast<i8>(x)); }, [](u8 x, u8) { return static_cast<i8>(x); });
  expect_pairwise<i16>([](auto x, auto) { return cast<u32>(x); }, [](i16 x, i16) { return static_cast<u32>(x); });
  expect_pairwise<u16>([](auto x, auto) { return cast<i64>(x); }, [](u16 x, u16) { return x; });
  expect_pairwise<i32>([](auto x, auto) { return cast<i64>(cast<f64>(x)); }, [](i32 x, i32) { return x; });
  expect_pairwise<u32>([](auto x, auto) { return bitcast<u32>(cast<f32>(x) * 0.5f); },
                       [](u32 x, u32) { return std::bit_cast<u32>(static_cast<f32>(x) * 0.5f); });
  expect_pairwise<u32>([](auto x, auto y) { return zext<u32>((x < y) ^ !(x > 7)); },
                       [](u32 x, u32 y) { return (x < y) != !(x > 7); });
  expect_pairwise<u32>([](auto x, auto y) { return select((x & 1) == 0, x, y + 1); },
                       [](u32 x, u32 y) { return (x & 1) == 0 ? x : y + 1; });
}

TEST(Semantics, Bits) {
  expect_pairwise<u32>([](auto x, auto) { return popc(x) | clz(x) << 8 | ctz(x) << 16 | ffs(x) << 24; },
                       [](u32 x, u32) {
                         return static_cast<u32>(std::popcount(x) | std::countl_zero(x) << 8 |
                                                 std::countr_zero(x) << 16 |
                                                 (x == 0 ? 0 : std::countr_zero(x) + 1) << 24);
                       });
  expect_pairwise<u64>([](auto x, auto) { return popc(x) | clz(x) << 8 | ctz(x) << 16 | ffs(x) << 24; },
                       [](u64 x, u64) {
                         return static_cast<u32>(std::popcount(x) | std::countl_zero(x) << 8 |
                                                 std::countr_zero(x) << 16 |
                                                 (x == 0 ? 0 : std::countr_zero(x) + 1) << 24);
                       });
  expect_pairwise<u32>([](auto x, auto) { return brev(brev(x) >> 3); }, [](u32 x, u32) { return x << 3; });
  expect_pairwise<u32>([](auto x, auto y) { return mul_hi(x, y); },
                       [](u32 x, u32 y) { return static_cast<u32>(u64{x} * y >> 32); });
  expect_pairwise<u64>([](auto x, auto y) { return mul_hi(x, y); },
                       [](u64 x, u64 y) { return static_cast<u64>(static_cast<unsigned __int128>(x) * y >> 64); });
  expect_pairwise<u32>([](auto x, auto y) { return funnel_right(x, y, y & 31); },
                       [](u32 x, u32 y) { return static_cast<u32>((u64{y} << 32 | x) >> (y & 31)); });
  expect_pairwise<u32>([](auto x, auto y) { return funnel_left(x, y, x); },
                       [](u32 x, u32 y) { return static_cast<u32>((u64{y} << 32 | x) << (x & 31) >> 32); });
  expect_pairwise<u32>([](auto x, auto y) { return prmt(x, y, 0x0572); },
                       [](u32 x, u32 y) {
                         const auto byte = [&](u32 i) {
                           return static_cast<u32>((u64{y} << 32 | x) >> (8 * i)) & 0xff;
                         };
                         return byte(2) | byte(7) << 8 | byte(5) << 16 | byte(0) << 24;
                       });
  expect_pairwise<u32>([](auto x, auto) { return bit_field(x, 5, 9); }, [](u32 x, u32) { return x >> 5 & 0x1ff; });
  expect_pairwise<u32>([](auto x, auto y) { return shift_left(x, y & 63); },
                       [](u32 x, u32 y) { return static_cast<u32>(u64{x} << (y & 63)); });
}

// One output for each thread, computed from the thread's a: body(k, x) and host(all, i).
template <class Device, class Host>
void expect_per_thread(Device device, Host host) {
  const Words& a = pairs().first;
  for (const EmitOptions& emission : kEveryEmission) {
    const Ran ran =
        run([&](Kernel& k, const InWords& in, const InWords&,
                const OutWords& out) { out.store(k.thread(), cast<u64>(device(k, trunc<u32>(in.load(k.thread()))))); },
            a, a, {.emit = emission});
    ASSERT_THAT(ran.report, IsEmpty());
    for (size_t i = 0; i < a.size(); ++i) {
      const size_t base = i / 32 * 32;
      const auto lane = [&](size_t j) { return static_cast<u32>(a[base + j]); };
      ASSERT_EQ(ran.out[i], static_cast<u64>(host(lane, i % 32))) << "lane " << i << ", sm_" << emission.sm;
    }
  }
}

TEST(Semantics, Shuffles) {
  expect_per_thread([](Kernel& k, auto x) { return shuffle(x, k.lane() * 7); },
                    [](auto lane, auto i) { return lane(i * 7 % 32); });
  expect_per_thread([](Kernel&, auto x) { return shuffle<8>(x, 3); },
                    [](auto lane, auto i) { return lane(i / 8 * 8 + 3); });
  expect_per_thread([](Kernel&, auto x) { return shuffle_up(x, 5); },
                    [](auto lane, auto i) { return lane(i < 5 ? i : i - 5); });
  expect_per_thread([](Kernel&, auto x) { return shuffle_down(x, 5); },
                    [](auto lane, auto i) { return lane(i + 5 > 31 ? i : i + 5); });
  expect_per_thread([](Kernel&, auto x) { return shuffle_xor(x, 21); }, [](auto lane, auto i) { return lane(i ^ 21); });
  expect_per_thread([](Kernel& k, auto x) { return shuffle(zext<u64>(x) * 0x100000001u, k.lane() ^ 1); },
                    [](auto lane, auto i) { return lane(i ^ 1) * 0x100000001u; });
  expect_per_thread([](Kernel&, auto x) { return cast<i32>(shuffle_xor(cast<i8>(trunc<u8>(x)), 1)); },
                    [](auto lane, auto i) { return static_cast<i8>(lane(i ^ 1)); });
  expect_per_thread([](Kernel&, auto x) { return bitcast<u32>(shuffle_xor(cast<f32>(x), 2)); },
                    [](auto lane, auto i) { return std::bit_cast<u32>(static_cast<f32>(lane(i ^ 2))); });
}

TEST(Semantics, VotesMatchesAndReductions) {
  const auto fold = [](auto lane, u32 start, auto op) {
    u32 total = start;
    for (size_t i = 0; i < 32; ++i) total = op(total, lane(i));
    return total;
  };
  expect_per_thread([](Kernel&, auto x) { return ballot((x & 1) == 1); },
                    [&](auto lane, auto) {
                      u32 mask = 0;
                      for (u32 i = 0; i < 32; ++i) mask |= (lane(i) & 1) << i;
                      return mask;
                    });
  expect_per_thread(
      [](Kernel&, auto x) {
        return zext<u32>(any(x == 0xff)) | zext<u32>(all(x != 0xff)) << 1 | zext<u32>(match_all(x & 0)) << 2 |
               zext<u32>(match_all(x)) << 3;
      },
      [&](auto lane, auto) {
        u32 seen = 0;
        for (u32 i = 0; i < 32; ++i) seen |= lane(i) == 0xff;
        return seen | (seen ^ 1) << 1 | 4;
      });
  expect_per_thread([](Kernel&, auto x) { return match_any(x & 7); },
                    [&](auto lane, auto me) {
                      u32 mask = 0;
                      for (u32 i = 0; i < 32; ++i) mask |= u32{(lane(i) & 7) == (lane(me) & 7)} << i;
                      return mask;
                    });
  expect_per_thread([](Kernel&, auto x) { return reduce_add(x); },
                    [&](auto lane, auto) { return fold(lane, 0, [](u32 a, u32 b) { return a + b; }); });
  expect_per_thread([](Kernel&, auto x) { return reduce_min(x | 16); },
                    [&](auto lane, auto) { return fold(lane, ~0u, [](u32 a, u32 b) { return std::min(a, b | 16); }); });
  expect_per_thread([](Kernel&, auto x) { return reduce_max(x); },
                    [&](auto lane, auto) { return fold(lane, 0, [](u32 a, u32 b) { return std::max(a, b); }); });
  expect_per_thread([](Kernel&, auto x) { return reduce_and(x | 0xff00); },
                    [&](auto lane, auto) { return fold(lane, ~0u, [](u32 a, u32 b) { return a & (b | 0xff00); }); });
  expect_per_thread([](Kernel&, auto x) { return reduce_or(x >> 9); },
                    [&](auto lane, auto) { return fold(lane, 0, [](u32 a, u32 b) { return a | b >> 9; }); });
  expect_per_thread([](Kernel&, auto x) { return reduce_xor(x); },
                    [&](auto lane, auto) { return fold(lane, 0, [](u32 a, u32 b) { return a ^ b; }); });
  expect_per_thread([](Kernel&, auto x) { return inclusive_sum(x); },
                    [](auto lane, auto me) {
                      u32 sum = 0;
                      for (size_t i = 0; i <= me; ++i) sum += lane(i);
                      return sum;
                    });
  expect_per_thread([](Kernel&, auto x) { return exclusive_sum(x); },
                    [](auto lane, auto me) {
                      u32 sum = 0;
                      for (size_t i = 0; i < me; ++i) sum += lane(i);
                      return sum;
                    });
  expect_per_thread([](Kernel& k, auto) { return k.lanes_below() ^ k.warp() << 31 ^ k.thread() >> 5 << 31; },
                    [](auto, auto me) { return (1u << me) - 1; });
}

// --- control flow ---

TEST(Semantics, LoopsAndBranches) {
  const auto device = [](Kernel& k, auto x) {
    Var<u32, Rate::thread> sum(k, 0);
    k.range(0, x & 31, 3, [&](auto i, auto& loop) {
      loop.continue_if(i == 6);
      k.if_((i & 1) == 0, [&] { sum += i; }).else_([&] { sum += i * 100; });
      loop.break_if(sum > 1500);
    });
    k.thread_loop([&](auto& loop) {
      loop.break_if((sum & 7) == 5);
      sum += 1;
    });
    return *sum;
  };
  expect_per_thread(device, [](auto lane, auto me) {
    u32 sum = 0;
    for (u32 i = 0; i < (lane(me) & 31); i += 3) {
      if (i == 6) continue;
      sum += i % 2 == 0 ? i : i * 100;
      if (sum > 1500) break;
    }
    while ((sum & 7) != 5) ++sum;
    return sum;
  });
}

TEST(Semantics, WarpLoopsStayTogether) {
  // Collatz steps of the warp's largest value: the condition of the loop and its collectives are uniform.
  const auto device = [](Kernel& k, auto x) {
    Var<u32, Rate::warp> n(k, reduce_max(x & 63) + 1), steps(k, 0);
    k.warp_loop([&](auto& loop) {
      loop.break_if(n == 1);
      n = select((n & 1) == 0, *n >> 1, n * 3 + 1);
      steps += ctz(ballot(k.lane() == 1));
    });
    return *steps;
  };
  expect_per_thread(device, [](auto lane, auto) {
    u32 n = 0, steps = 0;
    for (size_t i = 0; i < 32; ++i) n = std::max(n, lane(i) & 63);
    for (++n; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    return steps;
  });
}

TEST(Semantics, ReturnsTrapsAndOnce) {
  const auto body = [](Kernel& k, const InWords&, const InWords&, const OutWords& out) {
    k.once_per_block([&] { out.store(60, 7); });
    k.once_per_warp([&] { out.store(k.warp(), 5); });
    k.return_if(k.thread() >= 40);
    out.store(k.thread() + 8, 1);
  };
  const Ran ran = run(body, Words(64), Words(64));
  EXPECT_THAT(ran.report, IsEmpty());
  EXPECT_EQ(ran.out[0], 5u);
  EXPECT_EQ(ran.out[1], 5u);
  EXPECT_EQ(ran.out[60], 7u);
  EXPECT_EQ(std::accumulate(ran.out.begin() + 2, ran.out.begin() + 60, u64{0}), 40u);
  const Ran trapped =
      run([](Kernel& k, const InWords&, const InWords&, const OutWords&) { k.trap_if(k.thread() == 9); }, Words(64),
          Words(64));
  EXPECT_THAT(trapped.report, HasSubstr("trap"));
}

// --- memory ---

TEST(Semantics, SharedMemoryAndBarriers) {
  const Words& a = pairs().first;
  const Ran ran = run(
      [](Kernel& k, const InWords& in, const InWords&, const OutWords& out) {
        const auto reversed = k.shared<u64, 64, 8>("reversed");
        reversed.store(63 - k.thread(), in.load(k.thread()));
        k.barrier();
        out.store(k.thread(), reversed.load(k.thread()));
      },
      a, a);
  ASSERT_THAT(ran.report, IsEmpty());
  EXPECT_TRUE(std::equal(a.rbegin(), a.rend(), ran.out.begin()));
}

TEST(Semantics, AMissingBarrierIsReported) {
  const Words& a = pairs().first;
  const Ran ran = run(
      [](Kernel& k, const InWords& in, const InWords&, const OutWords& out) {
        const auto reversed = k.shared<u64, 64, 8>("reversed");
        reversed.store(63 - k.thread(), in.load(k.thread()));
        out.store(k.thread(), reversed.load(k.thread()));
      },
      a, a);
  EXPECT_THAT(ran.report, HasSubstr("race"));
}

TEST(Semantics, LocalArrays) {
  expect_per_thread(
      [](Kernel& k, auto x) {
        const auto mine = k.local<u16, 16>("mine");
        unrolled<16>([&](auto i) { mine.store(i, trunc<u16>(x + i)); });
        return zext<u32>(mine.load(x & 15));
      },
      [](auto lane, auto me) { return (lane(me) + (lane(me) & 15)) & 0xffff; });
}

TEST(Semantics, UnalignedBytewiseAndRoundedReads) {
  const Words& a = pairs().first;
  for (const EmitOptions& emission : kEveryEmission) {
    const Ran ran = run(
        [](Kernel& k, const InWords& in, const InWords&, const OutWords& out) {
          const Span<read_only, u8, 8> bytes(in.data().as<u8>(), in.size() * 8);
          const auto at = k.thread() * 7;
          const auto funnel = bytes.load_unaligned_u32(at);
          const auto joined = bytes.load_bytewise<u32>(at);
          const auto word = bytes.load<u32>(align_down<4>(at));
          const auto down = bytes.data().at(at).align_down<4>().as<u32>().load();
          out.store(k.thread(), zext<u64>(funnel ^ joined) | zext<u64>(word ^ down) << 32 | zext<u64>(funnel) << 8);
        },
        a, a, {.emit = emission});
    ASSERT_THAT(ran.report, IsEmpty());
    for (size_t i = 0; i < 64; ++i) {
      u32 expected = 0;
      std::memcpy(&expected, reinterpret_cast<const char*>(a.data()) + 7 * i, 4);
      EXPECT_EQ(ran.out[i], u64{expected} << 8) << i;
    }
  }
}

TEST(Semantics, UnalignedReadsStayInTheWordsOfTheValue) {
  // The last four bytes of the buffer, at every alignment: one more word would be outside.
  const Words a = {0x1122334455667788};
  const Ran ran = run(
      [](Kernel& k, const InWords& in, const InWords&, const OutWords& out) {
        const Span<read_only, u8, 8> bytes(in.data().as<u8>(), in.size() * 8);
        out.store(k.thread(), zext<u64>(bytes.load_unaligned_u32(min(k.thread(), 4))));
      },
      a, a);
  ASSERT_THAT(ran.report, IsEmpty());
  EXPECT_EQ(ran.out[4], 0x11223344u);
  EXPECT_EQ(ran.out[1], 0x44556677u);
}

TEST(Semantics, APointerChosenBetweenTwo) {
  const auto& [a, b] = pairs();
  for (const EmitOptions& emission : kEveryEmission) {
    const Ran ran = run(
        [](Kernel& k, const InWords& in, const InWords& other, const OutWords& out) {
          const auto odd = (k.thread() & 1) != 0;
          out.store(k.thread(), select(odd, in.data().as_global(), other.data().as_global()).at(k.thread()).load());
        },
        a, b, {.emit = emission});
    ASSERT_THAT(ran.report, IsEmpty());
    for (size_t i = 0; i < 64; ++i) EXPECT_EQ(ran.out[i], i % 2 ? a[i] : b[i]) << i;
  }
}

// Addresses that the kernel computes. What align_down gives is aligned for any address, so vectors may be read there.
TEST(Semantics, PointersFromNumbers) {
  const auto& [a, b] = pairs();
  for (const EmitOptions& emission : kEveryEmission) {
    const Ran ran = run(
        [](Kernel& k, const InWords& in_a, const InWords&, const OutWords& out) {
          const auto number = in_a.data().address() + zext<u64>(k.thread() * 8 + 5);
          const auto in = at_address<read_only, u8>(number);
          const auto [low, high] = in.template align_down<8>().template as<u32>().template load_vector<2>();
          const auto to = at_address<global, u64>(out.data().address()).template align_down<8>();
          to.at(k.thread()).store(zext<u64>(low ^ high) << 8 | zext<u64>(in.load()));
        },
        a, b, {.emit = emission});
    ASSERT_THAT(ran.report, IsEmpty());
    for (size_t i = 0; i < a.size(); ++i) {
      const u64 folded = static_cast<u32>(a[i] ^ a[i] >> 32);
      EXPECT_EQ(ran.out[i], folded << 8 | (a[i] >> 40 & 0xff)) << i;
    }
  }
}

TEST(Semantics, VectorsAndSlices) {
  const Words& a = pairs().first;
  const Ran ran = run(
      [](Kernel& k, const InWords& in, const InWords&, const OutWords& out) {
        const auto from = in.data().assume_aligned<16>("allocations are");
        const auto to = out.slice(times<2>(k.thread() & 31), 2).data();
        k.if_(k.thread() < 32, [&] {
          const auto pair = from.at(times<2>(k.thread())).load_vector<2>();
          to.assume_aligned<16>("allocations are").store_vector(std::array{pair[1], pair[0]});
        });
      },
      a, a);
  ASSERT_THAT(ran.report, IsEmpty());
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(ran.out[i], a[i ^ 1]);
}

TEST(Semantics, Atomics) {
  const RunOptions one{.grid = 3, .out_count = 16};
  const Ran ran = run(
      [](Kernel& k, const InWords&, const InWords&, const OutWords& out) {
        const auto words = out.data();
        const auto id = zext<u64>(k.block() * 64 + k.thread());
        atomic_add(words, 2, Order::relaxed, Scope::gpu);
        atomic_max(words.at(1), id, Order::acq_rel, Scope::gpu);
        atomic_max_if((id & 7) == 5, words.at(9), id, Order::relaxed, Scope::gpu);
        atomic_min(words.at(2).as<i64>(), cast<i64>(id) - 5, Order::relaxed, Scope::gpu);
        atomic_or(words.at(3), k.constant<u64>(1) << (id & 63), Order::relaxed, Scope::sys);
        atomic_xor(words.at(4), id, Order::relaxed, Scope::gpu);
        atomic_and(words.at(5), 0, Order::relaxed, Scope::gpu);
        const auto before = atomic_compare_exchange(words.at(6), 0, id + 1, Order::acq_rel, Scope::gpu);
        k.if_(before == 0, [&] { atomic_add(words.at(7), 1, Order::relaxed, Scope::gpu); });
        const auto ticket = k.shared<u32, 1, 4>("ticket");
        k.once_per_block([&] { ticket.store(0, 0); });
        k.barrier();
        const auto mine = atomic_add(ticket.data(), 1, Order::relaxed, Scope::cta);
        atomic_add(words.at(8), zext<u64>(mine), Order::relaxed, Scope::gpu);
      },
      Words(1), Words(1), one);
  ASSERT_THAT(ran.report, IsEmpty());
  EXPECT_EQ(ran.out[0], 384u);
  EXPECT_EQ(ran.out[1], 191u);
  EXPECT_EQ(ran.out[2], static_cast<u64>(i64{-5}));
  EXPECT_EQ(ran.out[3], ~u64{0});
  EXPECT_EQ(ran.out[7], 1u);
  EXPECT_EQ(ran.out[8], 3u * (63 * 64 / 2));
  EXPECT_EQ(ran.out[9], 189u);
}

// --- checked and debug builds ---

TEST(Semantics, CheckedBuildsTrapAtTheAuthorsLine) {
  const Words small(8);
  constexpr u32 here = __LINE__;
  const auto beyond = [](Kernel& k, const InWords& in, const InWords&, const OutWords& out) {
    const auto x = in.load(k.thread() & 7);
    const auto y = in.load((k.thread() & 7) + 1);
    out.store(k.thread(), x + y);
  };
  const Ran checked = run(beyond, small, small, {.emit = {.variant = Variant::checked}});
  EXPECT_THAT(checked.report, HasSubstr("trap"));
  EXPECT_THAT(checked.report, HasSubstr("semantics_test.cpp:" + std::to_string(here + 3)));
  // Without the check the emulator notices the access, on the same line.
  const Ran released = run(beyond, small, small);
  EXPECT_THAT(released.report, HasSubstr("semantics_test.cpp:" + std::to_string(here + 3)));
}

TEST(Semantics, CheckedBuildsTrapOnWhatIsUndefined) {
  const EmitOptions checked{.variant = Variant::checked};
  const auto trap_of = [&](auto body) {
    return run([&](Kernel& k, const InWords& in, const InWords&,
                   const OutWords& out) { out.store(k.thread(), body(k, in)); },
               Words(64), Words(64), {.emit = checked})
        .report;
  };
  EXPECT_THAT(trap_of([](Kernel& k, const InWords& in) { return in.load(k.thread()) << (zext<u64>(k.thread()) + 1); }),
              HasSubstr("trap"));
  EXPECT_THAT(trap_of([](Kernel& k, const InWords& in) { return 7 / in.load(k.thread()); }), HasSubstr("trap"));
  EXPECT_THAT(trap_of([](Kernel& k, const InWords& in) {
                return in.data().at(1).assume_aligned<16>("it is not").load() + zext<u64>(k.lane());
              }),
              HasSubstr("trap"));
  EXPECT_THAT(trap_of([](Kernel& k, const InWords& in) { return in.slice(1, 64).load(k.thread() & 1); }),
              HasSubstr("trap"));
  EXPECT_THAT(trap_of([](Kernel& k, const InWords& in) { return in.load(bitcast<i32>(k.thread()) - 1); }),
              HasSubstr("trap"));
  EXPECT_THAT(trap_of([](Kernel& k, const InWords& in) { return in.load(k.thread()); }), IsEmpty());
}

TEST(Semantics, MarkersAreCountedAndKept) {
  const Ran ran = run(
      [](Kernel& k, const InWords&, const InWords&, const OutWords& out) {
        k.mark(11, k.block() * 1000 + k.thread());
        out.store(k.thread(), 0);
      },
      Words(1), Words(1), {.emit = {.variant = Variant::debug, .debug_records = 128}, .grid = 2, .out_count = 64});
  ASSERT_THAT(ran.report, IsEmpty());
  EXPECT_EQ(ran.debug[0] & 0xffffffff, 128u);
  std::vector<bool> seen(128);
  for (size_t record = 1; record <= 128; ++record) {
    EXPECT_EQ(ran.debug[2 * record] & 0xffffffff, 11u);
    const u64 thread = ran.debug[2 * record] >> 32;
    ASSERT_LT(thread, 128u);
    seen[thread] = true;
    EXPECT_EQ(ran.debug[2 * record + 1], thread / 64 * 1000 + thread % 64);
  }
  EXPECT_THAT(seen, ::testing::Each(true));
}

TEST(Semantics, MarkersWrapAroundInTheirRing) {
  const Ran ran = run([](Kernel& k, const InWords&, const InWords&, const OutWords&) { k.mark(3); }, Words(1), Words(1),
                      {.emit = {.variant = Variant::debug, .debug_records = 16}});
  // 64 markers in 16 records: the later ones overwrite the earlier ones, and none is written outside of the buffer.
  EXPECT_EQ(ran.debug[0] & 0xffffffff, 64u);
  for (size_t record = 1; record <= 16; ++record) EXPECT_EQ(ran.debug[2 * record] & 0xffffffff, 3u);
}

}  // namespace
}  // namespace ptxkit::dsl
