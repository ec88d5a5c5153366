#include "tools/ptx-debug/stop_request.hpp"

#include <cmath>
#include <initializer_list>

#include <signal.h>
#include <sys/time.h>

namespace ptxkit::tools {
namespace {

std::atomic<bool> is_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler may touch nothing else

void request(int) { is_requested = true; }

void install(int signal) {
  struct sigaction before{};
  if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) return;
  struct sigaction action{};
  action.sa_handler = request;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

const std::atomic<bool>& stop_request() {
  static const bool installed = [] {
    for (const int signal : {SIGINT, SIGTERM}) install(signal);
    return true;
  }();
  (void)installed;
  return is_requested;
}

void request_stop_after(double seconds) {
  install(SIGALRM);
  const double whole = std::floor(seconds);
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(whole);
  timer.it_value.tv_usec = static_cast<suseconds_t>((seconds - whole) * 1e6);
  if (timer.it_value.tv_sec == 0 && timer.it_value.tv_usec == 0)
    request(SIGALRM);
  else
    ::setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace ptxkit::tools
