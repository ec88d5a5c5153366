// The texts read from containers, and the errors for damaged ones.
#include "analyzer/container/images.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/container/fatbin.hpp"
#include "fkr_tests/unit/analyzer/container/fixture.hpp"

namespace ptxkit::container {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> names(const std::string& bytes) {
  const auto contents = read_images(bytes, "f");
  if (!contents) return {"error: " + contents.error().message()};
  std::vector<std::string> all;
  for (const PtxImage& image : contents->images) {
    EXPECT_EQ(image.text, kPtx) << image.name;
    all.push_back(image.name);
  }
  return all;
}

std::string error_of(const std::string& bytes) {
  const auto contents = read_images(bytes, "f");
  return contents ? "no error" : contents.error().message();
}

TEST(Images, TextIsItselfByteForByte) {
  const std::string text = "// PTX\r\n\0.version";
  const auto contents = read_images(text, "k.ptx");
  ASSERT_TRUE(contents);
  ASSERT_EQ(contents->images.size(), 1u);
  EXPECT_EQ(contents->images[0].name, "k.ptx");
  EXPECT_EQ(contents->images[0].text, text);
}

TEST(Images, EveryCompressionGivesTheSameText) {
  EXPECT_THAT(names(fatbin({plain(kPtx)})), ElementsAre("f:fatbin[0].sm_80.ptx"));
  EXPECT_THAT(names(fatbin({lz4(kPtx)})), ElementsAre("f:fatbin[0].sm_80.ptx"));
  EXPECT_THAT(names(fatbin({zstd(kPtx)})), ElementsAre("f:fatbin[0].sm_80.ptx"));
}

TEST(Images, ATextOfManyZstandardBlocks) {
  std::string text(kPtx);
  for (int i = 0; i < 60000; ++i) text += "// " + std::to_string(i * 7919) + "\n";
  const auto contents = read_images(fatbin({zstd(text)}), "f");
  ASSERT_TRUE(contents) << contents.error().message();
  EXPECT_EQ(contents->images.at(0).text, text);
}

TEST(Images, NamesTellEntriesApart) {
  EntrySpec specific = plain(kPtx, 90), family = plain(kPtx, 100);
  specific.flags |= kFlagArchitectureSpecific;
  family.flags |= kFlagFamilySpecific;
  EXPECT_THAT(names(fatbin({plain(kPtx), plain(kPtx), specific, family})),
              ElementsAre("f:fatbin[0].sm_80.ptx", "f:fatbin[0].sm_80#2.ptx", "f:fatbin[0].sm_90a.ptx",
                          "f:fatbin[0].sm_100f.ptx"));
}

TEST(Images, MachineCodeIsPassedOverAndCounted) {
  EntrySpec cubin{2, 75, 0x11, "\177ELF, or not", 0};
  EXPECT_THAT(names(fatbin({cubin, plain(kPtx)})), ElementsAre("f:fatbin[0].sm_80.ptx"));
  const auto contents = read_images(fatbin({cubin}), "f");
  ASSERT_TRUE(contents);
  EXPECT_THAT(contents->images, IsEmpty());
  EXPECT_THAT(contents->machine_code, ElementsAre("sm_75"));
}

TEST(Images, SectionsOfElfFiles) {
  const std::string one = fatbin({plain(kPtx)});
  const std::string two = padded(one, 64) + fatbin({plain(kPtx, 90)});
  EXPECT_THAT(names(elf({{".text", "x"}, {".nv_fatbin", two}, {"__nv_relfatbin", one}})),
              ElementsAre("f:fatbin[0].sm_80.ptx", "f:fatbin[1].sm_90.ptx", "f:fatbin[2].sm_80.ptx"));
  EXPECT_THAT(names(elf({{".text", "x"}})), IsEmpty());
}

TEST(Images, DebugTextOfACubin) {
  std::string lines(kPtx);
  for (char& c : lines) c = c == '\n' ? '\0' : c;
  EXPECT_THAT(names(elf({{".nv_debug_ptx_txt", lines}}, 190)), ElementsAre("f:debug.ptx"));
  EXPECT_THAT(names(elf({{".nv_debug_ptx_txt", lines}}, 62)), IsEmpty());
}

TEST(Images, MembersOfAStaticLibrary) {
  const std::string object = elf({{".nv_fatbin", fatbin({plain(kPtx)})}});
  const std::string archive =
      "!<arch>\n" + archive_member("/", "symbols") + archive_member("//", "a_long_member.o/\n") +
      archive_member("a.o/", object) + archive_member("/0", object) +
      archive_member("#1/8", std::string("bsd.o\0\0\0", 8) + object) + archive_member("note.txt/", "odd");
  EXPECT_THAT(names(archive), ElementsAre("f(a.o):fatbin[0].sm_80.ptx", "f(a_long_member.o):fatbin[1].sm_80.ptx",
                                          "f(bsd.o):fatbin[2].sm_80.ptx"));
}

TEST(DamagedImages, FatBinaries) {
  const std::string good = fatbin({plain(kPtx), lz4(kPtx)});
  EXPECT_THAT(error_of(good.substr(0, 10)), HasSubstr("f:fatbin[0], byte 0: the header of the fat binary is cut off"));
  EXPECT_THAT(error_of(good.substr(0, good.size() - 1)), HasSubstr("is the file cut off?"));
  EXPECT_THAT(error_of(good + "trailing"), HasSubstr("f:fatbin[1], byte 0: expected a fat binary"));
  std::string bad = good;
  put<uint16_t>(bad, 6, 8);
  EXPECT_THAT(error_of(bad), HasSubstr("claims 8 bytes, fewer than 16"));
  bad = good;
  put<uint32_t>(bad, 16 + 4, 60);
  EXPECT_THAT(error_of(bad), HasSubstr("f:fatbin[0], entry 0 at byte 16: the entry's header claims 60 bytes"));
  bad = good;
  put<uint64_t>(bad, 16 + 8, ~uint64_t{7});
  EXPECT_THAT(error_of(bad), HasSubstr("entry 0 at byte 16: the entry claims 18446744073709551608 bytes"));
  bad = good;
  put<uint32_t>(bad, 16 + 4, ~0u);
  EXPECT_THAT(error_of(bad), HasSubstr("entry 0 at byte 16: the entry claims"));
  bad = good.substr(0, 16 + 40);
  put<uint64_t>(bad, 8, 40);
  EXPECT_THAT(error_of(bad), HasSubstr("entry 0 at byte 16: the entry's header is cut off"));
}

TEST(DamagedImages, Compression) {
  EntrySpec entry = lz4(kPtx);
  entry.payload.resize(entry.payload.size() / 2);
  EXPECT_THAT(error_of(fatbin({entry})), HasSubstr("f:fatbin[0].sm_80.ptx: the LZ4 data is damaged"));
  entry = lz4(kPtx);
  ++entry.uncompressed_bytes;
  EXPECT_THAT(error_of(fatbin({entry})), HasSubstr("the header promises"));
  entry.uncompressed_bytes = 1 << 29;
  EXPECT_THAT(error_of(fatbin({entry})), HasSubstr("bytes of LZ4 can hold"));
  entry = zstd(kPtx);
  entry.payload[6] = static_cast<char>(entry.payload[6] ^ 0x55);
  EXPECT_THAT(error_of(fatbin({entry})), HasSubstr("the Zstandard data"));
  entry = zstd(kPtx);
  entry.payload.resize(entry.payload.size() / 2);
  EXPECT_THAT(error_of(fatbin({entry})), HasSubstr("the Zstandard data is cut off"));
  entry = zstd(kPtx);
  --entry.uncompressed_bytes;
  EXPECT_THAT(error_of(fatbin({entry})), HasSubstr("holds more than the"));
  entry = zstd(kPtx);
  ++entry.uncompressed_bytes;
  EXPECT_THAT(error_of(fatbin({entry})), HasSubstr("the header promises"));
  entry.uncompressed_bytes = kLargestTextBytes + 1;
  EXPECT_THAT(error_of(fatbin({entry})), HasSubstr("more than 1073741824 are not read"));
  entry = plain(kPtx);
  entry.flags |= kFlagUnknownCompression;
  EXPECT_THAT(error_of(fatbin({entry})), HasSubstr("cuobjdump -xptx"));
  std::string bad = fatbin({lz4(kPtx)});
  put<uint32_t>(bad, 16 + 16, 1 << 20);
  EXPECT_THAT(error_of(bad), HasSubstr("the entry claims 1048576 compressed bytes"));
}

TEST(DamagedImages, ElfFiles) {
  const std::string good = elf({{".nv_fatbin", fatbin({plain(kPtx)})}});
  EXPECT_THAT(error_of(good.substr(0, 40)), HasSubstr("f: the ELF header is cut off"));
  EXPECT_THAT(error_of(good.substr(0, good.size() - 1)), HasSubstr("is cut off; is the file cut off?"));
  std::string bad = good;
  bad[4] = 1;
  EXPECT_THAT(error_of(bad), HasSubstr("expected a 64-bit little-endian ELF file"));
  bad = good;
  put<uint64_t>(bad, 40, bad.size() + 1);
  EXPECT_THAT(error_of(bad), HasSubstr("the section table at byte"));
  bad = good;
  put<uint16_t>(bad, 58, 40);
  EXPECT_THAT(error_of(bad), HasSubstr("expected section headers of 64 bytes, found 40"));
  bad = good;
  put<uint16_t>(bad, 62, 9);
  EXPECT_THAT(error_of(bad), HasSubstr("the table of section names lies outside the file"));
  const size_t table = good.size() - 3 * 64;
  bad = good;
  put<uint32_t>(bad, table + 64, 1 << 20);
  EXPECT_THAT(error_of(bad), HasSubstr("the name of section 1 lies outside the file"));
  bad = good;
  put<uint64_t>(bad, table + 64 + 32, 1 << 20);
  EXPECT_THAT(error_of(bad), HasSubstr("section 1 '.nv_fatbin' lies outside the file"));
}

TEST(DamagedImages, StaticLibraries) {
  EXPECT_THAT(error_of("!<thin>\n"), HasSubstr("a thin archive names its members"));
  EXPECT_THAT(error_of("!<arch>\nshort"), HasSubstr("the archive member at byte 8 is damaged or cut off"));
  EXPECT_THAT(error_of("!<arch>\n" + archive_member("/7", "x")), HasSubstr("lies outside the name table"));
  EXPECT_THAT(error_of("!<arch>\n" + archive_member("#1/7", "x")), HasSubstr("name is cut off"));
  EXPECT_THAT(error_of("!<arch>\n" + archive_member("a.o/", "\177ELF")),
              HasSubstr("f(a.o): the ELF header is cut off"));
}

}  // namespace
}  // namespace ptxkit::container
