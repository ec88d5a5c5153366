// Every integer, logic and comparison form on edge values, compared with the same operation in C++: with all lanes
// active, and with half of them, which takes the other path of every handler.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"

namespace ptxkit::emulator {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using s32 = int32_t;
using s64 = int64_t;

const std::vector<u32>& edges() {
  static const std::vector<u32> values{0,       1,          2,          3,          4,          7,          8,
                                       15,      16,         31,         32,         33,         63,         64,
                                       127,     128,        255,        256,        0x7fff,     0x8000,     0xffff,
                                       0x10000, 0x123456,   0x7fffffff, 0x80000000, 0x80000001, 0x9abcdef0, 0xc0c0,
                                       0xfffe,  0xfffffff0, 0xfffffffe, 0xffffffff};
  return values;
}

// out[tid] = f(a, b, c) for all pairs of edges; c is another edge. 1024 threads.
void inputs(std::vector<u32>& in) {
  const auto& e = edges();
  for (size_t i = 0; i < 1024; ++i) in.push_back(e[i % 32]);
  for (size_t i = 0; i < 1024; ++i) in.push_back(e[i / 32]);
  for (size_t i = 0; i < 1024; ++i) in.push_back(e[(i * 7 + i / 32 * 5) % 32]);
}

struct Case32 {
  std::string_view text;  // d in %r4, a b c in %r1 %r2 %r3; may use %p2, %rs, %f
  std::function<u32(u32, u32, u32)> expected;
};

void expect32(const Case32& each, bool half, uint32_t checks) {
  std::vector<u32> in;
  inputs(in);
  std::string body = R"(
  ld.global.u32 %r1, [%rd3];
  ld.global.u32 %r2, [%rd3+4096];
  ld.global.u32 %r3, [%rd3+8192];
  mov.u32 %r4, 77;
  and.b32 %r5, %r0, 1;
  setp.eq.u32 %p1, %r5, 0;
)";
  if (half) body += "  @!%p1 bra skip;\n";
  body += std::string(each.text) + "\nskip:\n  st.global.u32 [%rd2], %r4;\n";
  // Some divisors are 0: what an H200 gives for them is expected.
  Ran ran = run_kernel(entry_text(body), {.block = {1024}}, 1024, in,
                       {.checks = checks & ~kCheckDivision, .max_steps = 1'000'000});
  ASSERT_TRUE(ran.outcome.ok()) << each.text << "\n" << render(ran.outcome, "test.ptx");
  for (size_t i = 0; i < 1024; ++i) {
    u32 a = in[i], b = in[1024 + i], c = in[2048 + i];
    u32 expected = half && (i & 1) ? 77 : each.expected(a, b, c);
    ASSERT_EQ(ran.out[i], expected) << each.text << " a=" << a << " b=" << b << " c=" << c;
  }
}

u32 bits(bool value) { return value ? 1 : 0; }
s32 sat(s64 v) { return static_cast<s32>(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v); }
s32 s24(u32 v) { return static_cast<s32>(v << 8) >> 8; }

// Follows the pseudo-code of the ISA, bit by bit, except that position and length of 64 bits have no upper limit (an
// H200).
u64 bfe_by_bits(u64 a, u32 b, u32 c, unsigned msb, bool is_signed) {
  u64 pos = msb == 63 ? b : b & 0xff, len = msb == 63 ? c : c & 0xff;
  bool sign = is_signed && len != 0 && (a >> std::min<u64>(pos + len - 1, msb) & 1);
  u64 d = 0;
  for (unsigned i = 0; i <= msb; ++i) {
    bool bit = i < len && pos + i <= msb ? (a >> (pos + i) & 1) != 0 : sign;
    d |= u64{bit} << i;
  }
  return d;
}
u64 bfi_by_bits(u64 a, u64 b, u32 c, u32 d, unsigned msb) {
  u64 pos = msb == 63 ? c : c & 0xff, len = msb == 63 ? d : d & 0xff;
  u64 f = b;
  for (unsigned i = 0; i < len && pos + i <= msb; ++i) f = (f & ~(u64{1} << (pos + i))) | (a >> i & 1) << (pos + i);
  return f;
}
u32 prmt_by_bytes(u32 a, u32 b, u32 c) {
  u32 out = 0;
  for (unsigned i = 0; i < 4; ++i) {
    u32 pick = c >> 4 * i & 15;
    u32 byte = ((pick & 7) < 4 ? a >> 8 * (pick & 7) : b >> 8 * ((pick & 7) - 4)) & 0xff;
    if (pick & 8) byte = byte & 0x80 ? 0xff : 0;
    out |= byte << 8 * i;
  }
  return out;
}

const std::vector<Case32>& cases32() {
  static const std::vector<Case32> cases{
      {"add.u32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return a + b; }},
      {"add.sat.s32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return static_cast<u32>(sat(s64{s32(a)} + s32(b))); }},
      {"sub.s32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return a - b; }},
      {"sub.sat.s32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return static_cast<u32>(sat(s64{s32(a)} - s32(b))); }},
      {"mul.lo.u32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return a * b; }},
      {"mul.hi.u32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return static_cast<u32>(u64{a} * b >> 32); }},
      {"mul.hi.s32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return static_cast<u32>(s64{s32(a)} * s32(b) >> 32); }},
      {"mad.lo.s32 %r4, %r1, %r2, %r3;", [](u32 a, u32 b, u32 c) { return a * b + c; }},
      {"mad.hi.u32 %r4, %r1, %r2, %r3;", [](u32 a, u32 b, u32 c) { return static_cast<u32>(u64{a} * b >> 32) + c; }},
      {"mad.hi.sat.s32 %r4, %r1, %r2, %r3;",
       [](u32 a, u32 b, u32 c) { return static_cast<u32>(sat((s64{s32(a)} * s32(b) >> 32) + s32(c))); }},
      {"mul24.lo.u32 %r4, %r1, %r2;",
       [](u32 a, u32 b, u32) { return static_cast<u32>(u64{a & 0xffffff} * (b & 0xffffff)); }},
      {"mul24.hi.s32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return static_cast<u32>(s64{s24(a)} * s24(b) >> 16); }},
      {"mad24.lo.s32 %r4, %r1, %r2, %r3;",
       [](u32 a, u32 b, u32 c) { return static_cast<u32>(s64{s24(a)} * s24(b)) + c; }},
      {"div.u32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return b ? a / b : ~0u; }},
      {"div.s32 %r4, %r1, %r2;",
       [](u32 a, u32 b, u32) { return b == 0     ? ~0u
                                      : b == ~0u ? 0 - a
                                                 : static_cast<u32>(s32(a) / s32(b)); }},
      {"rem.u32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return b ? a % b : ~0u; }},
      {"rem.s32 %r4, %r1, %r2;",
       [](u32 a, u32 b, u32) { return b == 0     ? ~0u
                                      : b == ~0u ? 0
                                                 : static_cast<u32>(s32(a) % s32(b)); }},
      {"neg.s32 %r4, %r1;", [](u32 a, u32, u32) { return 0 - a; }},
      {"abs.s32 %r4, %r1;", [](u32 a, u32, u32) { return s32(a) < 0 ? 0 - a : a; }},
      {"min.u32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return std::min(a, b); }},
      {"min.s32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return u32(std::min(s32(a), s32(b))); }},
      {"max.u32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return std::max(a, b); }},
      {"max.s32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return u32(std::max(s32(a), s32(b))); }},
      {"sad.u32 %r4, %r1, %r2, %r3;", [](u32 a, u32 b, u32 c) { return c + (a > b ? a - b : b - a); }},
      {"sad.s32 %r4, %r1, %r2, %r3;", [](u32 a, u32 b, u32 c) { return c + (s32(a) > s32(b) ? a - b : b - a); }},
      {"and.b32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return a & b; }},
      {"or.b32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return a | b; }},
      {"xor.b32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return a ^ b; }},
      {"not.b32 %r4, %r1;", [](u32 a, u32, u32) { return ~a; }},
      {"cnot.b32 %r4, %r1;", [](u32 a, u32, u32) { return bits(a == 0); }},
      {"lop3.b32 %r4, %r1, %r2, %r3, 0xca;", [](u32 a, u32 b, u32 c) { return (a & b) | (~a & c); }},
      {"lop3.b32 %r4, %r1, %r2, %r3, 0x96;", [](u32 a, u32 b, u32 c) { return a ^ b ^ c; }},
      {"shl.b32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return b < 32 ? a << b : 0; }},
      {"shr.u32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return b < 32 ? a >> b : 0; }},
      {"shr.s32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return u32(s32(a) >> std::min(b, 31u)); }},
      {"shf.l.wrap.b32 %r4, %r1, %r2, %r3;",
       [](u32 a, u32 b, u32 c) { return u32((u64{b} << 32 | a) << (c & 31) >> 32); }},
      {"shf.l.clamp.b32 %r4, %r1, %r2, %r3;",
       [](u32 a, u32 b, u32 c) { return c >= 32 ? a : u32((u64{b} << 32 | a) << c >> 32); }},
      {"shf.r.wrap.b32 %r4, %r1, %r2, %r3;", [](u32 a, u32 b, u32 c) { return u32((u64{b} << 32 | a) >> (c & 31)); }},
      {"shf.r.clamp.b32 %r4, %r1, %r2, %r3;",
       [](u32 a, u32 b, u32 c) { return c >= 32 ? b : u32((u64{b} << 32 | a) >> c); }},
      {"bfe.u32 %r4, %r1, %r2, %r3;", [](u32 a, u32 b, u32 c) { return u32(bfe_by_bits(a, b, c, 31, false)); }},
      {"bfe.s32 %r4, %r1, %r2, %r3;", [](u32 a, u32 b, u32 c) { return u32(bfe_by_bits(a, b, c, 31, true)); }},
      {"bfi.b32 %r4, %r1, %r2, %r3, %r2;", [](u32 a, u32 b, u32 c) { return u32(bfi_by_bits(a, b, c, b, 31)); }},
      {"bfind.u32 %r4, %r1;", [](u32 a, u32, u32) { return a ? 31u - u32(std::countl_zero(a)) : ~0u; }},
      {"bfind.s32 %r4, %r1;",
       [](u32 a, u32, u32) {
         u32 x = s32(a) < 0 ? ~a : a;
         return x ? 31u - u32(std::countl_zero(x)) : ~0u;
       }},
      {"bfind.shiftamt.u32 %r4, %r1;", [](u32 a, u32, u32) { return a ? u32(std::countl_zero(a)) : ~0u; }},
      {"brev.b32 %r4, %r1;",
       [](u32 a, u32, u32) {
         u32 r = 0;
         for (int i = 0; i < 32; ++i) r |= (a >> i & 1) << (31 - i);
         return r;
       }},
      {"clz.b32 %r4, %r1;", [](u32 a, u32, u32) { return u32(std::countl_zero(a)); }},
      {"popc.b32 %r4, %r1;", [](u32 a, u32, u32) { return u32(std::popcount(a)); }},
      {"prmt.b32 %r4, %r1, %r2, %r3;", prmt_by_bytes},
      {"prmt.b32.f4e %r4, %r1, %r2, %r3;", [](u32 a, u32 b, u32 c) { return u32((u64{b} << 32 | a) >> 8 * (c & 3)); }},
      {"prmt.b32.rc8 %r4, %r1, %r2, %r3;", [](u32 a, u32, u32 c) { return (a >> 8 * (c & 3) & 0xff) * 0x01010101u; }},
      {"prmt.b32.rc16 %r4, %r1, %r2, %r3;",
       [](u32 a, u32, u32 c) { return (a >> 16 * (c & 1) & 0xffff) * 0x00010001u; }},
      {"fns.b32 %r4, %r1, %r2, 2;",
       [](u32 a, u32 b, u32) {
         for (u32 i = b, n = 0; i < 32; ++i)
           if ((a >> i & 1) && ++n == 2) return i;
         return ~0u;
       }},
      {"bmsk.clamp.b32 %r4, %r1, %r2;",
       [](u32 a, u32 b, u32) { return a >= 32 ? 0 : u32(((u64{1} << std::min(b, 32u)) - 1) << a); }},
      {"szext.clamp.s32 %r4, %r1, %r2;",
       [](u32 a, u32 b, u32) { return b == 0    ? 0
                                      : b >= 32 ? a
                                                : u32(s32(a << (32 - b)) >> (32 - b)); }},
      {"dp4a.s32.s32 %r4, %r1, %r2, %r3;",
       [](u32 a, u32 b, u32 c) {
         for (int i = 0; i < 32; i += 8) c += u32(int8_t(a >> i) * int8_t(b >> i));
         return c;
       }},
      {"dp2a.lo.u32.u32 %r4, %r1, %r2, %r3;",
       [](u32 a, u32 b, u32 c) { return c + (a & 0xffff) * (b & 0xff) + (a >> 16) * (b >> 8 & 0xff); }},
      {"setp.lt.s32 %p2, %r1, %r2; selp.u32 %r4, 1, 0, %p2;", [](u32 a, u32 b, u32) { return bits(s32(a) < s32(b)); }},
      {"setp.hs.u32 %p2, %r1, %r2; selp.u32 %r4, %r3, 5, %p2;", [](u32 a, u32 b, u32 c) { return a >= b ? c : 5; }},
      {"setp.eq.u32 %p3, %r1, %r3; setp.gt.or.u32 %p2|%p4, %r1, %r2, !%p3; selp.u32 %r4, 1, 0, %p2; @%p4 add.u32 %r4, "
       "%r4, 2;",
       [](u32 a, u32 b, u32 c) { return bits(a > b || a != c) + 2 * bits(!(a > b) || a != c); }},
      {"set.ne.u32.u32 %r4, %r1, %r2;", [](u32 a, u32 b, u32) { return a != b ? ~0u : 0; }},
      {"slct.u32.s32 %r4, %r1, %r2, %r3;", [](u32 a, u32 b, u32 c) { return s32(c) >= 0 ? a : b; }},
      {"setp.lt.u32 %p2, %r1, 100; setp.lt.u32 %p3, %r2, 100; xor.pred %p4, %p2, %p3; not.pred %p5, %p4; and.pred %p6, "
       "%p5, %p2; or.pred %p7, %p6, %p3; selp.u32 %r4, 1, 0, %p7;",
       [](u32 a, u32 b, u32) {
         bool p = a < 100, q = b < 100;
         return bits((!(p ^ q) && p) || q);
       }},
      {"cvt.u16.u32 %rs1, %r1; cvt.s32.s16 %r4, %rs1;", [](u32 a, u32, u32) { return u32(s32(int16_t(a))); }},
      {"cvt.s32.s8 %r4, %r1;", [](u32 a, u32, u32) { return u32(s32(int8_t(a))); }},
      {"cvt.sat.u8.s32 %r4, %r1;", [](u32 a, u32, u32) { return u32(std::clamp(s32(a), 0, 255)); }},
      {"cvt.sat.s16.u32 %r4, %r1;", [](u32 a, u32, u32) { return std::min(a, 32767u); }},
      {"cvt.rn.f32.u32 %f1, %r1; mov.b32 %r4, %f1;",
       [](u32 a, u32, u32) { return std::bit_cast<u32>(static_cast<float>(a)); }},
      {"cvt.rz.f32.s32 %f1, %r1; cvt.rzi.s32.f32 %r4, %f1;",
       [](u32 a, u32, u32) {
         s64 v = s32(a), m = v < 0 ? -v : v;
         int drop = m < (1 << 24) ? 0 : 40 - std::countl_zero(u64(m));
         m = m >> drop << drop;
         return u32(v < 0 ? -m : m);
       }},
      {"add.cc.u32 %r4, %r1, %r2; addc.u32 %r4, %r3, 0;", [](u32 a, u32 b, u32 c) { return c + bits(u32(a + b) < a); }},
      {"sub.cc.u32 %r4, %r1, %r2; subc.u32 %r4, %r3, 0;", [](u32 a, u32 b, u32 c) { return c - bits(a < b); }},
      {"mad.lo.cc.u32 %r4, %r1, %r2, %r3; madc.hi.u32 %r4, %r1, %r2, 0;",
       [](u32 a, u32 b, u32 c) { return u32((u64{a} * b + c) >> 32); }},
      {"mov.b32 {%rs1, %rs2}, %r1; mov.b32 %r4, {%rs2, %rs1};", [](u32 a, u32, u32) { return a << 16 | a >> 16; }},
      {"mov.b32 {%rs1, %rs2}, %r1; mul.wide.s16 %r4, %rs1, %rs2;",
       [](u32 a, u32, u32) { return u32(s32{int16_t(a)} * int16_t(a >> 16)); }},
      {"mov.b32 {%rs1, %rs2}, %r1; shl.b16 %rs3, %rs1, 3; add.s16 %rs3, %rs3, %rs2; cvt.u32.u16 %r4, %rs3;",
       [](u32 a, u32, u32) { return ((a << 3) + (a >> 16)) & 0xffff; }},
      {"add.u16x2 %r4, %r1, %r2;",
       [](u32 a, u32 b, u32) { return ((a + b) & 0xffff) | ((a >> 16) + (b >> 16)) << 16; }},
  };
  return cases;
}

TEST(Arithmetic, ThirtyTwoBits) {
  for (const Case32& each : cases32()) expect32(each, false, kCheckAll);
}
TEST(Arithmetic, ThirtyTwoBitsWithHalfTheLanes) {
  for (const Case32& each : cases32()) expect32(each, true, kCheckNone);
}

struct Case64 {
  std::string_view text;  // d in %rd7, a b in %rd4 %rd5, n in %r3
  std::function<u64(u64, u64, u32)> expected;
};

TEST(Arithmetic, SixtyFourBits) {
  const std::vector<Case64> cases{
      {"add.u64 %rd7, %rd4, %rd5;", [](u64 a, u64 b, u32) { return a + b; }},
      {"mul.lo.s64 %rd7, %rd4, %rd5;", [](u64 a, u64 b, u32) { return a * b; }},
      {"mul.hi.u64 %rd7, %rd4, %rd5;",
       [](u64 a, u64 b, u32) {
         __extension__ using w = unsigned __int128;
         return u64(w{a} * b >> 64);
       }},
      {"mul.wide.s32 %rd7, %r1, %r2;", [](u64 a, u64 b, u32) { return u64(s64{s32(a)} * s32(b)); }},
      {"mad.wide.u32 %rd7, %r1, %r2, %rd5;", [](u64 a, u64 b, u32) { return u64{u32(a)} * u32(b) + b; }},
      {"div.s64 %rd7, %rd4, %rd5;",
       [](u64 a, u64 b, u32) { return b == 0         ? ~u64{0}
                                      : b == ~u64{0} ? 0 - a
                                                     : u64(s64(a) / s64(b)); }},
      {"rem.u64 %rd7, %rd4, %rd5;", [](u64 a, u64 b, u32) { return b ? a % b : a; }},
      {"min.s64 %rd7, %rd4, %rd5;", [](u64 a, u64 b, u32) { return u64(std::min(s64(a), s64(b))); }},
      {"shl.b64 %rd7, %rd4, %r3;", [](u64 a, u64, u32 n) { return n < 64 ? a << n : 0; }},
      {"shr.s64 %rd7, %rd4, %r3;", [](u64 a, u64, u32 n) { return u64(s64(a) >> std::min(n, 63u)); }},
      {"bfe.s64 %rd7, %rd4, %r3, %r2;", [](u64 a, u64 b, u32 n) { return bfe_by_bits(a, n, u32(b), 63, true); }},
      {"bfi.b64 %rd7, %rd4, %rd5, %r3, %r2;", [](u64 a, u64 b, u32 n) { return bfi_by_bits(a, b, n, u32(b), 63); }},
      {"popc.b64 %r6, %rd4; cvt.u64.u32 %rd7, %r6;", [](u64 a, u64, u32) { return u64(std::popcount(a)); }},
      {"clz.b64 %r6, %rd4; cvt.u64.u32 %rd7, %r6;", [](u64 a, u64, u32) { return u64(std::countl_zero(a)); }},
      {"bfind.s64 %r6, %rd4; cvt.s64.s32 %rd7, %r6;",
       [](u64 a, u64, u32) {
         u64 x = s64(a) < 0 ? ~a : a;
         return x ? u64(63 - std::countl_zero(x)) : ~u64{0};
       }},
      {"brev.b64 %rd7, %rd4;",
       [](u64 a, u64, u32) {
         u64 r = 0;
         for (int i = 0; i < 64; ++i) r |= (a >> i & 1) << (63 - i);
         return r;
       }},
      {"setp.lt.s64 %p2, %rd4, %rd5; selp.b64 %rd7, %rd4, 3, %p2;",
       [](u64 a, u64 b, u32) { return s64(a) < s64(b) ? a : 3; }},
      {"cvt.s64.s32 %rd7, %r1;", [](u64 a, u64, u32) { return u64(s64{s32(a)}); }},
      {"cvt.sat.u32.s64 %r6, %rd4; cvt.u64.u32 %rd7, %r6;",
       [](u64 a, u64, u32) { return s64(a) < 0 ? 0 : std::min<u64>(a, 0xffffffff); }},
      {"cvt.rn.f64.s64 %fd1, %rd4; mov.b64 %rd7, %fd1;",
       [](u64 a, u64, u32) { return std::bit_cast<u64>(double(s64(a))); }},
      {"cvt.rp.f64.u64 %fd1, %rd4; cvt.rzi.u64.f64 %rd7, %fd1;",
       [](u64 a, u64, u32) {
         if (a < (u64{1} << 53)) return a;
         int drop = 11 - std::countl_zero(a);
         u64 up = (a >> drop) + ((a & ((u64{1} << drop) - 1)) != 0);
         return drop == 11 && up == (u64{1} << 53) ? ~u64{0} : up << drop;
       }},
      {"add.cc.u64 %rd7, %rd4, %rd5; addc.u64 %rd7, %rd4, 0;", [](u64 a, u64 b, u32) { return a + bits(a + b < a); }},
      {"mov.b64 {%r6, %r7}, %rd4; mov.b64 %rd7, {%r7, %r6};", [](u64 a, u64, u32) { return a << 32 | a >> 32; }},
  };
  for (const Case64& each : cases) {
    std::vector<u32> in;
    inputs(in);
    std::string body = R"(
  ld.global.u32 %r1, [%rd3];
  ld.global.u32 %r2, [%rd3+4096];
  ld.global.u32 %r3, [%rd3+8192];
  mov.b64 %rd4, {%r1, %r3};
  mov.b64 %rd5, {%r2, %r1};
)" + std::string(each.text) +
                       R"(
  mul.wide.u32 %rd8, %r0, 8;
  add.u64 %rd8, %rd0, %rd8;
  st.global.u64 [%rd8], %rd7;
)";
    Ran ran = run_kernel(entry_text(body), {.block = {1024}}, 2048, in,
                         {.checks = kCheckStandard & ~kCheckDivision, .max_steps = 1'000'000});
    ASSERT_TRUE(ran.outcome.ok()) << each.text << "\n" << render(ran.outcome, "test.ptx");
    for (size_t i = 0; i < 1024; ++i) {
      u64 a = u64{in[2048 + i]} << 32 | in[i], b = u64{in[i]} << 32 | in[1024 + i];
      u64 got = u64{ran.out[2 * i + 1]} << 32 | ran.out[2 * i];
      ASSERT_EQ(got, each.expected(a, b, in[2048 + i]))
          << each.text << " a=" << a << " b=" << b << " n=" << in[2048 + i];
    }
  }
}

// Single precision: the inputs are bit patterns that include subnormal numbers, infinities and NaNs.
TEST(Arithmetic, SinglePrecision) {
  struct Case {
    std::string_view text;  // %f3 from %f1, %f2
    std::function<float(float, float)> expected;
  };
  auto ftz = [](float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; };
  const std::vector<Case> cases{
      {"add.rn.f32 %f3, %f1, %f2;", [](float a, float b) { return a + b; }},
      {"sub.f32 %f3, %f1, %f2;", [](float a, float b) { return a - b; }},
      {"mul.ftz.f32 %f3, %f1, %f2;", [=](float a, float b) { return ftz(ftz(a) * ftz(b)); }},
      {"fma.rn.f32 %f3, %f1, %f2, %f1;", [](float a, float b) { return std::fma(a, b, a); }},
      {"div.rn.f32 %f3, %f1, %f2;", [](float a, float b) { return a / b; }},
      {"sqrt.rn.f32 %f3, %f1;", [](float a, float) { return std::sqrt(a); }},
      {"rcp.rn.f32 %f3, %f1;", [](float a, float) { return 1.0f / a; }},
      {"min.f32 %f3, %f1, %f2;",
       [](float a, float b) {
         return a != a ? b : b != b ? a : a < b || (a == b && std::signbit(a)) ? a : b;
       }},
      {"add.sat.f32 %f3, %f1, %f2;",
       [](float a, float b) {
         float s = a + b;
         return s > 0 ? std::min(s, 1.0f) : 0.0f;
       }},
      {"neg.f32 %f3, %f1;", [](float a, float) { return -a; }},
      {"abs.f32 %f3, %f1;", [](float a, float) { return std::fabs(a); }},
      {"cvt.rni.f32.f32 %f3, %f1;", [](float a, float) { return std::nearbyint(a); }},
      {"cvt.rmi.f32.f32 %f3, %f1;", [](float a, float) { return std::floor(a); }},
      {"cvt.f64.f32 %fd1, %f1; mul.rn.f64 %fd1, %fd1, 0d3FD5555555555555; cvt.rn.f32.f64 %f3, %fd1;",
       [](float a, float) { return static_cast<float>(double{a} * (1.0 / 3)); }},
      {"setp.ltu.f32 %p2, %f1, %f2; selp.f32 %f3, %f1, 0f3F800000, %p2;",
       [](float a, float b) { return !(a >= b) ? a : 1.0f; }},
  };
  std::vector<u32> in;
  const std::vector<u32> values{0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x00800000, 0x3f800000,
                                0xbf800000, 0x3f800001, 0x3effffff, 0x40490fdb, 0x4b000001, 0x4b800000, 0x7f7fffff,
                                0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x3fc00000, 0x40200000, 0xc0200000,
                                0x33800000, 0x2f800000, 0x7e800000, 0x00000100, 0x80400000, 0x0d800000, 0x5f800000,
                                0x4f000000, 0x3dcccccd, 0x41200000, 0xc7000000};
  for (size_t i = 0; i < 1024; ++i) in.push_back(values[i % 32]);
  for (size_t i = 0; i < 1024; ++i) in.push_back(values[i / 32]);
  for (const Case& each : cases) {
    Ran ran = run_kernel(entry_text("  ld.global.f32 %f1, [%rd3];\n  ld.global.f32 %f2, [%rd3+4096];\n" +
                                    std::string(each.text) + "\n  st.global.f32 [%rd2], %f3;\n"),
                         {.block = {1024}}, 1024, in);
    ASSERT_TRUE(ran.outcome.ok()) << each.text << "\n" << render(ran.outcome, "test.ptx");
    for (size_t i = 0; i < 1024; ++i) {
      float a = std::bit_cast<float>(in[i]), b = std::bit_cast<float>(in[1024 + i]);
      float expected = each.expected(a, b);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(std::bit_cast<float>(ran.out[i]))) << each.text << " " << a << " " << b;
        continue;
      }
      ASSERT_EQ(ran.out[i], std::bit_cast<u32>(expected)) << each.text << " " << a << " " << b;
    }
  }
}

// The four roundings bracket the exact result: down <= exact <= up, one of the two is nearest, and zero is the one of
// smaller magnitude.
TEST(Arithmetic, DirectedRoundings) {
  std::vector<u32> in;
  for (u32 i = 0; i < 32; ++i) in.push_back(0x3f800000 + i * 0x1234567u % 0x00800000);
  std::string body = "  ld.global.f32 %f1, [%rd3];\n  ld.global.f32 %f2, [%rd1+64];\n";
  const char* modes[] = {"rn", "rz", "rm", "rp"};
  for (int i = 0; i < 4; ++i)
    body += "  neg.f32 %f3, %f1;\n  div." + std::string(modes[i]) + ".f32 %f3, %f3, %f2;\n  st.global.f32 [%rd2+" +
            std::to_string(128 * i) + "], %f3;\n";
  Ran ran = run_kernel(entry_text(body), {.block = {32}}, 128, in);
  ASSERT_TRUE(ran.outcome.ok());
  int differ = 0;
  for (size_t i = 0; i < 32; ++i) {
    float n = std::bit_cast<float>(ran.out[i]), z = std::bit_cast<float>(ran.out[32 + i]);
    float m = std::bit_cast<float>(ran.out[64 + i]), p = std::bit_cast<float>(ran.out[96 + i]);
    double exact = -double{std::bit_cast<float>(in[i])} / double{std::bit_cast<float>(in[16])};
    EXPECT_LE(m, exact);
    EXPECT_GE(p, exact);
    EXPECT_EQ(z, p);  // negative: towards zero is up
    EXPECT_TRUE(n == m || n == p);
    EXPECT_TRUE(m == p || p == std::nextafter(m, 0.0f));
    differ += m != p;
  }
  EXPECT_GT(differ, 16);
}

TEST(Arithmetic, HalfPrecision) {
  // 1.5 + 2.25 = 3.75; 65504 + 32 rounds to infinity only from 65520 on; 2^-24 is the least subnormal.
  Ran ran = run_kernel(entry_text(R"(
  mov.b16 %rs1, 0x3e00;
  mov.b16 %rs2, 0x4080;
  add.f16 %rs3, %rs1, %rs2;
  cvt.u32.u16 %r1, %rs3;
  st.global.u32 [%rd0], %r1;
  mov.b32 %r2, 0x7bff0001;
  mov.b32 %r3, 0x4c000001;
  add.f16x2 %r4, %r2, %r3;
  st.global.u32 [%rd0+4], %r4;
  cvt.rn.f16.f32 %rs4, 0f3DCCCCCD;
  cvt.f32.f16 %f1, %rs4;
  st.global.f32 [%rd0+8], %f1;
  fma.rn.f16 %rs5, %rs1, %rs2, %rs1;
  cvt.u32.u16 %r1, %rs5;
  st.global.u32 [%rd0+12], %r1;
  cvt.rn.bf16x2.f32 %r5, 0f3F800000, 0f40490FDB;
  st.global.u32 [%rd0+16], %r5;
)"),
                       {}, 5);
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  EXPECT_EQ(ran.out[0], 0x4380u);
  EXPECT_EQ(ran.out[1], 0x7c000002u);  // 65504 + 16 = 65520 is a tie, to even: infinity
  EXPECT_EQ(ran.out[2], std::bit_cast<u32>(0.0999755859375f));
  EXPECT_EQ(ran.out[3], 0x44e0u);  // 3.375 + 1.5 = 4.875
  EXPECT_EQ(ran.out[4], 0x3f804049u);
}

}  // namespace
}  // namespace ptxkit::emulator
