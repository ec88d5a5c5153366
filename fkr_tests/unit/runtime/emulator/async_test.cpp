// Asynchronous copies, mbarriers, clusters: results, and each misuse beside a correct twin.
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::emulator {
namespace {

using ::testing::HasSubstr;

const std::string kTile = ".shared .align 16 .b8 tile[512];\n.shared .align 8 .b64 bar;\n";
// %r1 tile + 16 * tid, %rd4 in + 16 * tid
const std::string kAddresses =
    "  mov.u32 %r1, tile;\n  shl.b32 %r2, %r0, 4;\n  add.u32 %r1, %r1, %r2;\n  cvt.u64.u32 %rd4, %r2;\n"
    "  add.u64 %rd4, %rd1, %rd4;\n";
const std::string kInit = "  setp.eq.u32 %p1, %r0, 0;\n  @%p1 mbarrier.init.shared.b64 [bar], 32;\n  bar.sync 0;\n";

std::vector<uint32_t> counting(size_t count) {
  std::vector<uint32_t> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<uint32_t>(i * 7 + 1);
  return values;
}

Ran run_tile(const std::string& body, uint32_t threads = 32,
             const LaunchOptions& options = {.checks = kCheckStandard & ~kCheckOutputs, .max_steps = 1'000'000}) {
  return run_kernel(entry_text(body, kTile), {.block = {threads}}, 128, counting(128), options);
}

// Faults of `body`, by name; "" if there are none.
std::string fault_of(const std::string& body, uint32_t threads = 32) {
  const Ran ran = run_tile(body, threads);
  return ran.outcome.faults.empty() ? "" : std::string(name(ran.outcome.faults[0].kind));
}

TEST(Async, CopiesArriveAndZeroFill) {
  const Ran ran = run_tile(kAddresses +
                           "  cp.async.cg.shared.global [%r1], [%rd4], 16, 8;\n  cp.async.commit_group;\n"
                           "  cp.async.wait_group 0;\n  ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r1];\n"
                           "  add.u64 %rd5, %rd0, %rd4;\n  sub.u64 %rd5, %rd5, %rd1;\n"
                           "  st.global.v4.u32 [%rd5], {%r3, %r4, %r5, %r6};\n");
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  const auto in = counting(128);
  for (size_t i = 0; i < 128; ++i) EXPECT_EQ(ran.out[i], i % 4 < 2 ? in[i] : 0u) << i;
}

TEST(Async, AMissingWaitIsFound) {
  const std::string copy = kAddresses + "  cp.async.ca.shared.global [%r1], [%rd4], 16;\n  cp.async.commit_group;\n";
  const std::string read = "  ld.shared.u32 %r3, [%r1];\n  st.global.u32 [%rd2], %r3;\n";
  EXPECT_EQ(fault_of(copy + read), "async_pending");
  EXPECT_EQ(fault_of(copy + "  cp.async.wait_all;\n" + read), "");
  // One of the two groups may remain: the second is not complete yet.
  const std::string two = copy + "  cp.async.ca.shared.global [%r1+4], [%rd4], 4;\n  cp.async.commit_group;\n";
  EXPECT_EQ(fault_of(two + "  cp.async.wait_group 1;\n  ld.shared.u32 %r3, [%r1];\n"), "");
  EXPECT_EQ(fault_of(two + "  cp.async.wait_group 1;\n  ld.shared.u32 %r3, [%r1+4];\n"), "async_pending");
  // A store to the destination is a fault too.
  EXPECT_EQ(fault_of(copy + "  st.shared.u32 [%r1], %r0;\n"), "async_pending");
  EXPECT_THAT(render(run_tile(copy + read).outcome, "test.ptx"), HasSubstr("an asynchronous copy still writes"));
}

// The wait orders the copy for its own lane; other lanes also need a barrier.
TEST(Async, OthersNeedABarrierToo) {
  const std::string copy =
      kAddresses +
      "  cp.async.ca.shared.global [%r1], [%rd4], 16;\n  cp.async.wait_all;\n"
      "  xor.b32 %r3, %r0, 1;\n  shl.b32 %r3, %r3, 4;\n  mov.u32 %r4, tile;\n  add.u32 %r4, %r4, %r3;\n";
  EXPECT_EQ(fault_of(copy + "  ld.shared.u32 %r5, [%r4];\n"), "warp_race");
  EXPECT_EQ(fault_of(copy + "  bar.warp.sync -1;\n  ld.shared.u32 %r5, [%r4];\n"), "");
}

TEST(Async, AnMbarrierTracksCopies) {
  const std::string copy = kInit + kAddresses +
                           "  cp.async.ca.shared.global [%r1], [%rd4], 16;\n"
                           "  cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n";
  const std::string wait = "w:\n  mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n  @!%p2 bra w;\n";
  const std::string read =
      "  xor.b32 %r2, %r2, 16;\n  mov.u32 %r3, tile;\n  add.u32 %r3, %r3, %r2;\n  ld.shared.u32 %r4, [%r3];\n"
      "  st.global.u32 [%rd2], %r4;\n";
  const Ran ran = run_tile(copy + wait + read);
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(ran.out[i], counting(128)[(i ^ 1) * 4]);
  EXPECT_EQ(fault_of(copy + read), "async_pending");
}

// A producer and a consumer warp pass a value back and forth through two mbarriers, in four phases.
TEST(Async, PhasesOfProducerAndConsumer) {
  const std::string body = R"(
  .reg .pred %q<4>;
  setp.eq.u32 %p1, %r0, 0;
  @%p1 mbarrier.init.shared.b64 [full], 32;
  @%p1 mbarrier.init.shared.b64 [empty], 32;
  bar.sync 0;
  mov.u32 %r5, 0;
  mov.u32 %r9, 0;
  and.b32 %r6, %r0, 31;
  shl.b32 %r7, %r6, 2;
  mov.u32 %r8, tile;
  add.u32 %r8, %r8, %r7;
  setp.ge.u32 %p2, %r0, 32;
  @%p2 bra consumer;
producer:
  setp.eq.u32 %q0, %r5, 0;
  @%q0 bra fill;
  sub.u32 %r10, %r5, 1;
  and.b32 %r10, %r10, 1;
pw:
  mbarrier.try_wait.parity.shared.b64 %q1, [empty], %r10;
  @!%q1 bra pw;
fill:
  mad.lo.u32 %r11, %r5, 100, %r6;
  st.shared.u32 [%r8], %r11;
  mbarrier.arrive.shared.b64 %rd10, [full];
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %q2, %r5, 4;
  @%q2 bra producer;
  ret;
consumer:
  and.b32 %r10, %r5, 1;
cw:
  mbarrier.test_wait.parity.shared.b64 %q1, [full], %r10;
  @!%q1 bra cw;
  xor.b32 %r12, %r7, 4;
  mov.u32 %r13, tile;
  add.u32 %r13, %r13, %r12;
  ld.shared.u32 %r14, [%r13];
  add.u32 %r9, %r9, %r14;
  mbarrier.arrive.shared.b64 %rd10, [empty];
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %q2, %r5, 4;
  @%q2 bra consumer;
  st.global.u32 [%rd2], %r9;
)";
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const Ran ran = run_kernel(
        entry_text(body,
                   ".shared .align 16 .b8 tile[128];\n.shared .align 8 .b64 full;\n.shared .align 8 .b64 empty;\n"),
        {.block = {64}}, 64, counting(4), {.schedule_seed = seed, .max_steps = 1'000'000});
    ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
    for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(ran.out[32 + i], 600 + 4 * (i ^ 1));
  }
}

TEST(Async, MisuseOfAnMbarrierIsFound) {
  EXPECT_EQ(fault_of("  mbarrier.arrive.shared.b64 %rd4, [bar];\n"), "mbarrier_misuse");
  EXPECT_EQ(fault_of("  mbarrier.init.shared.b64 [bar], 0;\n", 1), "mbarrier_misuse");
  EXPECT_EQ(fault_of("  mbarrier.init.shared.b64 [bar], 1;\n  mbarrier.init.shared.b64 [bar], 1;\n", 1),
            "mbarrier_misuse");
  EXPECT_EQ(fault_of("  mbarrier.init.shared.b64 [bar], 1;\n  mbarrier.inval.shared.b64 [bar];\n"
                     "  mbarrier.init.shared.b64 [bar], 1;\n",
                     1),
            "");
  EXPECT_EQ(fault_of("  mbarrier.init.shared.b64 [bar], 2;\n  mbarrier.arrive.shared.b64 %rd4, [bar], 3;\n", 1),
            "mbarrier_misuse");
  EXPECT_EQ(
      fault_of("  mbarrier.init.shared.b64 [bar], 2;\n  mbarrier.arrive.noComplete.shared.b64 %rd4, [bar], 2;\n", 1),
      "mbarrier_misuse");
  EXPECT_EQ(fault_of("  mbarrier.init.shared.b64 [bar+4], 2;\n", 1), "misaligned");
  // init and use without a barrier between them
  EXPECT_EQ(fault_of("  setp.eq.u32 %p1, %r0, 0;\n  @%p1 mbarrier.init.shared.b64 [bar], 32;\n"
                     "  mbarrier.arrive.shared.b64 %rd4, [bar];\n"),
            "warp_race");
  EXPECT_EQ(fault_of(kInit + "  mbarrier.arrive.shared.b64 %rd4, [bar];\n"), "");
}

TEST(Async, AnMbarrierThatNeverCompletesIsADeadlock) {
  const std::string body = kInit +
                           "  setp.lt.u32 %p2, %r0, 30;\n  @%p2 mbarrier.arrive.shared.b64 %rd4, [bar];\n"
                           "w:\n  mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;\n  @!%p3 bra w;\n";
  const Ran ran = run_tile(body);
  ASSERT_EQ(ran.outcome.faults.size(), 1u);
  EXPECT_EQ(name(ran.outcome.faults[0].kind), "mbarrier_deadlock");
  EXPECT_THAT(ran.outcome.faults[0].message, HasSubstr("waits for 2 more arrivals and 0 bytes"));
}

TEST(Async, TokensAndPendingCounts) {
  const Ran ran = run_tile(
      "  mbarrier.init.shared.b64 [bar], 3;\n  mbarrier.arrive.shared.b64 %rd4, [bar];\n"
      "  mbarrier.pending_count.b64 %r1, %rd4;\n  st.global.u32 [%rd0], %r1;\n"
      "  mbarrier.arrive_drop.shared.b64 %rd5, [bar];\n  mbarrier.pending_count.b64 %r1, %rd5;\n"
      "  st.global.u32 [%rd0+4], %r1;\n  mbarrier.test_wait.shared.b64 %p1, [bar], %rd4;\n  selp.u32 %r1, 1, 0, %p1;\n"
      "  st.global.u32 [%rd0+8], %r1;\n  mbarrier.arrive.shared.b64 %rd6, [bar];\n"
      "  mbarrier.test_wait.shared.b64 %p1, [bar], %rd4;\n  selp.u32 %r1, 1, 0, %p1;\n  st.global.u32 [%rd0+12], %r1;\n"
      "  mbarrier.arrive.shared.b64 %rd6, [bar];\n  mbarrier.pending_count.b64 %r1, %rd6;\n  st.global.u32 [%rd0+16], "
      "%r1;\n",
      1);
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  EXPECT_EQ((std::vector<uint32_t>(ran.out.begin(), ran.out.begin() + 5)), (std::vector<uint32_t>{3, 2, 0, 1, 2}));
}

const std::string kBulkIn =
    "  setp.ne.u32 %p1, %r0, 0;\n  @%p1 bra go;\n  mbarrier.init.shared.b64 [bar], 1;\n"
    "  mbarrier.arrive.expect_tx.shared.b64 %rd5, [bar], 512;\n"
    "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 512, [bar];\n"
    "go:\n  bar.sync 0;\n";
const std::string kBulkWait = "w:\n  mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n  @!%p2 bra w;\n";

TEST(Async, BulkCopiesInAndOut) {
  const std::string body =
      kBulkIn + kBulkWait +
      "  mov.u32 %r1, tile;\n  shl.b32 %r2, %r0, 2;\n  add.u32 %r1, %r1, %r2;\n  ld.shared.u32 %r3, [%r1];\n"
      "  add.u32 %r3, %r3, 5;\n  st.shared.u32 [%r1], %r3;\n  bar.sync 0;\n  @%p1 bra end;\n"
      "  cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 256;\n"
      "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n"
      "  cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0], [tile], 128;\n"
      "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\nend:\n";
  const Ran ran = run_tile(body);
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  const auto in = counting(128);
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t staged = in[i] + (i < 32 ? 5 : 0);
    EXPECT_EQ(ran.out[i], i < 32 ? 2 * staged : staged) << i;
  }
}

TEST(Async, BulkCopiesThatGoWrongAreFound) {
  const std::string read = "  ld.shared.u32 %r3, [tile];\n";
  EXPECT_EQ(fault_of(kBulkIn + read), "async_pending");
  EXPECT_EQ(fault_of(kBulkIn + kBulkWait + read), "");
  std::string odd = kBulkIn;
  odd.replace(odd.find("[%rd1], 512"), 11, "[%rd1], %r3");
  odd.insert(odd.find("  cp.async.bulk."), "  mov.u32 %r3, 504;\n");
  EXPECT_EQ(fault_of(odd), "async_size");
  std::string past = kBulkIn;
  past.replace(past.find("[%rd1], 512"), 11, "[%rd1+16], 512");
  EXPECT_EQ(fault_of(past), "out_of_bounds");
  std::string lopsided = kBulkIn;
  lopsided.replace(lopsided.find("[%rd1], 512"), 11, "[%rd1+8], 496");
  EXPECT_EQ(fault_of(lopsided), "misaligned");
  // The source of a copy to global memory is changed before the copy has read it.
  const std::string out =
      "  mov.u32 %r3, 1;\n  st.shared.u32 [tile], %r3;\n"
      "  cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 16;\n  cp.async.bulk.commit_group;\n";
  EXPECT_EQ(fault_of(out + "  st.shared.u32 [tile], %r0;\n", 1), "async_pending");
  EXPECT_EQ(fault_of(out + "  cp.async.bulk.wait_group.read 0;\n  st.shared.u32 [tile], %r0;\n", 1), "");
}

Ran run_cluster(const std::string& body, const std::string& before = kTile) {
  return run_kernel(entry_text(body, before), {.grid = {4}, .block = {32}, .cluster = {2}}, 128, counting(128));
}

const std::string kNeighbour =
    "  mov.u32 %r1, %cluster_ctarank;\n  xor.b32 %r2, %r1, 1;\n  mov.u32 %r3, tile;\n  shl.b32 %r4, %r0, 2;\n"
    "  add.u32 %r3, %r3, %r4;\n  mapa.shared::cluster.u32 %r5, %r3, %r2;\n";
const std::string kClusterSync = "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n";

TEST(Clusters, ReachEachOthersSharedMemory) {
  const std::string body =
      kNeighbour +
      "  mov.u32 %r6, %ctaid.x;\n  mad.lo.u32 %r7, %r6, 1000, %r0;\n  st.shared::cluster.u32 [%r5], %r7;\n" +
      kClusterSync +
      "  ld.shared.u32 %r8, [%r3];\n  getctarank.shared::cluster.u32 %r9, %r5;\n  mad.lo.u32 %r8, %r9, 100000, %r8;\n"
      "  mad.lo.u32 %r10, %r6, 32, %r0;\n  mul.wide.u32 %rd5, %r10, 4;\n  add.u64 %rd5, %rd0, %rd5;\n"
      "  st.global.u32 [%rd5], %r8;\n";
  const Ran ran = run_cluster(body);
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  for (uint32_t i = 0; i < 128; ++i)
    EXPECT_EQ(ran.out[i], (i / 32 ^ 1) * 1000 + i % 32 + (i / 32 % 2 ? 0 : 100000)) << i;
}

TEST(Clusters, AStoreCountsAtTheNeighboursMbarrier) {
  const std::string body =
      "  setp.eq.u32 %p1, %r0, 0;\n  @%p1 mbarrier.init.shared.b64 [bar], 1;\n"
      "  @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd6, [bar], 128;\n" +
      kClusterSync + kNeighbour +
      "  mov.u32 %r6, bar;\n  mapa.shared::cluster.u32 %r7, %r6, %r2;\n"
      "  st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r0, [%r7];\n" +
      kBulkWait +
      "  ld.shared.u32 %r8, [%r3];\n  mov.u32 %r9, %ctaid.x;\n  mad.lo.u32 %r10, %r9, 32, %r0;\n"
      "  mul.wide.u32 %rd5, %r10, 4;\n  add.u64 %rd5, %rd0, %rd5;\n  st.global.u32 [%rd5], %r8;\n" +
      kClusterSync;
  const Ran ran = run_cluster(body);
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(ran.out[i], i % 32) << i;
}

TEST(Clusters, RegistersDescribeThem) {
  const Ran ran = run_kernel(
      entry_text("  mov.u32 %r1, %clusterid.x;\n  mov.u32 %r2, %nclusterid.x;\n  mov.u32 %r3, %cluster_ctaid.x;\n"
                 "  mov.u32 %r4, %cluster_nctarank;\n  mov.u32 %r5, %ctaid.x;\n  shl.b32 %r6, %r5, 4;\n"
                 "  cvt.u64.u32 %rd5, %r6;\n  add.u64 %rd5, %rd0, %rd5;\n"
                 "  st.global.v4.u32 [%rd5], {%r1, %r2, %r3, %r4};\n"),
      {.grid = {6}, .block = {1}, .cluster = {3}}, 24);
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  for (uint32_t cta = 0; cta < 6; ++cta)
    EXPECT_EQ((std::vector<uint32_t>(ran.out.begin() + 4 * cta, ran.out.begin() + 4 * cta + 4)),
              (std::vector<uint32_t>{cta / 3, 2, cta % 3, 3}));
}

TEST(Clusters, MisuseIsFound) {
  auto kind = [](const Ran& ran) {
    return ran.outcome.faults.empty() ? "" : std::string(name(ran.outcome.faults[0].kind));
  };
  EXPECT_EQ(kind(run_cluster("  barrier.cluster.wait;\n")), "cluster_pairing");
  EXPECT_EQ(kind(run_cluster("  barrier.cluster.arrive;\n  barrier.cluster.arrive;\n")), "cluster_pairing");
  EXPECT_EQ(
      kind(run_cluster(
          "  mov.u32 %r1, tile;\n  mapa.shared::cluster.u32 %r2, %r1, 5;\n  ld.shared::cluster.u32 %r3, [%r2];\n")),
      "out_of_bounds");
  // One CTA never arrives.
  const Ran stuck = run_cluster(
      "  mov.u32 %r1, %cluster_ctarank;\n  setp.eq.u32 %p1, %r1, 0;\n  @%p1 bra wait;\n  bar.sync 1, 64;\nwait:\n" +
      kClusterSync);
  EXPECT_EQ(kind(stuck), "barrier_count");
  Device device;
  auto program =
      Program::load_text(device, module_text(".visible .entry k() .reqnctapercluster 2, 1, 1 { ret; }"), "c.ptx");
  ASSERT_TRUE(program) << program.error().message();
  EXPECT_THAT(launch(*program, "k", {.grid = {3}}, {}).error().message(), HasSubstr("does not divide the grid"));
  EXPECT_THAT(launch(*program, "k", {.grid = {4}, .cluster = {4}}, {}).error().message(),
              HasSubstr("reqnctapercluster demands"));
}

}  // namespace
}  // namespace ptxkit::emulator
