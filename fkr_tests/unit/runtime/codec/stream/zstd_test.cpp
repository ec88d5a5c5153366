// Tests Zstandard streams beside libzstd: what we write it reads, what it writes we read, and of damaged bytes both say
// the same.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/codec/cpu/cpu_blocks.hpp"
#include "runtime/codec/cpu/zstd_coder.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/zstd_frame.hpp"
#include "runtime/codec/stream/zstd_stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "support/result.hpp"

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "fkr_tests/cases/corpus.hpp"

namespace ptxkit::codec {
namespace {

using format::ZstdSeekEntry;
using ::testing::HasSubstr;
using ByteVector = std::vector<uint8_t>;

struct Packing {
  unsigned threads = 2;
  uint64_t memory_bytes = scheduler::Ledger::kUnlimited;
};

Result<ByteVector> packed(const ByteVector& raw, ZstdCompressOptions options, const Packing& by = {}) {
  Executor executor(by.threads);
  CpuBlocks coder(executor);
  scheduler::Ledger memory("memory", by.memory_bytes);
  options.limits.memory = &memory;
  format::MemorySource source(raw, "raw");
  format::MemorySink sink;
  const auto totals = compress_zstd(source, sink, executor, coder, options);
  if (!totals) return tl::unexpected(totals.error());
  EXPECT_EQ(totals->raw_bytes, raw.size());
  EXPECT_EQ(totals->stored_bytes, sink.bytes().size());
  EXPECT_EQ(memory.reserved_bytes(), 0u);
  return sink.take();
}

Result<ByteVector> unpacked(const ByteVector& file, const Packing& by = {}) {
  Executor executor(by.threads);
  ZstdCoder coder(executor);
  scheduler::Ledger memory("memory", by.memory_bytes);
  format::MemorySource source(file, "file");
  format::MemorySink sink;
  const auto totals = decompress_zstd(source, sink, executor, coder, {.limits = {.memory = &memory}});
  EXPECT_EQ(memory.reserved_bytes(), 0u);
  if (!totals) return tl::unexpected(totals.error());
  EXPECT_EQ(totals->raw_bytes, sink.bytes().size());
  EXPECT_EQ(totals->stored_bytes, file.size());
  return sink.take();
}

// All frames, by libzstd; nothing if it refuses them.
std::optional<ByteVector> by_libzstd(const ByteVector& file) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  ByteVector raw, piece(1 << 17);
  ZSTD_inBuffer in{file.data(), file.size(), 0};
  size_t code = 0;
  while (in.pos < in.size || code != 0) {
    ZSTD_outBuffer out{piece.data(), piece.size(), 0};
    const size_t before = in.pos;
    code = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(code) || (code != 0 && in.pos == before && out.pos == 0)) return std::nullopt;
    raw.insert(raw.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(out.pos));
  }
  return raw;
}

ByteVector packed_by_libzstd(const ByteVector& raw, int level, bool has_size = true) {
  ByteVector file(ZSTD_compressBound(raw.size()));
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_contentSizeFlag, has_size);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  file.resize(ZSTD_compress2(context.get(), file.data(), file.size(), raw.data(), raw.size()));
  return file;
}

ByteVector joined(std::initializer_list<ByteVector> parts) {
  ByteVector all;
  for (const ByteVector& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Each range begins with runs of periods 1, 4 and 8: the repeat offsets with which a frame begins.
ByteVector repetitive() {
  ByteVector raw = testing::matchable_bytes(5 * zstd_range_bytes(1) + 1000, 4);
  const std::array<size_t, 5> periods = {1, 4, 8, 1, 4};
  for (size_t range = 0; range < 5; ++range)
    for (size_t i = periods[range]; i < 3000; ++i)
      raw[range * zstd_range_bytes(1) + i] = raw[range * zstd_range_bytes(1) + i - periods[range]];
  return raw;
}

TEST(Zstd, LibzstdReadsWhatIsWritten) {
  const size_t range = zstd_range_bytes(1), block = format::kZstdBlockBytes;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{255}, size_t{256}, block - 1, block, block + 1, range - 1,
                            range, range + 1, 3 * range}) {
    for (const ByteVector& raw :
         {testing::matchable_bytes(size, 3), testing::random_bytes(size, 3), ByteVector(size)}) {
      for (const int level : {-5, 1, 2, 3}) {
        for (const bool has_size : {true, false}) {
          for (const bool is_seekable : {false, true}) {
            ZstdCompressOptions options{.level = level, .has_checksum = level != 2, .is_seekable = is_seekable};
            if (has_size) options.content_bytes = size;
            const auto file = packed(raw, options);
            ASSERT_TRUE(file.has_value()) << file.error().message();
            ASSERT_TRUE(by_libzstd(*file) == raw) << size << " at level " << level << has_size << is_seekable;
            const auto back = unpacked(*file);
            ASSERT_TRUE(back.has_value()) << back.error().message();
            ASSERT_TRUE(*back == raw) << size;
            if (!is_seekable) {
              ASSERT_EQ(ZSTD_getFrameContentSize(file->data(), file->size()),
                        has_size ? size : ZSTD_CONTENTSIZE_UNKNOWN);
              ASSERT_EQ(ZSTD_findFrameCompressedSize(file->data(), file->size()), file->size());
            }
          }
        }
      }
    }
  }
}

TEST(Zstd, HighLevelsHaveLongerRanges) {
  const ByteVector raw = testing::matchable_bytes(6'000'000, 8);
  for (const int level : {4, 9, 13, 19}) {
    const auto file = packed(raw, {.level = level, .content_bytes = raw.size()});
    ASSERT_TRUE(file.has_value()) << file.error().message();
    EXPECT_TRUE(by_libzstd(*file) == raw) << level;
  }
  EXPECT_EQ(zstd_range_bytes(3), 512u << 10);
  EXPECT_EQ(zstd_range_bytes(9), 4u << 20);
  EXPECT_EQ(zstd_range_bytes(22), 8u << 20);
}

// A range that trusted the offsets with which a frame begins would decode to other bytes.
TEST(Zstd, ARangeUsesNoOffsetsOfTheRangeBefore) {
  const ByteVector raw = repetitive();
  for (const int level : {-3, 1, 2, 3, 7, 12}) {
    const auto file = packed(raw, {.level = level});
    ASSERT_TRUE(file.has_value());
    EXPECT_TRUE(by_libzstd(*file) == raw) << level;
  }
}

TEST(Zstd, BytesDependOnLevelAndContentAlone) {
  const ByteVector raw = testing::mixed_content(9 * zstd_range_bytes(2) + 77);
  const auto expected = packed(raw, {.level = 2, .content_bytes = raw.size()});
  const auto expected_stream = packed(raw, {.level = 2});
  for (const Packing by : {Packing{1}, Packing{3}, Packing{16}, Packing{4, 8u << 20}}) {
    EXPECT_TRUE(*packed(raw, {.level = 2, .content_bytes = raw.size()}, by) == *expected);
    EXPECT_TRUE(*packed(raw, {.level = 2}, by) == *expected_stream);
  }
}

TEST(Zstd, ReadsWhatLibzstdWrites) {
  const ByteVector large = testing::mixed_content(20'000'000), small = testing::matchable_bytes(1000, 2);
  for (const int level : {-7, 1, 3, 9, 19}) {
    for (const bool has_size : {true, false}) {
      const ByteVector a = packed_by_libzstd(level == 19 ? small : large, level, has_size),
                       b = packed_by_libzstd(small, level, has_size);
      const ByteVector skipped = {0x5f, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3};
      const ByteVector file = joined({skipped, b, a, skipped, skipped, a, b, b});
      const ByteVector& raw = level == 19 ? small : large;
      for (const Packing by : {Packing{1}, Packing{3}, Packing{2, 12u << 20}, Packing{64, 40u << 20}}) {
        const auto back = unpacked(file, by);
        ASSERT_TRUE(back.has_value()) << back.error().message();
        EXPECT_TRUE(*back == joined({small, raw, raw, small, small}));
      }
    }
  }
}

// A frame that says its size and is flushed often has far more room in its blocks than it needs.
TEST(Zstd, ReadsAFrameOfManyShortBlocks) {
  const ByteVector raw = testing::matchable_bytes(600'000, 5);
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setPledgedSrcSize(context.get(), raw.size());
  ByteVector file(2 * raw.size());
  ZSTD_outBuffer out{file.data(), file.size(), 0};
  for (size_t at = 0; at < raw.size(); at += 100) {
    ZSTD_inBuffer in{raw.data() + at, std::min<size_t>(100, raw.size() - at), 0};
    ASSERT_EQ(ZSTD_compressStream2(context.get(), &out, &in, at + 100 < raw.size() ? ZSTD_e_flush : ZSTD_e_end), 0u);
  }
  file.resize(out.pos);
  for (const Packing by : {Packing{2}, Packing{2, 4u << 20}}) {
    const auto back = unpacked(joined({file, file}), by);
    ASSERT_TRUE(back.has_value()) << back.error().message();
    EXPECT_TRUE(*back == joined({raw, raw}));
  }
}

TEST(Zstd, MemoryBoundsTheWindow) {
  const ByteVector raw = testing::mixed_content(9'000'000), file = packed_by_libzstd(raw, 19, false);
  const auto refused = unpacked(file, {2, 8u << 20});
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message(), HasSubstr("file, frame 0, byte 0: a window of 8388608 bytes needs"));
  EXPECT_TRUE(*unpacked(file, {2, 16u << 20}) == raw);
  EXPECT_THAT(packed(raw, {.level = 2}, {2, 1u << 20}).error().message(), HasSubstr("a block of 524288 bytes needs"));
}

TEST(Zstd, TheInputMustHoldWhatIsAnnounced) {
  const ByteVector raw = testing::matchable_bytes(1000, 1);
  for (const uint64_t announced : {999u, 1001u, 0u}) {
    const auto file = packed(raw, {.level = 1, .content_bytes = announced});
    ASSERT_FALSE(file.has_value());
    EXPECT_THAT(file.error().message(), HasSubstr("raw: the input changed while it was read: expected"));
  }
}

TEST(Zstd, TheSeekTableNamesTheFrames) {
  const ByteVector raw = testing::mixed_content(2 * zstd_range_bytes(2) + 5);
  const auto file = packed(raw, {.level = 2, .is_seekable = true});
  ASSERT_TRUE(file.has_value());
  const auto table = format::read_zstd_seek_table(format::MemoryFile(*file, "file"));
  ASSERT_TRUE(table.has_value() && table->has_value());
  ASSERT_EQ((*table)->size(), 3u);
  size_t stored = 0, begin = 0;
  for (const ZstdSeekEntry& entry : **table) {
    EXPECT_EQ(ZSTD_findFrameCompressedSize(file->data() + stored, file->size() - stored), entry.stored_bytes);
    EXPECT_EQ(ZSTD_getFrameContentSize(file->data() + stored, file->size() - stored), entry.raw_bytes);
    stored += entry.stored_bytes;
    begin += entry.raw_bytes;
  }
  EXPECT_EQ(begin, raw.size());
  const auto no_table = format::read_zstd_seek_table(format::MemoryFile(*packed(raw, {.level = 1}), "file"));
  EXPECT_TRUE(no_table.has_value() && !no_table->has_value());
}

TEST(Zstd, AFrameIsMeasuredByItsHeaders) {
  const ByteVector raw = testing::mixed_content(700'000);
  const ByteVector skippable = {0x5F, 0x2A, 0x4D, 0x18, 2, 0, 0, 0, 'a', 'b'};
  const ByteVector sized = *packed(raw, {.level = 1, .content_bytes = raw.size()}),
                   unsized = *packed(raw, {.level = 1, .has_checksum = false});
  const ByteVector file = joined({sized, skippable, unsized});
  const auto measured = [](const ByteVector& bytes, uint64_t at) {
    return format::measure_zstd_frame(format::MemoryFile(bytes, "file"), at, 7);
  };
  const auto first = measured(file, 0).value(), second = measured(file, sized.size()).value(),
             third = measured(file, sized.size() + skippable.size()).value();
  EXPECT_EQ(first.stored_bytes, sized.size());
  EXPECT_EQ(first.raw_bytes, raw.size());
  EXPECT_EQ(second.stored_bytes, skippable.size());
  EXPECT_TRUE(second.is_skippable && second.raw_bytes == 0u);
  EXPECT_EQ(third.stored_bytes, unsized.size());
  EXPECT_FALSE(third.is_skippable || third.raw_bytes);
  for (const uint64_t at : {uint64_t{1}, uint64_t{sized.size()} - 4, uint64_t{file.size()}, uint64_t{file.size()} + 1})
    EXPECT_FALSE(measured(file, at)) << at;
  for (const ByteVector& whole : {sized, skippable, unsized}) {
    for (size_t cut = 1; cut < whole.size(); cut += cut < 20 ? 1 : 1 + whole.size() / 100) {
      const auto found = measured({whole.begin(), whole.end() - static_cast<ptrdiff_t>(cut)}, 0);
      ASSERT_FALSE(found) << cut;
      EXPECT_THAT(found.error().message(), HasSubstr("file, frame 7, "));
    }
  }
}

TEST(Zstd, AnErrorNamesTheBlock) {
  const ByteVector raw = testing::matchable_bytes(5'000'000, 6);
  const ByteVector whole = *packed(raw, {.level = 1, .content_bytes = raw.size()});
  // Of the block with this byte: its index and the byte of its header.
  const auto block_at = [&](size_t byte) {
    format::MemorySource source(whole, "file");
    format::ZstdFrameReader reader(source);
    ByteVector bytes;
    for (format::ZstdBlock found;;) {
      const auto event = reader.next(bytes);
      if (const auto* block = std::get_if<format::ZstdBlock>(&*event)) found = *block;
      if (reader.offset() > byte) return found;
    }
  };
  for (const bool is_long : {false, true}) {  // in one batch, and in several
    for (size_t at = 100; at < whole.size() - 100; at += whole.size() / 9) {
      ByteVector file = whole;
      for (size_t i = 0; i < 40; ++i) file[at + i] ^= 0xff;
      const auto back = unpacked(file, {2, is_long ? 12u << 20 : scheduler::Ledger::kUnlimited});
      ASSERT_FALSE(back.has_value());
      const std::string message = back.error().message();
      if (back.error().kind == ErrorKind::bad_checksum) continue;
      const format::ZstdBlock block = block_at(at);
      if (block.offset + 2 >= at) continue;
      EXPECT_THAT(message,
                  HasSubstr(fmt::format("file, frame 0, block {}, byte {}: ", block.block_index, block.offset)));
    }
  }
}

TEST(Zstd, OfDamagedFramesLibzstdSaysTheSame) {
  std::mt19937 random(7);
  const ByteVector raw = testing::matchable_bytes(3000, 9);
  const ByteVector files[] = {packed_by_libzstd(raw, 3), packed_by_libzstd(raw, 19, false), *packed(raw, {.level = 1}),
                              *packed(raw, {.level = 2, .has_checksum = false})};
  for (int i = 0; i < 3000; ++i) {
    ByteVector file = files[i % 4];
    for (auto flips = 1 + random() % 3; flips != 0; --flips)
      file[i % 3 == 0 ? random() % 20 : random() % file.size()] ^= static_cast<uint8_t>(1u << random() % 8);
    const auto theirs = by_libzstd(file);
    const auto ours = unpacked(file, {1});
    ASSERT_EQ(ours.has_value(), theirs.has_value()) << (ours ? "read here alone" : ours.error().message());
    ASSERT_TRUE(!ours || *ours == *theirs);
  }
}

}  // namespace
}  // namespace ptxkit::codec
