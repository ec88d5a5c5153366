// What becomes of an exception that nobody in a program caught.
#include "support/program.hpp"

#include <new>
#include <stdexcept>

#include <gtest/gtest.h>

namespace ptxkit {
namespace {

TEST(RunProgram, GivesTheStatusOfItsWork) {
  EXPECT_EQ(run_program("tool", 9, [](int argc, char**) { return argc + 1; }, 2, nullptr), 3);
}

TEST(RunProgram, SaysThatMemoryRanOut) {
  testing::internal::CaptureStderr();
  const int status = run_program("tool", 9, [](int, char**) -> int { throw std::bad_alloc(); }, 0, nullptr);
  EXPECT_EQ(status, 9);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "tool: no memory left; give it smaller inputs, or fewer at once\n");
}

TEST(RunProgram, NamesAnErrorOfItsOwn) {
  testing::internal::CaptureStderr();
  const int status = run_program("tool", 9, [](int, char**) -> int { throw std::logic_error("odd"); }, 0, nullptr);
  EXPECT_EQ(status, 9);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "tool: stopped by an error of its own: odd; please report it\n");
}

}  // namespace
}  // namespace ptxkit
