#include "support/spool.hpp"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "support/file.hpp"

namespace ptxkit {
namespace {

namespace fs = std::filesystem;

class Spools : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "spool.XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override { fs::remove_all(folder); }
  size_t file_count() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }
  std::string folder;
};

// 20 MB of numbered lines.
std::string line_of(unsigned i) { return std::to_string(i) + std::string(1000, 'x') + "\n"; }

TEST_F(Spools, GiveBackWhatWasAppended) {
  for (const std::string& neighbour : {folder + "/out", folder + "/gone/out"}) {
    Spool spool(neighbour);
    std::string all;
    for (unsigned i = 0; i < 20'000; ++i) {
      spool.append(line_of(i));
      all += line_of(i);
    }
    EXPECT_EQ(file_count(), 0u) << "the file has a name";
    ASSERT_EQ(spool.size(), all.size());
    for (const auto& [from, bytes] :
         {std::pair<uint64_t, uint64_t>{0, all.size()}, {5, 3'000'000}, {all.size() - 7, 7}, {3, 0}, {4 << 20, 100}}) {
      std::string part;
      EXPECT_TRUE(spool.read(from, bytes, [&](std::string_view text) { part += text; }));
      EXPECT_EQ(part, all.substr(from, bytes)) << from;
    }
    EXPECT_FALSE(spool.read(all.size() - 1, 2, [](std::string_view) {}));
    const Spool moved = std::move(spool);
    EXPECT_EQ(moved.size(), all.size());
  }
}

TEST_F(Spools, SaveReplacesAFileWhole) {
  const std::string path = folder + "/out";
  for (const unsigned lines : {3u, 9000u}) {
    Spool spool(path);
    std::string all;
    for (unsigned i = 0; i < lines; ++i) {
      spool.append(line_of(i));
      all += line_of(i);
    }
    ASSERT_TRUE(spool.save(path));
    EXPECT_EQ(read_file(path).value_or(""), all);
    EXPECT_EQ(file_count(), 1u);
  }
  Spool spool(path);
  spool.append("x");
  EXPECT_FALSE(spool.save(folder + "/gone/out"));
  EXPECT_FALSE(spool.save(folder));
  EXPECT_TRUE(spool.save("/dev/null"));
  if (fs::exists("/dev/full")) {
    const auto saved = spool.save("/dev/full");
    ASSERT_FALSE(saved);
    EXPECT_EQ(saved.error().what, "cannot write: No space left on device");
  }
  fs::create_symlink("out", folder + "/link");
  ASSERT_TRUE(spool.save(folder + "/link"));
  EXPECT_TRUE(fs::is_symlink(folder + "/link"));
  EXPECT_EQ(read_file(path).value_or(""), "x");
}

}  // namespace
}  // namespace ptxkit
