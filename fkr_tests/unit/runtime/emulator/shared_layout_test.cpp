// The places of shared variables, and the bounds check by what an address is derived from. The addresses are those in
// the machine code that ptxas 13.0 makes of the same text; fkr_tests/ptxas/shared_layout.py (FKR: falsification kernel
// regression) compares many more.
#include <bit>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"

namespace ptxkit::emulator {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Stores the addresses of `names`, one in each word.
std::string give_addresses(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += fmt::format("  mov.u32 %r1, {};\n  st.global.u32 [%rd0+{}], %r1;\n", names[i], 4 * i);
  return text;
}

std::string text_for(std::string text, std::string_view target) {
  text.replace(text.find("sm_90"), 5, target);
  text.replace(text.find("8.3"), 3, "9.0");
  return text;
}

TEST(SharedLayout, IsThatOfPtxasForEveryTarget) {
  const std::string before =
      ".shared .align 4 .b8 zz[20];\n.shared .align 16 .b8 aa[100];\n.visible .shared .align 2 .b8 mm[6];\n"
      ".shared .align 8 .b8 unnamed[64];\n.extern .shared .align 32 .b8 dynamic[];\n";
  const std::string own = "  .shared .align 1 .b8 in1[3];\n  .shared .align 64 .b8 in2[10];\n";
  const std::string text = entry_text(own + give_addresses({"mm", "in1", "in2", "zz", "aa", "dynamic"}), before);
  for (const auto& [target, base] : std::vector<std::pair<std::string_view, uint32_t>>{{"sm_75", 0},
                                                                                       {"sm_80", 0},
                                                                                       {"sm_86", 0},
                                                                                       {"sm_89", 0},
                                                                                       {"sm_90", 1024},
                                                                                       {"sm_90a", 1024},
                                                                                       {"sm_100", 1024},
                                                                                       {"sm_120", 1024}}) {
    const std::vector<uint32_t> expected{base, base + 6, base + 64, base + 76, base + 96, base + 224};
    for (const uint32_t checks : {uint32_t{kCheckNone}, uint32_t{kCheckAll}}) {
      const Ran ran = run_kernel(text_for(text, target), {.dynamic_shared_bytes = 64}, 6, {},
                                 {.checks = checks, .max_steps = 1000});
      EXPECT_THAT(ran.out, ElementsAreArray(expected)) << target;
    }
  }
}

// Total, dynamic and aggregate size, as measured on an H200 (driver 580.159.04). device_tests.DeviceLayout compares 66
// kernels.
// kernels.
TEST(SharedLayout, SizesAreThoseOfAnH200) {
  struct Case {
    std::string before;
    uint32_t dynamic_bytes;
    std::vector<uint32_t> expected;
  };
  for (const auto& [before, dynamic_bytes, expected] :
       {Case{".weak .shared .align 1 .b8 v0[25];\n.weak .shared .align 32 .b8 v1[192];\n", 0, {256, 0, 1248}},
        Case{".extern .shared .align 256 .b8 v1[];\n.shared .align 1 .b8 v0[102];\n", 34, {384, 34, 1314}},
        Case{"", 1000, {1024, 1000, 2024}}}) {
    const std::string uses = before.empty() ? "" : "  mov.u32 %r1, v0;\n  mov.u32 %r1, v1;\n";
    const Ran ran = run_kernel(
        entry_text(uses + give_addresses({"%total_smem_size", "%dynamic_smem_size", "%aggr_smem_size"}), before),
        {.dynamic_shared_bytes = dynamic_bytes}, 3);
    EXPECT_THAT(ran.out, ElementsAreArray(expected)) << before;
  }
}

TEST(SharedLayout, DynamicMemoryIsAlignedTo16AtLeast) {
  for (const auto& [align, expected] : std::vector<std::pair<unsigned, uint32_t>>{
           {1, 32}, {4, 32}, {16, 32}, {32, 32}, {128, 128}, {1024, 1024}, {4096, 4096}}) {
    const std::string before =
        fmt::format(".shared .align 4 .b8 a[20];\n.extern .shared .align {} .b8 dynamic[];\n", align);
    const Ran ran = run_kernel(entry_text(give_addresses({"a", "dynamic"}), before), {.dynamic_shared_bytes = 64}, 2);
    EXPECT_THAT(ran.out, ElementsAre(1024, 1024 + expected)) << align;
  }
  // Without a static array it begins after the bytes that the system reserves; two arrays have separate places.
  const std::string alone = ".extern .shared .align 4 .b8 dynamic[];\n";
  EXPECT_THAT(run_kernel(entry_text(give_addresses({"dynamic"}), alone), {.dynamic_shared_bytes = 64}, 1).out,
              ElementsAre(1024));
  const std::string two = ".shared .align 4 .b8 a[21];\n" + alone + ".extern .shared .align 64 .b8 second[];\n";
  EXPECT_THAT(
      run_kernel(entry_text(give_addresses({"a", "dynamic", "second"}), two), {.dynamic_shared_bytes = 64}, 3).out,
      ElementsAre(1024, 1024 + 32, 1024 + 64));
  // Variables that a body declares but does not name follow the others.
  const std::string idle = "  .shared .align 8 .b8 idle[33];\n" + give_addresses({"a", "dynamic"});
  const Ran ran =
      run_kernel(entry_text(idle, ".shared .align 4 .b8 a[21];\n" + alone), {.dynamic_shared_bytes = 64}, 2);
  EXPECT_THAT(ran.out, ElementsAre(1024, 1024 + 32));
}

// ptxas copies a function into each entry that reaches it.
TEST(SharedLayout, EachEntryHasItsOwn) {
  const std::string text = module_text(R"(
.shared .align 4 .b8 ww[20];
.shared .align 4 .b8 other[100];
.shared .align 4 .b8 third[40];
.func f(.param .b64 p)
{
  .reg .b32 %r<2>;
  .reg .b64 %d<2>;
  .shared .align 4 .b8 inside[12];
  ld.param.b64 %d1, [p];
  mov.u32 %r1, inside;
  st.global.u32 [%d1], %r1;
  mov.u32 %r1, ww;
  st.global.u32 [%d1+4], %r1;
  ret;
}
.visible .entry k0(.param .u64 p)
{
  .reg .b32 %r<2>;
  .reg .b64 %d<2>;
  .param .b64 q;
  ld.param.u64 %d1, [p];
  mov.u32 %r1, other;
  st.global.u32 [%d1+8], %r1;
  st.param.b64 [q], %d1;
  call f, (q);
  ret;
}
.visible .entry k1(.param .u64 p)
{
  .reg .b32 %r<2>;
  .reg .b64 %d<2>;
  .param .b64 q;
  .shared .align 4 .b8 own[17];
  ld.param.u64 %d1, [p];
  mov.u32 %r1, own;
  st.global.u32 [%d1+8], %r1;
  mov.u32 %r1, third;
  st.global.u32 [%d1+12], %r1;
  st.param.b64 [q], %d1;
  call f, (q);
  ret;
}
)");
  Device device;
  const auto program = Program::load_text(device, text, "test.ptx");
  ASSERT_TRUE(program) << program.error().message();
  const Address out = *device.allocate(16, "out");
  const auto addresses = [&](std::string_view entry) {
    std::vector<uint32_t> words(4);
    EXPECT_TRUE(device.fill(out, std::byte{0}, 16));
    EXPECT_TRUE(launch(*program, entry, {}, std::vector{Argument::of(out)}));
    EXPECT_TRUE(device.read(out, std::as_writable_bytes(std::span(words))));
    return words;
  };
  EXPECT_THAT(addresses("k0"), ElementsAre(1024 + 120, 1024, 1024 + 20, 0));
  EXPECT_THAT(addresses("k1"), ElementsAre(1024 + 80, 1024 + 20, 1024, 1024 + 40));
}

// The rank lies above the offset, also in a CTA's own addresses: clearing it gives an address of the first CTA.
TEST(SharedLayout, AddressesOfAClusterHoldTheRank) {
  const std::string body =
      "  mov.u32 %r1, word;\n  mov.u32 %r2, %cluster_ctarank;\n  mul.wide.u32 %rd4, %r2, 16;\n  add.u64 %rd4, %rd0, "
      "%rd4;\n"
      "  st.global.u32 [%rd4], %r1;\n  add.u32 %r3, %r2, 7;\n  st.shared.u32 [word], %r3;\n"
      "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n"
      "  and.b32 %r4, %r1, 0xfeffffff;\n  ld.shared::cluster.u32 %r5, [%r4];\n  st.global.u32 [%rd4+4], %r5;\n"
      "  mapa.shared::cluster.u32 %r6, %r1, 1;\n  st.global.u32 [%rd4+8], %r6;\n"
      "  getctarank.shared::cluster.u32 %r7, %r6;\n  st.global.u32 [%rd4+12], %r7;\n"
      "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n";
  const Ran ran = run_kernel(entry_text(body, ".shared .align 4 .b32 word;\n"), {.grid = {2}, .cluster = {2}}, 8);
  EXPECT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  EXPECT_THAT(ran.out, ElementsAre(0x400, 7, 0x1000400, 1, 0x1000400, 7, 0x1000400, 1));
}

const std::string kTwo =
    ".shared .align 4 .b32 first[8];\n.shared .align 4 .b32 second[8];\n.shared .align 8 .b64 saved;\n";

// `body` with the arrays of kTwo, which are adjacent. All are named, because others have no place.
Ran run_two(const std::string& body, std::string_view before = kTwo) {
  const std::string named =
      before.starts_with(kTwo) ? "  mov.u32 %r31, first;\n  mov.u32 %r31, second;\n  mov.u32 %r31, saved;\n" : "";
  return run_kernel(entry_text(named + body, before), {.dynamic_shared_bytes = 64}, 64, std::vector<uint32_t>(64, 8));
}

TEST(SharedLayout, AnOverrunIntoTheNextArrayIsFound) {
  // Accesses a word of `first` by an index from memory, which is 8; and the same in other ways.
  const std::string index = "  ld.global.u32 %r2, [%rd1];\n  shl.b32 %r2, %r2, 2;\n";
  const std::vector<std::pair<std::string, std::string>> overruns{
      {"by its symbol", "  st.shared.u32 [first+32], 1;\n"},
      {"by a register", index + "  mov.u32 %r1, first;\n  add.u32 %r1, %r1, %r2;\n  st.shared.u32 [%r1], 1;\n"},
      {"by a product",
       "  ld.global.u32 %r2, [%rd1];\n  mov.u32 %r1, first;\n  mad.lo.u32 %r1, %r2, 4, %r1;\n"
       "  atom.shared.add.u32 %r3, [%r1], 1;\n"},
      {"by a generic address", index +
                                   "  cvt.u64.u32 %rd5, %r2;\n  mov.u64 %rd4, first;\n  cvta.shared.u64 %rd4, %rd4;\n"
                                   "  add.u64 %rd4, %rd4, %rd5;\n  st.u32 [%rd4], 1;\n"},
      {"in a loop",
       "  mov.u32 %r1, first;\n  mov.u32 %r2, 0;\nn:\n  st.shared.u32 [%r1], %r2;\n  add.u32 %r1, %r1, 4;\n"
       "  add.u32 %r2, %r2, 1;\n  setp.le.u32 %p1, %r2, 8;\n  @%p1 bra n;\n"},
      {"before its begin", "  mov.u32 %r1, second;\n  st.shared.u32 [%r1+-4], 1;\n"},
      {"of a guarded address",
       "  mov.u32 %r1, first;\n  setp.eq.u32 %p1, %r0, 0;\n  @%p1 add.u32 %r1, %r1, 32;\n"
       "  st.shared.u32 [%r1], 1;\n"},
      {"by a copy", "  cp.async.ca.shared.global [first+32], [%rd1], 4;\n  cp.async.wait_all;\n"},
      {"by an mbarrier", "  mbarrier.init.shared.b64 [second+32], 1;\n"},
      {"into dynamic memory", "  mov.u32 %r1, dynamic;\n  st.shared.u32 [%r1+-16], 1;\n"},
  };
  for (const auto& [how, body] : overruns) {
    const Ran ran = run_two(body, kTwo + ".extern .shared .align 16 .b8 dynamic[];\n");
    ASSERT_THAT(ran.outcome.faults, SizeIs(1)) << how;
    EXPECT_EQ(ran.outcome.faults[0].kind, FaultKind::out_of_bounds) << how;
    EXPECT_THAT(ran.outcome.faults[0].message, HasSubstr("derived")) << how;
  }
  const Ran ran = run_two("  st.shared.u32 [second+-4], 1;\n");
  EXPECT_THAT(
      render(ran.outcome, "test.ptx"),
      AllOf(HasSubstr("4-byte store at 0x41c of .shared is in 'first', but its address is derived from 'second'"),
            HasSubstr("object  'second' of 32 bytes, offset -4")));
}

// The address is passed to a function; a choice of two arrays may reach both, and nothing else.
TEST(SharedLayout, AnOverrunIsFoundBehindCallsAndChoices) {
  const std::string put =
      ".func put(.param .b32 at)\n{\n  .reg .b32 %r<2>;\n  ld.param.b32 %r1, [at];\n  st.shared.u32 [%r1+28], 1;\n  "
      "ret;\n}\n";
  const auto call = [](std::string_view address) {
    return fmt::format("  .param .b32 q;\n  mov.u32 %r1, {};\n  st.param.b32 [q], %r1;\n  call put, (q);\n", address);
  };
  EXPECT_TRUE(run_two(call("first"), kTwo + put).outcome.ok());
  EXPECT_FALSE(run_two(call("first+4"), kTwo + put).outcome.ok());
  const std::string choice =
      "  mov.u32 %r1, first;\n  mov.u32 %r2, second;\n  setp.eq.u32 %p1, %r0, 1;\n  selp.u32 %r3, "
      "%r1, %r2, %p1;\n";
  // Belongs to `first`, and cannot be told apart
  EXPECT_TRUE(run_two(choice + "  st.shared.u32 [%r3+-4], 1;\n").outcome.ok());
  EXPECT_FALSE(run_two(choice + "  st.shared.u32 [%r3+32], 1;\n").outcome.ok());
}

TEST(SharedLayout, CorrectCodeIsLeftAlone) {
  const std::vector<std::pair<std::string, std::string>> bodies{
      {"walks one array",
       "  mov.u32 %r1, first;\n  mov.u32 %r2, 0;\nn:\n  st.shared.u32 [%r1], %r2;\n"
       "  add.u32 %r1, %r1, 4;\n  add.u32 %r2, %r2, 1;\n  setp.lt.u32 %p1, %r2, 8;\n  @%p1 bra n;\n"},
      {"goes by the distance",
       "  mov.u32 %r1, first;\n  mov.u32 %r2, second;\n  sub.u32 %r3, %r2, %r1;\n"
       "  add.u32 %r4, %r1, %r3;\n  st.shared.u32 [%r4], 1;\n"},
      {"one register for both",
       "  mov.u32 %r1, first;\n  st.shared.u32 [%r1], 1;\n  mov.u32 %r1, second;\n"
       "  st.shared.u32 [%r1], 1;\n"},
      {"an address from memory",
       "  mov.u64 %rd4, second;\n  st.shared.u64 [saved], %rd4;\n"
       "  ld.shared.u64 %rd5, [saved];\n  st.shared.u32 [%rd5], 1;\n"},
      {"rounded to what it needs", "  mov.u32 %r1, first+4;\n  and.b32 %r1, %r1, -8;\n  st.shared.u32 [%r1], 1;\n"},
      {"swaps two buffers",
       "  mov.u32 %r1, first;\n  mov.u32 %r2, second;\n  mov.u32 %r3, 0;\nn:\n"
       "  st.shared.u32 [%r1], %r3;\n  xor.b32 %r1, %r1, %r2;\n  xor.b32 %r2, %r1, %r2;\n"
       "  xor.b32 %r1, %r1, %r2;\n  add.u32 %r3, %r3, 1;\n  setp.lt.u32 %p1, %r3, 4;\n  @%p1 bra n;\n"},
  };
  for (const auto& [how, body] : bodies) {
    const Ran ran = run_two(body);
    EXPECT_TRUE(ran.outcome.ok()) << how << "\n" << render(ran.outcome, "test.ptx");
    EXPECT_THAT(ran.outcome.notes, SizeIs(0)) << how;
  }
}

// An array of words that happens to be aligned for a store of 16 bytes: correct on the device, but not declared.
TEST(SharedLayout, AnAlignmentByTheLayoutIsANote) {
  const std::string before = ".shared .align {} .b32 first[8];\n.extern .shared .align 4 .b8 dynamic[];\n";
  const std::string body =
      "  st.shared.v4.u32 [first+16], {%r0, %r0, %r0, %r0};\n  mov.u32 %r1, dynamic;\n"
      "  st.shared.v4.u32 [%r1], {%r0, %r0, %r0, %r0};\n"
      "  ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [first+16];\n";  // the same object again
  const auto run = [&](unsigned align, std::string_view more = "") {
    return run_two(body, std::string(more) + fmt::format(fmt::runtime(before), align));
  };
  const Ran ran = run(4);
  EXPECT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  ASSERT_THAT(ran.outcome.notes, SizeIs(1));
  EXPECT_EQ(ran.outcome.notes[0].kind, FaultKind::layout_alignment);
  EXPECT_EQ(ran.outcome.notes[0].object, "first");
  EXPECT_THAT(render(ran.outcome, "test.ptx"),
              HasSubstr("note: alignment holds only by the layout [F051]: 16-byte store at 0x410 of .shared needs a "
                        "multiple of 16; its object declares 4: declare it with alignas(16)"));
  EXPECT_THAT(run(16).outcome.notes, SizeIs(0));
  // With another variable before it the alignment no longer holds, on the device too.
  const std::string shifted = "  .shared .align 4 .b32 word;\n  st.shared.u32 [word], 1;\n" + body;
  const Ran bad = run_two(shifted, fmt::format(fmt::runtime(before), 4));
  ASSERT_THAT(bad.outcome.faults, SizeIs(1));
  EXPECT_EQ(bad.outcome.faults[0].kind, FaultKind::misaligned);
  // The check is off.
  const Ran none = run_kernel(entry_text(body, fmt::format(fmt::runtime(before), 4)), {.dynamic_shared_bytes = 64}, 64,
                              std::vector<uint32_t>(64), {.checks = kCheckAll & ~kCheckAlignment, .max_steps = 1000});
  EXPECT_THAT(none.outcome.notes, SizeIs(0));
}

uint16_t half(int value) {
  if (value == 0) return 0;
  const int size = value < 0 ? -value : value, exponent = std::bit_width(static_cast<unsigned>(size)) - 1;
  return static_cast<uint16_t>((value < 0 ? 0x8000 : 0) | (exponent + 15) << 10 | (size << (10 - exponent) & 0x3ff));
}

// A tile that a kernel swizzles itself, in dynamic shared memory, as matrix multiplications do: chunk c of row r is at
// chunk c ^ r % 8 from the tile's start. wgmma uses the address, so the start must be a multiple of 1,024.
TEST(SharedLayout, SwizzledTilesInDynamicMemoryAreRead) {
  std::string body =
      "  mov.u32 %r10, tiles;\n  mov.u32 %r1, %r0;\n"
      // 64 rows of A and 8 of B, 64 halves each: 576 chunks of 16 bytes.
      "fill:\n  shr.u32 %r2, %r1, 3;\n  and.b32 %r3, %r1, 7;\n  and.b32 %r4, %r2, 7;\n  xor.b32 %r3, %r3, %r4;\n"
      "  shl.b32 %r2, %r2, 7;\n  shl.b32 %r3, %r3, 4;\n  add.u32 %r2, %r2, %r3;\n  add.u32 %r2, %r2, %r10;\n"
      "  mul.wide.u32 %rd4, %r1, 16;\n  add.u64 %rd4, %rd1, %rd4;\n"
      "  ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd4];\n  st.shared.v4.u32 [%r2], {%r4, %r5, %r6, %r7};\n"
      "  add.u32 %r1, %r1, 128;\n  setp.lt.u32 %p1, %r1, 576;\n  @%p1 bra fill;\n"
      "  fence.proxy.async;\n  bar.sync 0;\n"
      // Descriptors: begin / 16, 1,024 bytes between groups of eight rows, swizzle of 128 bytes.
      "  shr.u32 %r11, %r10, 4;\n  cvt.u64.u32 %rd5, %r11;\n  or.b64 %rd5, %rd5, 0x4000004000010000;\n"
      "  add.u64 %rd6, %rd5, 512;\n  wgmma.fence.sync.aligned;\n";
  for (unsigned k = 0; k < 4; ++k)
    body += fmt::format(
        "  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f0, %f1, %f2, %f3}}, %rd5, %rd6, {}, 1, 1, 0, 0;\n"
        "  add.u64 %rd5, %rd5, 2;\n  add.u64 %rd6, %rd6, 2;\n",
        k ? "1" : "0");
  body +=
      "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n  mul.wide.u32 %rd7, %r0, 16;\n"
      "  add.u64 %rd7, %rd0, %rd7;\n  st.global.v4.f32 [%rd7], {%f0, %f1, %f2, %f3};\n";
  std::string text = entry_text(body, ".extern .shared .align 16 .b8 tiles[];\n");
  text.replace(text.find("sm_90"), 5, "sm_90a");

  const auto a = [](unsigned row, unsigned k) { return static_cast<int>(row * 7 + k * 3) % 9 - 4; };
  const auto b = [](unsigned column, unsigned k) { return static_cast<int>(column * 5 + k) % 7 - 3; };
  std::vector<uint32_t> in;
  for (unsigned row = 0; row < 72; ++row)
    for (unsigned k = 0; k < 64; k += 2) {
      const auto value = [&](unsigned at) { return half(row < 64 ? a(row, at) : b(row - 64, at)); };
      in.push_back(value(k) | uint32_t{value(k + 1)} << 16);
    }
  const Ran ran = run_kernel(text, {.block = {128}, .dynamic_shared_bytes = 9216}, 512, in, {.max_steps = 100'000});
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  for (unsigned thread = 0; thread < 128; ++thread)
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = thread / 32 * 16 + thread % 32 / 4 + i / 2 * 8, column = thread % 4 * 2 + i % 2;
      int sum = 0;
      for (unsigned k = 0; k < 64; ++k) sum += a(row, k) * b(column, k);
      EXPECT_EQ(std::bit_cast<float>(ran.out[thread * 4 + i]), static_cast<float>(sum)) << row << " " << column;
    }
}

}  // namespace
}  // namespace ptxkit::emulator
