// The example of docs/emulator.md: a kernel that adds two vectors, tested on every backend.
#include "fkr_tests/harness/harness.hpp"

namespace {

constexpr std::string_view kAddPtx = R"(
.version 8.0
.target sm_75
.address_size 64

.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 sum, .param .u32 count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [sum];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra done;
  mul.wide.u32 %rd4, %r5, 4;
  add.u64 %rd5, %rd1, %rd4;
  add.u64 %rd6, %rd2, %rd4;
  add.u64 %rd7, %rd3, %rd4;
  ld.global.u32 %r6, [%rd5];
  ld.global.u32 %r7, [%rd6];
  add.u32 %r6, %r6, %r7;
  st.global.u32 [%rd7], %r6;
done:
  ret;
}
)";

template <class Backend>
class Addition : public ptxkit::harness::KernelTest<Backend> {};
TYPED_TEST_SUITE(Addition, ptxkit::harness::Backends);

TYPED_TEST(Addition, AddsElementwise) {
  this->load(kAddPtx, "add.ptx");
  std::vector<uint32_t> a(1000), b(1000), expected(1000);
  for (uint32_t i = 0; i < 1000; ++i) {
    a[i] = i * 2654435761u;
    b[i] = ~i;
    expected[i] = a[i] + b[i];
  }
  auto device_a = this->upload("a", a), device_b = this->upload("b", b);
  auto sum = this->template allocate<uint32_t>("sum", 1000);
  this->launch("add", {.grid = {8}, .block = {128}}, device_a, device_b, sum, uint32_t{1000});
  EXPECT_EQ(this->download(sum), expected);
}

// Without the guard, threads past the end would fault. The emulator reports where and why.
using AdditionOnTheEmulator = Addition<ptxkit::harness::EmulatorBackend>;
TEST_F(AdditionOnTheEmulator, TooLargeACountIsCaught) {
  this->load(kAddPtx, "add.ptx");
  auto data = this->upload("data", std::vector<uint32_t>(1000));
  auto failed = this->try_launch("add", {.grid = {8}, .block = {128}}, data, data, data, uint32_t{1001});
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message().find("'data' of 4000 bytes, offset 4000"), std::string::npos)
      << failed.error().message();
  EXPECT_NE(failed.error().message().find("thread  (104,0,0) of block (7,0,0)"), std::string::npos)
      << failed.error().message();
}

// Arguments other than buffers: a texture by its handle and one by its name, a surface, and variables of the module.
constexpr std::string_view kImagesPtx = R"(
.version 8.0
.target sm_75
.address_size 64

.const .align 4 .u32 step = 1;
.global .align 4 .u32 runs;
.global .texref mask;

.visible .entry count() { .reg .b32 %old; .reg .b32 %step;
  ld.const.u32 %step, [step];
  atom.global.add.u32 %old, [runs], %step;
  ret;
}
.visible .entry draw(.param .u64 picture, .param .u64 canvas)
{
  .reg .b16 %low;
  .reg .b32 %x, %y, %a<4>, %b<4>;
  .reg .b64 %picture, %canvas;
  ld.param.u64 %picture, [picture];
  ld.param.u64 %canvas, [canvas];
  mov.u32 %x, %tid.x;
  mov.u32 %y, 0;
  tex.2d.v4.u32.s32 {%a0, %a1, %a2, %a3}, [%picture, {%x, %y}];
  tex.2d.v4.u32.s32 {%b0, %b1, %b2, %b3}, [mask, {%x, %y}];
  and.b32 %a0, %a0, %b0;
  cvt.u16.u32 %low, %a0;
  sust.b.1d.b8.trap [%canvas, {%x}], {%low};
  ret;
}
)";

template <class Backend>
class Images : public ptxkit::harness::KernelTest<Backend> {};
TYPED_TEST_SUITE(Images, ptxkit::harness::Backends);

TYPED_TEST(Images, AreArgumentsOrHaveNames) {
  this->load(kImagesPtx, "images.ptx");
  const auto picture = this->object("picture", "tex:4x1,u8,integer", std::vector<uint8_t>{1, 2, 3, 255});
  const auto mask = this->object("mask", "tex:4x1,u8,integer", std::vector<uint8_t>{255, 0, 1, 15});
  const auto canvas = this->object("canvas", "surf:1d,4,u8", std::vector<uint8_t>(4, 9));
  this->bind("mask", mask);
  this->launch("draw", {.block = {4}}, picture, canvas);
  EXPECT_EQ(this->template download<uint8_t>(canvas), (std::vector<uint8_t>{1, 0, 1, 15}));
  EXPECT_EQ(this->template download<uint8_t>(picture), (std::vector<uint8_t>{1, 2, 3, 255}));
}

// A module stays loaded between launches.
TYPED_TEST(Images, VariablesOfTheModuleAreKept) {
  this->load(kImagesPtx, "images.ptx");
  const auto word = [](uint8_t value) {
    return std::vector<std::byte>{std::byte{value}, std::byte{0}, std::byte{0}, std::byte{0}};
  };
  EXPECT_EQ(this->read_variable("runs"), word(0));
  this->launch("count", {.grid = {2}});
  EXPECT_EQ(this->read_variable("runs"), word(2));
  this->write_variable("step", std::vector<uint32_t>{10});
  this->launch("count", {});
  EXPECT_EQ(this->read_variable("runs"), word(12));
  EXPECT_EQ(this->read_variable("step"), word(10));
}

TYPED_TEST(Images, WhatTheModuleDoesNotHaveIsSaid) {
  this->load(kImagesPtx, "images.ptx");
  std::vector<std::byte> bytes(5);
  EXPECT_FALSE(this->backend().write_variable("steps", bytes));
  EXPECT_FALSE(this->backend().read_variable("step", bytes));
  const auto canvas = this->object("canvas", "surf:1d,4,u8", std::vector<uint8_t>(4));
  EXPECT_FALSE(this->backend().bind("masks", canvas));
}

}  // namespace
