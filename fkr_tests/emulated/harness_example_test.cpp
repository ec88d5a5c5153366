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

// Without the guard's bound, threads past the end would fault: the emulator says where and why.
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

}  // namespace
