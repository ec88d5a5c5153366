// The GPU of the device tests: found once, and its absence is a skip with the reason.
#pragma once

#include <gtest/gtest.h>

#include "runtime/driver/context.hpp"

namespace ptxkit::testing {

// The context of device $PTXKIT_DEVICE (default 0), or why there is none.
const tl::expected<driver::ContextPointer, std::string>& device();

}  // namespace ptxkit::testing

#define PTXKIT_REQUIRE_DEVICE()                                               \
  if (!::ptxkit::testing::device()) {                                         \
    GTEST_SKIP() << "no usable GPU: " << ::ptxkit::testing::device().error(); \
  }
