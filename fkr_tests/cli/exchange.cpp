// Runs a program and renames a file between two of its system calls, as another user might who wins a race.
//
// usage: exchange COUNT NAME rename|exchange FROM TO PROGRAM ARGUMENT...
// Counts the calls that take a path, of all threads, from the first one whose path contains NAME on, and renames before
// call COUNT enters the kernel. Exit: the program's; 77 if it may not be traced; 78 if it made fewer calls, so that
// nothing was renamed; 79 if it was ended by a signal.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr int kNotTraced = 77, kTooFewCalls = 78, kKilled = 79;

struct Call {
  long number;
  int path_argument;
};
constexpr Call kCalls[] = {
#ifdef SYS_open
    {SYS_open, 0},       {SYS_stat, 0},   {SYS_lstat, 0},     {SYS_access, 0},   {SYS_readlink, 0},
    {SYS_link, 0},       {SYS_unlink, 0}, {SYS_rename, 0},
#endif
    {SYS_openat, 1},     {437, 1},                                       // openat2
    {SYS_newfstatat, 1}, {SYS_statx, 1},  {SYS_faccessat, 1}, {439, 1},  // faccessat2
    {SYS_readlinkat, 1}, {SYS_linkat, 1}, {SYS_unlinkat, 1},  {SYS_renameat, 1}, {SYS_renameat2, 1},
};

std::string path_of(pid_t thread, uint64_t address) {
  std::string path;
  for (char byte = 0; path.size() < 4096; path += byte, ++address) {
    const iovec to{&byte, 1}, from{reinterpret_cast<void*>(address), 1};
    if (::process_vm_readv(thread, &to, 1, &from, 1, 0) != 1 || byte == '\0') break;
  }
  return path;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  const long wanted = std::atol(argv[1]);
  const std::string name = argv[2];
  const unsigned flags = std::strcmp(argv[3], "exchange") == 0 ? 1u << 1 : 0;  // RENAME_EXCHANGE
  const pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) ::_exit(kNotTraced);
    ::raise(SIGSTOP);
    ::execvp(argv[6], argv + 6);
    ::_exit(127);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return kNotTraced;
  if (::ptrace(PTRACE_SETOPTIONS, child, 0,
               PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL) != 0) {
    return kNotTraced;
  }
  ::ptrace(PTRACE_SYSCALL, child, 0, 0);
  long count = 0;
  bool is_done = false, is_known = false;
  for (pid_t thread; (thread = ::waitpid(-1, &status, __WALL)) > 0;) {
    if (thread == child && WIFEXITED(status)) return is_done ? WEXITSTATUS(status) : kTooFewCalls;
    if (thread == child && WIFSIGNALED(status)) return kKilled;
    if (!WIFSTOPPED(status)) continue;
    int signal = WSTOPSIG(status);
    if (signal == (SIGTRAP | 0x80)) {
      signal = 0;
      __ptrace_syscall_info info{};
      const long size = ::ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info);
      const auto* const call =
          size > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY
              ? std::find_if(std::begin(kCalls), std::end(kCalls),
                             [&](const Call& each) { return static_cast<uint64_t>(each.number) == info.entry.nr; })
              : std::end(kCalls);
      if (call != std::end(kCalls)) {
        is_known = is_known || path_of(thread, info.entry.args[call->path_argument]).find(name) != std::string::npos;
        if (is_known && ++count == wanted) {
          if (::syscall(SYS_renameat2, AT_FDCWD, argv[4], AT_FDCWD, argv[5], flags) != 0) {
            std::perror("exchange: rename");
            return 2;
          }
          is_done = true;
        }
      }
    } else if (signal == SIGTRAP || signal == SIGSTOP) {
      signal = 0;  // a new program or thread
    }
    ::ptrace(PTRACE_SYSCALL, thread, 0, signal);
  }
  return kNotTraced;
}
