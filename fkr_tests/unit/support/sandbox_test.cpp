#include "support/sandbox.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/file.hpp"

namespace ptxkit {
namespace {

namespace fs = std::filesystem;

// What `work` returns in a child; -1 where that is 255.
int within_process(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) != 255 ? WEXITSTATUS(status) : -1;
}

// The same in one that has entered the sandbox; -1 where that failed.
int within(const SandboxNeeds& needs, const std::function<int()>& work) {
  return within_process([&] { return enter_sandbox(needs) ? work() : 255; });
}

// The error of a call that gives -1, or 0.
int error_of(long outcome) { return outcome < 0 ? errno : 0; }

class Sandbox : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = sandbox_conflict(); !why.empty()) GTEST_SKIP() << "no sandbox: " << why;
    if (within({}, [] { return 0; }) != 0) GTEST_SKIP() << "this kernel lacks Landlock or seccomp: nothing was tried";
    std::string pattern = (fs::temp_directory_path() / "sandbox.XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    fs::create_directories(folder + "/named");
    fs::create_directories(folder + "/other");
    std::ofstream(folder + "/other/file") << "kept";
  }
  void TearDown() override {
    if (!folder.empty()) fs::remove_all(folder);
  }
  std::string folder;
};

TEST_F(Sandbox, RefusesToWriteWhatWasNotNamed) {
  const std::string other = folder + "/other/file";
  EXPECT_EQ(within({}, [&] { return error_of(::open("/etc/passwd", O_WRONLY)); }), EACCES);
  EXPECT_EQ(within({}, [&] { return error_of(::open("/etc/passwd", O_RDWR | O_APPEND)); }), EACCES);
  EXPECT_EQ(within({}, [&] { return error_of(::open(other.c_str(), O_WRONLY)); }), EACCES);
  EXPECT_EQ(within({}, [&] { return error_of(::open((folder + "/other/new").c_str(), O_CREAT | O_WRONLY, 0600)); }),
            EACCES);
  EXPECT_EQ(within({}, [&] { return error_of(::unlink(other.c_str())); }), EACCES);
  EXPECT_EQ(within({}, [&] { return error_of(::mkdir((folder + "/other/d").c_str(), 0700)); }), EACCES);
  EXPECT_EQ(within({}, [&] { return error_of(::symlink("x", (folder + "/other/l").c_str())); }), EACCES);
  EXPECT_NE(within({}, [&] { return error_of(::rename(other.c_str(), (folder + "/named/x").c_str())); }), 0);
  EXPECT_EQ(read_file(other).value_or(""), "kept");
}

TEST_F(Sandbox, RefusesProgramsProcessesAndSockets) {
  const auto run = [] {
    char program[] = "/bin/true";
    char* const words[] = {program, nullptr};
    return error_of(::execv(program, words));
  };
  const int refused = within({}, run);
  EXPECT_TRUE(refused == EPERM || refused == EACCES) << refused;
  EXPECT_EQ(within({}, [] { return error_of(::fork()); }), EPERM);
  EXPECT_EQ(within({}, [] { return error_of(::vfork()); }), EPERM);
  for (const int family : {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK})
    EXPECT_EQ(within({}, [&] { return error_of(::socket(family, SOCK_STREAM, 0)); }), EPERM) << family;
  int pair[2];
  EXPECT_EQ(within({}, [&] { return error_of(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair)); }), EPERM);
  EXPECT_EQ(within({}, [] { return error_of(::syscall(425, 1, nullptr)); }), EPERM) << "io_uring_setup";
}

TEST_F(Sandbox, LeavesReadingThreadsMemoryAndNamedOutputs) {
  const std::string named = folder + "/named/out", other = folder + "/other/file";
  const SandboxNeeds needs{{named, "", "-"}};
  EXPECT_EQ(within(needs, [&] { return read_file(other) && read_file("/etc/passwd") ? 0 : 1; }), 0);
  EXPECT_EQ(within(needs,
                   [] {
                     int seen = 0;
                     std::thread([&] { seen = 1; }).join();
                     void* const memory =
                         ::mmap(nullptr, 1 << 24, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                     return seen == 1 && memory != MAP_FAILED ? 0 : 1;
                   }),
            0);
  for (const char* content : {"once", "again, and in place of what is there"}) {
    EXPECT_EQ(within(needs, [&] { return write_file(named, content) ? 0 : 1; }), 0);
    EXPECT_EQ(read_file(named).value_or(""), content);
  }
  EXPECT_EQ(within(needs, [&] { return write_file(other, "lost") ? 1 : 0; }), 0);
  // A symbolic link is followed to its target; a device is opened in place.
  fs::create_symlink("../named/out", folder + "/other/link");
  EXPECT_EQ(within({{folder + "/other/link"}}, [&] { return write_file(folder + "/other/link", "by link") ? 0 : 1; }),
            0);
  EXPECT_EQ(read_file(named).value_or(""), "by link");
  // Also where nothing is there yet.
  fs::create_symlink("../named/first", folder + "/other/dangling");
  EXPECT_EQ(within({{folder + "/other/dangling"}},
                   [&] { return error_of(::open((folder + "/other/dangling").c_str(), O_CREAT | O_WRONLY, 0600)); }),
            0);
  // A folder stands for the files in it.
  EXPECT_EQ(within({{folder + "/named"}}, [&] { return error_of(::unlink((folder + "/named/first").c_str())); }), 0);
  EXPECT_EQ(within({{"/dev/null"}}, [] { return write_file("/dev/null", "x") ? 0 : 1; }), 0);
  EXPECT_EQ(within({{"/dev/null"}}, [&] { return error_of(::open("/dev/zero", O_WRONLY)); }), EACCES);
}

TEST_F(Sandbox, ProgramsRunWhereTheUserNamedOne) {
  const SandboxNeeds needs{{}, true};
  EXPECT_EQ(within(needs, [] { return std::system("exit 3") == 3 << 8 ? 0 : 1; }), 0);
  // Programs that they start inherit the sandbox.
  EXPECT_EQ(within(needs,
                   [&] { return std::system(("echo x 2>/dev/null >" + folder + "/../escaped").c_str()) == 0 ? 0 : 2; }),
            0)
      << "the folder for temporary files may be written";
  fs::remove(folder + "/../escaped");
  if (::access("/etc/passwd", W_OK) == 0) {  // others cannot write it without a sandbox either
    EXPECT_EQ(within(needs, [] { return std::system("exec 2>/dev/null; echo x >>/etc/passwd") == 0 ? 1 : 0; }), 0);
  }
  EXPECT_EQ(within(needs, [] { return error_of(::socket(AF_INET, SOCK_STREAM, 0)); }), EPERM);
}

TEST_F(Sandbox, BeginsWhereItIsWantedAndCanBe) {
  const auto missing = [](std::string_view when, std::string_view gpu_user) {
    return begin_sandbox(when, {}, gpu_user).value_or("refused");
  };
  const auto is_in_force = [] { return error_of(::socket(AF_INET, SOCK_STREAM, 0)) == EPERM; };
  EXPECT_EQ(within_process([&] { return missing("off", "").empty() && !is_in_force(); }), 1);
  EXPECT_EQ(within_process([&] { return missing("auto", "").empty() && is_in_force(); }), 1);
  EXPECT_EQ(within_process([&] { return missing("require", "").empty() && is_in_force(); }), 1);
  EXPECT_EQ(begin_sandbox("auto", {}, "--gpu").value_or(""),
            "no sandbox: --gpu may use a GPU, whose driver opens files and devices of its own");
  EXPECT_EQ(missing("require", "--gpu"), "refused");
  EXPECT_FALSE(sandbox_fault("auto"));
  EXPECT_EQ(sandbox_fault("on").value_or(""), "--sandbox: expected auto, require, off, found 'on'");
}

}  // namespace
}  // namespace ptxkit
