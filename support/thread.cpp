#include "support/thread.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

namespace ptxkit {

std::optional<uint64_t> address_space_left() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const int descriptor = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  char text[64] = {};  // the size in pages, then fields that are not needed
  const ssize_t length = ::read(descriptor, text, sizeof text - 1);
  ::close(descriptor);
  if (length <= 0) return std::nullopt;
  const uint64_t used_bytes = std::strtoull(text, nullptr, 10) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, used_bytes);
}

uint64_t stack_bytes() noexcept {
  pthread_attr_t usual;
  size_t size_bytes = 0;
  if (::pthread_getattr_default_np(&usual) != 0) return 0;
  ::pthread_attr_getstacksize(&usual, &size_bytes);
  ::pthread_attr_destroy(&usual);
  return size_bytes;
}

std::optional<std::jthread> try_thread(std::function<void()> work) noexcept {
  if (const auto left = address_space_left(); left && stack_bytes() > *left / 4) return std::nullopt;
  // A new thread inherits the signal mask of its creator. Signals that a thread raises itself stay unblocked.
  sigset_t all, before;
  sigfillset(&all);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) sigdelset(&all, own);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  std::optional<std::jthread> thread;
  try {
    thread.emplace(std::move(work));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no thread, or no memory for one
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace ptxkit
