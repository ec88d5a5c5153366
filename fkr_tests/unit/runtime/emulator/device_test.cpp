// Device memory, loading and launching, as used by the host: every misuse gives an error that says what to do.
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::emulator {
namespace {

using ::testing::HasSubstr;

TEST(Device, AllocationsAreExactlyAlignedAndApart) {
  Device device;
  Address last = 0;
  for (uint64_t align : {1, 2, 4, 8, 16, 256, 4096}) {
    Address address = *device.allocate(10, "a", align);
    EXPECT_EQ(address % align, 0u);
    EXPECT_EQ(address / align % 2, 1u) << "aligned to more than " << align;
    EXPECT_GE(address, last + 10 + 256);
    last = address;
  }
  EXPECT_EQ(device.live_allocations().size(), 7u);
  EXPECT_EQ(device.used_bytes(), 70u);
}

TEST(Device, FreshMemoryIsUninitialised) {
  Device device;
  Address address = *device.allocate(16, "a");
  EXPECT_EQ(*device.uninitialised_bytes(address, 16), 16u);
  std::array<std::byte, 4> bytes{};
  ASSERT_TRUE(device.write(address + 4, bytes));
  EXPECT_EQ(*device.uninitialised_bytes(address, 16), 12u);
  ASSERT_TRUE(device.forget(address + 4, 2));
  EXPECT_EQ(*device.uninitialised_bytes(address, 16), 14u);
}

TEST(Program, TheHostWritesVariablesAndReadsThem) {
  Device device;
  const auto program = Program::load_text(device, module_text(R"(
.const .align 4 .b8 factors[8];
.visible .global .align 4 .u32 sum = 5;
.visible .entry k()
{
  .reg .b32 %r<4>;
  ld.const.u32 %r0, [factors+4];
  ld.global.u32 %r1, [sum];
  add.u32 %r1, %r1, %r0;
  st.global.u32 [sum], %r1;
  ret;
}
)"),
                                          "variables.ptx");
  ASSERT_TRUE(program) << program.error().message();
  const std::array<uint32_t, 2> factors{1, 30};
  std::array<uint32_t, 2> back{};
  uint32_t sum = 0;
  ASSERT_TRUE(program->write("factors", std::as_bytes(std::span(factors))));
  ASSERT_TRUE(program->read("factors", std::as_writable_bytes(std::span(back))));
  EXPECT_EQ(back, factors);
  ASSERT_TRUE(launch(*program, "k", {}, {}));
  ASSERT_TRUE(program->read("sum", std::as_writable_bytes(std::span(&sum, 1))));
  EXPECT_EQ(sum, 35u);
  ASSERT_TRUE(program->write("sum", std::as_bytes(std::span(factors).first(1))));
  ASSERT_TRUE(program->read("sum", std::as_writable_bytes(std::span(&sum, 1))));
  EXPECT_EQ(sum, 1u);
  EXPECT_THAT(program->write("sum", std::as_bytes(std::span(factors))).error().message(),
              HasSubstr("variable 'sum' has 4 bytes, not 8"));
  EXPECT_THAT(program->read("none", std::as_writable_bytes(std::span(back))).error().message(),
              HasSubstr("no global or constant variable 'none'"));
}

TEST(Device, MisuseIsRefused) {
  Device device;
  Address address = *device.allocate(16, "buffer");
  std::array<std::byte, 17> bytes{};
  EXPECT_THAT(device.write(address, bytes).error().message(), HasSubstr("leaves the allocation of 16 bytes"));
  EXPECT_THAT(device.read(address + 8, std::span(bytes).first(9)).error().message(), HasSubstr("'buffer' + 8"));
  EXPECT_THAT(device.read(1234, bytes).error().message(), HasSubstr("not an address of device memory"));
  EXPECT_THAT(device.release(address + 1).error().message(), HasSubstr("not the start"));
  EXPECT_THAT(device.allocate(1, "odd", 3).error().message(), HasSubstr("power of two"));
  EXPECT_THAT(device.allocate(uint64_t{1} << 60, "huge").error().message(), HasSubstr("exceeds"));
  ASSERT_TRUE(device.release(address));
  EXPECT_THAT(device.release(address).error().message(), HasSubstr("double free of 'buffer'"));
  EXPECT_THAT(device.read(address, std::span(bytes).first(1)).error().message(), HasSubstr("has been freed"));
}

TEST(Device, FreedMemoryComesBackWhenTheRestIsUsedUp) {
  Device device({.memory_bytes = 1 << 20});
  for (int i = 0; i < 50; ++i) {
    auto address = device.allocate(300000, "block");
    ASSERT_TRUE(address) << i << ": " << address.error().message();
    EXPECT_EQ(*device.uninitialised_bytes(*address, 300000), 300000u);
    ASSERT_TRUE(device.release(*address));
  }
  EXPECT_THAT(device.allocate(1 << 20, "too much").error().message(), HasSubstr("out of device memory"));
}

constexpr std::string_view kShapes = R"(
.shared .align 4 .b8 buffer[40000];
.extern .shared .align 16 .b8 dynamic[];
.visible .entry fixed(.param .u8 a, .param .u64 b, .param .align 4 .b8 c[12]) .reqntid 64, 2, 1 { ret; }
.visible .entry bounded() .maxntid 128 { .reg .b32 %r<2>; ld.shared.u8 %r0, [buffer]; ret; }
)";

TEST(Launch, EntriesDescribeThemselves) {
  Device device;
  auto program = Program::load_text(device, module_text(kShapes), "shapes.ptx");
  ASSERT_TRUE(program) << program.error().message();
  auto entry = program->entry("fixed");
  ASSERT_TRUE(entry);
  ASSERT_EQ(entry->parameters.size(), 3u);
  EXPECT_EQ(entry->parameters[1].offset_bytes, 8u);
  EXPECT_EQ(entry->parameters[2].offset_bytes, 16u);
  EXPECT_EQ(entry->parameters[2].size_bytes, 12u);
  EXPECT_EQ(entry->parameter_bytes, 28u);
  EXPECT_EQ(entry->required_block, (std::array<uint32_t, 3>{64, 2, 1}));
  EXPECT_EQ(entry->static_shared_bytes, 0u);
  EXPECT_EQ(program->entry("bounded")->static_shared_bytes, 40000u);
  EXPECT_THAT(program->entry("other").error().message(), HasSubstr("its entries are fixed, bounded"));
}

TEST(Launch, MisuseIsRefused) {
  Device device;
  auto program = Program::load_text(device, module_text(kShapes), "shapes.ptx");
  ASSERT_TRUE(program);
  auto says = [&](std::string_view entry, const LaunchShape& shape, const std::vector<Argument>& arguments) {
    auto outcome = launch(*program, entry, shape, arguments);
    return outcome ? std::string() : outcome.error().message();
  };
  const std::vector<Argument> good{Argument::of(uint8_t{1}), Argument::of(uint64_t{2}),
                                   Argument::of(std::array<int, 3>{})};
  EXPECT_EQ(says("fixed", {.block = {64, 2}}, good), "");
  EXPECT_THAT(says("fixed", {.block = {128}}, good), HasSubstr("is not the 64 x 2 x 1 that .reqntid demands"));
  EXPECT_THAT(says("fixed", {.block = {64, 2}}, {}), HasSubstr("0 arguments, expected 3"));
  EXPECT_THAT(says("fixed", {.block = {64, 2}}, {Argument::of(1), good[1], good[2]}),
              HasSubstr("argument 0 has 4 bytes, parameter 'a' has 1"));
  EXPECT_THAT(says("bounded", {.block = {256}}, {}), HasSubstr("larger than the 128 x 1 x 1 of .maxntid"));
  EXPECT_THAT(says("bounded", {.block = {0}}, {}), HasSubstr("not within 1 to 1024"));
  EXPECT_THAT(says("bounded", {.grid = {1, 70000}, .block = {32}}, {}), HasSubstr("grid 1 x 70000 x 1"));
  EXPECT_THAT(says("bounded", {.block = {32}, .dynamic_shared_bytes = 200000}, {}),
              HasSubstr("exceed the device's 232448"));
  EXPECT_THAT(says("nothing", {}, {}), HasSubstr("no entry 'nothing'"));
  const std::array<std::byte, 3> three{};
  EXPECT_THAT(launch_raw(*program, "fixed", {.block = {64, 2}}, three).error().message(),
              HasSubstr("3 bytes of parameters, expected 28"));
}

// An instruction that cannot be emulated is a fault when it is executed, and none otherwise.
TEST(Load, WhatCannotRunIsNamedWhenItIsReached) {
  const std::string body =
      "  ld.global.u32 %r1, [%rd1];\n  setp.eq.u32 %p1, %r1, 1;\n"
      "  @%p1 call foo;\n";
  const std::string text = entry_text(body, ".extern .func foo();\n");
  Ran spared = run_kernel(text, {}, 4, {0});
  EXPECT_TRUE(spared.outcome.ok()) << render(spared.outcome, "test.ptx");
  Ran reached = run_kernel(text, {}, 4, {1});
  ASSERT_EQ(reached.outcome.faults.size(), 1u);
  EXPECT_EQ(reached.outcome.faults[0].kind, FaultKind::unsupported);
  EXPECT_THAT(reached.outcome.faults[0].message, HasSubstr("cannot run 'call': 'foo' has no body"));
  EXPECT_THAT(reached.outcome.faults[0].site.text, HasSubstr("@%p1 call foo"));
}

TEST(Load, OtherReasons) {
  Device device({.sm = 80});
  EXPECT_THAT(Program::load_text(device, module_text(""), "new.ptx").error().message(),
              HasSubstr("for sm_90, the emulated device is sm_80"));
  Device current;
  EXPECT_THAT(Program::load_text(current, module_text(".extern .global .b32 x;\n"), "extern.ptx").error().message(),
              HasSubstr("'x' is external"));
  EXPECT_THAT(Program::load_text(current, "nonsense", "bad.ptx").error().message(), HasSubstr("bad.ptx:1:"));
  EXPECT_THAT(parse_checks("bounds,rases").error().message(), HasSubstr("unknown check 'rases'"));
  EXPECT_EQ(*parse_checks("bounds,races"), uint32_t{kCheckBounds | kCheckRaces});
}

TEST(Load, VariablesAreFoundByName) {
  Device device;
  auto program = Program::load_text(device, module_text(".visible .global .align 4 .u32 counter[3] = {7};\n"), "v.ptx");
  ASSERT_TRUE(program);
  auto variable = program->global("counter");
  ASSERT_TRUE(variable);
  EXPECT_EQ(variable->size_bytes, 12u);
  std::array<uint32_t, 3> values{};
  ASSERT_TRUE(device.read(variable->address, std::as_writable_bytes(std::span(values))));
  EXPECT_EQ(values, (std::array<uint32_t, 3>{7, 0, 0}));
  EXPECT_FALSE(program->global("nothing"));
}

}  // namespace
}  // namespace ptxkit::emulator
