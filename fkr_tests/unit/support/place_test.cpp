// Tests places: what names lead to, and that what is done by a place does not follow names that change meanwhile.
#include "support/place.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/file.hpp"

namespace ptxkit {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Places : public ::testing::Test {
 protected:
  Places() {
    std::string pattern = (fs::temp_directory_path() / "ptxkit-place-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    fs::create_directories(folder_ / "one/two");
    fs::create_directory(folder_ / "other");
  }
  ~Places() override { fs::remove_all(folder_); }
  std::string in_folder(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name) const { std::ofstream(in_folder(name)) << "content"; }
  void link(const std::string& target, const std::string& name) const { fs::create_symlink(target, in_folder(name)); }
  Target target(const std::string& name) const { return target_of(in_folder(name), STDOUT_FILENO).value(); }
  bool are_one(const std::string& a, const std::string& b) const { return is_same_file(target(a), target(b)); }
  Descriptor open_folder(const std::string& name) const {
    return Descriptor(::open(in_folder(name).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }

  fs::path folder_;
};

TEST_F(Places, LinksAreFollowedToWhatIsNotThereYet) {
  link("../other/new", "one/relative");
  link(in_folder("one/relative"), "absolute");
  link("loop", "loop");
  for (const char* name : {"one/relative", "absolute"}) {
    const Target found = target(name);
    EXPECT_TRUE(found.is_link && !found.info && !found.descriptor) << name;
    EXPECT_EQ(found.place.name, "new");
    EXPECT_TRUE(are_one(name, "other/new"));
    EXPECT_TRUE(are_one(name, "one/../other/./new"));
    EXPECT_FALSE(are_one(name, "one/new"));
  }
  EXPECT_FALSE(target("other/new").is_link);
  EXPECT_FALSE(target_of(in_folder("loop"), STDOUT_FILENO));
  EXPECT_EQ(errno, ELOOP);
  EXPECT_FALSE(place_of(in_folder("none/new")));
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(Places, OneFileUnderSeveralNamesIsOne) {
  write("file");
  write("one/file");
  link("file", "link");
  fs::create_hard_link(in_folder("file"), in_folder("one/hard"));
  for (const char* name : {"file", "link", "one/hard", "other/../link"}) EXPECT_TRUE(are_one("file", name)) << name;
  EXPECT_FALSE(are_one("file", "one/file"));
  EXPECT_FALSE(are_one("file", "one/none"));
  const Target null = target_of("/dev/null", STDOUT_FILENO).value();
  EXPECT_FALSE(is_same_file(null, null));  // a device may be named twice
}

TEST_F(Places, StandardDescriptorsAreFilesToo) {
  write("file");
  const Descriptor file(::open(in_folder("file").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(is_same_file(target("file"), target_of("-", file.number()).value()));
  const Target own = target_of("/dev/fd/" + std::to_string(file.number()), STDOUT_FILENO).value();
  EXPECT_EQ(own.descriptor, file.number());
  EXPECT_TRUE(is_same_file(target("file"), own));
}

TEST_F(Places, APlaceStaysWhereItWasWhenItsFolderIsExchanged) {
  const Place place = place_of(in_folder("one/file")).value();
  fs::rename(in_folder("one"), in_folder("moved"));
  link("other", "one");
  const Descriptor made(::openat(place.at(), place.name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
  EXPECT_TRUE(made);
  EXPECT_TRUE(fs::exists(in_folder("moved/file")));
  EXPECT_TRUE(fs::is_empty(in_folder("other")));
}

TEST_F(Places, BelowAFolderNoLinkIsFollowed) {
  write("one/two/file");
  link("two", "one/link");
  const Descriptor root = open_folder("one");
  const Place found = place_below(root, in_folder("one"), "/two//file").value();
  EXPECT_EQ(found.path(), in_folder("one/two/file"));
  struct stat info{};
  EXPECT_TRUE(found.status(info, AT_SYMLINK_NOFOLLOW));
  EXPECT_EQ(place_below(root, "one", "file").value().name, "file");
  for (const char* path : {"link/file", "two/../../other/file", "../other/file", "none/file", "two/file/more"})
    EXPECT_FALSE(place_below(root, "one", path)) << path;
}

TEST_F(Places, AnotherFileInThePlaceOfAPipeIsNotOpened) {
  write("victim");
  for (const bool is_link : {true, false}) {
    ASSERT_EQ(::mkfifo(in_folder("pipe").c_str(), 0600), 0);
    const Descriptor reader(::open(in_folder("pipe").c_str(), O_RDWR | O_CLOEXEC));
    const Target pipe = target("pipe");
    EXPECT_TRUE(open_existing(pipe, "pipe"));
    fs::remove(in_folder("pipe"));
    if (is_link)
      link("victim", "pipe");
    else
      fs::create_hard_link(in_folder("victim"), in_folder("pipe"));
    const auto opened = open_existing(pipe, "pipe");
    ASSERT_FALSE(opened);
    EXPECT_THAT(opened.error().message(), HasSubstr(is_link ? "cannot open" : "another file has taken its place"));
    fs::remove(in_folder("pipe"));
  }
}

TEST_F(Places, InASharedFolderLinksOfOthersAreNotFollowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give a link to another user";
  write("file");
  link("../file", "other/link");
  constexpr uid_t kOther = 65534;
  const auto is_followed = [&](uid_t link_owner, uid_t folder_owner, mode_t mode) {
    EXPECT_EQ(::lchown(in_folder("other/link").c_str(), link_owner, 0), 0);
    EXPECT_EQ(::chown(in_folder("other").c_str(), folder_owner, 0), 0);
    EXPECT_EQ(::chmod(in_folder("other").c_str(), mode), 0);
    return target_of(in_folder("other/link"), STDOUT_FILENO).has_value();
  };
  EXPECT_FALSE(is_followed(kOther, 0, 01777));
  EXPECT_EQ(errno, EACCES);
  EXPECT_TRUE(is_followed(0, kOther, 01777));
  EXPECT_TRUE(is_followed(kOther, kOther, 01777));
  EXPECT_TRUE(is_followed(kOther, 0, 0777));
  EXPECT_TRUE(is_followed(kOther, 0, 01755));
}

TEST_F(Places, AFileIsWrittenWhereALinkLeads) {
  link("other/new", "link");
  for (const char* content : {"made", "replaced"}) {
    ASSERT_TRUE(write_file(in_folder("link"), content));
    EXPECT_TRUE(fs::is_symlink(in_folder("link")));
    EXPECT_EQ(read_file(in_folder("other/new")).value(), content);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(in_folder("other")), {}), 1);
}

}  // namespace
}  // namespace ptxkit
