// Forms of compute capability 10.0 other than tcgen05: results computed here independently, and each misuse beside a
// correct twin.
#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::emulator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string sm_100(const std::string& text) { return for_target(text, "sm_100a"); }

std::string fault_of(const Ran& ran) {
  return ran.outcome.faults.empty() ? "" : std::string(name(ran.outcome.faults[0].kind));
}

// The reduction by sorting: numbers in order, -0 before +0, without the NaNs.
uint32_t reduced(std::vector<uint32_t> words, bool maximum, bool absolute, bool nan) {
  std::vector<float> numbers;
  bool has_nan = false;
  for (uint32_t word : words) {
    const float value = std::bit_cast<float>(absolute ? word & 0x7fffffff : word);
    if (std::isnan(value))
      has_nan = true;
    else
      numbers.push_back(value);
  }
  if (numbers.empty() || (nan && has_nan)) return 0x7fffffff;
  std::sort(numbers.begin(), numbers.end(),
            [](float a, float b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); });
  return std::bit_cast<uint32_t>(maximum ? numbers.back() : numbers.front());
}

// `_` in a vector that is stored: its memory is unchanged, and another thread may write it.
TEST(Sm100, StoresLeaveOutElements) {
  const std::string body =
      "  add.u32 %r1, %r0, 100;\n  setp.eq.u32 %p1, %r0, 0;\n"
      "  @%p1 st.global.v8.b32 [%rd0], {%r1, _, %r1, _, _, _, 7, _};\n"
      "  @!%p1 st.global.v8.b32 [%rd0], {_, %r1, _, %r1, %r1, _, _, %r1};\n"
      "  @%p1 st.global.v4.f64 [%rd0+32], {_, 0d3ff0000000000000, _, _};\n";
  for (const uint32_t checks : {kCheckAll, kCheckNone}) {
    const Ran ran = run_kernel(sm_100(entry_text(body)), {.block = {2, 1, 1}}, 16, {}, {.checks = checks});
    EXPECT_EQ(fault_of(ran), "");
    EXPECT_THAT(std::vector<uint32_t>(ran.out.begin(), ran.out.begin() + 5), ElementsAre(100, 101, 100, 101, 101));
    EXPECT_EQ(ran.out[6], 7u);
    EXPECT_EQ(ran.out[7], 101u);
    EXPECT_EQ(ran.out[11], 0x3ff00000u);
  }
  // The element that is left out stays undefined.
  EXPECT_EQ(fault_of(run_kernel(sm_100(entry_text("  st.global.v8.b32 [%rd0], {1, _, 1, 1, 1, 1, 1, 1};\n"
                                                  "  ld.global.u32 %r1, [%rd0+4];\n  st.global.u32 [%rd0], %r1;\n"
                                                  "  setp.eq.u32 %p1, %r1, 0;\n  @%p1 ret;\n")),
                                {}, 16)),
            "uninitialised_branch");
  EXPECT_EQ(
      fault_of(run_kernel(sm_100(entry_text("  st.global.v8.b32 [%rd0+4], {_, 1, 1, 1, 1, 1, 1, 1};\n")), {}, 16)),
      "misaligned");
  EXPECT_EQ(
      fault_of(run_kernel(sm_100(entry_text("  st.global.v8.b32 [%rd0+32], {1, 1, 1, 1, 1, 1, 1, _};\n")), {}, 15)),
      "");
  EXPECT_EQ(
      fault_of(run_kernel(sm_100(entry_text("  st.global.v8.b32 [%rd0+32], {1, 1, 1, 1, 1, 1, _, 1};\n")), {}, 15)),
      "out_of_bounds");
}

TEST(Sm100, ReductionsOfSingles) {
  const std::vector<std::vector<uint32_t>> warps = {
      {0x3f800000, 0xbf800000, 0x40490fdb, 0xc2480000, 0x00000001, 0x7f7fffff},
      {0x00000000, 0x80000000},
      {0x80000000, 0x00000000, 0x80000001},
      {0x7fc00000, 0x3f800000, 0xff800000},
      {0x7fc00000, 0xffc00001},
      {0xff800000, 0x7f800000, 0x7f800001}};
  for (const auto& some : warps)
    for (const bool maximum : {false, true})
      for (const bool absolute : {false, true})
        for (const bool nan : {false, true}) {
          std::vector<uint32_t> words(32);
          for (size_t i = 0; i < 32; ++i) words[i] = some[(i * 5) % some.size()];
          const std::string modifiers =
              std::string(maximum ? ".max" : ".min") + (absolute ? ".abs" : "") + (nan ? ".NaN" : "");
          const Ran ran = run_kernel(sm_100(entry_text("  ld.global.f32 %f1, [%rd3];\n  redux.sync" + modifiers +
                                                       ".f32 %f2, %f1, 0xffffffff;\n  st.global.f32 [%rd2], %f2;\n")),
                                     {.block = {32}}, 32, words);
          ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
          for (uint32_t lane = 0; lane < 32; ++lane)
            EXPECT_EQ(ran.out[lane], reduced(words, maximum, absolute, nan)) << modifiers << " " << some[0];
        }
}

const std::string kTile = ".shared .align 16 .b8 tile[512];\n";

// Fills the tile with word numbers, runs `body`, and stores the tile to `out`.
Ran run_tile(const std::string& body) {
  return run_kernel(sm_100(entry_text("  mov.u32 %r1, tile;\n  shl.b32 %r2, %r0, 2;\n  add.u32 %r3, %r1, %r2;\n"
                                      "  add.u32 %r4, %r0, 1;\n  st.shared.u32 [%r3], %r4;\n"
                                      "  setp.eq.u32 %p1, %r0, 0;\n" +
                                          body + "  ld.shared.u32 %r5, [%r3];\n  st.global.u32 [%rd2], %r5;\n",
                                      kTile)),
                    {.block = {128}}, 256, std::vector<uint32_t>(256, 7));
}

TEST(Sm100, BulkStoresOfZeros) {
  const auto text = [](const std::string& address, const std::string& size) {
    return "  bar.sync 0;\n  @%p1 st.bulk.weak.shared::cta [" + address + "], " + size + ", 0;\n  bar.sync 0;\n";
  };
  const Ran ran = run_tile(text("%r1+16", "64"));
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(ran.out[i], i >= 4 && i < 20 ? 0 : i + 1) << i;
  EXPECT_EQ(fault_of(run_tile(text("%r1", "512"))), "");
  EXPECT_EQ(fault_of(run_tile("  mov.u64 %rd9, 0;\n" + text("%r1", "%rd9"))), "");
  EXPECT_EQ(fault_of(run_tile(text("%r1+16", "512"))), "out_of_bounds");
  EXPECT_EQ(fault_of(run_tile(text("%r1+4", "64"))), "misaligned");
  EXPECT_EQ(fault_of(run_tile("  mov.u64 %rd9, 60;\n" + text("%r1", "%rd9"))), "async_size");
  // Without the barrier after it other threads read the bytes that it writes.
  EXPECT_EQ(fault_of(run_tile("  bar.sync 0;\n  @%p1 st.bulk.weak.shared::cta [%r1], 512, 0;\n")), "shared_race");
}

TEST(Sm100, MaskedBulkCopies) {
  const auto text = [](const std::string& wait) {
    return "  fence.proxy.async;\n  bar.sync 0;\n  mov.u16 %rs1, 0x8421;\n"
           "  @%p1 cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd0+512], [%r1], 64, %rs1;\n"
           "  @%p1 cp.async.bulk.commit_group;\n" +
           wait + "  bar.sync 0;\n  @%p1 ld.global.u32 %r6, [%rd0+512];\n";
  };
  // The element that is not written keeps the kernel's own zeros.
  const std::string before =
      "  mov.u32 %r7, 0x55555555;\n  setp.lt.u32 %p2, %r0, 16;\n  @%p2 st.global.u32 [%rd2+512], %r7;\n";
  const Ran ran = run_tile(before + text("  @%p1 cp.async.bulk.wait_group 0;\n"));
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  for (uint32_t i = 0; i < 64; ++i) {
    const uint32_t byte = ran.out[128 + i / 4] >> 8 * (i % 4) & 0xff, value = (i / 4 + 1) >> 8 * (i % 4) & 0xff;
    EXPECT_EQ(byte, i % 16 == 0 || i % 16 == 5 || i % 16 == 10 || i % 16 == 15 ? value : 0x55u) << i;
  }
  EXPECT_EQ(fault_of(run_tile(before + text(""))), "async_pending");
}

// ldmatrix and stmatrix of bytes. Row r of 16 bytes is at 32 r of the tile, so that rows are not adjacent. The
// registers of a lane follow the ISA's text: four consecutive threads hold a row, each four columns of it; with .trans
// the fragment is that of the transposed matrix.
std::vector<uint32_t> random_words(size_t count) {
  std::vector<uint32_t> words(count);
  uint32_t state = 12345;
  for (uint32_t& word : words) word = state = state * 1664525 + 1013904223;
  return words;
}

// Fills the tile from `in`, runs `instruction` with the address of the lane's row in %r8, and stores %r4..%r7 and the
// tile.
Ran run_rows(const std::string& instruction, const std::string& address = "  shl.b32 %r2, %r0, 5;\n",
             unsigned filled = 256) {
  return run_kernel(
      sm_100(entry_text("  mov.u32 %r1, tile;\n  mov.u32 %r3, 0;\n  mul.wide.u32 %rd5, %r0, 4;\n"
                        "fill:\n  mad.lo.u32 %r9, %r3, 32, %r0;\n  shl.b32 %r10, %r9, 2;\n  cvt.u64.u32 %rd6, %r10;\n"
                        "  add.u64 %rd6, %rd1, %rd6;\n  ld.global.u32 %r11, [%rd6];\n  add.u32 %r10, %r1, %r10;\n"
                        "  st.shared.u32 [%r10], %r11;\n  add.u32 %r3, %r3, 1;\n  setp.lt.u32 %p1, %r3, " +
                            std::to_string(filled / 32) + ";\n  @%p1 bra fill;\n  bar.sync 0;\n" + address +
                            "  add.u32 %r8, %r1, %r2;\n  mov.u32 %r4, 0;\n  mov.u32 %r5, 0;\n  mov.u32 %r6, 0;\n"
                            "  mov.u32 %r7, 0;\n  mul.wide.u32 %rd7, %r0, 16;\n  add.u64 %rd7, %rd1, %rd7;\n  " +
                            instruction +
                            "\n  bar.sync 0;\n  mul.wide.u32 %rd7, %r0, 16;\n  add.u64 %rd7, %rd0, %rd7;\n"
                            "  st.global.v4.u32 [%rd7], {%r4, %r5, %r6, %r7};\n  mov.u32 %r3, 0;\n"
                            "drain:\n  mad.lo.u32 %r9, %r3, 32, %r0;\n  shl.b32 %r10, %r9, 2;\n"
                            "  cvt.u64.u32 %rd6, %r10;\n  add.u64 %rd6, %rd0, %rd6;\n  add.u32 %r10, %r1, %r10;\n"
                            "  ld.shared.u32 %r11, [%r10];\n  st.global.u32 [%rd6+512], %r11;\n"
                            "  add.u32 %r3, %r3, 1;\n  setp.lt.u32 %p1, %r3, 8;\n  @%p1 bra drain;\n",
                        ".shared .align 16 .b8 tile[1024];\n")),
      {.block = {32}}, 128 + 256, random_words(256));
}

// Element `column` of row `row`: 8, 6 or 4 bits wide, packed from the first bit of the row on.
uint32_t element(const std::vector<uint32_t>& words, unsigned row, unsigned column, unsigned bits) {
  uint32_t value = 0;
  for (unsigned i = 0; i < bits; ++i) {
    const unsigned bit = row * 256 + column * bits + i;
    value |= (words[bit / 32] >> bit % 32 & 1) << i;
  }
  return value;
}

TEST(Sm100, MatricesOfBytesAreLoaded) {
  const auto words = random_words(256);
  const std::vector<std::pair<std::string, unsigned>> packings = {
      {"b8", 8}, {"b8x16.b6x16_p32", 6}, {"b8x16.b4x16_p64", 4}};
  for (const auto& [packing, bits] : packings)
    for (const unsigned registers : {1u, 2u, 4u})
      for (const bool square : {false, true}) {
        if ((square && registers == 1) || (!square && bits == 8)) continue;
        const std::string list = registers == 1 ? "{%r4}" : registers == 2 ? "{%r4, %r5}" : "{%r4, %r5, %r6, %r7}";
        const std::string text =
            square ? "ldmatrix.sync.aligned.m16n16.x" + std::to_string(registers / 2) + ".trans.shared." + packing
                   : "ldmatrix.sync.aligned.m8n16.x" + std::to_string(registers) + ".shared." + packing;
        const Ran ran = run_rows(text + " " + list + ", [%r8];");
        ASSERT_TRUE(ran.outcome.ok()) << text << "\n" << render(ran.outcome, "test.ptx");
        for (unsigned lane = 0; lane < 32; ++lane)
          for (unsigned i = 0; i < 4 * registers; ++i) {
            const unsigned reg = i / 4, group = lane / 4, within = 4 * (lane % 4) + i % 4;
            // Plain: row `group` of matrix `reg`. Transposed: rows and columns are exchanged in each 16 x 16.
            const uint32_t expected = square ? element(words, reg / 2 * 16 + within, group + 8 * (reg % 2), bits)
                                             : element(words, reg * 8 + group, within, bits);
            EXPECT_EQ(ran.out[lane * 4 + reg] >> 8 * (i % 4) & 0xff, expected) << text << " " << lane << " " << i;
          }
      }
}

// The fragment of stmatrix.m16n8 is that of an accumulator of mma: rows lane / 4 and 8 below, columns 2 (lane % 4) and
// the next; .trans makes its columns the rows of memory.
TEST(Sm100, MatricesOfBytesAreStored) {
  const auto words = random_words(256);
  for (const unsigned registers : {1u, 2u, 4u}) {
    const std::string list = registers == 1 ? "{%r4}" : registers == 2 ? "{%r4, %r5}" : "{%r4, %r5, %r6, %r7}";
    const Ran ran = run_rows("ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd7];\n  stmatrix.sync.aligned.m16n8.x" +
                             std::to_string(registers) + ".trans.shared.b8 [%r8], " + list + ";");
    ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
    std::vector<uint32_t> expected = words;
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned i = 0; i < 4 * registers; ++i) {
        const unsigned m = lane / 4 + i % 4 / 2 * 8, n = lane % 4 * 2 + i % 2, place = (i / 4 * 8 + n) * 32 + m;
        uint32_t& word = expected[place / 4];
        const uint32_t value = words[lane * 4 + i / 4] >> 8 * (i % 4) & 0xff;
        word = (word & ~(0xffu << place % 4 * 8)) | value << place % 4 * 8;
      }
    for (unsigned i = 0; i < 256; ++i) EXPECT_EQ(ran.out[128 + i], expected[i]) << registers << " " << i;
  }
}

TEST(Sm100, MistakesWithMatricesOfBytes) {
  const std::string load = "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r4}, [%r8];";
  EXPECT_EQ(fault_of(run_rows(load)), "");
  EXPECT_EQ(fault_of(run_rows(load, "  mad.lo.u32 %r2, %r0, 32, 8;\n")), "misaligned");
  EXPECT_EQ(fault_of(run_rows(load, "  mad.lo.u32 %r2, %r0, 32, 1024;\n")), "out_of_bounds");
  const std::string decides = "\n  and.b32 %r4, %r4, 0x0f0f0f0f;\n  setp.eq.u32 %p2, %r4, 77;\n  @%p2 bra fill;";
  EXPECT_EQ(fault_of(run_rows(load + decides)), "");
  EXPECT_EQ(fault_of(run_rows(load + decides, "  mad.lo.u32 %r2, %r0, 32, 512;\n", 128)), "uninitialised_shared");
  const std::string store = "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r8], {%r4};\n";
  EXPECT_EQ(fault_of(run_rows(store + "  bar.warp.sync -1;\n  ld.shared.u32 %r5, [%r1];")), "");
  EXPECT_EQ(fault_of(run_rows(store + "  ld.shared.u32 %r5, [%r1];")), "warp_race");
}

// Each cluster, the first one and those that it cancels, adds one to its word; thread 0 requests, all threads query.
std::string control_text(const std::string& wait, const std::string& cancel) {
  std::string text = entry_text(
      "  mov.u32 %r1, %ctaid.x;\n  mov.u32 %r9, %cluster_ctarank;\n  mov.u32 %r2, 0;\n  setp.eq.u32 %p1, %r0, 0;\n"
      "  @%p1 mbarrier.init.shared.b64 [bar], 1;\n  bar.sync 0;\n  barrier.cluster.arrive;\n  barrier.cluster.wait;\n"
      "again:\n  @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\n  setp.eq.u32 %p2, %r9, 0;\n"
      "  and.pred %p2, %p1, %p2;\n  barrier.cluster.arrive;\n  barrier.cluster.wait;\n  @%p2 " +
          cancel +
          "\n  mul.wide.u32 %rd5, %r1, 4;\n  add.u64 %rd5, %rd0, %rd5;\n  @%p1 red.global.add.u32 [%rd5], 1;\n" + wait +
          "  ld.shared.b128 %q, [answer];\n  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p4, %q;\n"
          "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n  xor.b32 %r2, %r2, 1;\n  @!%p4 bra done;\n"
          "  clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r3, %r4, %r5, _}, %q;\n"
          "  clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r6, %q;\n"
          "  clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r7, %q;\n"
          "  add.u32 %r1, %r6, %r9;\n  add.u32 %r1, %r1, %r4;\n  add.u32 %r1, %r1, %r7;\n  bra again;\ndone:\n",
      ".shared .align 16 .b8 answer[16];\n.shared .align 8 .b64 bar;\n");
  text.replace(text.find(".reg .b16"), 9, ".reg .b128 %q;\n  .reg .b16");
  return sm_100(text);
}
const std::string kAnswered = "wait:\n  mbarrier.try_wait.parity.shared.b64 %p3, [bar], %r2;\n  @!%p3 bra wait;\n";

TEST(Sm100, ClustersTakeOthersOutOfTheLaunch) {
  const std::string one =
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [answer], [bar];";
  const std::string all =
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 "
      "[answer], [bar];";
  const auto run = [](const std::string& text, uint32_t cluster, bool adversarial) {
    return run_kernel(text, {.grid = {12}, .block = {32}, .cluster = {cluster}}, 12, {},
                      {.checks = kCheckAll & ~kCheckUninitialised,
                       .schedule_seed = adversarial ? 5u : 0u,
                       .adversarial = adversarial,
                       .max_steps = 1'000'000});
  };
  for (const bool adversarial : {false, true})
    for (const uint32_t cluster : {1u, 2u}) {
      const Ran ran = run(control_text(kAnswered, cluster == 1 ? one : all), cluster, adversarial);
      ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
      // Every word was incremented once from the same poison, by some cluster.
      for (uint32_t i = 0; i < 12; ++i) EXPECT_EQ(ran.out[i], 0xcbcbcbcbu + 1) << cluster << " " << i;
      EXPECT_LT(ran.outcome.statistics.cta_count, 12u);
    }
  EXPECT_EQ(fault_of(run(control_text("", one), 1, false)), "async_pending");
}

}  // namespace
}  // namespace ptxkit::emulator
