// The limits of a device: the heap of malloc and the buffer of printf; and a deadline that stops every kernel.
#include <atomic>
#include <chrono>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "runtime/emulator/core/state.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::emulator {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHeap =
    ".extern .func (.param .b64 r) malloc(.param .b64 s);\n.extern .func free(.param .b64 p);\n";
constexpr const char* kPrint =
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    ".global .align 1 .b8 text[8] = {108, 105, 110, 101, 37, 100, 10, 0};\n";  // "line%d\n"

// %rd5 = malloc(%rd4)
constexpr const char* kAllocate =
    "  st.param.b64 [size], %rd4;\n  call (block), malloc, (size);\n  ld.param.b64 %rd5, [block];\n";
constexpr const char* kParameters = "  .param .b64 block;\n  .param .b64 size;\n";

// Allocates blocks of `size` until none is left, and gives their number.
Ran take_all(uint64_t size, uint64_t heap_bytes, uint32_t checks = kCheckStandard) {
  const std::string body = fmt::format(
      "{}  mov.u32 %r1, 0;\n  mov.u64 %rd4, {};\na:\n{}  setp.eq.u64 %p1, %rd5, 0;\n  @%p1 bra e;\n"
      "  st.u8 [%rd5], %r1;\n  add.u32 %r1, %r1, 1;\n  bra a;\ne:\n  st.global.u32 [%rd0], %r1;\n",
      kParameters, size, kAllocate);
  return run_kernel(entry_text(body, kHeap), {.block = {1}}, 1, {}, {.checks = checks, .heap_bytes = heap_bytes});
}

TEST(Limits, MallocGivesNoMoreThanTheHeapHas) {
  EXPECT_EQ(LaunchOptions{}.heap_bytes, 8u << 20);
  for (const uint32_t checks : {uint32_t{kCheckNone}, uint32_t{kCheckStandard}}) {
    EXPECT_EQ(take_all(1u << 20, 8u << 20, checks).out[0], 8u);
    EXPECT_EQ(take_all(100, 1u << 20, checks).out[0], (1u << 20) / 112);  // rounded up to 16
    EXPECT_EQ(take_all((8u << 20) + 1, 8u << 20, checks).out[0], 0u);
    EXPECT_EQ(take_all(~uint64_t{0}, 8u << 20, checks).out[0], 0u);
    EXPECT_EQ(take_all(~uint64_t{0}, ~uint64_t{0}, checks).out[0], 0u);
    EXPECT_EQ(take_all(16, 0, checks).out[0], 0u);
  }
}

// Freed memory can be allocated again without end: neither addresses nor the host's memory run out.
TEST(Limits, FreedMemoryComesBack) {
  const std::string body = fmt::format(
      "{}  mov.u32 %r1, 0;\n  mov.u32 %r2, 0;\na:\n  and.b32 %r3, %r1, 0xfff;\n  add.u32 %r3, %r3, 1048576;\n"
      "  cvt.u64.u32 %rd4, %r3;\n{}  setp.eq.u64 %p1, %rd5, 0;\n  @%p1 add.u32 %r2, %r2, 1;\n"
      "  @!%p1 st.u32 [%rd5+1048572], %r1;\n  call free, (block);\n  add.u32 %r1, %r1, 1;\n"
      "  setp.lt.u32 %p2, %r1, 3000;\n  @%p2 bra a;\n  st.global.u32 [%rd0], %r2;\n",
      kParameters, kAllocate);
  // A device of 64 MiB; the kernel allocates 3 GiB in total.
  Device device({.memory_bytes = 64u << 20});
  const auto program = Program::load_text(device, entry_text(body, kHeap), "test.ptx");
  ASSERT_TRUE(program) << program.error().message();
  const Address out = *device.allocate(4, "out"), in = *device.allocate(4, "in");
  const auto outcome = launch(*program, "k", {}, std::vector{Argument::of(out), Argument::of(in)});
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->ok()) << render(*outcome, "test.ptx");
  uint32_t refused = 1;
  ASSERT_TRUE(device.read(out, std::as_writable_bytes(std::span(&refused, 1))));
  EXPECT_EQ(refused, 0u);
}

// A reused block is fresh: accesses of earlier owners do not race with it, and it contains none of their data.
TEST(Limits, ABlockThatComesBackIsFresh) {
  const std::string body = fmt::format(
      "{}  mov.u32 %r1, 0;\na:\n  mov.u64 %rd4, 65536;\n{}  ld.u32 %r4, [%rd5];\n  st.u32 [%rd5], %r0;\n"
      "  call free, (block);\n  add.u32 %r1, %r1, 1;\n  setp.lt.u32 %p2, %r1, 100;\n  @%p2 bra a;\n"
      "  setp.eq.u32 %p1, %r4, 77;\n  @%p1 st.global.u32 [%rd0], %r1;\n",
      kParameters, kAllocate);
  const Ran ran = run_kernel(entry_text(body, kHeap), {.block = {64}}, 1, {});
  ASSERT_EQ(ran.outcome.faults.size(), 1u) << render(ran.outcome, "test.ptx");
  EXPECT_EQ(ran.outcome.faults[0].kind, FaultKind::uninitialised_branch);
}

std::string printing(uint32_t count) {
  return fmt::format(
      "  .param .b64 format;\n  .param .b64 arguments;\n  .param .b32 result;\n  .local .align 8 .b8 buffer[8];\n"
      "  mov.u32 %r1, 0;\na:\n  st.local.u32 [buffer], %r1;\n  mov.u64 %rd4, text;\n  cvta.global.u64 %rd4, %rd4;\n"
      "  mov.u64 %rd5, buffer;\n  cvta.local.u64 %rd5, %rd5;\n  st.param.b64 [format], %rd4;\n"
      "  st.param.b64 [arguments], %rd5;\n  call (result), vprintf, (format, arguments);\n  add.u32 %r1, %r1, 1;\n"
      "  setp.lt.u32 %p1, %r1, {};\n  @%p1 bra a;\n",
      count);
}

TEST(Limits, PrintfKeepsTheNewest) {
  EXPECT_EQ(LaunchOptions{}.print_fifo_bytes, 1u << 20);
  const auto print = [](uint32_t count, uint64_t fifo_bytes) {
    return run_kernel(entry_text(printing(count), kPrint), {.block = {1}}, 1, {}, {.print_fifo_bytes = fifo_bytes})
        .outcome;
  };
  const Outcome all = print(3, 21);
  EXPECT_EQ(all.output, "line0\nline1\nline2\n");
  EXPECT_EQ(all.lost_prints, 0u);
  const Outcome newest = print(12, 21);
  EXPECT_EQ(newest.output, "line9\nline10\nline11\n");
  EXPECT_EQ(newest.lost_prints, 9u);
  EXPECT_EQ(newest.lost_print_bytes, 54u);
  EXPECT_EQ(print(3, 0).output, "");
  const Outcome many = print(200'000, 1u << 20);
  EXPECT_LE(many.output.size(), 1u << 20);
  EXPECT_THAT(many.output, HasSubstr("line199999\n"));
}

// An empty text must take no memory: it has no bytes that the buffer's limit could count.
TEST(Limits, EmptyTextsAreNotKept) {
  PrintFifo printed;
  for (int i = 0; i < 1000; ++i) printed.put("", 1u << 20);
  EXPECT_TRUE(printed.calls.empty());
  printed.put("text", 1u << 20);
  EXPECT_EQ(printed.calls.size(), 1u);
}

// A width of a few digits makes gigabytes on the host.
TEST(Limits, FieldsOfPrintfAreBounded) {
  const auto print = [](const std::string& format) {
    std::string bytes;
    for (const char c : format) bytes += std::to_string(static_cast<int>(c)) + ", ";
    const std::string before = fmt::format(
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
        ".global .align 1 .b8 text[{}] = {{{}0}};\n.global .align 8 .u64 value = 7;\n",
        format.size() + 1, bytes);
    const std::string body =
        "  .param .b64 format;\n  .param .b64 arguments;\n  .param .b32 result;\n  mov.u64 %rd4, text;\n"
        "  mov.u64 %rd5, value;\n  st.param.b64 [format], %rd4;\n  st.param.b64 [arguments], %rd5;\n"
        "  call (result), vprintf, (format, arguments);\n";
    const Ran ran = run_kernel(entry_text(body, before), {.block = {1}}, 1);
    EXPECT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
    return ran.outcome.output;
  };
  EXPECT_EQ(print("%08d"), "00000007");
  EXPECT_EQ(print("%-3d|"), "7  |");
  EXPECT_EQ(print("%.3d|%+d"), "007|+0");
  EXPECT_EQ(print("%4096d"), std::string(4095, ' ') + "7");
  EXPECT_EQ(print("%2147483647d"), std::string(4095, ' ') + "7");
  EXPECT_EQ(print("%099999999d"), std::string(4095, '0') + "7");
  EXPECT_EQ(print("%.99999999d"), std::string(4095, '0') + "7");
  EXPECT_EQ(print("%.99999999f").size(), 2u + 4096u);
}

TEST(Limits, ModuleVariablesFitAGibibyte) {
  Device device;
  const std::string head = ".version 8.0\n.target sm_80\n.address_size 64\n";
  const auto program = [&](const std::string& variables) {
    return Program::load_text(device, head + variables + ".visible .entry k() { ret; }\n", "test.ptx");
  };
  const auto refused = program(".global .b8 a[1073741824];\n.global .b8 b[1];\n");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("'b' of 1 bytes does not fit: global memory for module variables"));
  EXPECT_TRUE(program(".global .b8 a[1000000];\n"));
}

// A kernel may commit groups without end, and then wait for all of them: 3.2 million groups of 32 lanes took 77 MB, and
// the wait took time that grew with the square of their number.
TEST(Limits, GroupsOfCopiesAreBounded) {
  const auto peak_bytes = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss * 1024;
  };
  const std::string body =
      "  mov.u32 %r1, 0;\n  mov.u32 %r3, small;\na:\n  cp.async.ca.shared.global [%r3], [%rd0], 4;\n"
      "  cp.async.commit_group;\n  add.u32 %r1, %r1, 1;\n  setp.ne.u32 %p1, %r1, 100000;\n  @%p1 bra a;\n"
      "  cp.async.wait_group 0;\n  ld.shared.u32 %r1, [small];\n  st.global.u32 [%rd2], %r1;\n";
  const auto text = entry_text(body, ".shared .align 16 .b8 small[16];\n");
  const auto before = peak_bytes();
  const Ran ran = run_kernel(text, {.block = {1}}, 1, {7}, {.checks = kCheckNone});
  EXPECT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  const Ran checked = run_kernel(text, {.block = {32}}, 32, {7}, {.checks = kCheckBounds | kCheckUninitialised});
  EXPECT_TRUE(checked.outcome.ok()) << render(checked.outcome, "test.ptx");
  EXPECT_LT(peak_bytes() - before, 30 << 20);
}

// What an instruction moves counts, so that a number of steps takes about the same time for every kernel.
TEST(Limits, BytesOfBulkCopiesAreSteps) {
  const std::string text = for_target(
      entry_text("  mov.u32 %r1, 0;\na:\n  st.bulk.weak.shared::cta [big], 65536, 0;\n  add.u32 %r1, %r1, 1;\n"
                 "  setp.ne.u32 %p1, %r1, 1000;\n  @%p1 bra a;\n",
                 ".shared .align 16 .b8 big[65536];\n"),
      "sm_100");
  const auto run = [&](uint64_t max_steps) {
    return run_kernel(text, {.block = {32}}, 1, {}, {.checks = kCheckNone, .max_steps = max_steps}).outcome;
  };
  const Outcome whole = run(0), part = run(100'000);
  EXPECT_TRUE(whole.ok()) << render(whole, "test.ptx");
  EXPECT_LT(whole.statistics.warp_instructions, 5000u);
  ASSERT_EQ(part.faults.size(), 1u);
  EXPECT_EQ(part.faults[0].kind, FaultKind::out_of_steps);
  EXPECT_LE(part.statistics.warp_instructions, 1024u);  // until the next look at the limits
}

// Every loop below would run for hours; each is stopped from outside, at any kind of instruction.
TEST(Limits, ADeadlineHoldsInAllThatTakesLong) {
  const std::string endless = "  add.u32 %r1, %r1, 1;\n  setp.ne.u32 %p1, %r1, 0xffffffff;\n  @%p1 bra a;\n";
  const std::string begin = "  mov.u32 %r1, 0;\n";
  std::string reductions;  // in one interval between two looks at the clock, tens of seconds
  for (int i = 0; i < 200; ++i)
    reductions += "  cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd4], [%r3], 65536;\n";
  const std::vector<std::pair<std::string, std::string>> loops{
      {"malloc and free of 64 MiB", std::string(kParameters) + begin + "a:\n  mov.u64 %rd4, 0x4000000;\n" + kAllocate +
                                        "  call free, (block);\n" + endless},
      {"malloc until there is nothing left",
       std::string(kParameters) + begin + "a:\n  mov.u64 %rd4, 24;\n" + kAllocate + endless},
      {"malloc and free of a few bytes", std::string(kParameters) + begin + "a:\n  mov.u64 %rd4, 24;\n" + kAllocate +
                                             "  call free, (block);\n" + endless},
      {"printf", printing(0xffffffff)},
      {"stores", begin + "a:\n  st.global.u32 [%rd2], %r1;\n" + endless},
      {"matrix products", "  .reg .f32 %d<8>;\n" + begin +
                              "  mov.u32 %r4, 0;\n  mov.f32 %f1, 0f00000000;\na:\n"
                              "  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%r4, %r4, "
                              "%r4, %r4}, {%r4, %r4}, "
                              "{%f1, %f1, %f1, %f1};\n" +
                              endless},
      {"bulk copies", begin + "a:\n  st.bulk.weak.shared::cta [big], 65536, 0;\n" + endless},
      {"bulk reductions", begin + "  mov.u64 %rd4, far;\n  mov.u32 %r3, big;\na:\n" + reductions + endless},
  };
  for (const auto& [name, body] : loops) {
    SCOPED_TRACE(name);
    const bool is_bulk = name.starts_with("bulk");
    std::atomic<bool> stop = false;
    std::thread clock([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      stop = true;
    });
    const auto start = std::chrono::steady_clock::now();
    std::string text =
        entry_text(body, std::string(kHeap) + kPrint +
                             (is_bulk ? ".shared .align 16 .b8 big[65536];\n.global .align 16 .b8 far[65536];\n" : ""));
    if (is_bulk) text = for_target(text, "sm_100");
    const Ran ran =
        run_kernel(text, {.block = {32}}, 64, {1},
                   {.checks = kCheckNone, .max_idle_steps = 0, .heap_bytes = uint64_t{3} << 30, .stop = &stop});
    clock.join();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    ASSERT_EQ(ran.outcome.faults.size(), 1u) << render(ran.outcome, "test.ptx");
    EXPECT_EQ(ran.outcome.faults[0].kind, FaultKind::interrupted);
    EXPECT_LT(took.count(), 5) << "a busy machine is allowed for";
  }
}

// The shadow memory of a launch takes address space. If a limit leaves none, the launch gives an error and the process
// continues.
TEST(Limits, ALaunchWithoutAddressSpaceIsAnError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes address space of its own";
#endif
  Device device({.memory_bytes = 64u << 20});
  const auto program = Program::load_text(device, entry_text("  st.global.u32 [%rd0], %r0;\n", ""), "test.ptx");
  ASSERT_TRUE(program) << program.error().message();
  const std::vector arguments{Argument::of(*device.allocate(4, "out")), Argument::of(*device.allocate(4, "in"))};
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  for (const unsigned threads : {1u, 3u}) {
    const rlimit small{pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + (1u << 20), before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &small), 0);
    const auto outcome = launch(*program, "k", {.grid = {4}}, arguments, {.threads = threads});
    ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().what, "no memory left");
  }
  EXPECT_TRUE(launch(*program, "k", {}, arguments));
}

}  // namespace
}  // namespace ptxkit::emulator
