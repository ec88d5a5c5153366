// wgmma and sparse mma: values computed by hand, and the bits of an H200 (device_tests, PTXKIT_RECORD_MATRICES).
#include <bit>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fkr_tests/device/form_cases.hpp"
#include "fkr_tests/device/matrix_cases.hpp"
#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "runtime/emulator/emulator.hpp"
#include "support/half.hpp"

namespace ptxkit::emulator {
namespace {

TEST(Matrix, TheBitsAreThoseOfAnH200) {
  std::map<std::string, uint64_t> recorded;
  std::ifstream file(EMULATOR_TEST_FOLDER "/../../../device/matrix_h200.txt");
  for (std::string line; std::getline(file, line);) recorded[line.substr(17)] = std::stoull(line, nullptr, 16);
  size_t compared = 0;
  for (const ptxkit::testing::MatrixCase& each : ptxkit::testing::matrix_cases()) {
    const auto bytes = emulate_matrix(each);
    ASSERT_TRUE(bytes) << each.name << ": " << bytes.error().message();
    if (!recorded.contains(each.name)) continue;
    EXPECT_EQ(recorded[each.name], ptxkit::testing::form_hash(*bytes)) << each.name;
    ++compared;
  }
  EXPECT_EQ(compared, recorded.size());
  EXPECT_GE(compared, 66u);
}

constexpr uint16_t half(float value) { return std::bit_cast<uint16_t>(static_cast<Half>(value)); }

const std::string kTile = ".shared .align 1024 .b8 tile[4096];\n";

// D = A * B of m64n8k16: A in registers with A(m, k) = 1 where m % 16 == k, so that D(m, n) = B(m % 16, n) = 16 n + m
// % 16. B(k, n) lies at 256 (k / 8) + 16 n + 2 (k % 8): 8 rows n of 16 bytes an atom, the second atom at the leading
// distance.
std::string multiply_text(const std::string& descriptor, const std::string& between = "") {
  return entry_text(
      "  shl.b32 %r2, %r0, 2;\n  mov.u32 %r1, tile;\n  add.u32 %r1, %r1, %r2;\n  ld.global.u32 %r3, [%rd3];\n"
      "  st.shared.u32 [%r1], %r3;\n  ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd1+512];\n" +
          between +
          "  bar.sync 0;\n"
          "  and.b32 %r8, %r0, 31;\n  shr.u32 %r9, %r8, 2;\n  and.b32 %r10, %r8, 3;\n"
          // Row %r9 of A has its 1 in column %r9: in lane %r10 == %r9 / 2 of the quad, if that is below 8.
          "  shr.u32 %r11, %r9, 1;\n  setp.eq.u32 %p1, %r10, %r11;\n  and.b32 %r12, %r9, 1;\n"
          "  setp.ne.u32 %p2, %r12, 0;\n  selp.b32 %r13, 0x3c000000, 0x3c00, %p2;\n  selp.b32 %r13, %r13, 0, %p1;\n"
          "  mov.b32 %r14, 0;\n  mov.b64 %rd5, " +
          descriptor +
          ";\n  cvt.u64.u32 %rd6, %r1;\n  mov.u32 %r15, tile;\n  cvt.u64.u32 %rd6, %r15;\n  shr.b64 %rd6, %rd6, 4;\n"
          "  add.u64 %rd5, %rd5, %rd6;\n  mov.f32 %f0, 0f41200000;\n  mov.f32 %f1, %f0;\n  mov.f32 %f2, %f0;\n"
          "  mov.f32 %f3, %f0;\n  setp.eq.u32 %p3, %r14, 1;\n  wgmma.fence.sync.aligned;\n"
          "  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, {%r13, %r14, %r14, %r13}, %rd5, "
          "%p3, "
          "1, 1, 0;\n"
          "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n"
          "  mul.wide.u32 %rd7, %r0, 16;\n  add.u64 %rd7, %rd0, %rd7;\n  st.global.v4.f32 [%rd7], {%f0, %f1, %f2, "
          "%f3};\n",
      kTile);
}

std::vector<uint32_t> matrix_b() {
  std::vector<uint32_t> words(128 + 4);
  for (unsigned k = 0; k < 16; ++k)
    for (unsigned n = 0; n < 8; ++n) {
      const unsigned byte = 256 * (k / 8) + 16 * n + 2 * (k % 8);
      words[byte / 4] |= uint32_t{half(static_cast<float>(16 * n + k))} << byte % 4 * 8;
    }
  return words;
}

Ran multiply(std::string text) {
  // The entry's target is sm_90; wgmma needs sm_90a.
  text.replace(text.find("sm_90"), 5, "sm_90a");
  return run_kernel(text, {.block = {128}}, 512, matrix_b());
}

// Leading distance 256, stride unused (one group of 8 columns).
TEST(Matrix, WarpgroupProductByHand) {
  const Ran ran = multiply(multiply_text("0x0000000000100000"));
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  for (unsigned thread = 0; thread < 128; ++thread)
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = thread % 32 / 4 + 8 * (i / 2), column = thread % 4 * 2 + i % 2;
      EXPECT_EQ(std::bit_cast<float>(ran.out[thread * 4 + i]), static_cast<float>(16 * column + row))
          << thread << " " << i;
    }
}

TEST(Matrix, DescriptorsOutsideOfSharedMemoryAreFaults) {
  const Ran ran = multiply(multiply_text("0x0000000020000000"));  // leading distance 128 KiB
  ASSERT_EQ(ran.outcome.faults.size(), 1u);
  EXPECT_EQ(ran.outcome.faults[0].kind, FaultKind::out_of_bounds);
  EXPECT_NE(ran.outcome.faults[0].message.find("a matrix descriptor reaches"), std::string::npos);
}

TEST(Matrix, UninitialisedSharedMemoryMakesTheProductUndefined) {
  std::string text = multiply_text("0x0000000000200000");  // the second atom is undefined memory
  text.replace(text.find("  st.global.v4.f32"), 0, "  setp.eq.f32 %p4, %f0, 0f00000000;\n  @%p4 exit;\n");
  const Ran ran = multiply(text);
  ASSERT_FALSE(ran.outcome.ok());
  EXPECT_EQ(ran.outcome.faults[0].kind, FaultKind::uninitialised_branch);
}

TEST(Matrix, AStoreDuringTheProductIsARace) {
  const std::string store = "  bar.sync 0;\n  st.shared.u32 [%r1], %r0;\n";
  std::string text = multiply_text("0x0000000000100000");
  text.replace(text.find("  mul.wide.u32 %rd7"), 0, "  st.shared.u32 [%r1], %r0;\n");
  const Ran racing = multiply(text);
  ASSERT_FALSE(racing.outcome.ok());
  EXPECT_EQ(racing.outcome.faults[0].kind, FaultKind::shared_race);
  std::string ordered = multiply_text("0x0000000000100000");
  ordered.replace(ordered.find("  mul.wide.u32 %rd7"), 0, store);
  const Ran clean = multiply(ordered);
  EXPECT_TRUE(clean.outcome.ok()) << render(clean.outcome, "test.ptx");
}

// The clean twin of each is the unmodified kernel.
TEST(Matrix, MissingFencesCommitsAndWaitsAreFaults) {
  const std::string good = multiply_text("0x0000000000100000");
  EXPECT_TRUE(multiply(good).outcome.ok());
  struct Planted {
    FaultKind kind;
    std::string was, is, says, line;
  };
  const std::string fence = "  wgmma.fence.sync.aligned;\n", commit = "  wgmma.commit_group.sync.aligned;\n",
                    wait = "  wgmma.wait_group.sync.aligned 0;\n",
                    store = "st.global.v4.f32 [%rd7], {%f0, %f1, %f2, %f3};";
  const Planted all[] = {
      {FaultKind::wgmma_pending, wait, "", "%f0 is used while wgmma.mma_async still writes it: wgmma.wait_group",
       store},
      {FaultKind::wgmma_pending, commit, "", "its group has not been committed", store},
      {FaultKind::wgmma_pending, wait, "  wgmma.wait_group.sync.aligned 1;\n", "wgmma.wait_group has not been", store},
      {FaultKind::wgmma_pending, wait, "  add.u32 %r14, %r14, 7;\n" + wait,
       "%r14 is written while wgmma.mma_async still reads it", "add.u32 %r14, %r14, 7;"},
      {FaultKind::wgmma_fence, fence, "", "no wgmma.fence has been executed before", ""},
      {FaultKind::wgmma_fence, fence, fence + "  add.f32 %f2, %f2, %f2;\n", "%f2 has been written and no wgmma.fence",
       ""},
  };
  for (const Planted& each : all) {
    SCOPED_TRACE(each.says);
    std::string text = good;
    text.replace(text.find(each.was), each.was.size(), each.is);
    const Ran ran = multiply(text);
    ASSERT_FALSE(ran.outcome.ok());
    const Fault& fault = ran.outcome.faults[0];
    EXPECT_EQ(fault.kind, each.kind);
    EXPECT_NE(fault.message.find(each.says), std::string::npos) << fault.message;
    if (!each.line.empty()) {
      EXPECT_EQ(fault.site.text, each.line);
    }
  }
  fmt::print("{} planted bugs found\n2 clean twins untouched\n", std::size(all));
  // No faults: reading A's registers during the product, a second product into the same accumulators, and initial
  // values moved into them after the fence, as compilers do.
  std::string text = good;
  text.replace(text.find(commit), 0, "  add.u32 %r16, %r13, 1;\n");
  text.replace(text.find(fence), fence.size(), fence + "  mov.f32 %f2, 0f3f800000;\n");
  const size_t begin = text.find("  wgmma.mma_async"), end = text.find(commit);
  text.insert(end, text.substr(begin, text.find(";\n", begin) + 2 - begin));
  const Ran twice = multiply(text);
  EXPECT_TRUE(twice.outcome.ok()) << render(twice.outcome, "test.ptx");
}

// A is 1 where it is stored; B(k, n) = k. Of each four columns, rows 0 to 7 have columns 0 and 1: the sum is 0 + 1 + 4
// + 5 + 8 + 9 + 12 + 13 = 52; rows 8 to 15 have columns 2 and 3: 68.
TEST(Matrix, SparseProductByHand) {
  const std::string text = entry_text(
      "  and.b32 %r1, %r0, 3;\n  shl.b32 %r1, %r1, 1;\n  cvt.rn.f16.u32 %rs0, %r1;\n  add.u32 %r2, %r1, 1;\n"
      "  cvt.rn.f16.u32 %rs1, %r2;\n  mov.b32 %r3, {%rs0, %rs1};\n  add.u32 %r2, %r1, 8;\n  cvt.rn.f16.u32 %rs0, %r2;\n"
      "  add.u32 %r2, %r1, 9;\n  cvt.rn.f16.u32 %rs1, %r2;\n  mov.b32 %r4, {%rs0, %rs1};\n  mov.b32 %r5, 0x3c003c00;\n"
      "  mov.f32 %f4, 0f00000000;\n  and.b32 %r6, %r0, 3;\n  setp.eq.u32 %p1, %r6, 2;\n"
      "  selp.b32 %r7, 0xeeee4444, 0, %p1;\n"  // the lanes that selector 2 selects
      "  mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r5, %r5}, {%r3, %r4}, "
      "{%f4, %f4, %f4, %f4}, %r7, 2;\n"
      "  mul.wide.u32 %rd7, %r0, 16;\n  add.u64 %rd7, %rd0, %rd7;\n  st.global.v4.f32 [%rd7], {%f0, %f1, %f2, %f3};\n");
  const Ran ran = run_kernel(text, {.block = {32}}, 128);
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  for (unsigned i = 0; i < 128; ++i) EXPECT_EQ(std::bit_cast<float>(ran.out[i]), i % 4 < 2 ? 52.0F : 68.0F) << i;
}

Ran blackwell(const std::string& body, uint32_t checks = kCheckAll) {
  std::string text = entry_text(body);
  text.replace(text.find("8.3\n.target sm_90"), 17, "8.7\n.target sm_120a");
  return run_kernel(text, {.block = {32}}, 128, {}, {.checks = checks});
}
const std::string kStoreProduct =
    "  mul.wide.u32 %rd7, %r0, 16;\n  add.u64 %rd7, %rd0, %rd7;\n  st.global.v4.f32 [%rd7], {%f0, %f1, %f2, %f3};\n";

// Every element of A is 1.5 and of B 2, in the format; 32 products and C = 1 give 97.
TEST(Matrix, NarrowElementsLieInBytes) {
  const std::vector<std::tuple<std::string, uint32_t, std::string, uint32_t>> all{{"e4m3", 0x3c, "e5m2", 0x40},
                                                                                  {"e2m1", 0x3 << 2, "e2m1", 0x4 << 2},
                                                                                  {"e3m2", 0x0e, "e2m3", 0x10},
                                                                                  {"e2m3", 0x0c, "e3m2", 0x10},
                                                                                  {"e2m1", 0x3 << 2, "e4m3", 0x40}};
  for (const auto& [a_type, a, b_type, b] : all) {
    const Ran ran = blackwell(fmt::format("  mov.b32 %r1, {};\n  mov.b32 %r2, {};\n  mov.f32 %f4, 0f3f800000;\n",
                                          a * 0x01010101u, b * 0x01010101u) +
                              "  mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32." + a_type + "." + b_type +
                              ".f32 {%f0, %f1, %f2, %f3}, {%r1, %r1, %r1, %r1}, {%r2, %r2}, {%f4, %f4, %f4, %f4};\n" +
                              kStoreProduct);
    ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
    for (const uint32_t word : ran.out) EXPECT_EQ(std::bit_cast<float>(word), 97.0F) << a_type << " " << b_type;
  }
}

// A and B are all 1, so D(m, n) is 32 times two factors. That of row m is 2^(m / 8), in byte 1 of lane 4 (m % 8) + m /
// 8. That of column n is 2^(n % 4), in byte 2 of lane 4 n + 1.
TEST(Matrix, BlocksHaveFactorsOfRowsAndColumns) {
  const Ran ran = blackwell(
      "  mov.b32 %r1, 0x38383838;\n  mov.f32 %f4, 0f00000000;\n  and.b32 %r2, %r0, 1;\n  add.u32 %r2, %r2, 127;\n"
      "  shl.b32 %r2, %r2, 8;\n  shr.u32 %r3, %r0, 2;\n  and.b32 %r3, %r3, 3;\n  add.u32 %r3, %r3, 127;\n"
      "  shl.b32 %r3, %r3, 16;\n"
      "  mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0 {%f0, %f1, %f2, %f3}, "
      "{%r1, %r1, %r1, %r1}, {%r1, %r1}, {%f4, %f4, %f4, %f4}, %r2, {1, 0}, %r3, {2, 1};\n" +
      kStoreProduct);
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
      EXPECT_EQ(std::bit_cast<float>(ran.out[4 * lane + i]), 32.0F * static_cast<float>(1u << (row / 8 + column % 4)));
    }
}

// Four factors along k of m16n8k64, one for each 16 columns of A: 1, 2, 4 and 8; B is 0.5. 16 * 15 * 0.5 = 120.
TEST(Matrix, FourFactorsAlongARow) {
  const Ran ran = blackwell(
      "  mov.b32 %r1, 0x22222222;\n  mov.f32 %f4, 0f00000000;\n  mov.b32 %r2, 0x50484038;\n  mov.b32 %r3, 0x30303030;\n"
      "  mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 "
      "{%f0, %f1, %f2, %f3}, {%r1, %r1, %r1, %r1}, {%r1, %r1}, {%f4, %f4, %f4, %f4}, %r2, {0, 0}, %r3, {0, 0};\n" +
      kStoreProduct);
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  for (const uint32_t word : ran.out) EXPECT_EQ(std::bit_cast<float>(word), 120.0F);
}

// A is 1 where it is stored; each four rows of B are 0, 1, 2 and 3. Rows 0 to 7 take the first two of four, 16 * 1, the
// others the last two, 16 * 5. Odd lanes hold the metadata of the lower rows.
TEST(Matrix, SparseNarrowProductsByHand) {
  const std::string metadata =
      "  and.b32 %r6, %r0, 1;\n  setp.eq.u32 %p1, %r6, 0;\n  selp.b32 %r7, 0x44444444, 0xeeeeeeee, %p1;\n"
      "  mov.f32 %f4, 0f00000000;\n";
  const auto expect = [](const Ran& ran, float upper, float lower, const std::string& what) {
    ASSERT_TRUE(ran.outcome.ok()) << what << render(ran.outcome, "test.ptx");
    for (unsigned i = 0; i < 128; ++i)
      EXPECT_EQ(std::bit_cast<float>(ran.out[i]), i % 4 < 2 ? upper : lower) << what << i;
  };
  const std::vector<std::tuple<std::string, uint32_t, uint32_t>> types{{"e4m3", 0x38, 0x44403800},
                                                                       {"e5m2", 0x3c, 0x42403c00},
                                                                       {"e2m1", 0x08, 0x14100800},
                                                                       {"e3m2", 0x0c, 0x12100c00},
                                                                       {"e2m3", 0x08, 0x14100800}};
  const std::string operands =
      " {%f0, %f1, %f2, %f3}, {%r1, %r1, %r1, %r1}, {%r2, %r2, %r2, %r2}, {%f4, %f4, %f4, %f4}, %r7, 0";
  for (const auto& [type, one, counting] : types) {
    const std::string set =
        fmt::format("  mov.b32 %r1, {};\n  mov.b32 %r2, {};\n", one * 0x01010101u, counting) + metadata;
    expect(blackwell(set + "  mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32." + type + "." +
                     type + ".f32" + operands + ";\n" + kStoreProduct),
           16, 80, type);
    // The rows of A have a factor of 2.
    expect(blackwell(set +
                     "  mov.b32 %r8, 0x80808080;\n  mov.b32 %r9, 0x7f7f7f7f;\n"
                     "  mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale.f32." +
                     type + "." + type + ".f32.ue8m0" + operands + ", %r8, {0, 0}, %r9, {0, 0};\n" + kStoreProduct),
           32, 160, type);
  }
  // Pairs of 4-bit elements: of each eight rows of B two are 0, two 1, two 2, two 3; each 32 have a factor, 1, 2, 4 and
  // 8.
  expect(blackwell("  mov.b32 %r1, 0x22222222;\n  mov.b32 %r2, 0x55442200;\n  mov.b32 %r8, 0x50484038;\n"
                   "  mov.b32 %r9, 0x38383838;\n" +
                   metadata +
                   "  mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X"
                   ".f32.e2m1.e2m1.f32.ue4m3" +
                   operands + ", %r8, {0, 0}, %r9, {0, 0};\n" + kStoreProduct),
         120, 600, "mxf4nvf4");
}

}  // namespace
}  // namespace ptxkit::emulator
