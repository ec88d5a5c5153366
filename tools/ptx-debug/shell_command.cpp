#include "tools/ptx-debug/shell_command.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/ptx-debug/stop_request.hpp"

namespace ptxkit::tools {

std::string shell_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

Result<std::optional<int>> run_shell(const std::string& command, std::chrono::milliseconds limit) {
  const pid_t child = ::fork();
  if (child < 0) return fail(std::string("cannot start a process: ") + std::strerror(errno));
  if (child == 0) {
    ::setpgid(0, 0);  // a process group, so that kill() also ends its children
    const int nowhere = ::open("/dev/null", O_RDWR);
    if (nowhere < 0) ::_exit(127);
    for (const int descriptor : {0, 1, 2}) ::dup2(nowhere, descriptor);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::setpgid(child, child);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::chrono::microseconds pause(200);
  int status = 0;
  while (true) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) return fail(std::string("cannot wait for a process: ") + std::strerror(errno));
    if (stop_request() || std::chrono::steady_clock::now() >= deadline) {
      ::kill(-child, SIGKILL);
      ::waitpid(child, &status, 0);
      return std::optional<int>();
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(10'000));
  }
  return std::optional<int>(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

}  // namespace ptxkit::tools
