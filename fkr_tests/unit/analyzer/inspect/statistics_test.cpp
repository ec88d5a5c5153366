// The statistics of functions.
#include "analyzer/inspect/statistics.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "fkr_tests/unit/analyzer/inspect/module.hpp"

namespace ptxkit::inspect {
namespace {

using ::testing::HasSubstr;

constexpr const char* kKernel = R"(
.const .align 4 .b8 table[64];
.const .align 4 .b8 not_named[4096];
.extern .shared .align 16 .b8 dynamic[];
.func helper() { ret; }
.visible .entry k(.param .u64 data, .param .align 16 .b8 block[24])
{
  .reg .pred %p<4>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<9>;
  .local .align 4 .b8 frame[12];
  .shared .align 4 .b8 tile[128];
  ld.param.u64 %rd1, [data];
  ld.param.v2.u32 {%r1, %r2}, [block];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r5, dynamic;
OUTER:
  mov.u32 %r3, 0;
INNER:
  ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%rd2];
  ld.const.u32 %r10, [table];
  st.shared.u16 [tile], %r10;
  bar.sync 0;
  bar.warp.sync -1;
  barrier.cta.arrive 1, 64;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p1, %r3, %r1;
  @%p1 bra INNER;
  atom.shared.add.u32 %r11, [%r5], 1;
  st.u64 [%rd1], %rd2;
  st.local.u8 [frame], %r11;
  cp.async.cg.shared.global [%r5], [%rd2], 16;
  setp.lt.u32 %p2, %r11, %r2;
  @%p2 bra OUTER;
  call helper, ();
  ret;
}
)";

TEST(Statistics, OfAKernel) {
  const auto result = parsed(kKernel);
  const auto all = statistics_of(result.module);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "helper");
  EXPECT_FALSE(all[0].is_entry);
  const FunctionStatistics& kernel = all[1];
  EXPECT_TRUE(kernel.is_entry);
  EXPECT_EQ(kernel.instruction_count, 22u);
  EXPECT_EQ(kernel.loop_count, 2u);
  EXPECT_EQ(kernel.deepest_loop, 2u);
  EXPECT_FALSE(kernel.is_irreducible);
  EXPECT_EQ(kernel.branch_count, 2u);
  EXPECT_EQ(kernel.call_count, 1u);
  EXPECT_EQ(kernel.cta_barrier_count, 1u) << "arrive is no barrier that a thread waits at";
  EXPECT_EQ(kernel.warp_barrier_count, 1u);
  EXPECT_EQ(kernel.parameter_bytes, 40u) << "8, a gap of 8, 24";
  EXPECT_EQ(kernel.shared_bytes, 128u);
  EXPECT_TRUE(kernel.uses_dynamic_shared);
  EXPECT_EQ(kernel.local_bytes, 12u);
  EXPECT_EQ(kernel.constant_bytes, 64u) << "only what the kernel names";
  ASSERT_EQ(kernel.registers.size(), 3u);
  EXPECT_EQ(kernel.registers[0].type, ptx::Type::b32);
  EXPECT_EQ(kernel.registers[0].declared_count, 20u);
  EXPECT_EQ(kernel.registers[0].used_count, 10u);
  EXPECT_EQ(kernel.mix.at("ld.global"), 1u);
  EXPECT_EQ(kernel.mix.at("bar.sync"), 1u);
  EXPECT_EQ(kernel.mix.at("setp.lt"), 2u);
}

TEST(Statistics, AccessesBySpaceKindAndBytes) {
  const auto result = parsed(kKernel);
  std::vector<std::string> found;
  const auto json = nlohmann::json::parse(statistics_json(result.module));
  for (const auto& access : json["functions"][1]["accesses"]) {
    found.push_back(access["space"].get<std::string>() + " " + access["kind"].get<std::string>() + " " +
                    std::to_string(access["bytes"].get<int>()) + " x" + std::to_string(access["count"].get<int>()));
  }
  EXPECT_THAT(found, ::testing::ElementsAre("generic store 8 x1", "const load 4 x1", "global load 16 x2",
                                            "local store 1 x1", "param load 8 x2", "shared store 2 x1",
                                            "shared store 16 x1", "shared atomic 4 x1"));
}

TEST(Statistics, AnIrreducibleLoopIsNamed) {
  const auto result = parsed(R"(
.entry k(.param .u32 n) {
  .reg .pred %p<3>; .reg .b32 %r<3>;
  ld.param.u32 %r1, [n];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra SECOND;
FIRST: add.u32 %r1, %r1, 1;
SECOND: add.u32 %r1, %r1, 2;
  setp.lt.u32 %p2, %r1, 9;
  @%p2 bra FIRST;
  ret;
})");
  EXPECT_THAT(statistics_text(result.module), HasSubstr("control flow irreducible"));
}

TEST(Statistics, KindsLeaveTypesAndWidthsOut) {
  EXPECT_EQ(kind_of("ld.global.v2.u32"), "ld.global");
  EXPECT_EQ(kind_of("cvt.rn.f32.s32"), "cvt.rn");
  EXPECT_EQ(kind_of("ret"), "ret");
  EXPECT_EQ(kind_of("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"), "mma.sync.aligned.m16n8k16.row.col");
}

}  // namespace
}  // namespace ptxkit::inspect
