// Tests `.ptz`: round trips, sequentially and by table; an error for damage names the block, and other blocks stay
// readable.
#include "runtime/codec/format/ptz.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <set>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/ptz_codecs.hpp"
#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/stream/ptz_stream.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::codec {
namespace {

using format::PtzArchive;
using format::PtzCodec;
using format::PtzCoding;
using format::PtzHeader;
using ::testing::HasSubstr;
using ByteVector = std::vector<uint8_t>;

ByteVector packed(const ByteVector& raw, const PtzHeader& header, unsigned threads = 2) {
  Executor executor(threads);
  format::MemorySource source(raw, "raw");
  format::MemorySink sink;
  const auto totals = compress_ptz(source, sink, executor, header);
  EXPECT_TRUE(totals.has_value());
  EXPECT_EQ(totals->raw_bytes, raw.size());
  EXPECT_EQ(totals->stored_bytes, sink.bytes().size());
  return sink.take();
}

Result<ByteVector> unpacked(const ByteVector& file) {
  Executor executor(2);
  format::MemorySource source(file, "file");
  format::MemorySink sink;
  if (const auto totals = decompress_ptz(source, sink, executor); !totals) return tl::unexpected(totals.error());
  return sink.take();
}

// 5 blocks of 4 KiB and a shorter one; the third is incompressible.
ByteVector mixed() {
  ByteVector raw = testing::matchable_bytes(21000, 1);
  const ByteVector noise = testing::random_bytes(4096, 2);
  std::copy(noise.begin(), noise.end(), raw.begin() + 8192);
  return raw;
}

TEST(Ptz, RoundTrips) {
  for (const PtzCoding& codec : testing::ptz_codecs()) {
    for (const size_t size : {0u, 1u, 15u, 4095u, 4096u, 4097u, 70000u}) {
      for (const ByteVector& raw :
           {testing::matchable_bytes(size, 3), testing::random_bytes(size, 3), ByteVector(size)}) {
        for (const unsigned bits : {12u, 18u}) {
          const ByteVector file = packed(raw, {codec, bits});
          const auto back = unpacked(file);
          ASSERT_TRUE(back.has_value()) << back.error().message();
          ASSERT_TRUE(*back == raw) << size;
          ASSERT_LE(file.size(), raw.size() + 64 + 32 * (size / 4096 + 1));
        }
      }
    }
  }
}

// A block of 256 KiB has up to 200 chunks a stream.
TEST(Ptz, EveryFormOfChunkedStreams) {
  const ByteVector raw = testing::mixed_content(300'000);
  std::set<uint8_t> bytes;
  std::map<uint32_t, size_t> last;  // the size of the file with the same lanes and the next smaller chunks
  for (const PtzCoding& coding : format::ptz_codings(PtzCodec::lzr)) {
    const ByteVector file = packed(raw, {coding, 18});
    EXPECT_TRUE(bytes.insert(file[7]).second);
    const auto back = unpacked(file);
    ASSERT_TRUE(back.has_value()) << back.error().message();
    EXPECT_TRUE(*back == raw) << format::name_of(coding);
    const format::MemoryFile in_memory(file, "file");
    EXPECT_EQ(PtzArchive::open(in_memory)->header().coding, coding);
    EXPECT_EQ(format::parse_ptz_coding(format::name_of(coding)).value(), coding);
    if (coding.chunked) {
      size_t& smaller_chunks = last.try_emplace(coding.chunked->lanes, file.size() + 1).first->second;
      EXPECT_LT(file.size(), smaller_chunks) << "the states of a chunk cost bytes";
      smaller_chunks = file.size();
      // The options are those of the stream: the same bytes under the other form are no stream.
      const auto block = encode_block(coding, raw);
      ByteVector decoded(raw.size());
      EXPECT_FALSE(decode_block(PtzCodec::lzr, block, decoded));
    }
  }
  EXPECT_EQ(bytes.size(), 13u);
  EXPECT_TRUE(bytes.contains(0));
}

// Of every kind of elements the bytes of the file differ, and the header says which it is. A block decodes with no
// other kind.
TEST(Ptz, EveryKindOfElements) {
  const ByteVector raw = testing::shrinking_bytes(300'001, 1);
  std::set<uint8_t> bytes;
  const auto codings = format::ptz_codings(PtzCodec::rans);
  for (const PtzCoding& coding : codings) {
    const ByteVector file = packed(raw, {coding, 18});
    EXPECT_LT(file.size(), raw.size());
    EXPECT_TRUE(bytes.insert(file[7]).second);
    const auto back = unpacked(file);
    ASSERT_TRUE(back.has_value()) << back.error().message();
    EXPECT_TRUE(*back == raw) << format::name_of(coding);
    const format::MemoryFile in_memory(file, "file");
    EXPECT_EQ(PtzArchive::open(in_memory)->header().coding, coding);
    EXPECT_EQ(format::parse_ptz_coding(format::name_of(coding)).value(), coding);
    const auto block = encode_block(coding, raw);
    ByteVector decoded(raw.size());
    for (const PtzCoding& other : codings) EXPECT_EQ(decode_block(other, block, decoded), other == coding);
  }
  EXPECT_EQ(bytes.size(), 7u);
  EXPECT_FALSE(bytes.contains(0));
  EXPECT_FALSE(format::read_ptz_coding(5, 0).has_value());
  EXPECT_FALSE(format::read_ptz_coding(5, 8).has_value());
}

TEST(Ptz, NamesOfCodings) {
  const auto parsed = [](std::string_view text) {
    const auto coding = format::parse_ptz_coding(text);
    return coding ? format::name_of(*coding) : coding.error().what;
  };
  EXPECT_EQ(parsed("lzr"), "lzr");
  EXPECT_EQ(parsed("bbw"), "bbw");
  EXPECT_EQ(parsed("lzr:lanes=4"), "lzr:lanes=4,chunk=16K");
  EXPECT_EQ(parsed("lzr:chunk=1k"), "lzr:lanes=8,chunk=1K");
  EXPECT_EQ(parsed("lzr:chunk=8K,lanes=32"), "lzr:lanes=32,chunk=8K");
  EXPECT_EQ(parsed("rans"), "rans");
  EXPECT_EQ(parsed("rans:dtype=bfloat16"), "rans:dtype=bfloat16");
  EXPECT_EQ(parsed("rans:dtype=float8_e5m2"), "rans");
  EXPECT_EQ(parsed("rans:dtype=int32"), "rans:stride=4");
  EXPECT_EQ(parsed("rans:stride=8"), "rans:stride=8");
  EXPECT_EQ(parsed("rans:stride=3"), "rans: expected stride=1, 2, 4 or 8, found 'stride=3'");
  EXPECT_EQ(parsed("rans:dtype=bf16"),
            "rans: expected dtype= one of bytes, bfloat16, float16, float32, float8_e4m3fn, float8_e4m3, float8_e5m2, "
            "int8, uint8, int16, uint16, int32, uint32, int64, uint64, float64, complex64, found 'dtype=bf16'");
  EXPECT_EQ(parsed("rans:lanes=8"), "rans: expected the option dtype= or stride=, found 'lanes=8'");
  EXPECT_EQ(parsed("rans:dtype=bytes,stride=4"),
            "rans: dtype= and stride= exclude each other, found 'rans:dtype=bytes,stride=4'");
  EXPECT_EQ(parsed("lz5"), "expected lzr, lzf, deflate-like, bbw, rans, found 'lz5'");
  EXPECT_EQ(parsed("lzf:lanes=4"), "lzf has no options, found ':lanes=4'");
  EXPECT_EQ(parsed("bbw:"), "bbw has no options, found ':'");
  EXPECT_EQ(parsed("lzr:"), "lzr: expected the options lanes= and chunk=, found ''");
  EXPECT_EQ(parsed("lzr:lanes=16"), "lzr: expected lanes=4, lanes=8 or lanes=32, found 'lanes=16'");
  EXPECT_EQ(parsed("lzr:lanes"), "lzr: expected lanes=4, lanes=8 or lanes=32, found 'lanes'");
  EXPECT_EQ(parsed("lzr:lanes=8,chunk=2K"),
            "lzr: expected chunk=1K, chunk=4K, chunk=8K or chunk=16K, found 'chunk=2K'");
  EXPECT_EQ(parsed("lzr:chunk=4096"), "lzr: expected chunk=1K, chunk=4K, chunk=8K or chunk=16K, found 'chunk=4096'");
  EXPECT_EQ(parsed("lzr:chunk=4194308K"),
            "lzr: expected chunk=1K, chunk=4K, chunk=8K or chunk=16K, found 'chunk=4194308K'");
  EXPECT_EQ(parsed("lzr:lanes=4,chunk=1K,lanes=8"), "lzr: expected lanes= once, found 'lzr:lanes=4,chunk=1K,lanes=8'");
  EXPECT_EQ(parsed("lzr:lanes=4,"), "lzr: expected the options lanes= and chunk=, found ''");
}

TEST(Ptz, SameBytesWithAnyNumberOfThreads) {
  const ByteVector raw = testing::matchable_bytes(60000, 4);
  EXPECT_TRUE(packed(raw, {PtzCodec::lzr, 12}, 1) == packed(raw, {PtzCodec::lzr, 12}, 5));
}

TEST(Ptz, BlocksByTheTable) {
  const ByteVector raw = mixed(), file = packed(raw, {PtzCodec::lzf, 12});
  const format::MemoryFile in_memory(file, "file");
  const auto archive = PtzArchive::open(in_memory);
  ASSERT_TRUE(archive.has_value()) << archive.error().message();
  ASSERT_EQ(archive->block_count(), 6u);
  EXPECT_TRUE(archive->block(2).is_raw);
  for (size_t i = 6; i-- != 0;) {
    const auto block = read_ptz_block(*archive, i);
    ASSERT_TRUE(block.has_value()) << block.error().message();
    EXPECT_TRUE(std::equal(block->begin(), block->end(), raw.begin() + static_cast<ptrdiff_t>(i * 4096)));
  }
}

// Counts the bytes read from a file.
class CountedFile final : public format::RandomAccess {
 public:
  explicit CountedFile(const ByteVector& bytes) : file_(bytes, "counted") {}
  uint64_t size_bytes() const override { return file_.size_bytes(); }
  Result<void> read_at(uint64_t at, format::MutableBytes into) const override {
    read_bytes += into.size();
    return file_.read_at(at, into);
  }
  const std::string& name() const override { return file_.name(); }
  mutable uint64_t read_bytes = 0;

 private:
  format::MemoryFile file_;
};

TEST(Ptz, OfABlockByTheTableNothingElseIsRead) {
  const ByteVector file = packed(mixed(), {PtzCodec::lzf, 12});
  const CountedFile counted(file);
  const auto archive = PtzArchive::open(counted);
  ASSERT_TRUE(archive.has_value()) << archive.error().message();
  // The table's six entries and the end of the blocks.
  const uint64_t opening = format::kPtzHeaderBytes + format::kPtzFooterBytes + 7 * format::kPtzBlockHeaderBytes;
  EXPECT_EQ(counted.read_bytes, opening);
  ASSERT_TRUE(read_ptz_block(*archive, 4).has_value());
  EXPECT_EQ(counted.read_bytes, opening + format::kPtzBlockHeaderBytes + archive->block(4).stored_bytes);
}

// A file that is truncated while it is read.
TEST(Ptz, AFileThatEndsBeforeItsSizeIsTruncated) {
  const ByteVector file = packed(mixed(), {PtzCodec::lzf, 12});
  std::FILE* const cut = std::tmpfile();
  ASSERT_NE(cut, nullptr);
  ASSERT_EQ(std::fwrite(file.data(), 1, file.size(), cut), file.size());
  ASSERT_EQ(std::fflush(cut), 0);
  const format::DescriptorFile whole(::fileno(cut), 0, file.size(), "cut");
  const auto archive = PtzArchive::open(whole);
  ASSERT_TRUE(archive.has_value()) << archive.error().message();
  EXPECT_TRUE(read_ptz_block(*archive, 0).has_value());
  ASSERT_EQ(::ftruncate(::fileno(cut), 100), 0);
  EXPECT_EQ(read_ptz_block(*archive, 1).error().message(),
            "cut, byte " + std::to_string(archive->offset(1) - format::kPtzBlockHeaderBytes) +
                ": truncated: expected 16 bytes, found 0");
  EXPECT_THAT(PtzArchive::open(whole).error().message(), HasSubstr("truncated"));
  std::fclose(cut);
}

TEST(Ptz, ADamagedBlockIsNamedAndTheOthersAreReadable) {
  for (const PtzCoding& codec : testing::ptz_codecs()) {
    ByteVector file = packed(mixed(), {codec, 12});
    const format::MemoryFile in_memory(file, "file");
    const auto archive = PtzArchive::open(in_memory);
    ASSERT_TRUE(archive.has_value());
    file[archive->offset(3) + 60] ^= 0x10;
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ(read_ptz_block(*archive, i).has_value(), i != 3) << i;
    EXPECT_THAT(read_ptz_block(*archive, 3).error().message(), HasSubstr("file: block 3: "));
    EXPECT_THAT(unpacked(file).error().message(), HasSubstr("file: block 3: "));
  }
  ByteVector file = packed(mixed(), {PtzCodec::lzr, 12});
  file[PtzArchive::open(format::MemoryFile(file, "file"))->offset(2)] ^= 1;
  EXPECT_EQ(unpacked(file).error().message(), "file: block 2: checksum mismatch");
}

TEST(Ptz, EveryFlippedByteOfTheFrameIsRefused) {
  const ByteVector raw = mixed(), file = packed(raw, {PtzCodec::lzr, 12});
  for (size_t at = 0; at < file.size(); at += at < 64 || at + 160 > file.size() ? 1 : 41) {
    ByteVector bad = file;
    bad[at] ^= 0x41;
    const auto back = unpacked(bad);
    // A padding bit may change unnoticed; the content may not.
    EXPECT_TRUE(!back.has_value() || *back == raw) << at;
    const bool is_frame = at < format::kPtzHeaderBytes + format::kPtzBlockHeaderBytes || at >= file.size() - 144;
    EXPECT_FALSE(back.has_value() && is_frame) << at;
    const bool is_read_by_the_table = at < format::kPtzHeaderBytes || at >= file.size() - 144;
    EXPECT_FALSE(is_read_by_the_table && PtzArchive::open(format::MemoryFile(bad, "bad")).has_value()) << at;
  }
}

TEST(Ptz, EveryTruncationIsRefused) {
  const ByteVector file = packed(mixed(), {PtzCodec::deflate_like, 12});
  for (size_t size = 0; size < file.size(); size += 1 + size / 50) {
    const ByteVector cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(size));
    const auto back = unpacked(cut);
    ASSERT_FALSE(back.has_value()) << size;
    EXPECT_THAT(back.error().message(), HasSubstr("truncated")) << size;
    EXPECT_FALSE(PtzArchive::open(format::MemoryFile(cut, "cut")).has_value()) << size;
  }
}

TEST(Ptz, WhatIsWrongIsSaid) {
  const ByteVector file = packed(mixed(), {PtzCodec::lzr, 12});
  const auto with = [&](size_t at, uint8_t value) {
    ByteVector bad = file;
    bad[at] = value;
    const uint64_t sum = format::ptz_checksum(format::Bytes(bad).first(8));
    for (size_t i = 0; i < 8; ++i) bad[8 + i] = static_cast<uint8_t>(sum >> 8 * i);
    return unpacked(bad).error().message();
  };
  EXPECT_THAT(with(0, 'X'), HasSubstr("byte 0: not a .ptz file"));
  EXPECT_THAT(with(4, 2), HasSubstr("expected version 1, found 2"));
  EXPECT_THAT(with(5, 255), HasSubstr("unknown codec 255"));
  EXPECT_THAT(with(6, 21), HasSubstr("found 2^21"));
  EXPECT_THAT(with(7, 1), HasSubstr("codec 1 has no options 0x01"));
  EXPECT_THAT(with(7, 0x1c), HasSubstr("codec 1 has no options 0x1c"));
  EXPECT_THAT(with(7, 0x30), HasSubstr("codec 1 has no options 0x30"));
  EXPECT_THAT(with(18, 1), HasSubstr("block 0: the raw size is out of range"));
  EXPECT_THAT(with(22, 1), HasSubstr("block 0: the stored size is out of range"));
  EXPECT_THAT(with(file.size() - 20, 1), HasSubstr("the block table does not say what the blocks say"));
  ByteVector longer = file;
  longer.push_back(0);
  EXPECT_THAT(unpacked(longer).error().message(), HasSubstr("there are bytes behind the end"));
}

TEST(Ptz, WhatIsWrongWithATableIsSaid) {
  const ByteVector file = packed(mixed(), {PtzCodec::lzr, 12});
  const size_t count_at = file.size() - 32, checksum_at = file.size() - 16, table_at = count_at - 6 * 16;
  const auto opened = [](const ByteVector& bad) {
    const auto archive = PtzArchive::open(format::MemoryFile(bad, "file"));
    return archive ? "nothing" : archive.error().message();
  };
  const auto with = [&](size_t at, uint8_t change) {
    ByteVector bad = file;
    bad[at] ^= change;
    return bad;
  };
  EXPECT_EQ(opened(file), "nothing");
  EXPECT_THAT(opened(ByteVector(file.begin(), file.begin() + 40)), HasSubstr("too short"));
  EXPECT_THAT(opened(with(file.size() - 1, 1)), HasSubstr("does not end with a block table"));
  EXPECT_THAT(opened(with(count_at + 3, 1)), HasSubstr("the block table is larger than the file"));
  EXPECT_THAT(opened(with(checksum_at, 1)), HasSubstr("the block table's checksum is wrong"));
  ByteVector far = with(table_at + 4 + 2, 1);  // the first block's stored size, 64 KiB more
  const uint64_t sum = format::ptz_checksum(format::Bytes(far).subspan(table_at, count_at - table_at));
  for (size_t i = 0; i < 8; ++i) far[checksum_at + i] = static_cast<uint8_t>(sum >> 8 * i);
  EXPECT_THAT(opened(far), HasSubstr("the table's entry does not fit the file"));
}

// The checksums are right, but raw offsets after the short block would be wrong.
TEST(Ptz, AShortBlockThatIsNotTheLastIsRefused) {
  const ByteVector raw = testing::random_bytes(4096 + 100 + 4096, 5);
  format::MemorySink sink;
  format::PtzWriter writer(sink, {PtzCodec::lzr, 12});
  ASSERT_TRUE(writer.begin());
  size_t at = 0;
  for (const uint32_t size : {4096u, 100u, 4096u}) {
    const auto block = format::Bytes(raw).subspan(at, size);
    ASSERT_TRUE(writer.write({size, size, true, format::ptz_checksum(block)}, block));
    at += size;
  }
  ASSERT_TRUE(writer.finish());
  const auto in_order = unpacked(sink.bytes());
  ASSERT_FALSE(in_order);
  EXPECT_THAT(in_order.error().message(), HasSubstr("block 2: it comes after a block that is shorter than the others"));
  const format::MemoryFile file(sink.bytes(), "file");
  const auto by_table = PtzArchive::open(file);
  ASSERT_FALSE(by_table);
  EXPECT_THAT(by_table.error().message(), HasSubstr("block 2: it comes after a block that is shorter than the others"));
}

// A valid table that belongs to other blocks.
TEST(Ptz, ATableThatDoesNotFitItsBlocksIsRefused) {
  const ByteVector raw = testing::random_bytes(2 * 4096 + 10, 6);
  const ByteVector good = packed(raw, {PtzCodec::lzr, 12});
  const auto with_table = [&](auto change) {
    ByteVector file = good;
    const size_t table_at = file.size() - format::kPtzFooterBytes - 3 * format::kPtzBlockHeaderBytes;
    change(file, table_at);
    const auto table = format::Bytes(file).subspan(table_at, 3 * format::kPtzBlockHeaderBytes);
    const uint64_t checksum = format::ptz_checksum(table);
    for (int i = 0; i < 8; ++i) file[file.size() - 16 + i] = static_cast<uint8_t>(checksum >> 8 * i);
    return file;
  };
  // The entries of the first two blocks are swapped; both blocks have 4096 bytes.
  const ByteVector swapped = with_table([](ByteVector& file, size_t at) {
    std::swap_ranges(file.begin() + at, file.begin() + at + 16, file.begin() + at + 16);
  });
  const format::MemoryFile swapped_file(swapped, "file");
  const auto archive = PtzArchive::open(swapped_file);
  ASSERT_TRUE(archive) << archive.error().message();
  EXPECT_THAT(read_ptz_block(*archive, 0).error().message(),
              HasSubstr("block 0: the block table does not say what the block says"));
  const ByteVector other_sum = with_table([](ByteVector& file, size_t) { file[file.size() - 24] ^= 1; });
  const format::MemoryFile other_sum_file(other_sum, "file");
  EXPECT_THAT(PtzArchive::open(other_sum_file).error().message(),
              HasSubstr("the table's entries are not of as many bytes as its end says"));
  // Without its last entry, of 10 bytes, the blocks end before the table.
  ByteVector shorter = good;
  const size_t last = shorter.size() - format::kPtzFooterBytes - format::kPtzBlockHeaderBytes;
  shorter.erase(shorter.begin() + last, shorter.begin() + last + 16);
  shorter[shorter.size() - 32] = 2;
  const uint64_t checksum = format::ptz_checksum(format::Bytes(shorter).subspan(last - 32, 32));
  for (int i = 0; i < 8; ++i) shorter[shorter.size() - 16 + i] = static_cast<uint8_t>(checksum >> 8 * i);
  const format::MemoryFile shorter_file(shorter, "file");
  EXPECT_THAT(PtzArchive::open(shorter_file).error().message(), HasSubstr("the table's entries do not fill the file"));
}

TEST(Ptz, BytesBehindABlocksLastStream) {
  for (const PtzCoding& codec : testing::ptz_codecs()) {
    const ByteVector raw = testing::shrinking_bytes(3000, 5);
    ByteVector block = encode_block(codec, raw), decoded(raw.size());
    EXPECT_TRUE(decode_block(codec, block, decoded));
    block.push_back(0);
    EXPECT_FALSE(decode_block(codec, block, decoded));
  }
}

// Random bytes, and good blocks with random changes, may only be rejected.
TEST(Ptz, BlockDecodersOnDamage) {
  std::mt19937 random(1);
  for (const PtzCoding& codec : testing::ptz_codecs()) {
    const ByteVector raw = testing::shrinking_bytes(3000, 5), good = encode_block(codec, raw);
    ASSERT_FALSE(good.empty());
    ByteVector decoded(raw.size());
    ASSERT_TRUE(decode_block(codec, good, decoded));
    for (int i = 0; i < 2000; ++i) {
      ByteVector bad = good;
      for (auto change = 1 + random() % 3; change != 0; --change)
        bad[random() % bad.size()] = static_cast<uint8_t>(random());
      if (i % 5 == 0) bad.resize(random() % bad.size());
      (void)decode_block(codec, ByteVector(bad.begin(), bad.end()), decoded);
    }
  }
}

}  // namespace
}  // namespace ptxkit::codec
