// Tests gzip streams and deflate items beside zlib: what we write it reads, what it writes we read, and of damaged
// bytes both say the same.
#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "fkr_tests/cases/corpus.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/cpu/coder_item.hpp"
#include "runtime/codec/cpu/cpu_blocks.hpp"
#include "runtime/codec/cpu/deflate_coder.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/gzip_member.hpp"
#include "runtime/codec/stream/gzip_stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

using ::testing::HasSubstr;
using ByteVector = std::vector<uint8_t>;

struct Packing {
  unsigned threads = 2;
  uint64_t memory_bytes = scheduler::Ledger::kUnlimited;
};

Result<ByteVector> packed(const ByteVector& raw, GzipCompressOptions options, const Packing& by = {}) {
  Executor executor(by.threads);
  CpuBlocks coder(executor);
  scheduler::Ledger memory("memory", by.memory_bytes);
  options.limits.memory = &memory;
  format::MemorySource source(raw, "raw");
  format::MemorySink sink;
  const auto totals = compress_gzip(source, sink, executor, coder, options);
  if (!totals) return tl::unexpected(totals.error());
  EXPECT_EQ(totals->raw_bytes, raw.size());
  EXPECT_EQ(totals->stored_bytes, sink.bytes().size());
  EXPECT_EQ(totals->frame_count, (raw.size() + format::kBgzfRawBytes - 1) / format::kBgzfRawBytes + 1);
  return sink.take();
}

Result<ByteVector> unpacked(const ByteVector& file, const Packing& by = {}) {
  Executor executor(by.threads);
  DeflateCoder coder(executor);
  scheduler::Ledger memory("memory", by.memory_bytes);
  format::MemorySource source(file, "file");
  format::MemorySink sink;
  const auto totals = decompress_gzip(source, sink, executor, coder, {.limits = {.memory = &memory}});
  EXPECT_EQ(memory.reserved_bytes(), 0u);
  if (!totals) return tl::unexpected(totals.error());
  EXPECT_EQ(totals->raw_bytes, sink.bytes().size());
  EXPECT_EQ(totals->stored_bytes, file.size());
  return sink.take();
}

constexpr int kGzipBits = 15 + 16, kZlibBits = 15, kDeflateBits = -15;

// All members, or one stream of another wrapper, by zlib; nothing if it refuses them. Zeros may follow members.
std::optional<ByteVector> by_zlib(const ByteVector& file, int window_bits = kGzipBits) {
  z_stream stream{};
  inflateInit2(&stream, window_bits);
  ByteVector raw, piece(1 << 16);
  stream.next_in = const_cast<Bytef*>(file.data());
  stream.avail_in = static_cast<uInt>(file.size());
  bool is_good = false;
  while (true) {
    stream.next_out = piece.data();
    stream.avail_out = static_cast<uInt>(piece.size());
    const int code = inflate(&stream, Z_NO_FLUSH);
    raw.insert(raw.end(), piece.begin(), piece.end() - stream.avail_out);
    if (code == Z_STREAM_END) {
      const Bytes rest(stream.next_in, stream.avail_in);
      is_good = std::ranges::all_of(rest, [](uint8_t byte) { return byte == 0; }) &&
                (window_bits == kGzipBits || rest.empty());
      if (is_good || window_bits != kGzipBits || rest.size() < 2 || rest[0] != 0x1f || rest[1] != 0x8b) break;
      inflateReset(&stream);
    } else if (code != Z_OK) {
      break;
    }
  }
  inflateEnd(&stream);
  return is_good ? std::optional(raw) : std::nullopt;
}

ByteVector packed_by_zlib(const ByteVector& raw, int level, int window_bits = kGzipBits) {
  z_stream stream{};
  deflateInit2(&stream, level, Z_DEFLATED, window_bits, 9, Z_DEFAULT_STRATEGY);
  ByteVector file(deflateBound(&stream, raw.size()) + 32);
  stream.next_in = const_cast<Bytef*>(raw.data());
  stream.avail_in = static_cast<uInt>(raw.size());
  stream.next_out = file.data();
  stream.avail_out = static_cast<uInt>(file.size());
  deflate(&stream, Z_FINISH);
  file.resize(stream.total_out);
  deflateEnd(&stream);
  return file;
}

ByteVector joined(std::initializer_list<ByteVector> parts) {
  ByteVector all;
  for (const ByteVector& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(Gzip, ZlibReadsWhatIsWritten) {
  const size_t member = format::kBgzfRawBytes;
  for (const size_t size : {size_t{0}, size_t{1}, member - 1, member, member + 1, 20 * member + 7}) {
    for (const ByteVector& raw :
         {testing::matchable_bytes(size, 3), testing::random_bytes(size, 3), ByteVector(size)}) {
      for (const int level : {1, 6, 9, 12}) {
        const auto file = packed(raw, {.level = level, .content_bytes = size});
        ASSERT_TRUE(file.has_value()) << file.error().message();
        ASSERT_TRUE(by_zlib(*file) == raw) << size << " at level " << level;
        const auto back = unpacked(*file);
        ASSERT_TRUE(back.has_value()) << back.error().message();
        ASSERT_TRUE(*back == raw) << size;
      }
    }
  }
}

TEST(Gzip, BytesDependOnLevelAndContentAlone) {
  const ByteVector raw = testing::mixed_content(3'000'000);
  const auto expected = packed(raw, {.level = 6, .content_bytes = raw.size()});
  for (const Packing by : {Packing{1}, Packing{3}, Packing{16}, Packing{4, 4u << 20}}) {
    EXPECT_TRUE(*packed(raw, {.level = 6, .content_bytes = raw.size()}, by) == *expected);
    EXPECT_TRUE(*packed(raw, {.level = 6}, by) == *expected);
  }
}

// A long member goes through several batches, members of all kinds through one.
TEST(Gzip, ReadsMembersOfAllKinds) {
  const ByteVector large = testing::mixed_content(20'000'000), small = testing::matchable_bytes(1000, 2);
  const ByteVector a = packed_by_zlib(large, 6), b = packed_by_zlib(small, 9), empty = packed_by_zlib({}, 6);
  const ByteVector c = *packed(large, {.level = 1}), padding(1000);
  const ByteVector file = joined({b, a, empty, c, b, c, a, padding});
  for (const Packing by : {Packing{1}, Packing{3}, Packing{2, 4u << 20}, Packing{64, 40u << 20}}) {
    const auto back = unpacked(file, by);
    ASSERT_TRUE(back.has_value()) << back.error().message();
    EXPECT_TRUE(*back == joined({small, large, large, small, large, large}));
  }
  EXPECT_THAT(unpacked(file, {2, 100'000}).error().message(), HasSubstr("a block of 65536 bytes needs"));
}

TEST(Gzip, BytesBehindTheLastMemberAreAnErrorUnlessIgnored) {
  const ByteVector raw = testing::matchable_bytes(1000, 2), file = joined({packed_by_zlib(raw, 6), {0, 0, 7, 0}});
  EXPECT_THAT(unpacked(file).error().message(), HasSubstr("bytes after the last member"));
  Executor executor(2);
  DeflateCoder coder(executor);
  format::MemorySource source(file, "file");
  format::MemorySink sink;
  std::pair<uint64_t, uint64_t> ignored;
  ASSERT_TRUE(decompress_gzip(source, sink, executor, coder,
                              {.ignore_garbage = [&](uint64_t at, uint64_t count) { ignored = {at, count}; }}));
  EXPECT_EQ(ignored, std::pair(uint64_t{file.size() - 4}, uint64_t{4}));
  EXPECT_TRUE(sink.bytes() == raw);
}

TEST(Gzip, AMissingEndOfBgzfIsNoted) {
  const ByteVector raw = testing::matchable_bytes(100'000, 6), whole = *packed(raw, {.level = 1});
  const auto noted = [](const ByteVector& file) {
    Executor executor;
    DeflateCoder coder(executor);
    format::MemorySource source(file, "file");
    format::MemorySink sink;
    uint64_t at = 0;
    EXPECT_TRUE(
        decompress_gzip(source, sink, executor, coder, {.note_missing_end = [&](uint64_t offset) { at = offset; }}));
    return at;
  };
  const ByteVector cut(whole.begin(), whole.end() - 28);
  EXPECT_EQ(noted(whole), 0u);
  EXPECT_EQ(noted(cut), cut.size());
  EXPECT_EQ(noted(joined({cut, packed_by_zlib(raw, 6)})), 0u);
  EXPECT_EQ(noted(joined({packed_by_zlib(raw, 6), cut})), packed_by_zlib(raw, 6).size() + cut.size());
  EXPECT_THAT(unpacked(joined({cut, ByteVector{0x1f}})).error().message(), HasSubstr("found 1 byte of it"));
}

TEST(Gzip, AnErrorNamesTheMember) {
  const ByteVector raw = testing::matchable_bytes(1'000'000, 6), whole = *packed(raw, {.level = 1});
  size_t begin = 0;
  for (int member = 0; member < 5; ++member) begin += size_t{whole[begin + 16]} + 256 * size_t{whole[begin + 17]} + 1;
  ByteVector file = whole;
  file[begin + 100] ^= 0x55;
  EXPECT_THAT(unpacked(file).error().message(), HasSubstr(fmt::format("file, member 5, byte {}: ", begin)));
  file = joined({packed_by_zlib(raw, 6), packed_by_zlib(raw, 6)});
  file[file.size() - 8] ^= 1;
  EXPECT_EQ(unpacked(file).error().kind, ErrorKind::bad_checksum);
  EXPECT_THAT(unpacked(file).error().message(),
              HasSubstr(fmt::format("file, member 1, byte {}: CRC-32", file.size() / 2)));
}

// Of members without BGZF's size, which this project believes and zlib ignores.
TEST(Gzip, OfDamagedMembersZlibSaysTheSame) {
  std::mt19937 random(7);
  const ByteVector raw = testing::matchable_bytes(3000, 9);
  const ByteVector files[] = {packed_by_zlib(raw, 1), packed_by_zlib(raw, 9),
                              joined({packed_by_zlib(raw, 6), packed_by_zlib({}, 6)})};
  for (int i = 0; i < 3000; ++i) {
    ByteVector file = files[i % 3];
    for (auto flips = 1 + random() % 3; flips != 0; --flips)
      file[i % 2 == 0 ? random() % 20 : random() % file.size()] ^= static_cast<uint8_t>(1u << random() % 8);
    if ((file[3] & 2) != 0) continue;  // zlib checks the header's CRC, as gzip does not
    const auto theirs = by_zlib(file);
    const auto ours = unpacked(file, {1});
    ASSERT_EQ(ours.has_value(), theirs.has_value()) << (ours ? "read here alone" : ours.error().message());
    ASSERT_TRUE(!ours || *ours == *theirs);
  }
}

constexpr std::pair<DeflateWrapper, int> kWrappers[] = {
    {DeflateWrapper::none, kDeflateBits}, {DeflateWrapper::zlib, kZlibBits}, {DeflateWrapper::gzip, kGzipBits}};

TEST(DeflateItems, GoThereAndBackAndZlibReadsThem) {
  Executor executor(3);
  DeflateCoder coder(executor);
  for (const auto& [wrapper, bits] : kWrappers) {
    for (const int level : {1, 6, 12}) {
      std::vector<ByteVector> raw, room, back;
      for (const size_t size : {0, 1, 100, 70'000, 300'000}) {
        raw.push_back(testing::matchable_bytes(size, 1));
        raw.push_back(testing::random_bytes(size, 1));
      }
      std::vector<CoderItem> items;
      for (const ByteVector& item : raw) room.emplace_back(deflate_bound(wrapper, item.size()));
      for (size_t i = 0; i < raw.size(); ++i) items.push_back({raw[i], room[i]});
      coder.compress(items, wrapper, level);
      for (size_t i = 0; i < raw.size(); ++i) {
        ASSERT_EQ(items[i].status, CoderItem::Status::ok);
        room[i].resize(items[i].output_bytes);
        EXPECT_TRUE(by_zlib(room[i], bits) == raw[i]);
        room.push_back(packed_by_zlib(raw[i], 6, bits));
      }
      items.clear();
      for (size_t i = 0; i < room.size(); ++i) back.emplace_back(raw[i % raw.size()].size());
      for (size_t i = 0; i < room.size(); ++i) items.push_back({room[i], back[i]});
      coder.decompress(items, wrapper);
      for (size_t i = 0; i < room.size(); ++i) {
        ASSERT_EQ(items[i].status, CoderItem::Status::ok);
        EXPECT_TRUE(back[i] == raw[i % raw.size()]);
      }
    }
  }
}

TEST(DeflateItems, EachHasAStatus) {
  Executor executor(2);
  DeflateCoder coder(executor);
  for (const auto& [wrapper, bits] : kWrappers) {
    const ByteVector raw = testing::matchable_bytes(5000, 1), good = packed_by_zlib(raw, 6, bits);
    ByteVector damaged = good, longer = good, cut(good.begin(), good.end() - 9), room[5], tiny(10);
    damaged[200] ^= 0xff;
    longer.push_back(1);
    for (ByteVector& each : room) each.resize(raw.size());
    std::array<CoderItem, 6> items = {CoderItem{good, room[0]}, CoderItem{damaged, room[1]}, CoderItem{longer, room[2]},
                                      CoderItem{cut, room[3]},  CoderItem{good, tiny},       CoderItem{good, room[4]}};
    coder.decompress(items, wrapper);
    EXPECT_EQ(items[0].status, CoderItem::Status::ok);
    EXPECT_TRUE(wrapper == DeflateWrapper::none || items[1].status == CoderItem::Status::damaged);
    EXPECT_EQ(items[2].status, CoderItem::Status::damaged);
    EXPECT_EQ(items[3].status, CoderItem::Status::damaged);
    EXPECT_EQ(items[4].status, CoderItem::Status::output_too_small);
    EXPECT_EQ(items[5].output_bytes, raw.size());
    items[0] = {raw, tiny};
    coder.compress(std::span(items).first(1), wrapper, 6);
    EXPECT_EQ(items[0].status, CoderItem::Status::output_too_small);
  }
}

}  // namespace
}  // namespace ptxkit::codec
