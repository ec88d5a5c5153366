// The undefined bits of an updated element, compared with every value that they could have had.
#include "runtime/emulator/sanitizer/undefined_update.hpp"

#include <initializer_list>
#include <random>

#include <gtest/gtest.h>

#include "runtime/emulator/core/update.hpp"

namespace ptxkit::emulator {
namespace {

using ptx::Mod;
using ptx::Type;

// Calls `f` for every subset of a mask.
template <class F>
void for_subsets(uint64_t mask, F&& f) {
  uint64_t subset = 0;
  do {
    f(subset);
    subset = (subset - mask) & mask;
  } while (subset != 0);
}

uint64_t few_bits(std::mt19937& random, uint64_t all) {
  uint64_t mask = 0;
  for (unsigned i = random() % 4; i > 0; --i) mask |= uint64_t{1} << random() % 64;
  return mask & all;
}

TEST(UndefinedUpdates, NoBitThatCouldDifferIsTakenForDefined) {
  std::mt19937 random(5);
  for (const Type type : {Type::b16, Type::u32, Type::s32, Type::u64, Type::s64, Type::f16, Type::f16x2, Type::bf16x2,
                          Type::f32, Type::f64})
    for (const Mod operation :
         {Mod::add, Mod::inc, Mod::dec, Mod::min, Mod::max, Mod::and_, Mod::or_, Mod::xor_, Mod::exch, Mod::cas}) {
      const Update update = find_update(operation, type, Adder::of_memory_flushing);
      if (!update.apply) continue;
      const uint64_t all = update.element_bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * update.element_bytes) - 1;
      const auto number = [&] {
        return ((uint64_t{random()} << 32 | random()) >> (random() % 2 ? 0 : random() % 64)) & all;
      };
      for (int i = 0; i < 500; ++i) {
        UpdateBits values{number(), number(), number()};
        const UpdateBits undefined{few_bits(random, all), few_bits(random, all), few_bits(random, all)};
        if (random() % 3 == 0) values.b = values.old ^ (undefined.old & number());
        const uint64_t first = update.apply(values.old, values.b, values.c);
        uint64_t differs = 0;
        for_subsets(undefined.old, [&](uint64_t old) {
          for_subsets(undefined.b, [&](uint64_t b) {
            for_subsets(undefined.c, [&](uint64_t c) {
              differs |= first ^ update.apply(values.old ^ old, values.b ^ b, values.c ^ c);
            });
          });
        });
        const UndefinedUpdate after = undefined_update(update, values, undefined);
        EXPECT_EQ(differs & all & ~after.bits, 0u) << static_cast<int>(operation) << " of " << ptx::text(type);
        const bool is_exact =
            operation == Mod::and_ || operation == Mod::or_ || operation == Mod::xor_ || operation == Mod::exch;
        if (is_exact) {
          EXPECT_EQ(differs & all, after.bits) << static_cast<int>(operation) << " of " << ptx::text(type);
        }
        if (!undefined.old) {
          EXPECT_FALSE(after.decides);
        }
      }
    }
}

struct Use {
  Mod operation;
  Type type;
  UpdateBits values;
  uint64_t undefined_old;
  bool decides;
  uint64_t bits_after;
};

// Which updates use undefined bits, and which only carry them.
TEST(UndefinedUpdates, UsesAndCarries) {
  for (const Use& each : std::initializer_list<Use>{
           {Mod::add, Type::u32, {0, 1, 0}, 0xffffffff, true, 0xffffffff},
           {Mod::add, Type::u32, {0, 0, 0}, 0xffffffff, false, 0xffffffff},        // an atomic load
           {Mod::add, Type::u32, {0, 0x10000, 0}, 0x0000ffff, false, 0xffffffff},  // the other half of a word
           {Mod::add, Type::u32, {0, 1, 0}, 0xffff0000, true, 0xffff0000},
           {Mod::add, Type::f16x2, {0, 0x3c00, 0}, 0xffff0000, false, 0xffff0000},
           {Mod::add, Type::f16x2, {0, 0x3c000000, 0}, 0xffff0000, true, 0xffff0000},
           {Mod::add, Type::f32, {0, 0x80000000, 0}, 0xffffffff, false, 0xffffffff},
           {Mod::max, Type::s32, {0, 0, 0}, 1, true, 0xffffffff},
           {Mod::exch, Type::b64, {0, 7, 0}, ~uint64_t{0}, false, 0},
           {Mod::and_, Type::b32, {0, 0, 0}, 0xffffffff, false, 0},  // clears it
           {Mod::and_, Type::b32, {0, 0xfffffffe, 0}, 0xffffffff, true, 0xfffffffe},
           {Mod::and_, Type::b32, {0, 0xffffff00, 0}, 0xffffffff, false, 0xffffff00},
           {Mod::or_, Type::b32, {0, 0x100, 0}, 0xffffffff, true, 0xfffffeff},
           {Mod::or_, Type::b32, {0, 0x100, 0}, 0xffff00ff, false, 0xffff00ff},
           {Mod::xor_, Type::b32, {0, 1, 0}, 0x80, true, 0x80},
           {Mod::cas, Type::b32, {5, 0, 1}, 0xffff0000, false, 0xffff0000},  // the defined bits differ
           {Mod::cas, Type::b32, {5, 5, 1}, 0xffff0000, true, 0xffffffff}}) {
    const Update update = find_update(each.operation, each.type, Adder::of_memory_flushing);
    const UndefinedUpdate after = undefined_update(update, each.values, {.old = each.undefined_old});
    EXPECT_EQ(after.decides, each.decides) << static_cast<int>(each.operation) << " " << each.values.b;
    EXPECT_EQ(after.bits, each.bits_after) << static_cast<int>(each.operation) << " " << each.values.b;
  }
}

}  // namespace
}  // namespace ptxkit::emulator
