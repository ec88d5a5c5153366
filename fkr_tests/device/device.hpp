// The GPU of the device tests, opened once. Tests without one are skipped with the reason.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/driver/context.hpp"

namespace ptxkit::testing {

// The context of device $PTXKIT_DEVICE (default 0), or the reason why there is none.
const tl::expected<driver::ContextPointer, std::string>& device();

// Runs `entry`(in, out) of a PTX text in one CTA. Returns `out`, which is zero where nothing is written.
Result<std::vector<uint8_t>> run_in_out(const std::string& ptx, const std::string& entry, uint32_t threads,
                                        std::span<const uint8_t> in, size_t out_bytes);

}  // namespace ptxkit::testing

#define PTXKIT_REQUIRE_DEVICE()                                               \
  if (!::ptxkit::testing::device()) {                                         \
    GTEST_SKIP() << "no usable GPU: " << ::ptxkit::testing::device().error(); \
  }
