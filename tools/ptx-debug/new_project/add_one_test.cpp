// add_one beside its reference. A launch with any fault fails: an access outside of a buffer, a race, a hang.
#include <numeric>

#include "add_one_reference.hpp"
#include "fkr_tests/harness/harness.hpp"
#include "my_kernels.hpp"

namespace {

template <class Backend>
class AddOne : public ptxkit::harness::KernelTest<Backend> {};
TYPED_TEST_SUITE(AddOne, ptxkit::harness::Backends);

TYPED_TEST(AddOne, ComputesWhatTheReferenceComputes) {
  this->load(my_kernels::kernel_images(), "add_one");
  for (const uint32_t count : {1u, 128u, 300u}) {
    std::vector<uint32_t> values(count);
    std::iota(values.begin(), values.end(), 0xffffff80u);  // the sum wraps
    const auto src = this->upload("src", values), dst = this->template allocate<uint32_t>("dst", count);
    this->launch("add_one", {.grid = {(count + 127) / 128}, .block = {128}}, src, count, dst, count);
    EXPECT_EQ(this->download(dst), add_one_reference(values)) << count << " elements";
  }
}

TYPED_TEST(AddOne, WritesNothingPastTheSource) {
  this->load(my_kernels::kernel_images(), "add_one");
  const auto src = this->upload("src", std::vector<uint32_t>{1, 2}),
             dst = this->upload("dst", std::vector<uint32_t>(4, 9));
  this->launch("add_one", {.grid = {1}, .block = {128}}, src, uint32_t{2}, dst, uint32_t{4});
  EXPECT_EQ(this->download(dst), (std::vector<uint32_t>{2, 3, 9, 9}));
}

}  // namespace
