// Tests whole files: which ones are read, and names of maximum length.
#include "support/file.hpp"

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ptxkit {
namespace {

using ::testing::HasSubstr;

class File : public ::testing::Test {
 protected:
  File() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ptxkit-file-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~File() override { std::filesystem::remove_all(folder_); }
  std::string in_folder(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

TEST_F(File, ANameMayBeAsLongAsNamesCanBe) {
  for (const size_t length : {244u, 250u, 255u}) {
    const std::string path = in_folder(std::string(length, 'n'));
    ASSERT_TRUE(write_file(path, "one"));
    ASSERT_TRUE(write_file(path, "two"));
    EXPECT_EQ(read_file(path).value(), "two");
    std::filesystem::remove(path);
    EXPECT_TRUE(std::filesystem::is_empty(folder_));
  }
  const auto done = write_file(in_folder(std::string(256, 'n')), "one");
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().what, HasSubstr("File name too long"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(File, ASignalInTheMiddleLeavesNothingBehind) {
  ASSERT_TRUE(write_file(in_folder("kept"), "before"));
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit small{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &small);
    (void)write_file(in_folder("kept"), std::string(5000, 'x'));
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
  EXPECT_EQ(read_file(in_folder("kept")).value(), "before");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(File, OnlySmallRegularFilesAreRead) {
  ASSERT_TRUE(write_file(in_folder("file"), "0123456789"));
  EXPECT_EQ(read_regular_file(in_folder("file"), 10).value(), "0123456789");
  EXPECT_THAT(read_regular_file(in_folder("file"), 9).error().what, HasSubstr("longer than 9 bytes"));
  ASSERT_EQ(::mkfifo(in_folder("pipe").c_str(), 0600), 0);
  for (const std::string& path : {std::string("/dev/zero"), in_folder("pipe"), folder_.string()}) {
    EXPECT_THAT(read_regular_file(path, 10).error().what, HasSubstr("expected a regular file"));
  }
  EXPECT_THAT(read_regular_file(in_folder("none"), 10).error().what, HasSubstr("cannot open"));
}

}  // namespace
}  // namespace ptxkit
