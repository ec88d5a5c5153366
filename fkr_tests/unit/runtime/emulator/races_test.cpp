// Races in global and shared memory: each kernel lacks one synchronisation, and its clean twin has it.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::emulator {
namespace {

struct Pair {
  std::string what;
  FaultKind kind;
  LaunchShape shape;
  std::string racy, clean;  // bodies of entry_text
  std::string line, other;  // the two accesses
};

// One thread passes data at %rd4 to another through `flag` (%rd5). The lines in between differ.
struct Handover {
  std::string store_flag = "st.release.gpu.global.u32 [%rd5], 1;";
  std::string load_flag = "ld.acquire.gpu.global.u32 %r4, [%rd5];";
  std::string before_flag = {}, after_flag = {};
};

std::string hand_over(const std::string& is_giver, const Handover& how) {
  return "  add.u64 %rd5, %rd1, 128;\n  mov.u64 %rd4, %rd0;\n  mov.u32 %r9, %ctaid.x;\n  " + is_giver +
         "\n  @%p1 bra give;\n  " +
         "setp.ne.u32 %p2, %r0, 32;\n  mov.u32 %r10, %ntid.x;\n  setp.ne.u32 %p4, %r10, 1;\n"
         "  and.pred %p2, %p2, %p4;\n  @%p2 bra end;\n"
         "spin:\n  " +
         how.load_flag + "\n  setp.eq.u32 %p3, %r4, 0;\n  @%p3 bra spin;\n  " + how.after_flag +
         "\n  ld.global.u32 %r5, [%rd4];\n  bra end;\n"
         "give:\n  st.global.u32 [%rd4], 7;\n  " +
         how.before_flag + "\n  " + how.store_flag + "\nend:\n";
}

const LaunchShape kWarps{.block = {64}};
const LaunchShape kBlocks{.grid = {2}};
const std::string kThreadZero = "setp.eq.u32 %p1, %r0, 0;";
const std::string kBlockZero = "setp.eq.u32 %p1, %r9, 0;";

const std::string kData = "ld.global.u32 %r5, [%rd4];";
const std::string kGiven = "st.global.u32 [%rd4], 7;";

const std::vector<Pair>& pairs() {
  static const std::string mine = "  mov.u32 %r1, %ctaid.x;\n";
  static const std::string neighbour =  // %rd5: the word of the thread of the other warp
      "  xor.b32 %r3, %r0, 32;\n  mul.wide.u32 %rd5, %r3, 4;\n  add.u64 %rd5, %rd0, %rd5;\n";
  static const std::string near =  // the word of the neighbouring lane
      "  xor.b32 %r3, %r0, 1;\n  mul.wide.u32 %rd5, %r3, 4;\n  add.u64 %rd5, %rd0, %rd5;\n";
  static const std::string put = "  st.global.u32 [%rd2], %r0;\n", get = "  ld.global.u32 %r4, [%rd5];\n";
  static const Handover relaxed{.store_flag = "st.relaxed.gpu.global.u32 [%rd5], 1;",
                                .load_flag = "ld.relaxed.gpu.global.u32 %r4, [%rd5];"};
  static const auto fenced = [](std::string before, std::string after) {
    Handover how = relaxed;
    how.before_flag = std::move(before);
    how.after_flag = std::move(after);
    return how;
  };
  static const Handover volatile_{.store_flag = "st.volatile.global.u32 [%rd5], 1;",
                                  .load_flag = "ld.volatile.global.u32 %r4, [%rd5];"};
  static const auto in_cta = [](const std::string& scope) {
    return Handover{.store_flag = "st.release." + scope + ".global.u32 [%rd5], 1;",
                    .load_flag = "ld.acquire." + scope + ".global.u32 %r4, [%rd5];"};
  };
  static const auto by_atomic = [](const std::string& order) {
    return Handover{.store_flag = "atom." + order + ".gpu.global.exch.b32 %r6, [%rd5], 1;",
                    .load_flag = "atom.acquire.gpu.global.add.u32 %r4, [%rd5], 0;"};
  };
  static const std::string tile_at =
      "  .shared .align 4 .b32 tile[64];\n  mov.u32 %r1, tile;\n  shl.b32 %r2, %r0, 2;\n  add.u32 %r1, %r1, %r2;\n";
  // Warp 0 fills, arrives at barrier 1, and fills again after the other warp has signalled at barrier 2 that it has
  // read.
  static const auto refill = [](const std::string& second) {
    return tile_at +
           "  setp.ge.u32 %p1, %r0, 32;\n  @%p1 bra read;\n  st.shared.u32 [%r1], %r0;\n  bar.arrive 1, 64;\n" +
           second +
           "  add.u32 %r3, %r0, 1;\n  st.shared.u32 [%r1], %r3;\n  bra end;\n"
           "read:\n  bar.sync 1, 64;\n  ld.shared.u32 %r4, [%r1+-128];\n  bar.arrive 2, 64;\nend:\n";
  };
  // Three warps read a word and arrive at a barrier; warp 3 waits there and then writes the word.
  static const auto three_readers = [](const std::string& leaves, const std::string& threads) {
    return "  .shared .align 4 .b32 word;\n  setp.ge.u32 %p1, %r0, 96;\n  @%p1 bra write;\n  ld.shared.u32 %r4, "
           "[word];\n" +
           leaves + "  bar.arrive 1, " + threads + ";\n  bra end;\nwrite:\n  bar.sync 1, " + threads +
           ";\n  st.shared.u32 [word], 7;\nend:\n";
  };
  // Blocks 0 to 2 read a word and count at %rd5; block 3 waits for the count and then writes the word.
  static const auto three_blocks = [](const std::string& leaves, const std::string& count) {
    return "  mov.u32 %r1, %ctaid.x;\n  add.u64 %rd5, %rd1, 128;\n  setp.eq.u32 %p1, %r1, 3;\n  @%p1 bra spin;\n"
           "  ld.global.u32 %r4, [%rd0];\n" +
           leaves +
           "  red.release.gpu.global.add.u32 [%rd5], 1;\n  bra end;\n"
           "spin:\n  ld.acquire.gpu.global.u32 %r2, [%rd5];\n  setp.lt.u32 %p3, %r2, " +
           count + ";\n  @%p3 bra spin;\n  st.global.u32 [%rd0], 7;\nend:\n";
  };
  static const auto in_cluster = [](const std::string& barrier) {
    return "  .shared .align 4 .b32 word;\n  mov.u32 %r1, %cluster_ctarank;\n  setp.eq.u32 %p1, %r1, 0;\n"
           "  st.shared.u32 [word], %r1;\n" +
           barrier +
           "  mov.u32 %r2, word;\n  xor.b32 %r3, %r1, 1;\n  mapa.shared::cluster.u32 %r4, %r2, %r3;\n"
           "  ld.shared::cluster.u32 %r5, [%r4];\n  barrier.cluster.arrive;\n  barrier.cluster.wait;\n";
  };
  // Threads synchronise at an mbarrier for `count`; %p1 selects thread 0.
  static const auto with_mbarrier = [](const std::string& count) {
    return "  .shared .align 8 .b64 bar;\n  mov.u32 %r10, bar;\n  setp.eq.u32 %p1, %r0, 0;\n"
           "  @%p1 mbarrier.init.shared.b64 [%r10], " +
           count + ";\n  bar.sync 0;\n";
  };
  static const std::string arrive = "  mbarrier.arrive.shared.b64 %rd4, [%r10];\n";
  static const std::string wait_there =
      "spin:\n  mbarrier.try_wait.parity.shared.b64 %p3, [%r10], 0;\n  @!%p3 bra spin;\n";
  // All lanes but the last of each warp of two blocks arrive; the first block has stored, the second loads.
  static const auto crowds = [](const std::string& store, const std::string& load) {
    return with_mbarrier("992") +
           "  mov.u32 %r1, %ctaid.x;\n  setp.eq.and.u32 %p2, %r1, 0, %p1;\n  setp.eq.and.u32 %p4, %r1, 1, %p1;\n  "
           "@%p2 " +
           store + "\n  and.b32 %r2, %r0, 31;\n  setp.eq.u32 %p5, %r2, 31;\n  @%p5 bra end;\n" + arrive + wait_there +
           "  @%p4 " + load + "\nend:\n";
  };
  // Warp 0 stores and `lanes` of its lanes arrive; warp 1 waits for them and loads.
  static const auto handed_over = [](const std::string& lanes, const std::string& behind, const std::string& whose) {
    return tile_at + with_mbarrier(lanes) +
           "  setp.ge.u32 %p2, %r0, 32;\n  @%p2 bra wait;\n  st.shared.u32 [%r1], %r0;\n  setp.ge.u32 %p4, %r0, " +
           lanes + ";\n  @%p4 bra end;\n" + arrive + behind + "  bra end;\nwait:\n" + wait_there +
           "  and.b32 %r2, %r0, " + whose +
           ";\n  shl.b32 %r2, %r2, 2;\n  mov.u32 %r1, tile;\n  add.u32 %r1, %r1, %r2;\n  ld.shared.u32 %r4, "
           "[%r1];\nend:\n";
  };
  static const std::string met = "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n";
  static const std::vector<Pair> list{
      {"no barrier between warps", FaultKind::global_race, kWarps, neighbour + put + get,
       neighbour + put + "  bar.sync 0;\n" + get, "ld.global.u32 %r4, [%rd5];", "st.global.u32 [%rd2], %r0;"},
      {"read, then overwritten by another warp", FaultKind::global_race, kWarps,
       neighbour + put + "  bar.sync 0;\n" + get + put.substr(0, put.size() - 5) + "%r3;\n",
       neighbour + put + "  bar.sync 0;\n" + get + "  bar.sync 0;\n" + put.substr(0, put.size() - 5) + "%r3;\n",
       "st.global.u32 [%rd2], %r3;", "ld.global.u32 %r4, [%rd5];"},
      {"no bar.warp.sync between lanes",
       FaultKind::warp_race,
       {.block = {32}},
       near + put + get,
       near + put + "  bar.warp.sync -1;\n" + get,
       "ld.global.u32 %r4, [%rd5];",
       "st.global.u32 [%rd2], %r0;"},
      {"bar.warp.sync of other lanes",
       FaultKind::warp_race,
       {.block = {4}},
       near + put + "  setp.ge.u32 %p1, %r0, 2;\n  @%p1 bra a;\n  bar.warp.sync 3;\na:\n" + get,
       near + put +
           "  setp.ge.u32 %p1, %r0, 2;\n  @%p1 bra a;\n  bar.warp.sync 3;\n  bra b;\na:\n  bar.warp.sync 12;\nb:\n" +
           get,
       "ld.global.u32 %r4, [%rd5];",
       "st.global.u32 [%rd2], %r0;"},
      {"lanes store different values to one word",
       FaultKind::global_race,
       {.block = {2}},
       "  st.global.u32 [%rd0], %r0;\n",
       "  st.global.u32 [%rd0], 5;\n",
       "st.global.u32 [%rd0], %r0;",
       "st.global.u32 [%rd0], %r0;"},
      {"a store of what was there before the launch", FaultKind::grid_race, kBlocks,
       mine + "  setp.eq.u32 %p1, %r1, 0;\n  @%p1 st.global.u32 [%rd1], 0;\n  @!%p1 ld.global.u32 %r4, [%rd1];\n",
       "  st.global.u32 [%rd1], 0;\n", "@!%p1 ld.global.u32 %r4, [%rd1];", "@%p1 st.global.u32 [%rd1], 0;"},
      {"a store of what was there before the barrier", FaultKind::global_race, kWarps,
       neighbour + put + "  bar.sync 0;\n" + put + get,
       neighbour + put + "  bar.sync 0;\n" + put + "  bar.sync 0;\n" + get, "ld.global.u32 %r4, [%rd5];",
       "st.global.u32 [%rd2], %r0;"},
      {"bytes of one word",
       FaultKind::warp_race,
       {.block = {4}},
       "  cvt.u64.u32 %rd4, %r0;\n  add.u64 %rd4, %rd0, %rd4;\n  st.global.u8 [%rd4], %r0;\n  ld.global.u8 %r4, "
       "[%rd0];\n",
       "  cvt.u64.u32 %rd4, %r0;\n  add.u64 %rd4, %rd0, %rd4;\n  st.global.u8 [%rd4], %r0;\n  ld.global.u8 %r4, "
       "[%rd4];\n",
       "ld.global.u8 %r4, [%rd0];",
       "st.global.u8 [%rd4], %r0;"},
      {"a vector over words of others",
       FaultKind::warp_race,
       {.block = {4}},
       put + "  ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd0];\n",
       put + "  bar.warp.sync 15;\n  ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd0];\n",
       "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd0];",
       "st.global.u32 [%rd2], %r0;"},
      {"blocks write one word", FaultKind::grid_race, kBlocks, mine + "  st.global.u32 [%rd0], %r1;\n",
       mine + "  mul.wide.u32 %rd4, %r1, 4;\n  add.u64 %rd4, %rd0, %rd4;\n  st.global.u32 [%rd4], %r1;\n",
       "st.global.u32 [%rd0], %r1;", "st.global.u32 [%rd0], %r1;"},
      {"blocks add without an atomic", FaultKind::grid_race, kBlocks,
       "  st.relaxed.gpu.global.u32 [%rd0], 0;\n  ld.global.u32 %r1, [%rd0];\n  add.u32 %r1, %r1, 1;\n  st.global.u32 "
       "[%rd0], %r1;\n",
       "  st.relaxed.gpu.global.u32 [%rd0], 0;\n  red.global.add.u32 [%rd0], 1;\n",
       "st.relaxed.gpu.global.u32 [%rd0], 0;", "st.global.u32 [%rd0], %r1;"},
      {"an atomic and a plain read", FaultKind::grid_race, kBlocks,
       "  st.relaxed.gpu.global.u32 [%rd0], 0;\n  red.global.add.u32 [%rd0], 1;\n  ld.global.u32 %r1, [%rd0];\n",
       "  st.relaxed.gpu.global.u32 [%rd0], 0;\n  red.global.add.u32 [%rd0], 1;\n  ld.relaxed.gpu.global.u32 %r1, "
       "[%rd0];\n",
       "st.relaxed.gpu.global.u32 [%rd0], 0;", "ld.global.u32 %r1, [%rd0];"},
      {"atomics of a scope that ends at the block", FaultKind::grid_race, kBlocks,
       "  atom.relaxed.cta.global.exch.b32 %r1, [%rd0], 1;\n", "  atom.relaxed.gpu.global.exch.b32 %r1, [%rd0], 1;\n",
       "atom.relaxed.cta.global.exch.b32 %r1, [%rd0], 1;", "atom.relaxed.cta.global.exch.b32 %r1, [%rd0], 1;"},
      {"a flag that releases nothing", FaultKind::grid_race, kBlocks, hand_over(kBlockZero, relaxed),
       hand_over(kBlockZero, {}), kData, kGiven},
      {"a flag read without acquire", FaultKind::grid_race, kBlocks,
       hand_over(kBlockZero, {.load_flag = "ld.relaxed.gpu.global.u32 %r4, [%rd5];"}), hand_over(kBlockZero, {}), kData,
       kGiven},
      {"no fence before the flag", FaultKind::grid_race, kBlocks,
       hand_over(kBlockZero, fenced("", "fence.acq_rel.gpu;")),
       hand_over(kBlockZero, fenced("fence.acq_rel.gpu;", "fence.acq_rel.gpu;")), kData, kGiven},
      {"no fence after the flag", FaultKind::grid_race, kBlocks, hand_over(kBlockZero, fenced("membar.gl;", "")),
       hand_over(kBlockZero, fenced("membar.gl;", "membar.gl;")), kData, kGiven},
      {"fences of a scope that ends at the block", FaultKind::grid_race, kBlocks,
       hand_over(kBlockZero, fenced("membar.cta;", "membar.cta;")),
       hand_over(kBlockZero, fenced("membar.sys;", "membar.gl;")), kData, kGiven},
      {"volatile orders nothing else", FaultKind::grid_race, kBlocks, hand_over(kBlockZero, volatile_),
       hand_over(kBlockZero, {.store_flag = volatile_.store_flag,
                              .load_flag = volatile_.load_flag,
                              .before_flag = "membar.gl;",
                              .after_flag = "membar.gl;"}),
       kData, kGiven},
      {"a relaxed exchange as a flag", FaultKind::grid_race, kBlocks, hand_over(kBlockZero, by_atomic("relaxed")),
       hand_over(kBlockZero, by_atomic("release")), kData, kGiven},
      {"release and acquire within a block only", FaultKind::grid_race, kBlocks, hand_over(kBlockZero, in_cta("cta")),
       hand_over(kBlockZero, in_cta("sys")), "ld.acquire.cta.global.u32 %r4, [%rd5];",
       "st.release.cta.global.u32 [%rd5], 1;"},
      {"a flag between warps that releases nothing", FaultKind::global_race, kWarps, hand_over(kThreadZero, relaxed),
       hand_over(kThreadZero, in_cta("cta")), kData, kGiven},
      {"a flag put back before others have seen it", FaultKind::grid_race, kBlocks,
       hand_over(kBlockZero, {}) + "  @!%p1 bra past;\n  st.global.u32 [%rd5], 2;\npast:\n",
       hand_over(kBlockZero, {}) + "  @%p1 bra past;\n  st.global.u32 [%rd5], 2;\npast:\n", "st.global.u32 [%rd5], 2;",
       "ld.acquire.gpu.global.u32 %r4, [%rd5];"},
      {"who arrives only waits for nobody", FaultKind::shared_race, kWarps, refill(""), refill("  bar.sync 2, 64;\n"),
       "st.shared.u32 [%r1], %r3;", "ld.shared.u32 %r4, [%r1+-128];"},
      {"a third warp reads that is not waited for",
       FaultKind::shared_race,
       {.block = {128}},
       three_readers("  setp.lt.u32 %p2, %r0, 32;\n  @%p2 bra end;\n", "96"),
       three_readers("", "128"),
       "st.shared.u32 [word], 7;",
       "ld.shared.u32 %r4, [word];"},
      {"a third block reads that is not waited for",
       FaultKind::grid_race,
       {.grid = {4}},
       three_blocks("  setp.eq.u32 %p2, %r1, 0;\n  @%p2 bra end;\n", "2"),
       three_blocks("", "3"),
       "st.global.u32 [%rd0], 7;",
       "ld.global.u32 %r4, [%rd0];"},
      {"crowds at an mbarrier of each block, which hand nothing over",
       FaultKind::grid_race,
       {.grid = {2}, .block = {1024}},
       crowds("st.global.u32 [%rd0], 7;", "ld.global.u32 %r5, [%rd0];"),
       crowds("st.relaxed.gpu.global.u32 [%rd0], 7;", "ld.relaxed.gpu.global.u32 %r5, [%rd0];"),
       "@%p4 ld.global.u32 %r5, [%rd0];",
       "@%p2 st.global.u32 [%rd0], 7;"},
      {"stored after the arrival at an mbarrier", FaultKind::shared_race, kWarps,
       handed_over("32", "  st.shared.u32 [%r1], 7;\n", "31"), handed_over("32", "", "31"), "ld.shared.u32 %r4, [%r1];",
       "st.shared.u32 [%r1], 7;"},
      {"stored by lanes that do not arrive at the mbarrier", FaultKind::shared_race, kWarps,
       handed_over("16", "", "31"), handed_over("16", "", "15"), "ld.shared.u32 %r4, [%r1];",
       "st.shared.u32 [%r1], %r0;"},
      {"another block's shared memory too early",
       FaultKind::grid_race,
       {.grid = {2}, .cluster = {2}},
       in_cluster(""),
       in_cluster(met),
       "ld.shared::cluster.u32 %r5, [%r4];",
       "st.shared.u32 [word], %r1;"},
  };
  return list;
}

Ran run_pair(const std::string& body, const Pair& pair, uint64_t seed) {
  return run_kernel(entry_text(body), pair.shape, 64, std::vector<uint32_t>(64),
                    {.schedule_seed = seed, .max_steps = 200'000});
}

TEST(Races, PlantedOnesAreFoundWithBothSides) {
  for (const Pair& each : pairs()) {
    SCOPED_TRACE(each.what);
    const Ran ran = run_pair(each.racy, each, 0);
    const std::string text = render(ran.outcome, "test.ptx");
    bool found = false;  // whichever side ran first
    for (const Fault& fault : ran.outcome.faults) {
      EXPECT_EQ(name(fault.kind), name(each.kind)) << text;
      EXPECT_TRUE(fault.has_other && fault.has_address) << text;
      EXPECT_FALSE(fault.object.empty()) << text;
      EXPECT_TRUE(fault.thread.thread != fault.other_thread.thread || fault.thread.block != fault.other_thread.block)
          << text;
      found |= std::minmax(fault.site.text, fault.other_site.text) == std::minmax(each.line, each.other);
    }
    EXPECT_TRUE(found) << text;
  }
  if (!::testing::Test::HasFailure()) fmt::print("{} planted bugs found\n", pairs().size());
}

TEST(Races, CleanTwinsStayClean) {
  for (const Pair& each : pairs())
    for (uint64_t seed = 0; seed < 8; ++seed) {
      SCOPED_TRACE(each.what);
      const Ran ran = run_pair(each.clean, each, seed);
      EXPECT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
    }
  if (!::testing::Test::HasFailure()) fmt::print("{} clean twins untouched\n", pairs().size());
}

}  // namespace
}  // namespace ptxkit::emulator
