#include "support/regular_file.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace ptxkit {
namespace {

namespace fs = std::filesystem;

class RegularFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "regular_file.XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = real_path(pattern);
    fs::create_directories(folder + "/in/deep");
    fs::create_directories(folder + "/inside");
    std::ofstream(folder + "/in/a") << "inner";
    std::ofstream(folder + "/inside/b") << "outer";
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string why(const std::string& path, uint64_t most_bytes = 100) {
    const std::string roots[] = {folder + "/in"};
    const auto read = read_regular_file(path, most_bytes, roots);
    return read ? "read: " + read->content : read.error().what;
  }

  std::string folder;
};

TEST_F(RegularFiles, AreReadBelowTheirRootOnly) {
  EXPECT_EQ(why(folder + "/in/a"), "read: inner");
  EXPECT_EQ(why(folder + "/in/deep/../a"), "read: inner");
  constexpr const char* kOutside = "lies outside of the folders that may be read";
  EXPECT_EQ(why(folder + "/inside/b"), kOutside);  // "in" is not a parent of "inside"
  EXPECT_EQ(why(folder + "/in/../inside/b"), kOutside);
  fs::create_symlink(folder + "/inside/b", folder + "/in/link");
  fs::create_directory_symlink(folder + "/inside", folder + "/in/folder");
  fs::create_symlink("a", folder + "/in/own");
  EXPECT_EQ(why(folder + "/in/link"), kOutside);
  EXPECT_EQ(why(folder + "/in/folder/b"), kOutside);
  EXPECT_EQ(why(folder + "/in/own"), "read: inner");
  EXPECT_EQ(why(folder + "/in/gone"), "cannot open: No such file or directory");
}

TEST_F(RegularFiles, OfASizeAtMost) {
  EXPECT_EQ(why(folder + "/in/a", 5), "read: inner");
  EXPECT_EQ(why(folder + "/in/a", 4), "has 5 bytes, and at most 4 are read");
}

TEST_F(RegularFiles, AreNeitherFoldersNorPipesNorDevicesNorOfTheKernel) {
  ASSERT_EQ(::mkfifo((folder + "/in/pipe").c_str(), 0600), 0);
  EXPECT_EQ(why(folder + "/in/pipe"), "is no regular file");  // does not wait for a writer
  EXPECT_EQ(why(folder + "/in/deep"), "is no regular file");
  const std::string anywhere[] = {"/"};
  EXPECT_EQ(read_regular_file("/dev/zero", 100, anywhere).error().what, "is no regular file");
  EXPECT_EQ(read_regular_file("/proc/self/environ", 100, anywhere).error().what, "is a file of the kernel");
  if (fs::exists("/sys/kernel/notes")) {
    EXPECT_EQ(read_regular_file("/sys/kernel/notes", 1 << 20, anywhere).error().what, "is a file of the kernel");
  }
}

TEST(RealPaths, BelowMeansAWholeFolder) {
  EXPECT_TRUE(is_below("/a/b", "/a"));
  EXPECT_TRUE(is_below("/a", "/a"));
  EXPECT_TRUE(is_below("/a", "/"));
  EXPECT_FALSE(is_below("/ab", "/a"));
  EXPECT_FALSE(is_below("/a", "/a/b"));
  EXPECT_FALSE(is_below("/a", ""));
}

}  // namespace
}  // namespace ptxkit
