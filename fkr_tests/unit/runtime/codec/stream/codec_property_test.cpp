// Property tests with generated streams: any bytes survive any frame shape; damage to a checksummed stream is detected;
// nothing crashes on noise.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "fkr_tests/cases/corpus.hpp"
#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

using ByteVector = std::vector<uint8_t>;

struct Codec {
  Executor executor{2};
  std::unique_ptr<Backend> backend = make_cpu_backend(executor);

  ByteVector frame_of(const ByteVector& raw, const format::FrameHeader& header, Encoder encoder) {
    format::MemorySource source(raw, "raw");
    format::MemorySink sink;
    RC_ASSERT(
        compress_stream(source, sink, *backend, {.header = header, .encoder = encoder, .progress = {}}).has_value());
    return sink.take();
  }
  Result<ByteVector> raw_of(const ByteVector& frame) {
    format::MemorySource source(frame, "frame");
    format::MemorySink sink;
    if (auto done = decompress_stream(source, sink, *backend); !done) return tl::unexpected(done.error());
    return sink.take();
  }
};

rc::Gen<ByteVector> any_content(size_t max_bytes) {
  return rc::gen::exec([max_bytes] {
    ByteVector all;
    const int pieces = *rc::gen::inRange(0, 4);
    for (int i = 0; i < pieces; ++i) {
      const auto size = *rc::gen::oneOf(rc::gen::inRange<size_t>(0, 40), rc::gen::inRange<size_t>(0, max_bytes),
                                        rc::gen::element<size_t>(65535, 65536, 65537, 262144));
      const auto seed = *rc::gen::arbitrary<uint32_t>();
      const ByteVector piece =
          *rc::gen::element(testing::matchable_bytes(size, seed), testing::random_bytes(size, seed), ByteVector(size));
      all.insert(all.end(), piece.begin(), piece.end());
    }
    return all;
  });
}

rc::Gen<format::FrameHeader> any_header() {
  return rc::gen::exec([] {
    format::FrameHeader header;
    header.block_size_id = *rc::gen::inRange(4, 8);
    header.independent_blocks = *rc::gen::arbitrary<bool>();
    header.block_checksum = *rc::gen::arbitrary<bool>();
    header.content_checksum = *rc::gen::arbitrary<bool>();
    return header;
  });
}

TEST(CodecProperty, EveryContentInEveryShapeRoundTrips) {
  Codec codec;
  EXPECT_TRUE(rc::check([&] {
    const ByteVector raw = *any_content(400'000);
    auto header = *any_header();
    if (*rc::gen::arbitrary<bool>()) header.content_bytes = raw.size();
    const bool reproducible = header.independent_blocks && *rc::gen::arbitrary<bool>();
    const ByteVector frame = codec.frame_of(raw, header, reproducible ? Encoder::reproducible : Encoder::fast);
    const auto decoded = codec.raw_of(frame);
    RC_ASSERT(decoded.has_value());
    RC_ASSERT(*decoded == raw);
    // Incompressible bytes are stored raw: a frame grows by its headers only.
    RC_ASSERT(frame.size() <= raw.size() + 8 * (raw.size() / header.block_bytes() + 1) + 30);
  }));
}

// Not every flip is detectable: the match length in the last token of a block is never read.
TEST(CodecProperty, AnyFlippedBitIsRefusedOrChangesNothing) {
  Codec codec;
  EXPECT_TRUE(rc::check([&] {
    const ByteVector raw = *any_content(3'000);
    auto header = *any_header();
    header.content_checksum = true;
    ByteVector frame = codec.frame_of(raw, header, Encoder::fast);
    const auto bit = *rc::gen::inRange<size_t>(0, frame.size() * 8);
    frame[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    const auto decoded = codec.raw_of(frame);
    const bool is_right = !decoded || *decoded == raw;  // RC_ASSERT would evaluate both sides
    RC_ASSERT(is_right);
  }));
}

TEST(CodecProperty, AnyTruncationIsRefused) {
  Codec codec;
  EXPECT_TRUE(rc::check([&] {
    ByteVector frame = codec.frame_of(*any_content(3'000), *any_header(), Encoder::fast);
    frame.resize(*rc::gen::inRange<size_t>(0, frame.size()));
    const auto decoded = codec.raw_of(frame);
    RC_ASSERT(!decoded.has_value());
    RC_ASSERT(decoded.error().what.find("truncated") != std::string::npos);
  }));
}

TEST(CodecProperty, DamagedFramesWithoutChecksumsNeverCrash) {
  Codec codec;
  EXPECT_TRUE(rc::check([&] {
    auto header = *any_header();
    header.block_checksum = header.content_checksum = false;
    ByteVector frame = codec.frame_of(*any_content(3'000), header, Encoder::fast);
    const int changes = *rc::gen::inRange(1, 9);
    for (int i = 0; i < changes; ++i)
      frame[*rc::gen::inRange<size_t>(7, frame.size())] = *rc::gen::arbitrary<uint8_t>();
    const auto decoded = codec.raw_of(frame);
    RC_CLASSIFY(decoded.has_value(), "still decodes");
    if (!decoded) RC_ASSERT(!decoded.error().where.empty());
  }));
}

}  // namespace
}  // namespace ptxkit::codec
