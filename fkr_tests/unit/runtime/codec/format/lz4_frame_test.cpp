// Tests frames byte by byte: output of `lz4` 1.9.4 is read and written identically, and every malformed stream is an
// error with its position, the expected and the found value.
#include "runtime/codec/format/lz4_frame.hpp"

#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/lz4_frame_reader.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "support/result.hpp"

namespace ptxkit::format {
namespace {

using ::testing::HasSubstr;
using ByteVector = std::vector<uint8_t>;

// Written by `lz4 -B4` (empty input), `lz4 -B4 -BX`, `lz4 -B5 -BD --content-size --no-frame-crc` and `lz4 -l`. The
// content is kHello.
const std::string kHello = "hello hello hello hello hello hello\n";
const ByteVector kEmptyFrame = {0x04, 0x22, 0x4d, 0x18, 0x64, 0x40, 0xa7, 0, 0, 0, 0, 0x05, 0x5d, 0xcc, 0x02};
const ByteVector kChecksumFrame = {0x04, 0x22, 0x4d, 0x18, 0x74, 0x40, 0xbd, 0x10, 0x00, 0x00, 0x00, 0x6f, 0x68,
                                   0x65, 0x6c, 0x6c, 0x6f, 0x20, 0x06, 0x00, 0x06, 0x50, 0x65, 0x6c, 0x6c, 0x6f,
                                   0x0a, 0x1f, 0x7a, 0xf8, 0x92, 0x00, 0x00, 0x00, 0x00, 0x53, 0xce, 0x99, 0x36};
const ByteVector kLinkedFrame = {0x04, 0x22, 0x4d, 0x18, 0x68, 0x40, 0x24, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                                 0x00, 0xec, 0x10, 0x00, 0x00, 0x00, 0x6f, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x20,
                                 0x06, 0x00, 0x06, 0x50, 0x65, 0x6c, 0x6c, 0x6f, 0x0a, 0x00, 0x00, 0x00, 0x00};
const ByteVector kLegacyFrame = {0x02, 0x21, 0x4c, 0x18, 0x10, 0x00, 0x00, 0x00, 0x6f, 0x68, 0x65, 0x6c,
                                 0x6c, 0x6f, 0x20, 0x06, 0x00, 0x06, 0x50, 0x65, 0x6c, 0x6c, 0x6f, 0x0a};
const ByteVector kSkippableFrame = {0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};

ByteVector operator+(ByteVector left, const ByteVector& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Result<std::string> decode(const ByteVector& stream) {
  codec::Executor executor(2);
  const auto backend = codec::make_cpu_backend(executor);
  MemorySource source(stream, "in.lz4");
  MemorySink sink;
  auto done = codec::decompress_stream(source, sink, *backend);
  if (!done) return tl::unexpected(done.error());
  EXPECT_EQ(done->stored_bytes, stream.size());
  EXPECT_EQ(done->raw_bytes, sink.bytes().size());
  return std::string(sink.bytes().begin(), sink.bytes().end());
}

Error error_of(const ByteVector& stream) {
  auto decoded = decode(stream);
  if (decoded) {
    ADD_FAILURE() << "expected an error, found " << decoded->size() << " bytes";
    return {};
  }
  return decoded.error();
}

ByteVector with_byte(ByteVector bytes, size_t at, uint8_t value) {
  bytes[at] = value;
  return bytes;
}

ByteVector with_header_hash(ByteVector bytes, size_t hash_at) {
  bytes[hash_at] = header_hash(Bytes(bytes).subspan(4, hash_at - 4));
  return bytes;
}

TEST(Lz4FrameWriter, WritesWhatLz4Writes) {
  FrameHeader header;
  header.block_size_id = 4;
  ByteVector out;
  append_frame_header(header, out);
  append_frame_end(header, ContentHash().value(), out);
  EXPECT_EQ(out, kEmptyFrame);

  header.block_checksum = true;
  ContentHash hash;
  hash.update(Bytes(reinterpret_cast<const uint8_t*>(kHello.data()), kHello.size()));
  out.clear();
  append_frame_header(header, out);
  append_block(header, Bytes(kChecksumFrame).subspan(11, 16), false, out);
  append_frame_end(header, hash.value(), out);
  EXPECT_EQ(out, kChecksumFrame);
}

TEST(Lz4FrameWriter, SetsTheStoredBit) {
  FrameHeader header;
  header.content_checksum = false;
  ByteVector out;
  append_frame_header(header, out);
  const size_t header_bytes = out.size();
  const ByteVector payload = {1, 2, 3};
  append_block(header, payload, true, out);
  EXPECT_EQ(ByteVector(out.begin() + static_cast<ptrdiff_t>(header_bytes), out.end()),
            (ByteVector{3, 0, 0, 0x80, 1, 2, 3}));
}

TEST(Lz4FrameReader, ReadsEveryKindOfFrame) {
  EXPECT_EQ(decode(kEmptyFrame).value(), "");
  EXPECT_EQ(decode(kChecksumFrame).value(), kHello);
  EXPECT_EQ(decode(kLinkedFrame).value(), kHello);
  EXPECT_EQ(decode(kLegacyFrame).value(), kHello);
  EXPECT_EQ(decode(kSkippableFrame).value(), "");
}

TEST(Lz4FrameReader, ReadsConcatenatedFrames) {
  EXPECT_EQ(decode(kChecksumFrame + kSkippableFrame + kLinkedFrame + kEmptyFrame + kChecksumFrame).value(),
            kHello + kHello + kHello);
  // A legacy frame ends at the next magic number.
  EXPECT_EQ(decode(kLegacyFrame + kChecksumFrame + kLegacyFrame + kLegacyFrame + kSkippableFrame).value(),
            kHello + kHello + kHello + kHello);
}

TEST(Lz4FrameReader, YieldsEventsWithPositions) {
  const ByteVector stream = kSkippableFrame + kLinkedFrame;
  MemorySource source(stream, "in.lz4");
  FrameReader reader(source);
  const auto skipped = std::get<SkippedFrame>(reader.next().value());
  EXPECT_EQ(skipped.magic, 0x184D2A53u);
  EXPECT_EQ(skipped.content_bytes, 3u);
  const auto begin = std::get<FrameBegin>(reader.next().value());
  EXPECT_EQ(begin.frame_index, 1u);
  EXPECT_EQ(begin.offset, 11u);
  FrameHeader expected;
  expected.block_size_id = 4;
  expected.independent_blocks = true;
  expected.content_checksum = false;
  expected.content_bytes = kHello.size();
  EXPECT_EQ(begin.header, expected);
  const auto block = std::get<BlockRead>(reader.next().value());
  EXPECT_EQ(block.payload.size(), 16u);
  EXPECT_EQ(block.offset, 11u + 15u);
  EXPECT_FALSE(block.stored);
  const auto end = std::get<FrameEnd>(reader.next().value());
  EXPECT_EQ(end.block_count, 1u);
  EXPECT_FALSE(end.content_checksum.has_value());
  EXPECT_EQ(std::get<EndOfInput>(reader.next().value()).frame_count, 2u);
  EXPECT_TRUE(std::holds_alternative<EndOfInput>(reader.next().value()));
}

TEST(Lz4FrameErrors, NoFrameAtAll) {
  EXPECT_EQ(error_of({}).message(),
            "in.lz4, frame 0, byte 0: truncated: expected 4 bytes of a frame's magic number, found 0");
  EXPECT_EQ(error_of({4, 34}).message(),
            "in.lz4, frame 0, byte 0: truncated: expected 4 bytes of a frame's magic number, found 2");
  EXPECT_EQ(error_of({'P', 'K', 3, 4, 5}).message(),
            "in.lz4, frame 0, byte 0: not an LZ4 file: expected the magic number 0x184d2204 of an LZ4 frame, found "
            "0x04034b50");
}

TEST(Lz4FrameErrors, BytesAfterTheLastFrame) {
  const Error error = error_of(kChecksumFrame + ByteVector{9, 9, 9, 9, 9});
  EXPECT_THAT(error.what, HasSubstr("bytes after the last frame"));
  EXPECT_EQ(error.where, "in.lz4, frame 1, byte 39");
}

TEST(Lz4FrameErrors, HeaderFields) {
  EXPECT_EQ(error_of(with_byte(kChecksumFrame, 4, 0xb4)).message(),
            "in.lz4, frame 0, byte 4: expected frame format version 1, found 2; the file was written in a later format "
            "or is damaged");
  EXPECT_THAT(error_of(with_byte(kChecksumFrame, 4, 0x76)).what,
              HasSubstr("expected reserved bit 1 of the flags to be 0"));
  EXPECT_THAT(error_of(with_byte(kChecksumFrame, 5, 0x41)).what, HasSubstr("found 0x41"));
  EXPECT_THAT(error_of(with_byte(kChecksumFrame, 5, 0xc0)).what, HasSubstr("reserved bits of the block descriptor"));
  EXPECT_EQ(error_of(with_byte(kChecksumFrame, 5, 0x30)).message(),
            "in.lz4, frame 0, byte 5: expected a block size id of 4 to 7, found 3");
  EXPECT_EQ(error_of(with_byte(kChecksumFrame, 6, 0xbc)).message(),
            "in.lz4, frame 0, byte 6: header checksum mismatch: expected 0xbc as recorded, found 0xbd over the "
            "header's bytes");
}

TEST(Lz4FrameErrors, DictionaryIsRefused) {
  ByteVector stream = {0x04, 0x22, 0x4d, 0x18, 0x61, 0x40, 7, 0, 0, 0, 0, 0, 0, 0, 0};
  stream = with_header_hash(stream, 10);
  const Error error = error_of(stream);
  EXPECT_EQ(error.what, "the frame needs dictionary 7, expected a frame without one");
  EXPECT_THAT(error.todo, HasSubstr("dictionary that wrote it"));
}

TEST(Lz4FrameErrors, BlockTooLarge) {
  ByteVector stream = kChecksumFrame;
  stream[9] = 1;  // 16 + 65536 bytes in a frame of 64 KiB blocks
  EXPECT_EQ(error_of(stream).message(),
            "in.lz4, frame 0, block 0, byte 7: expected a block of at most 65536 bytes, found a size of 65552");
}

TEST(Lz4FrameErrors, Checksums) {
  EXPECT_EQ(error_of(with_byte(kChecksumFrame, 27, 0x1e)).message(),
            "in.lz4, frame 0, block 0, byte 27: block checksum mismatch: expected 0x92f87a1e as recorded, found "
            "0x92f87a1f over the "
            "block's bytes");
  EXPECT_EQ(error_of(with_byte(kChecksumFrame, 38, 0x37)).message(),
            "in.lz4, frame 0, byte 31: content checksum mismatch: expected 0x3799ce53 as recorded, found 0x3699ce53 "
            "over the decoded bytes");
}

TEST(Lz4FrameErrors, ContentSize) {
  EXPECT_EQ(error_of(with_header_hash(with_byte(kLinkedFrame, 6, 0x25), 14)).message(),
            "in.lz4, frame 0, byte 35: content size mismatch: expected 37 bytes, found 36");
  EXPECT_EQ(error_of(with_header_hash(with_byte(kLinkedFrame, 6, 0x23), 14)).message(),
            "in.lz4, frame 0, block 0, byte 15: content size mismatch: expected 35 bytes, found at least 36");
}

TEST(Lz4FrameErrors, CorruptBlockNamesTheReason) {
  // Offset 0 and an offset before the first byte, in a frame without checksums.
  EXPECT_EQ(error_of(with_byte(kLinkedFrame, 26, 0)).message(),
            "in.lz4, frame 0, block 0, byte 15: corrupt block: a match has offset 0");
  EXPECT_EQ(error_of(with_byte(kLinkedFrame, 26, 7)).message(),
            "in.lz4, frame 0, block 0, byte 15: corrupt block: a match starts before the first output byte");
}

TEST(Lz4FrameErrors, LegacyBlockSize) {
  EXPECT_THAT(error_of(with_byte(kLegacyFrame, 7, 0x7f)).what, HasSubstr("expected a legacy block of 1 to"));
  EXPECT_THAT(error_of(ByteVector(kLegacyFrame.begin(), kLegacyFrame.begin() + 6)).what,
              HasSubstr("expected 4 bytes of a block size, found 2"));
}

TEST(Lz4FrameErrors, EveryTruncationIsRefused) {
  for (const ByteVector& whole : {kEmptyFrame, kChecksumFrame, kLinkedFrame, kSkippableFrame}) {
    for (size_t length = 0; length < whole.size(); ++length) {
      const Error error = error_of(ByteVector(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length)));
      EXPECT_THAT(error.what, HasSubstr("truncated")) << length;
      EXPECT_THAT(error.where, HasSubstr("in.lz4, frame 0")) << length;
    }
  }
}

TEST(Lz4FrameErrors, EveryFlippedBitIsRefused) {
  for (size_t bit = 0; bit < kChecksumFrame.size() * 8; ++bit) {
    ByteVector stream = kChecksumFrame;
    stream[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    auto decoded = decode(stream);
    // A flip in the magic number can at best make it that of a skippable frame, which would have to be longer than the
    // stream.
    EXPECT_FALSE(decoded.has_value()) << "bit " << bit;
  }
}

TEST(Lz4FrameErrors, TheFirstErrorInTheStreamWins) {
  // A corrupt second frame, then garbage: the corruption is reported although the reader finds the garbage in the same
  // batch.
  const ByteVector stream = kChecksumFrame + with_byte(kLinkedFrame, 26, 0) + ByteVector{1, 2, 3, 4};
  EXPECT_THAT(error_of(stream).where, HasSubstr("frame 1, block 0"));
}

TEST(Lz4FrameReader, ALyingSizeFieldCostsNoMemory) {
  // A 4 MiB block is announced, but 3 bytes follow: the reader must not allocate more than one step.
  FrameHeader header;
  ByteVector stream;
  append_frame_header(header, stream);
  stream = stream + ByteVector{0, 0, 0x40, 0, 1, 2, 3};
  EXPECT_THAT(error_of(stream).what, HasSubstr("expected 4194304 bytes of block data, found 3"));
}

}  // namespace
}  // namespace ptxkit::format
