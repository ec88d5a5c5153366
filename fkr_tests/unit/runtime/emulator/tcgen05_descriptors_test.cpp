// tcgen05.mma with matrices in shared memory that are not in plain atoms: counted from another line of the pattern than
// the first, in chunks of 32 bytes, in two parts. Each element is placed as in PTX ISA 9.0, 9.7.16.3 to 9.7.16.5, and
// in CUTLASS's canonical layouts (make_umma_desc).
#include <bit>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "fkr_tests/unit/runtime/emulator/tcgen05_kernel.hpp"
#include "fkr_tests/unit/runtime/emulator/tcgen05_operands.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::emulator {
namespace {

using ::testing::HasSubstr;

// A of 128 rows is in tensor memory or at byte 0 of the tile.
struct Product {
  std::string words, type;
  unsigned bits, n, depth;
  uint32_t descriptor;  // without M and N
  bool a_in_shared = false;
};

struct Numbers {
  Operands operands;
  std::vector<int> a, b;
};

// `at(n, k)` is the byte of the tile at which an element of B begins, `a_at(m, k)` the same for A.
template <class Place, class PlaceOfA>
Numbers fill(const Product& p, Place&& at, PlaceOfA&& a_at) {
  Numbers out;
  std::mt19937 random(p.n + p.depth);
  const auto pick = [&] { return static_cast<int>(random() % 7) - 3; };
  for (unsigned m = 0; m < 128; ++m)
    for (unsigned k = 0; k < p.depth; ++k) {
      out.a.push_back(pick());
      const uint32_t bits = bits_of(p.type, out.a.back());
      if (p.a_in_shared)
        out.operands.set(a_at(m, k) * 8, p.bits, bits);
      else
        out.operands.in_column(m, kA + k * p.bits / 32, k * p.bits % 32, p.bits, bits);
    }
  for (unsigned n = 0; n < p.n; ++n)
    for (unsigned k = 0; k < p.depth; ++k) {
      out.b.push_back(pick());
      out.operands.set(at(n, k) * 8 + (p.bits < 8 ? k % 2 * 4 : 0), p.bits, bits_of(p.type, out.b.back()));
    }
  for (unsigned lane = 0; lane < 128; ++lane)  // factors of 1 for kinds that have factors
    for (unsigned column = 0; column < 16; ++column) out.operands.in_column(lane, 24 + column, 0, 32, 0x7f7f7f7f);
  return out;
}

// The fields of a descriptor without the start of the matrix: both distances, the base offset and the swizzle.
uint64_t described(unsigned leading, unsigned stride, unsigned base, unsigned swizzle) {
  return uint64_t{leading / 16} << 16 | uint64_t{stride / 16} << 32 | uint64_t{1} << 46 | uint64_t{base} << 49 |
         uint64_t{swizzle} << 61;
}
std::string descriptor_text(const std::string& reg, unsigned begin, uint64_t rest) {
  return fmt::format(
      "  add.u32 %r7, %r6, {};\n  shr.u32 %r7, %r7, 4;\n  cvt.u64.u32 {}, %r7;\n  or.b64 {}, {}, {:#x};\n", begin, reg,
      reg, reg, rest);
}

Ran run(const Product& p, const Numbers& numbers, const std::string& descriptors) {
  const bool scaled = p.words.find("block_scale") != std::string::npos;
  const std::string multiply =
      descriptors + fmt::format("  mov.u32 %r8, {:#x};\n  @%p2 tcgen05.mma{} [%r1], {}, %rd11, %r8, {}%p5;\n",
                                p.descriptor | p.n / 8 << 17 | (scaled ? 1u << 27 : 8u << 24), p.words,
                                p.a_in_shared ? "%rd10" : "[%r1+64]", scaled ? "[%r1+88], [%r1+96], " : "");
  return run_kernel(kernel_text(false, multiply), {.block = {128}}, 128 * kColumns, numbers.operands.words,
                    {.checks = kCheckStandard & ~kCheckOutputs, .max_steps = 1'000'000});
}

void expect_product(const Product& p, const Numbers& numbers, const Ran& ran, const std::string& what) {
  ASSERT_TRUE(ran.outcome.ok()) << what << render(ran.outcome, "test.ptx");
  for (unsigned m = 0; m < 128; ++m)
    for (unsigned n = 0; n < p.n; ++n) {
      int sum = 0;
      for (unsigned k = 0; k < p.depth; ++k) sum += numbers.a[m * p.depth + k] * numbers.b[n * p.depth + k];
      ASSERT_EQ(std::bit_cast<float>(ran.out[m * kColumns + n]), static_cast<float>(sum))
          << what << ", row " << m << ", column " << n;
    }
}

std::string fault_of(const Ran& ran) {
  return ran.outcome.ok() ? std::string() : render(ran.outcome.faults[0], "test.ptx");
}

constexpr uint32_t kToF32 = 1 << 4;
constexpr auto kNowhere = [](unsigned, unsigned) { return 0u; };
const Product kHalves{".cta_group::1.kind::f16", "f16", 16, 16, 16, kToF32};

// The pattern of a swizzle begins at 128-byte line `base`: lines are counted from there on.
TEST(Tcgen05Descriptors, CountLinesFromABase) {
  struct Swizzle {
    unsigned mode, row_bytes;
  };
  for (const Swizzle& swizzle : {Swizzle{2, 128}, Swizzle{4, 64}, Swizzle{6, 32}})
    for (unsigned base = 0; base < 8; ++base) {
      const unsigned begin = 1024 + 128 * base, stride = 8 * swizzle.row_bytes, chunks = swizzle.row_bytes / 16;
      const Numbers numbers = fill(
          kHalves,
          [&](unsigned n, unsigned k) {
            const unsigned row = n % 8 * swizzle.row_bytes, chunk = k / 8 ^ row / 128 % chunks;
            return begin + n / 8 * stride + row + chunk * 16 + k % 8 * 2;
          },
          kNowhere);
      const std::string what = fmt::format("rows of {} bytes from line {}", swizzle.row_bytes, base);
      expect_product(kHalves, numbers,
                     run(kHalves, numbers, descriptor_text("%rd11", begin, described(16, stride, base, swizzle.mode))),
                     what);
    }
}

// 128 bytes along M or N of four k are in four lines, whose quarters change places.
TEST(Tcgen05Descriptors, HaveChunksOf32Bytes) {
  const Product p{".cta_group::1.kind::tf32", "tf32", 32, 64, 8, kToF32 | 2 << 7 | 2 << 10 | 3 << 15, true};
  const auto place = [](unsigned begin, unsigned leading) {
    return [=](unsigned x, unsigned k) {
      return begin + x / 32 * leading + k / 4 * 512 + k % 4 * 128 + (x % 32 / 8 ^ k % 4) * 32 + x % 8 * 4;
    };
  };
  const Numbers numbers = fill(p, place(4096, 1024), place(0, 1024));
  const std::string both = descriptor_text("%rd10", 0, described(1024, 512, 0, 1)) +
                           descriptor_text("%rd11", 4096, described(1024, 512, 0, 1));
  expect_product(p, numbers, run(p, numbers, both), "chunks of 32 bytes");
  Product rows = p;
  rows.descriptor &= ~(3u << 15);
  EXPECT_THAT(fault_of(run(rows, numbers, both)),
              HasSubstr("chunks of 32 bytes belong to transposed matrices of tf32"));
  const std::string narrow = descriptor_text("%rd10", 0, described(1024, 512, 0, 2));
  EXPECT_THAT(fault_of(run(p, numbers, narrow)), HasSubstr("transposed matrices of tf32 lie in chunks of 32 bytes"));
}

// Rows of 48 bytes that begin at byte 96 or 112 of a 128-byte line continue at a second address.
TEST(Tcgen05Descriptors, HaveASecondAddress) {
  const Product p{".cta_group::1.kind::mxf4.block_scale.block32", "e2m1", 4, 16, 96,
                  1u << 7 | 1u << 10 | 1u << 23 | 1u << 31};
  for (const unsigned first : {0u, 80u, 96u, 112u}) {
    const auto place = [&](unsigned n, unsigned k) {
      const unsigned byte = first + k / 2, begin = byte < 128 ? 1024 : 5120, chunk = byte % 128 / 16 ^ n % 8;
      return begin + n / 8 * 1024 + n % 8 * 128 + chunk * 16 + byte % 16;
    };
    const Numbers numbers = fill(p, place, kNowhere);
    const auto text = [&](unsigned base, unsigned swizzle) {
      return descriptor_text("%rd11", 1024 + first, described(0, 1024, base, swizzle) | uint64_t{1} << 52) +
             "  add.u32 %r7, %r6, 5120;\n  shr.u32 %r7, %r7, 4;\n  cvt.u64.u32 %rd12, %r7;\n"
             "  shl.b64 %rd12, %rd12, 16;\n  or.b64 %rd11, %rd11, %rd12;\n";
    };
    expect_product(p, numbers, run(p, numbers, text(0, 2)), fmt::format("from byte {}", first));
    EXPECT_THAT(fault_of(run(p, numbers, text(1, 2))), HasSubstr("a second address belongs to rows along K"));
    EXPECT_THAT(fault_of(run(p, numbers, text(0, 4))), HasSubstr("a second address belongs to rows along K"));
  }
}

TEST(Tcgen05Descriptors, Mistakes) {
  const Numbers numbers = fill(kHalves, kNowhere, kNowhere);
  for (const unsigned mode : {3u, 5u, 7u})
    EXPECT_THAT(fault_of(run(kHalves, numbers, descriptor_text("%rd11", 0, described(16, 1024, 0, mode)))),
                HasSubstr(fmt::format("there is no swizzle mode {}", mode)));
  const Product narrow{".cta_group::1.kind::f8f6f4", "e2m1", 8, 16, 32, kToF32 | 5 << 7 | 5 << 10 | 1 << 16};
  EXPECT_THAT(fault_of(run(narrow, numbers, descriptor_text("%rd11", 0, described(16, 1024, 0, 2)))),
              HasSubstr("elements of 4 and 6 bits cannot be transposed"));
  const Product copy{".cta_group::1.kind::f16", "f16", 16, 16, 16, kToF32};
  EXPECT_THAT(fault_of(run(copy, numbers,
                           descriptor_text("%rd11", 0, described(16, 1024, 0, 1)) +
                               "  add.u32 %r9, %r1, 64;\n  @%p2 tcgen05.cp.cta_group::1.128x256b [%r9], %rd11;\n")),
              HasSubstr("chunks of 32 bytes belong to transposed matrices of tf32"));
}

}  // namespace
}  // namespace ptxkit::emulator
