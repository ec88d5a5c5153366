// While an object of this class lives, the system has no more threads, as under a limit on processes or on address
// space: a new thread would need a stack larger than the address space.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

namespace ptxkit::testing {

class NoThreads {
 public:
  NoThreads() {
    EXPECT_EQ(::pthread_getattr_default_np(&before_), 0);
    pthread_attr_t none;
    EXPECT_EQ(::pthread_getattr_default_np(&none), 0);
    EXPECT_EQ(::pthread_attr_setstacksize(&none, size_t{1} << 60), 0);
    EXPECT_EQ(::pthread_setattr_default_np(&none), 0);
    ::pthread_attr_destroy(&none);
  }
  ~NoThreads() {
    EXPECT_EQ(::pthread_setattr_default_np(&before_), 0);
    ::pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace ptxkit::testing
