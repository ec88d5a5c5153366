// A kernel's tests, written once, run on the emulator and, where there is one, on a GPU.
#include "fkr_tests/harness/harness.hpp"

namespace {

template <class Backend>
class Saxpy : public ptxkit::harness::KernelTest<Backend> {};
TYPED_TEST_SUITE(Saxpy, ptxkit::harness::Backends);

TYPED_TEST(Saxpy, AddsAMultiple) {
  this->load_file(SAXPY_PTX);
  std::vector<float> x(300), y(300), expected(300);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i);
    y[i] = 1;
    expected[i] = 2 * x[i] + 1;
  }
  auto device_x = this->upload("x", x), device_y = this->upload("y", y);
  this->launch("saxpy", {.grid = {3}, .block = {128}}, device_x, device_y, 2.0f, uint32_t{300});
  EXPECT_EQ(this->download(device_y), expected);
}

TYPED_TEST(Saxpy, LeavesTheRestAlone) {
  this->load_file(SAXPY_PTX);
  auto x = this->upload("x", std::vector<float>(128, 1)), y = this->upload("y", std::vector<float>(128, 5));
  this->launch("saxpy", {.grid = {1}, .block = {128}}, x, y, 1.0f, uint32_t{1});
  EXPECT_EQ(this->download(y)[0], 6);
  EXPECT_EQ(this->download(y)[1], 5);
}

}  // namespace
