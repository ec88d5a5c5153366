// Tests how a program ends after an uncaught exception.
#include "support/program.hpp"

#include <new>
#include <stdexcept>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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

// Descriptors 0, 1 and 2 may be closed in any combination: no file opened later gets their numbers, and using them
// fails.
TEST(RunProgram, OpensStandardDescriptorsThatAreMissing) {
  for (int closed = 0; closed < 8; ++closed) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int descriptor = 0; descriptor < 3; ++descriptor) {
        if (closed >> descriptor & 1) ::close(descriptor);
      }
      const int status = run_program(
          "tool", 9,
          [](int bits, char**) {
            const int opened = ::open("/dev/zero", O_RDWR);
            char byte = 0;
            if (opened < 3) return 1;
            if ((bits & 1) != 0 && ::read(0, &byte, 1) != -1) return 2;
            if ((bits & 2) != 0 && ::write(1, &byte, 1) != -1) return 3;
            if ((bits & 4) != 0 && ::write(2, &byte, 1) != -1) return 4;
            return 0;
          },
          closed, nullptr);
      ::_exit(status);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << closed << ": " << status;
  }
}

}  // namespace
}  // namespace ptxkit
