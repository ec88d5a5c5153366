#include "kernels/pages/zero_page_reference.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace ptxkit::kernels {
namespace {

TEST(ZeroPageReference, EveryPositionOfTheOneByteThatIsNotZero) {
  for (size_t size : {1, 2, 3, 4, 31, 32, 33, 129}) {
    std::vector<uint8_t> page(size, 0);
    EXPECT_EQ(zero_page_reference(page), PageFlag::zero) << size;
    for (size_t i = 0; i < size; ++i) {
      page[i] = 1;
      EXPECT_EQ(zero_page_reference(page), PageFlag::compressed) << "byte " << i << " of " << size;
      page[i] = 0;
    }
  }
  EXPECT_EQ(zero_page_reference({}), PageFlag::zero);
}

}  // namespace
}  // namespace ptxkit::kernels
