#include "tools/ptx-pack/measuring.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/file.h>
#include <unistd.h>

#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::pack {

void measure_rates_after_this(const Options& options) {
  // The system closes this process's end of the pipe when the process ends, which ends the child's standard input.
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  const std::string threads = fmt::format("-T{}", options.thread_count);
  const std::string devices =
      fmt::format("--device={}", options.devices.empty() ? "all" : fmt::format("{}", fmt::join(options.devices, ",")));
  std::vector<const char*> words = {
      "ptx-pack", "--measure-rates", "--after-standard-input", "-qq", threads.c_str(), devices.c_str(), nullptr};
  ::posix_spawn_file_actions_t actions;
  ::posix_spawnattr_t attributes;
  if (::posix_spawn_file_actions_init(&actions) == 0 && ::posix_spawnattr_init(&attributes) == 0) {
    ::posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    ::pid_t child;
    (void)::posix_spawn(&child, "/proc/self/exe", &actions, &attributes, const_cast<char**>(words.data()), environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
  }
  ::close(ends[0]);  // the other end stays open until the process ends
}

Result<void> measure_rates_now(const Options& options, codec::BackendRequest request) {
  if (request.calibration_path.empty()) {
    return fail("there is no file for rates: neither PTXKIT_CALIBRATION nor XDG_CACHE_HOME nor HOME is set");
  }
  if (options.waits_for_end) {
    char byte;
    while (::read(STDIN_FILENO, &byte, 1) > 0) {
    }
  }
  std::error_code ignored;  // the lock says what is wrong with the folder
  std::filesystem::create_directories(std::filesystem::path(request.calibration_path).parent_path(), ignored);
  const std::string lock_path = request.calibration_path + ".lock";
  const int lock = ::open(lock_path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) return fail(fmt::format("cannot write: {}", std::strerror(errno)), lock_path);
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    return fail("another process measures at this moment", lock_path);
  }
  codec::Executor executor(options.thread_count);
  auto done = codec::measure_rates(request, executor);
  ::unlink(lock_path.c_str());
  ::close(lock);
  return done;
}

}  // namespace ptxkit::pack
