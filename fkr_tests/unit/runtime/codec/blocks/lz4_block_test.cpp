// Stitched blocks and blocks of zeros: liblz4 decodes them, and they obey LZ4's end-of-block rules.
#include "runtime/codec/blocks/lz4_block.hpp"

#include <random>

#include <gtest/gtest.h>
#include <lz4.h>

#include "kernels/lz4/lz4_compress_reference.hpp"

namespace ptxkit::codec {
namespace {

using ByteVector = std::vector<uint8_t>;

ByteVector decode(Bytes block, size_t raw_bytes) {
  ByteVector raw(raw_bytes);
  const int length =
      LZ4_decompress_safe(reinterpret_cast<const char*>(block.data()), reinterpret_cast<char*>(raw.data()),
                          static_cast<int>(block.size()), static_cast<int>(raw.size()));
  EXPECT_EQ(length, static_cast<int>(raw_bytes));
  return raw;
}

// The end of a block: where the last match starts and how many literals follow it.
struct Tail {
  size_t last_match_start = 0, last_literals = 0;
};
Tail tail_of(Bytes block) {
  Tail tail;
  size_t at = 0, position = 0;
  const auto length = [&](size_t nibble) {
    if (nibble < 15) return nibble;
    while (block[at] == 255) nibble += block[at++];
    return nibble + block[at++];
  };
  for (;;) {
    const unsigned token = block[at++];
    const size_t literals = length(token >> 4);
    at += literals;
    position += literals;
    tail.last_literals = literals;
    if (at == block.size()) return tail;
    at += 2;
    tail.last_match_start = position;
    position += length(token & 15) + 4;
  }
}

enum class Kind { text, noise, zeros };

ByteVector make(Kind kind, size_t size, unsigned seed) {
  std::mt19937 random(seed);
  ByteVector bytes(size);
  for (auto& byte : bytes) {
    byte = kind == Kind::zeros ? 0 : static_cast<uint8_t>(kind == Kind::noise ? random() : "aabacbad"[random() % 8]);
  }
  return bytes;
}

// Compresses each chunk with the reference encoder and stitches the results.
std::optional<ByteVector> compress_stitched(const ByteVector& raw, std::span<const size_t> chunk_sizes) {
  std::vector<ByteVector> outputs;
  std::vector<ChunkEncoding> chunks;
  size_t begin = 0;
  for (const size_t size : chunk_sizes) {
    outputs.emplace_back(size);
    const auto item = kernels::lz4_compress_reference(
        Bytes(raw).subspan(begin, size), outputs.back(),
        size <= kernels::kMaxPageBytes ? kernels::kPageVariant : kernels::kChunkVariant);
    chunks.push_back(
        {static_cast<uint32_t>(size), static_cast<ChunkFlag>(item.flag), Bytes(outputs.back()).first(item.size_bytes)});
    begin += size;
  }
  EXPECT_EQ(begin, raw.size());
  ByteVector block(raw.size());
  const auto length = stitch(raw, chunks, block);
  if (!length) return std::nullopt;
  block.resize(*length);
  return block;
}

TEST(Stitch, EveryMixOfThreeKindsRoundTrips) {
  const size_t sizes[] = {65536, 65536, 65536, 300};
  for (int mix = 0; mix < 81; ++mix) {
    ByteVector raw;
    for (int i = 0, rest = mix; i < 4; ++i, rest /= 3) {
      const ByteVector part = make(static_cast<Kind>(rest % 3), sizes[i], static_cast<unsigned>(mix * 4 + i));
      raw.insert(raw.end(), part.begin(), part.end());
    }
    const auto block = compress_stitched(raw, sizes);
    if (!block) {
      EXPECT_EQ(mix % 27, 13) << "only noise is incompressible";  // three large chunks of noise
      continue;
    }
    EXPECT_LT(block->size(), raw.size());
    EXPECT_EQ(decode(*block, raw.size()), raw) << mix;
    const Tail tail = tail_of(*block);
    EXPECT_GE(tail.last_literals, 5u) << mix;
    EXPECT_LE(tail.last_match_start + 12, raw.size()) << mix;
  }
}

TEST(Stitch, ShortChunksOfEverySize) {
  // Chunks too short for any match, and lengths around the 15 and 255 steps of the length code.
  for (size_t size = 1; size < 600; size += size < 40 ? 1 : 37) {
    const size_t sizes[] = {size, 512, size};
    for (const Kind kind : {Kind::text, Kind::noise, Kind::zeros}) {
      ByteVector raw = make(kind, size, 1);
      const ByteVector middle = make(Kind::text, 512, 2), last = make(kind, size, 3);
      raw.insert(raw.end(), middle.begin(), middle.end());
      raw.insert(raw.end(), last.begin(), last.end());
      const auto block = compress_stitched(raw, sizes);
      if (block) {
        EXPECT_EQ(decode(*block, raw.size()), raw) << size;
      }
    }
  }
}

TEST(Stitch, RefusesWhatDoesNotFit) {
  const ByteVector raw = make(Kind::text, 4096, 5);
  ByteVector output(4096), small(10);
  const auto item = kernels::lz4_compress_reference(raw, output, kernels::kPageVariant);
  ASSERT_EQ(item.flag, kernels::PageFlag::compressed);
  const ChunkEncoding chunk{4096, ChunkFlag::compressed, Bytes(output).first(item.size_bytes)};
  EXPECT_FALSE(stitch(raw, {&chunk, 1}, small).has_value());
  ByteVector enough(4096);
  EXPECT_EQ(stitch(raw, {&chunk, 1}, enough), item.size_bytes);
  EXPECT_EQ(Bytes(enough).first(item.size_bytes)[0], output[0]);
}

TEST(EncodeRun, EverySizeDecodesToOneRepeatedByte) {
  for (uint32_t size :
       {0u, 1u, 12u, 13u, 14u, 24u, 25u, 26u, 100u, 279u, 280u, 281u, 4096u, 65536u, 1u << 20, 4u << 20}) {
    for (const uint8_t byte : {uint8_t{0}, uint8_t{0xa5}}) {
      const ByteVector raw(size, byte);
      ByteVector output(size);
      const auto length = encode_run(raw, output);
      if (size <= 12) {
        EXPECT_FALSE(length.has_value()) << size;
        continue;
      }
      ASSERT_TRUE(length.has_value()) << size;
      EXPECT_LE(*length, size / 255 + 12) << size;
      EXPECT_EQ(decode(Bytes(output).first(*length), size), raw) << size;
      const Tail tail = tail_of(Bytes(output).first(*length));
      EXPECT_GE(tail.last_literals, 5u);
      EXPECT_LE(tail.last_match_start + 12, size);
    }
  }
}

}  // namespace
}  // namespace ptxkit::codec
