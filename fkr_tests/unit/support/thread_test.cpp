// Tests that threads start where the system allows it, fail cleanly where it does not, and block signals.
#include "support/thread.hpp"

#include <csignal>

#include <gtest/gtest.h>

#include "fkr_tests/cases/no_threads.hpp"

namespace ptxkit {
namespace {

TEST(TryThread, RunsItsWorkAndTakesNoSignal) {
  sigset_t mask, before;
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &before), 0);
  auto thread = try_thread([&] { ::pthread_sigmask(SIG_SETMASK, nullptr, &mask); });
  ASSERT_TRUE(thread);
  thread->join();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGALRM}) EXPECT_TRUE(sigismember(&mask, signal));
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) EXPECT_FALSE(sigismember(&mask, signal));
  sigset_t after;
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &after), 0);
  for (int signal = 1; signal < 32; ++signal) EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal));
}

TEST(TryThread, IsEmptyIfTheSystemHasNoThread) {
  const testing::NoThreads none;
  EXPECT_FALSE(try_thread([] {}));
}

}  // namespace
}  // namespace ptxkit
