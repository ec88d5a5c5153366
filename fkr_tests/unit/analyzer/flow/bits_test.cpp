// Known bits, exhaustively: every pair of four-bit facts, and every pair of numbers that they allow.
#include "analyzer/flow/bits.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace ptxkit::flow {
namespace {

constexpr unsigned kWidth = 4;

std::vector<Bits> all_facts() {
  std::vector<Bits> facts;
  for (unsigned zero = 0; zero < 16; ++zero)
    for (unsigned one = 0; one < 16; ++one)
      if (!(zero & one)) facts.push_back(truncate({zero, one}, kWidth));
  return facts;
}

bool allows(Bits fact, uint64_t value) { return (fact.zero & value) == 0 && (fact.one & ~value) == 0; }

template <class Abstract, class Concrete>
void check_binary(Abstract&& abstract, Concrete&& concrete) {
  for (const Bits a : all_facts())
    for (const Bits b : all_facts()) {
      const Bits result = abstract(a, b);
      for (uint64_t x = 0; x < 16; ++x)
        for (uint64_t y = 0; y < 16; ++y)
          if (allows(a, x) && allows(b, y)) {
            ASSERT_TRUE(allows(result, concrete(x, y))) << x << " " << y;
          }
    }
}

TEST(Bits, BinaryOperationsAreSound) {
  check_binary([](Bits a, Bits b) { return add(a, b); }, [](uint64_t x, uint64_t y) { return x + y; });
  check_binary([](Bits a, Bits b) { return subtract(a, b); }, [](uint64_t x, uint64_t y) { return x - y; });
  check_binary([](Bits a, Bits b) { return multiply(a, b); }, [](uint64_t x, uint64_t y) { return x * y; });
  check_binary([](Bits a, Bits b) { return bit_and(a, b); }, [](uint64_t x, uint64_t y) { return x & y; });
  check_binary([](Bits a, Bits b) { return bit_or(a, b); }, [](uint64_t x, uint64_t y) { return x | y; });
  check_binary([](Bits a, Bits b) { return bit_xor(a, b); }, [](uint64_t x, uint64_t y) { return x ^ y; });
  check_binary([](Bits a, Bits b) { return join(a, b); }, [](uint64_t x, uint64_t) { return x; });
  check_binary([](Bits a, Bits b) { return join(a, b); }, [](uint64_t, uint64_t y) { return y; });
}

TEST(Bits, ShiftsAndExtensionsAreSound) {
  for (const Bits a : all_facts())
    for (uint64_t x = 0; x < 16; ++x) {
      if (!allows(a, x)) continue;
      for (unsigned count = 0; count < 8; ++count) {
        EXPECT_TRUE(allows(shift_left(a, count), x << count));
        EXPECT_TRUE(allows(shift_right(a, count), x >> count));
        const int64_t as_signed = static_cast<int64_t>(x << 60) >> 60;
        EXPECT_TRUE(allows(shift_right_signed(a, count, kWidth), static_cast<uint64_t>(as_signed >> count)));
      }
      EXPECT_TRUE(allows(sign_extend(a, kWidth), static_cast<uint64_t>(static_cast<int64_t>(x << 60) >> 60)));
      EXPECT_TRUE(allows(bit_not(a), ~x));
    }
}

TEST(Bits, AdditionOfConstantsIsExact) {
  for (uint64_t x = 0; x < 40; ++x)
    for (uint64_t y = 0; y < 40; ++y) {
      EXPECT_EQ(add(Bits::constant(x), Bits::constant(y)), Bits::constant(x + y));
      EXPECT_EQ(multiply(Bits::constant(x), Bits::constant(y)).low_value(), x * y);
    }
}

TEST(Bits, MultiplesKeepTheirTrailingZeros) {
  const Bits anything{};
  EXPECT_EQ(multiply(anything, Bits::constant(12)).trailing_zeros(), 2u);
  EXPECT_EQ(add(shift_left(anything, 4), Bits::constant(8)).low_value() & 15, 8u);
  EXPECT_EQ(below(1023).maximum(), 1023u);
  EXPECT_EQ(below(1024).maximum(), 2047u);
}

}  // namespace
}  // namespace ptxkit::flow
