// tcgen05: loads and stores of tensor memory, products of small numbers, and each misuse beside a correct twin. Layouts
// are written here from the side of the matrix: the thread of an element, not the element of a thread.
#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "fkr_tests/unit/runtime/emulator/tcgen05_operands.hpp"
#include "runtime/emulator/emulator.hpp"
#include "support/half.hpp"

namespace ptxkit::emulator {
namespace {

using ::testing::HasSubstr;

// 128 threads; %r1 is the address of 64 columns, %r20 the warp, %r21 its first lane (<< 16), %p2 thread 0 of the block.
// `tile` holds the 2304 words of `in`.
std::string kernel_text(const std::string& body) {
  const std::string text = entry_text(
      "  shr.u32 %r20, %r0, 5;\n  shl.b32 %r21, %r20, 21;\n  setp.ne.u32 %p1, %r20, 0;\n  setp.eq.u32 %p2, %r0, 0;\n"
      "  @%p1 bra allocated;\n"
      "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 64;\n"
      "  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"
      "allocated:\n  @%p2 mbarrier.init.shared.b64 [bar], 1;\n  mov.u32 %r2, %r0;\n  mov.u32 %r6, tile;\n"
      "fill:\n  mul.wide.u32 %rd5, %r2, 4;\n  add.u64 %rd6, %rd1, %rd5;\n  ld.global.u32 %r3, [%rd6];\n"
      "  shl.b32 %r4, %r2, 2;\n  add.u32 %r4, %r6, %r4;\n  st.shared.u32 [%r4], %r3;\n  add.u32 %r2, %r2, 128;\n"
      "  setp.lt.u32 %p3, %r2, 2304;\n  @%p3 bra fill;\n  fence.proxy.async;\n  bar.sync 0;\n"
      "  ld.shared.u32 %r1, [place];\n" +
          body + "  bar.sync 0;\n  @%p1 bra gone;\n  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 64;\ngone:\n",
      ".shared .align 1024 .b8 tile[9216];\n.shared .align 8 .b64 bar;\n.shared .align 4 .b32 place;\n");
  return for_target(text, body.find("ld.red") != std::string::npos ? "sm_103a" : "sm_100a", 64);
}

Ran run(const std::string& body, const std::vector<uint32_t>& in = {}, size_t out_words = 128 * 64) {
  std::vector<uint32_t> words = in;
  words.resize(2304);
  return run_kernel(kernel_text(body), {.block = {128}}, out_words, words,
                    {.checks = kCheckStandard & ~kCheckOutputs, .max_steps = 1'000'000});
}

std::string registers(unsigned count) {
  std::string list;
  for (unsigned i = 0; i < count; ++i) list += fmt::format("{}%v{}", i ? ", " : "", i);
  return "{" + list + "}";
}

// Stores the registers of a thread to its 64 words of `out`.
std::string give(unsigned count) {
  std::string text = "  mul.wide.u32 %rd7, %r0, 256;\n  add.u64 %rd7, %rd0, %rd7;\n";
  for (unsigned i = 0; i < count; ++i) text += fmt::format("  st.global.u32 [%rd7+{}], %v{};\n", 4 * i, i);
  return text;
}
std::string set(unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i) text += fmt::format("  mad.lo.u32 %v{}, %r0, 100, {};\n", i, i + 7);
  return text;
}
uint32_t set_value(unsigned thread, unsigned reg) { return thread * 100 + reg + 7; }

const std::string kAt = "  add.u32 %r5, %r1, %r21;\n";

struct Image {
  std::string shape;
  unsigned rows, registers, columns;
  // Thread and register of row r, column c.
  std::function<std::pair<unsigned, unsigned>(unsigned, unsigned)> holder;
  std::string split = {};
};
const std::vector<Image>& images() {
  static const std::vector<Image> all = {
      {"32x32b.x8", 32, 8, 8, [](unsigned r, unsigned c) { return std::pair(r, c); }},
      {"16x64b.x4", 16, 4, 8, [](unsigned r, unsigned c) { return std::pair(r % 8 * 4 + c % 2 * 2 + r / 8, c / 2); }},
      {"16x128b.x2", 16, 4, 8, [](unsigned r, unsigned c) { return std::pair(r % 8 * 4 + c % 4, c / 4 * 2 + r / 8); }},
      {"16x256b.x2", 16, 8, 16,
       [](unsigned r, unsigned c) { return std::pair(r % 8 * 4 + c % 8 / 2, c / 8 * 4 + r / 8 * 2 + c % 2); }},
      {"16x32bx2.x4", 16, 4, 8, [](unsigned r, unsigned c) { return std::pair(r + 16 * (c / 4), c % 4); }, ", 4"}};
  return all;
}

TEST(Tcgen05, LoadsSeeWhatStoresOfLinesWrote) {
  for (const Image& image : images()) {
    const Ran ran = run(kAt + set(32) + "  tcgen05.st.sync.aligned.32x32b.x32.b32 [%r5], " + registers(32) +
                        ";\n  tcgen05.wait::st.sync.aligned;\n  tcgen05.ld.sync.aligned." + image.shape + ".b32 " +
                        registers(image.registers) + ", [%r5 + 3]" + image.split +
                        ";\n  tcgen05.wait::ld.sync.aligned;\n" + give(image.registers));
    ASSERT_TRUE(ran.outcome.ok()) << image.shape << "\n" << render(ran.outcome, "test.ptx");
    for (unsigned warp = 0; warp < 4; ++warp)
      for (unsigned r = 0; r < image.rows; ++r)
        for (unsigned c = 0; c < image.columns; ++c) {
          const auto [thread, reg] = image.holder(r, c);
          EXPECT_EQ(ran.out[(warp * 32 + thread) * 64 + reg], set_value(warp * 32 + r, c + 3)) << image.shape;
        }
  }
}

// tcgen05.ld.red with the loaded registers: the smallest or largest of a lane's columns.
TEST(Tcgen05, LoadsAreReduced) {
  const auto single = [](uint32_t bits) { return std::bit_cast<float>(bits); };
  struct Case {
    std::string words;
    std::function<uint32_t(uint32_t, uint32_t)> combine;
    uint32_t (*seen)(uint32_t) = [](uint32_t word) { return word; };
  };
  const auto number = [&](bool largest, bool nan) {
    return [=](uint32_t a, uint32_t b) -> uint32_t {
      const bool a_nan = (a & 0x7fffffff) > 0x7f800000, b_nan = (b & 0x7fffffff) > 0x7f800000;
      if (a_nan || b_nan) return nan || (a_nan && b_nan) ? 0x7fffffff : a_nan ? b : a;
      return (single(a) < single(b)) == largest ? b : a;
    };
  };
  const auto magnitude = [](uint32_t word) { return word & 0x7fffffff; };
  const std::vector<Case> cases = {
      {"u32.min", [](uint32_t a, uint32_t b) { return std::min(a, b); }},
      {"s32.max",
       [](uint32_t a, uint32_t b) {
         return static_cast<uint32_t>(std::max(static_cast<int32_t>(a), static_cast<int32_t>(b)));
       }},
      {"f32.min", number(false, false)},
      {"f32.max.abs.NaN", number(true, true), magnitude},
  };
  // Both signs, and a NaN in every fifth register of the warp.
  const std::string set_signed =
      "  mul.lo.u32 %v0, %r0, 0x9e3779b1;\n  mul.lo.u32 %v1, %v0, 0x85ebca6b;\n  xor.b32 %v2, %v1, %v0;\n"
      "  rem.u32 %r8, %r0, 5;\n  setp.eq.u32 %p4, %r8, 0;\n  selp.b32 %v3, 0x7fc00001, %v1, %p4;\n";
  // With 16x32bx2 each thread reduces the columns that it has loaded: the first 16 threads columns 0 and 1 of their
  // lane, the others columns 2 and 3 of the same lanes.
  for (const Case& each : cases)
    for (const bool halves : {false, true}) {
      const unsigned count = halves ? 2 : 4;
      const Ran ran = run(kAt + set_signed + "  tcgen05.st.sync.aligned.32x32b.x4.b32 [%r5], " + registers(4) +
                          ";\n  tcgen05.wait::st.sync.aligned;\n  tcgen05.ld.red.sync.aligned." +
                          (halves ? "16x32bx2.x2." : "32x32b.x4.") + each.words + " " + registers(count) +
                          ", %v4, [%r5]" + (halves ? ", 2" : "") + ";\n  tcgen05.wait::ld.sync.aligned;\n" + give(5));
      ASSERT_TRUE(ran.outcome.ok()) << each.words << "\n" << render(ran.outcome, "test.ptx");
      for (uint32_t thread = 0; thread < 128; ++thread) {
        const uint32_t lane = halves ? thread / 32 * 32 + thread % 16 : thread;
        const uint32_t first = lane * 0x9e3779b1u, second = first * 0x85ebca6bu;
        const uint32_t words[] = {first, second, second ^ first, lane % 5 ? second : 0x7fc00001u};
        const uint32_t* own = halves && thread % 32 >= 16 ? words + 2 : words;
        uint32_t all = each.seen(own[0]);
        for (unsigned i = 1; i < count; ++i) all = each.combine(all, each.seen(own[i]));
        for (unsigned i = 0; i < count; ++i) EXPECT_EQ(ran.out[thread * 64 + i], own[i]);
        EXPECT_EQ(ran.out[thread * 64 + 4], all) << each.words << " " << halves << " " << thread;
      }
    }
}

const std::string kOwnStores =
    "  tcgen05.wait::st.sync.aligned;\n  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n"
    "  tcgen05.fence::after_thread_sync;\n";
const std::string kWait =
    "w:\n  mbarrier.try_wait.parity.shared.b64 %p4, [bar], 0;\n  @!%p4 bra w;\n"
    "  tcgen05.fence::after_thread_sync;\n";
const std::string kCommit = "  @%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\n";

// Eight columns of the warp that the address selects: each lane gets those of the next, the last keeps its own.
TEST(Tcgen05, RowsAreShifted) {
  const auto body = [](unsigned lane, const std::string& wait) {
    return kAt + set(32) + "  tcgen05.st.sync.aligned.32x32b.x32.b32 [%r5], " + registers(32) + ";\n" + kOwnStores +
           fmt::format("  add.u32 %r9, %r1, {:#x};\n", lane << 16 | 8) +
           "  @%p2 tcgen05.shift.cta_group::1.down [%r9];\n" + wait + "  tcgen05.ld.sync.aligned.32x32b.x32.b32 " +
           registers(32) + ", [%r5];\n  tcgen05.wait::ld.sync.aligned;\n" + give(32);
  };
  for (const unsigned lane : {0u, 64u}) {
    const Ran ran = run(body(lane, kCommit + kWait));
    ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
    for (unsigned thread = 0; thread < 128; ++thread)
      for (unsigned c = 0; c < 32; ++c) {
        const bool moves = thread / 32 == lane / 32 && thread % 32 != 31 && c >= 8 && c < 16;
        EXPECT_EQ(ran.out[thread * 64 + c], set_value(moves ? thread + 1 : thread, c)) << thread << " " << c;
      }
  }
  const auto fault = [&](unsigned lane, const std::string& wait) {
    const Ran ran = run(body(lane, wait));
    return ran.outcome.ok() ? std::string() : render(ran.outcome.faults[0], "test.ptx");
  };
  EXPECT_THAT(fault(16, kCommit + kWait), HasSubstr("tcgen05.shift at lane 16: expected 0, 32, 64 or 96"));
  EXPECT_THAT(fault(32, "  bar.sync 0;\n"), HasSubstr("before a commit of what writes it has been waited for"));
}

// The reverse, also with two 16-bit halves of a register for two columns.
TEST(Tcgen05, StoresOfEveryShape) {
  for (const Image& image : images())
    for (const bool packed : {false, true}) {
      const unsigned columns = image.columns * (packed ? 2 : 1);
      std::string split = image.split;
      if (packed && !split.empty()) split = ", 8";
      const Ran ran = run(kAt + set(image.registers) + "  tcgen05.st.sync.aligned." + image.shape +
                          (packed ? ".unpack::16b" : "") + ".b32 [%r5]" + split + ", " + registers(image.registers) +
                          ";\n  tcgen05.wait::st.sync.aligned;\n  tcgen05.ld.sync.aligned.32x32b.x32.b32 " +
                          registers(32) + ", [%r5];\n  tcgen05.wait::ld.sync.aligned;\n" + give(32));
      ASSERT_TRUE(ran.outcome.ok()) << image.shape << "\n" << render(ran.outcome, "test.ptx");
      for (unsigned thread = 0; thread < 128; ++thread)
        for (unsigned c = 0; c < columns && thread % 32 < image.rows; ++c) {
          const auto [holder, reg] = image.holder(thread % 32, packed ? c / 2 : c);
          const uint32_t value = set_value(thread / 32 * 32 + holder, reg);
          EXPECT_EQ(ran.out[thread * 64 + c], packed ? value >> 16 * (c % 2) & 0xffff : value)
              << image.shape << " " << thread << " " << c;
        }
    }
  const Ran packed = run(kAt + set(8) + "  tcgen05.st.sync.aligned.32x32b.x8.b32 [%r5], " + registers(8) +
                         ";\n  tcgen05.wait::st.sync.aligned;\n  tcgen05.ld.sync.aligned.32x32b.x4.pack::16b.b32 " +
                         registers(4) + ", [%r5];\n  tcgen05.wait::ld.sync.aligned;\n" + give(4));
  for (unsigned thread = 0; thread < 128; ++thread)
    for (unsigned i = 0; i < 4; ++i)
      EXPECT_EQ(packed.out[thread * 64 + i],
                (set_value(thread, 2 * i) & 0xffff) | (set_value(thread, 2 * i + 1) & 0xffff) << 16);
}

struct Product {
  std::string kind, a, b;
  uint32_t a_format, b_format, d_format;
  unsigned bits_a, bits_b, depth;
  unsigned m = 128, n = 16;
  bool b_across = false;  // N is contiguous in shared memory
};

// Rows of 32 bytes in atoms of 8 rows of 16 bytes: the second 16 bytes are `rows` * 16 bytes further.
void put(std::vector<uint32_t>& tile, unsigned begin, unsigned rows, unsigned row, unsigned k, unsigned bits,
         uint32_t value) {
  const unsigned chunk = bits < 8 ? k / 16 : k * bits / 128, inside = bits < 8 ? k % 16 * bits : k * bits % 128;
  for (unsigned i = 0; i < bits; ++i) {
    const unsigned bit = (begin + row / 8 * 128 + row % 8 * 16 + chunk * rows * 16) * 8 + inside + i;
    tile[bit / 32] |= (value >> i & 1) << bit % 32;
  }
}

uint32_t descriptor_of(const Product& p, uint32_t more = 0) {
  return p.d_format << 4 | p.a_format << 7 | p.b_format << 10 | (p.b_across ? 1u << 16 : 0u) | (p.n / 8) << 17 |
         (p.m / 16) << 24 | more;
}

std::string multiply_text(const Product& p, uint32_t descriptor, const std::string& a = "%rd10",
                          const std::string& rest = "%p5", const std::string& wait = kCommit + kWait,
                          const std::string& before = "", const std::string& words = "") {
  return shared_descriptor("%rd10", 0, 2048, 128) +
         (p.b_across ? shared_descriptor("%rd11", 4096, 128, 256) : shared_descriptor("%rd11", 4096, p.n * 16, 128)) +
         "  setp.ne.u32 %p5, %r0, %r0;\n  setp.eq.u32 %p6, %r0, %r0;\n" + before +
         fmt::format("  mov.u32 %r8, {:#x};\n", descriptor) + "  @%p2 tcgen05.mma.cta_group::1.kind::" + p.kind +
         words + " [%r1], " + a + ", %rd11, %r8, " + rest + ";\n" + wait + kAt +
         "  tcgen05.ld.sync.aligned.32x32b.x16.b32 " + registers(16) + ", [%r5];\n  tcgen05.wait::ld.sync.aligned;\n" +
         give(16);
}

struct Numbers {
  std::vector<int> a, b;
  std::vector<uint32_t> tile = std::vector<uint32_t>(2304);
};

Numbers numbers_of(const Product& p) {
  Numbers out;
  std::mt19937 random(p.depth * 7 + p.m);
  const auto pick = [&](const std::string& type) { return static_cast<int>(random() % 7) - (type == "u8" ? 0 : 3); };
  for (unsigned i = 0; i < p.m * p.depth; ++i) {
    out.a.push_back(pick(p.a));
    put(out.tile, 0, 128, i / p.depth, i % p.depth, p.bits_a, bits_of(p.a, out.a.back()));
  }
  for (unsigned i = 0; i < p.n * p.depth; ++i) {
    out.b.push_back(pick(p.b));
    const unsigned n = i / p.depth, k = i % p.depth;
    if (!p.b_across) {
      put(out.tile, 4096, p.n, n, k, p.bits_b, bits_of(p.b, out.b.back()));
      continue;
    }
    // Lines of 16 bytes along N, eight k in an atom; the next N is 128 bytes further, the next eight k 256.
    const unsigned byte = 4096 + n / 8 * 256 + k / 8 * 128 + k % 8 * 16 + n % 8 * 2;
    out.tile[byte / 4] |= bits_of(p.b, out.b.back()) << byte % 4 * 8;
  }
  return out;
}

int64_t product_at(const Product& p, const Numbers& numbers, unsigned row, unsigned column) {
  int64_t sum = 0;
  for (unsigned k = 0; k < p.depth; ++k) sum += int64_t{numbers.a[row * p.depth + k]} * numbers.b[column * p.depth + k];
  return sum;
}

uint32_t d_bits(const Product& p, double value) {
  if (p.d_format == 2) return static_cast<uint32_t>(static_cast<int64_t>(value));
  if (p.d_format == 0) return std::bit_cast<uint16_t>(static_cast<Half>(value));
  return std::bit_cast<uint32_t>(static_cast<float>(value));
}

// Row r of 64 is in lane r % 16 of warp r / 16.
unsigned thread_of_row(const Product& p, unsigned row) { return p.m == 64 ? row / 16 * 32 + row % 16 : row; }

const Product kHalves{"f16", "f16", "f16", 0, 0, 1, 16, 16, 16};

TEST(Tcgen05, ProductsOfEveryKind) {
  std::vector<Product> all = {kHalves,
                              {"f16", "bf16", "bf16", 1, 1, 1, 16, 16, 16},
                              {"f16", "f16", "bf16", 0, 1, 0, 16, 16, 16},
                              {"tf32", "tf32", "tf32", 2, 2, 1, 32, 32, 8},
                              {"i8", "s8", "s8", 1, 1, 2, 8, 8, 32},
                              {"i8", "u8", "s8", 0, 1, 2, 8, 8, 32},
                              {"f8f6f4", "e4m3", "e5m2", 0, 1, 1, 8, 8, 32},
                              {"f8f6f4", "e5m2", "e4m3", 1, 0, 0, 8, 8, 32},
                              {"f8f6f4", "e2m3", "e3m2", 3, 4, 1, 6, 6, 32},
                              {"f8f6f4", "e2m1", "e4m3", 5, 0, 1, 4, 8, 32},
                              {"f8f6f4", "e4m3", "e2m1", 0, 5, 1, 8, 4, 32}};
  for (const unsigned m : {128u, 64u})
    for (Product p : all) {
      p.m = m;
      const Numbers numbers = numbers_of(p);
      const Ran ran = run(multiply_text(p, descriptor_of(p)), numbers.tile);
      ASSERT_TRUE(ran.outcome.ok()) << p.a << " " << p.b << "\n" << render(ran.outcome, "test.ptx");
      for (unsigned row = 0; row < m; ++row)
        for (unsigned column = 0; column < 16; ++column)
          EXPECT_EQ(ran.out[thread_of_row(p, row) * 64 + column],
                    d_bits(p, static_cast<double>(product_at(p, numbers, row, column))))
              << p.a << " " << p.b << " " << row << " " << column;
    }
}

TEST(Tcgen05, ProductsAddToWhatWasThere) {
  Product p = kHalves;
  p.b_across = true;
  const Numbers numbers = numbers_of(p);
  // D is 64 initially and scaled by a quarter; A is negated; lanes 5 and 70 are disabled.
  const std::string before =
      "  mov.f32 %f1, 0f42800000;\n" + kAt +
      [] {
        std::string text;
        for (unsigned i = 0; i < 16; ++i) text += fmt::format("  mov.b32 %v{}, %f1;\n", i);
        return text;
      }() +
      "  tcgen05.st.sync.aligned.32x32b.x16.b32 [%r5], " + registers(16) +
      ";\n  tcgen05.wait::st.sync.aligned;\n  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n"
      "  tcgen05.fence::after_thread_sync;\n  mov.u32 %r10, 32;\n  mov.u32 %r11, 0;\n  mov.u32 %r12, 64;\n";
  const Ran ran = run(multiply_text(p, descriptor_of(p, 1u << 13), "%rd10", "{%r10, %r11, %r12, %r11}, %p6, 2",
                                    kCommit + kWait, before),
                      numbers.tile);
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  for (unsigned row = 0; row < 128; ++row)
    for (unsigned column = 0; column < 16; ++column) {
      const bool out = row == 5 || row == 70;
      const double expected = out ? 64 : 16 - static_cast<double>(product_at(p, numbers, row, column));
      EXPECT_EQ(std::bit_cast<float>(ran.out[row * 64 + column]), expected) << row << " " << column;
    }
}

// ptxas 13 accepts one more operand for integers, a predicate or, after a mask, a number, and ignores it.
TEST(Tcgen05, IntegersIgnoreTheScaleOperand) {
  const Product p{"i8", "s8", "u8", 1, 0, 2, 8, 8, 32};
  const Numbers numbers = numbers_of(p);
  for (const std::string rest : {"%p5, 1", "%p5, %p6", "{%r10, %r10, %r10, %r10}, %p5, 7"}) {
    const Ran ran =
        run(multiply_text(p, descriptor_of(p), "%rd10", rest, kCommit + kWait, "  mov.u32 %r10, 0;\n"), numbers.tile);
    ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
    for (unsigned row = 0; row < 128; ++row)
      for (unsigned column = 0; column < 16; ++column)
        EXPECT_EQ(ran.out[row * 64 + column], d_bits(p, static_cast<double>(product_at(p, numbers, row, column))))
            << rest << " " << row;
  }
}

// Elements of 4 and 6 bits, 16 of them in 16 bytes of shared memory, have a byte each after the copy, where a product
// reads them.
TEST(Tcgen05, CopiesUnpack) {
  struct Kind {
    Product product;
    std::string format;
    unsigned shift;  // within a byte
  };
  for (const Kind& each : {Kind{{"f8f6f4", "e2m1", "e4m3", 5, 0, 1, 4, 8, 32}, "b4x16_p64", 2},
                           Kind{{"f8f6f4", "e3m2", "e4m3", 4, 0, 1, 6, 8, 32}, "b6x16_p32", 0},
                           Kind{{"f8f6f4", "e2m3", "e4m3", 3, 0, 1, 6, 8, 32}, "b6x16_p32", 0}}) {
    const Product& p = each.product;
    const Numbers numbers = numbers_of(p);
    const auto copy = [&](const std::string& shape) {
      return "  @%p2 tcgen05.cp.cta_group::1." + shape + ".b8x16." + each.format + " [%r9], %rd10;\n";
    };
    const Ran product = run(multiply_text(p, descriptor_of(p), "[%r9]", "%p5", kCommit + kWait,
                                          "  add.u32 %r9, %r1, 40;\n" + copy("128x256b")),
                            numbers.tile);
    ASSERT_TRUE(product.outcome.ok()) << render(product.outcome, "test.ptx");
    for (unsigned row = 0; row < 128; ++row)
      for (unsigned column = 0; column < 16; ++column)
        EXPECT_EQ(product.out[row * 64 + column], d_bits(p, static_cast<double>(product_at(p, numbers, row, column))))
            << p.a << " " << row << " " << column;
    // The bytes, for every shape: the row that a lane gets and how many bytes of it.
    struct Shape {
      std::string words;
      unsigned bytes;
      unsigned (*row)(unsigned lane);
    };
    for (const Shape& shape : {Shape{"128x256b", 32, [](unsigned lane) { return lane; }},
                               Shape{"128x128b", 16, [](unsigned lane) { return lane; }},
                               Shape{"64x128b.warpx2::02_13", 16, [](unsigned lane) { return lane % 64; }},
                               Shape{"32x128b.warpx4", 16, [](unsigned lane) { return lane % 32; }},
                               Shape{"4x256b", 32, [](unsigned lane) { return lane % 32 ? 1000u : lane / 32; }}}) {
      const Ran ran =
          run(shared_descriptor("%rd10", 0, 2048, 128) + kAt +
                  "  mov.u32 %v0, 0;\n  add.u32 %r9, %r1, 8;\n  tcgen05.st.sync.aligned.32x32b.x8.b32 "
                  "[%r5+8], {%v0, %v0, %v0, %v0, %v0, %v0, %v0, %v0};\n" +
                  kOwnStores + copy(shape.words) + kCommit + kWait + "  tcgen05.ld.sync.aligned.32x32b.x8.b32 " +
                  registers(8) + ", [%r5+8];\n  tcgen05.wait::ld.sync.aligned;\n" + give(8),
              numbers.tile);
      ASSERT_TRUE(ran.outcome.ok()) << shape.words << render(ran.outcome, "test.ptx");
      for (unsigned lane = 0; lane < 128; ++lane)
        for (unsigned k = 0; k < 32; ++k) {
          const unsigned row = shape.row(lane);
          const uint32_t expected =
              row < 128 && k < shape.bytes ? bits_of(p.a, numbers.a[row * p.depth + k]) << each.shift : 0;
          EXPECT_EQ(ran.out[lane * 64 + k / 4] >> k % 4 * 8 & 0xff, expected)
              << p.a << " " << shape.words << " " << lane << " " << k;
        }
    }
  }
}

// A copy of 32 bytes for each row puts A into tensor memory.
TEST(Tcgen05, AMayLieInTensorMemory) {
  for (const unsigned rows : {128u, 64u, 32u}) {
    const Numbers numbers = numbers_of(kHalves);
    const std::string copy = rows == 128 ? "  @%p2 tcgen05.cp.cta_group::1.128x256b [%r9], %rd10;\n"
                             : rows == 64
                                 // In two parts of 16 bytes each.
                                 ? "  add.u64 %rd12, %rd10, 128;\n  add.u32 %r13, %r9, 4;\n"
                                   "  @%p2 tcgen05.cp.cta_group::1.64x128b.warpx2::01_23 [%r9], %rd10;\n"
                                   "  @%p2 tcgen05.cp.cta_group::1.64x128b.warpx2::01_23 [%r13], %rd12;\n"
                                 : "  add.u64 %rd12, %rd10, 128;\n  add.u32 %r13, %r9, 4;\n"
                                   "  @%p2 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r9], %rd10;\n"
                                   "  @%p2 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r13], %rd12;\n";
    const Ran ran = run(multiply_text(kHalves, descriptor_of(kHalves), "[%r9]", "%p5", kCommit + kWait,
                                      "  add.u32 %r9, %r1, 40;\n" + copy),
                        numbers.tile);
    ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
    for (unsigned row = 0; row < 128; ++row) {
      const unsigned from = rows == 128 ? row : rows == 64 ? row / 64 * 32 + row % 32 : row % 32;
      for (unsigned column = 0; column < 16; ++column)
        EXPECT_EQ(std::bit_cast<float>(ran.out[row * 64 + column]),
                  static_cast<float>(product_at(kHalves, numbers, from, column)))
            << rows << " " << row;
    }
  }
}

std::string fault_of(const std::string& body) {
  const Ran ran = run(body, numbers_of(kHalves).tile);
  return ran.outcome.ok() ? std::string() : render(ran.outcome.faults[0], "test.ptx");
}

TEST(Tcgen05, MistakesAreFound) {
  const std::string load = "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r5];\n";
  const std::string store = "  mov.u32 %v0, 1;\n  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r5], {%v0};\n";
  const std::string wait = "  tcgen05.wait::st.sync.aligned;\n";
  EXPECT_EQ(fault_of(kAt + store + wait + load), "");
  EXPECT_THAT(fault_of(kAt + store + load), HasSubstr("before the wait::st"));
  EXPECT_THAT(fault_of("  mov.u32 %r5, %r1;\n" + store),
              HasSubstr("reaches lanes 0 to 31 of tensor memory, its own are"));
  EXPECT_THAT(fault_of("  add.u32 %r5, %r1, %r21;\n  add.u32 %r5, %r5, 64;\n" + store),
              HasSubstr("columns 64 to 64 of tensor memory are in no allocation"));
  // A branch on undefined bits.
  EXPECT_THAT(fault_of(kAt + load + "  tcgen05.wait::ld.sync.aligned;\n  setp.eq.u32 %p6, %v0, 9;\n  @%p6 bra fill;\n"),
              HasSubstr("F071"));
  const uint32_t good = descriptor_of(kHalves);
  EXPECT_EQ(fault_of(multiply_text(kHalves, good)), "");
  EXPECT_THAT(fault_of(multiply_text(kHalves, (good & ~(31u << 24)) | 4u << 24, "[%r9]", "%p5", kCommit + kWait,
                                     "  add.u32 %r9, %r1, 40;\n  @%p2 tcgen05.cp.cta_group::1.128x256b [%r9], %rd10;\n",
                                     ".ashift")),
              HasSubstr("rows are shifted where M is 128 or 256, not 64"));
  EXPECT_THAT(fault_of(multiply_text(kHalves, good, "%rd10", "%p5", "  bar.sync 0;\n")),
              HasSubstr("before a commit of what writes it has been waited for"));
  EXPECT_THAT(fault_of(multiply_text(kHalves, good, "%rd10", "%p5", kCommit + "  bar.sync 0;\n")),
              HasSubstr("before a commit of what writes it has been waited for"));
  EXPECT_THAT(fault_of(multiply_text(kHalves, good | 4)), HasSubstr("that of a sparse product"));
  EXPECT_THAT(fault_of(multiply_text(kHalves, good | 7 << 7)), HasSubstr("kind does not have these formats"));
  EXPECT_THAT(fault_of(multiply_text(kHalves, (good & ~(31u << 24)) | 6u << 24)), HasSubstr("M is 96"));
  EXPECT_THAT(fault_of(multiply_text(kHalves, (good & ~(63u << 17)) | 33u << 17)), HasSubstr("N is 264"));
  EXPECT_THAT(fault_of(multiply_text(kHalves, (good & ~(63u << 17)) | 16u << 17)), HasSubstr("columns 0 to 127"));
  EXPECT_THAT(
      fault_of(multiply_text(kHalves, good, "%rd10", "%p5", kCommit + kWait, "  or.b64 %rd11, %rd11, 0x3fff0000;\n")),
      HasSubstr("a matrix descriptor reaches"));
  EXPECT_THAT(fault_of(multiply_text(kHalves, good, "%rd10", "%p5", kCommit + kWait,
                                     "  or.b64 %rd11, %rd11, 0x2000000000000000;\n")),
              HasSubstr("chunks of 32 bytes belong to transposed matrices of tf32"));
}

// Registers that a load still writes, each beside the same with a wait.
TEST(Tcgen05, MissingWaitOfALoad) {
  const std::string stored = kAt + set(4) + "  tcgen05.st.sync.aligned.32x32b.x4.b32 [%r5], " + registers(4) +
                             ";\n  tcgen05.wait::st.sync.aligned;\n",
                    load = "  tcgen05.ld.sync.aligned.32x32b.x4.b32 " + registers(4) + ", [%r5];\n",
                    reduce = "  tcgen05.ld.red.sync.aligned.32x32b.x4.u32.max " + registers(4) + ", %v9, [%r5];\n",
                    wait = "  tcgen05.wait::ld.sync.aligned;\n";
  struct Bug {
    std::string load, use, verb;
  };
  const std::vector<Bug> bugs = {{load, "  st.global.u32 [%rd2], %v2;\n", "%v2 is used"},
                                 {load, "  mov.u32 %v3, 1;\n", "%v3 is written"},
                                 {load, "  add.u32 %v0, %r0, 1;\n", "%v0 is written"},
                                 {load, "  st.global.u32 [%rd2], %v1;\n", "%v1 is used"},
                                 {reduce, "  st.global.u32 [%rd2], %v9;\n", "%v9 is used"},
                                 {load, "  shfl.sync.bfly.b32 %v8, %v0, 1, 31, -1;\n", "%v0 is used"}};
  for (const Bug& each : bugs) {
    SCOPED_TRACE(each.use);
    EXPECT_THAT(fault_of(stored + each.load + each.use + wait),
                HasSubstr(each.verb + " while tcgen05.ld still writes it: tcgen05.wait::ld has not been executed"));
    EXPECT_EQ(fault_of(stored + each.load + wait + each.use), "");
  }
  fmt::print("{} planted bugs found\n{} clean twins untouched\n", bugs.size(), bugs.size());
}

// LLVM packs the results of a load before its wait, and unpacks them after it or even before it, to convert them.
TEST(Tcgen05, WhatALoadStillWritesMayBeMoved) {
  const std::string stored = kAt + set(4) + "  tcgen05.st.sync.aligned.32x32b.x4.b32 [%r5], " + registers(4) +
                             ";\n  tcgen05.wait::st.sync.aligned;\n",
                    load = "  tcgen05.ld.sync.aligned.32x32b.x4.b32 " + registers(4) + ", [%r5];\n",
                    pack = "  mov.b64 %rd10, {%v0, %v1};\n  mov.b64 %rd11, {%v2, %v3};\n  mov.b64 %rd12, %rd11;\n",
                    wait = "  tcgen05.wait::ld.sync.aligned;\n",
                    unpack = "  mov.b64 {%v4, %v5}, %rd10;\n  mov.b64 {_, %v7}, %rd12;\n  mov.b32 %v6, %v2;\n",
                    own = "  mul.wide.u32 %rd7, %r0, 256;\n  add.u64 %rd7, %rd0, %rd7;\n",
                    give_packed = own + "  st.global.v4.u32 [%rd7], {%v4, %v5, %v6, %v7};\n";
  for (const std::string& body : {load + pack + wait + unpack, load + pack + unpack + wait}) {
    const Ran ran = run(stored + body + give_packed);
    ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
    for (unsigned thread = 0; thread < 128; ++thread)
      for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(ran.out[thread * 64 + i], set_value(thread, i));
  }
  struct Bug {
    std::string use, says;
  };
  const std::vector<Bug> bugs = {
      {pack + own + "  st.global.u64 [%rd7], %rd10;\n", "%rd10 is used"},
      {pack + unpack + own + "  st.global.u32 [%rd7], %v5;\n", "%v5 is used"},
      {pack + own + "  mov.b64 %rd11, 0;\n  st.global.u64 [%rd7], %rd12;\n", "%rd12 is used"}};
  for (const Bug& each : bugs) {
    SCOPED_TRACE(each.use);
    EXPECT_THAT(fault_of(stored + load + each.use + wait),
                HasSubstr(each.says + " while tcgen05.ld still writes it: tcgen05.wait::ld has not been executed"));
    EXPECT_EQ(fault_of(stored + load + wait + each.use), "");
  }
  // A value computed from them may be used too, with a note: ptxas waits there.
  const std::string add = "  mov.b64 {%v4, %v5}, %rd10;\n  add.u32 %v8, %v5, 1;\n  add.u32 %v9, %v8, 1;\n";
  const Ran noted = run(stored + load + pack + add + wait + own + "  st.global.u32 [%rd7], %v9;\n");
  ASSERT_TRUE(noted.outcome.ok()) << render(noted.outcome, "test.ptx");
  ASSERT_EQ(noted.outcome.notes.size(), 1u);
  EXPECT_EQ(noted.outcome.notes[0].kind, FaultKind::async_early);
  EXPECT_THAT(
      render(noted.outcome, "test.ptx"),
      HasSubstr(
          "note: asynchronous load is not waited for [F048]: %v5 is used in a computation before tcgen05.wait::ld"));
  for (unsigned thread = 0; thread < 128; ++thread) EXPECT_EQ(noted.out[thread * 64], set_value(thread, 1) + 2);
  EXPECT_EQ(run(stored + load + wait + pack + add + own + "  st.global.u32 [%rd7], %v9;\n").outcome.notes.size(), 0u);
  // It may even be stored before the wait, as Triton 3.9 does: the machine code has waited before it computed.
  const Ran early = run(stored + load + pack + add + own + "  st.global.u32 [%rd7], %v9;\n" + wait);
  ASSERT_TRUE(early.outcome.ok()) << render(early.outcome, "test.ptx");
  EXPECT_EQ(early.outcome.notes.size(), 1u);
  // A copy may be overwritten and then no longer counts as one.
  for (const std::string& over : {std::string("  mov.b64 %rd10, 0;\n"), std::string("  cvt.u64.u32 %rd10, %r0;\n")})
    EXPECT_EQ(fault_of(stored + load + pack + over + "  add.u64 %rd13, %rd10, 1;\n" + wait), "");
  fmt::print("{} planted bugs found\n{} clean twins untouched\n", bugs.size(), bugs.size() + 4);
}

TEST(Tcgen05, MistakesWithAllocations) {
  const auto fault = [](const std::string& from, const std::string& to) {
    std::string text = kernel_text("");
    text.replace(text.find(from), from.size(), to);
    const Ran ran = run_kernel(text, {.block = {128}}, 64, std::vector<uint32_t>(2304));
    return ran.outcome.ok() ? std::string() : render(ran.outcome.faults[0], "test.ptx");
  };
  const std::string alloc = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 64;\n";
  const std::string release = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 64;\n";
  const std::string permit = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n";
  EXPECT_EQ(fault("", ""), "");
  EXPECT_THAT(fault(release, ""), HasSubstr("64 columns of tensor memory are not deallocated when the block ends"));
  EXPECT_THAT(fault(release, release + release), HasSubstr("no allocation of 64 columns is at column 0"));
  EXPECT_THAT(fault(permit, permit + alloc), HasSubstr("tcgen05.alloc after tcgen05.relinquish_alloc_permit"));
  EXPECT_THAT(fault("[place], 64;\n", "[place], %r20;\n"), HasSubstr("0 columns are no power of two"));
  EXPECT_THAT(fault(permit, "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 128;\n"),
              HasSubstr("a later allocation may not be larger"));
  EXPECT_THAT(fault(alloc,
                    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 512;\n"
                    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 32;\n"),
              HasSubstr("waits for 32 columns"));
  EXPECT_THAT(fault("  ld.shared.u32 %r1, [place];\n", "  mov.u32 %r1, 32;\n"),
              HasSubstr("no allocation of 64 columns is at column 32"));
}

}  // namespace
}  // namespace ptxkit::emulator
