// Encoders and decoders as PTX: the bytes and statuses of their references, so that each side decodes the other's
// output; for valid, damaged and cut streams.
#include <algorithm>
#include <functional>
#include <random>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/transforms.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"
#include "kernels/abi.hpp"
#include "kernels/entropy/fse_reference.hpp"
#include "kernels/entropy/huffman_reference.hpp"
#include "kernels/entropy/lane_format.hpp"
#include "kernels/entropy/rans_chunked_reference.hpp"
#include "kernels/entropy/rans_format.hpp"
#include "kernels/entropy/rans_warp_reference.hpp"
#include "kernels/images.hpp"
#include "kernels/lz77/abi.hpp"
#include "kernels/lz77/lz77_reference.hpp"
#include "kernels/transform_abi.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Block;
using ptxkit::testing::Bytes;
using ptxkit::testing::kernel_image;
using ptxkit::testing::TransformPair;
using ptxkit::testing::TransformReference;

// Runs the kernel over all items at once. Expects the reference's statuses, lengths and bytes, no fault, and nothing
// written between the rooms.
std::vector<Bytes> expect_as_reference(std::string_view kernel, const std::vector<uint32_t>& options,
                                       const std::vector<Block>& items, const TransformReference& reference,
                                       std::string_view build) {
  const KernelImage& image = kernel_image(kernel, build);
  const LaunchShape shape{.block_threads = image.block_threads, .items_per_block = 1};
  const auto ran = ptxkit::testing::emulate_items(image.ptx, kernel, shape, options, items);
  EXPECT_EQ(ran.report, "") << kernel << ", " << build;
  if (!ran.report.empty()) return {};
  EXPECT_FALSE(ran.touched_outside || ran.claims_too_much) << kernel;
  for (size_t i = 0; i < items.size(); ++i) {
    Bytes expected(items[i].capacity);
    const auto outcome = reference(items[i].bytes, expected);
    expected.resize(outcome.size_bytes);
    EXPECT_EQ(status_text(static_cast<StreamStatus>(ran.codes[i])), status_text(outcome.status))
        << kernel << ", item " << i << " of " << items[i].bytes.size() << " bytes";
    EXPECT_TRUE(ran.outputs[i] == expected)
        << kernel << ", item " << i << " of " << items[i].bytes.size() << " bytes: " << ran.outputs[i].size()
        << " bytes, " << expected.size() << " expected";
  }
  return ran.outputs;
}

std::vector<Block> with_capacity(const std::vector<Bytes>& items, const std::function<size_t(size_t)>& capacity) {
  std::vector<Block> blocks;
  for (const Bytes& item : items) blocks.push_back({item, static_cast<uint32_t>(capacity(item.size()))});
  return blocks;
}

class Transforms : public ::testing::TestWithParam<TransformPair> {};

// Reference and kernel must write the same stream, and both must decode it.
TEST_P(Transforms, KernelAndReferenceReadEachOther) {
  const TransformPair& pair = GetParam();
  for (const size_t longest : {40u, 3001u}) {
    const auto inputs = ptxkit::testing::transform_inputs(longest);
    const auto build = longest == 40 ? "debug" : "release";
    std::vector<Bytes> streams;
    if (pair.encoder.empty()) {
      for (const Bytes& raw : inputs) streams.push_back(ptxkit::testing::coded(pair, raw));
    } else {
      streams = expect_as_reference(pair.encoder, pair.encoder_options, with_capacity(inputs, pair.bound), pair.encode,
                                    build);
    }
    ASSERT_EQ(streams.size(), inputs.size());
    std::vector<Block> coded;
    for (size_t i = 0; i < inputs.size(); ++i) coded.push_back({streams[i], static_cast<uint32_t>(inputs[i].size())});
    const auto decoded = expect_as_reference(pair.decoder, pair.decoder_options, coded, pair.decode, build);
    EXPECT_TRUE(decoded == inputs) << pair.label;
  }
}

// Chunks of 4, 8 and 16 KiB, and of 65535 bytes, are several in an item of 64 KiB; the last one is short.
TEST_P(Transforms, ItemsOf64KibibytesInSeveralChunks) {
  const TransformPair& pair = GetParam();
  const std::vector<Bytes> raws = {ptxkit::testing::matchable_bytes((64 << 10) + 5, 3)};
  std::vector<Bytes> streams = {ptxkit::testing::coded(pair, raws[0])};
  if (!pair.encoder.empty()) {
    streams = expect_as_reference(pair.encoder, pair.encoder_options, with_capacity(raws, pair.bound), pair.encode,
                                  "release");
    ASSERT_EQ(streams.size(), 1u);
  }
  if (pair.encoder == kRansChunkedEncode) {
    const uint32_t chunk_bytes = pair.encoder_options[2];
    const size_t chunk_count = (raws[0].size() + chunk_bytes - 1) / chunk_bytes;
    EXPECT_GE(chunk_count, 2u);
    EXPECT_EQ(streams[0][kRansChunkCountAt] | streams[0][kRansChunkCountAt + 1] << 8, chunk_count);
  }
  const auto decoded =
      expect_as_reference(pair.decoder, pair.decoder_options, {{streams[0], static_cast<uint32_t>(raws[0].size())}},
                          pair.decode, "release");
  EXPECT_TRUE(decoded == raws) << pair.label;
}

TEST_P(Transforms, RoomsThatAreTooSmall) {
  const TransformPair& pair = GetParam();
  const Bytes raw = ptxkit::testing::matchable_bytes(500, 1);
  const Bytes stream = ptxkit::testing::coded(pair, raw);
  std::vector<Block> raws, streams;
  // Encoders that write from the end of the room move the result down: by nothing, by less than a word, by more.
  for (const Bytes& item : {raw, ptxkit::testing::matchable_bytes(5001, 2)}) {
    const size_t size = ptxkit::testing::coded(pair, item).size();
    for (const size_t room : {size_t{0}, size_t{1}, size / 2, size - 1, size, size + 1, size + 2, size + 3, size + 70})
      raws.push_back({item, static_cast<uint32_t>(room)});
  }
  for (const uint32_t room : {0u, 1u, 250u, 499u, 500u, 501u}) streams.push_back({stream, room});
  for (const auto build : ptxkit::testing::kVariants) {
    if (!pair.encoder.empty()) expect_as_reference(pair.encoder, pair.encoder_options, raws, pair.encode, build);
    expect_as_reference(pair.decoder, pair.decoder_options, streams, pair.decode, build);
  }
}

TEST_P(Transforms, DamagedStreams) {
  const TransformPair& pair = GetParam();
  std::mt19937 random(static_cast<uint32_t>(pair.label.size()));
  std::vector<Block> items;
  for (const Bytes& raw : ptxkit::testing::transform_inputs(300)) {
    const Bytes good = ptxkit::testing::coded(pair, raw);
    items.push_back({Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(random() % good.size())), 400});
    for (int i = 0; i < 4; ++i) {
      items.push_back({good, 400});
      ptxkit::testing::damage(items.back().bytes, random);
    }
  }
  expect_as_reference(pair.decoder, pair.decoder_options, items, pair.decode, "debug");
}

INSTANTIATE_TEST_SUITE_P(All, Transforms, ::testing::ValuesIn(ptxkit::testing::transform_pairs()),
                         [](const auto& test) { return test.param.name(); });

TEST(DecoderCases, StreamsThatAreJustRightOrJustNot) {
  const auto pairs = ptxkit::testing::transform_pairs();
  for (const auto& test : ptxkit::testing::decoder_cases()) {
    SCOPED_TRACE(test.label);
    const auto pair =
        std::find_if(pairs.begin(), pairs.end(), [&](const auto& p) { return p.decoder == test.decoder; });
    expect_as_reference(pair->decoder, pair->decoder_options, {{test.stream, ptxkit::testing::kCaseRoom}}, pair->decode,
                        "release");
  }
}

TEST(RansChunkedEncode, OptionsOutOfRange) {
  // With one byte in each chunk, the first item has as many chunks as a stream can count, but no room for them.
  const std::vector<Block> items = {{Bytes(kMaxRansChunks, 'a'), 1000}, {Bytes(70000, 'a'), 1000}};
  for (const RansChunkedOptions options :
       {RansChunkedOptions{8, 8, 1024}, RansChunkedOptions{15, 8, 1024}, RansChunkedOptions{12, 0, 1024},
        RansChunkedOptions{12, 33, 1024}, RansChunkedOptions{12, 8, 0}, RansChunkedOptions{12, 8, 65536},
        RansChunkedOptions{12, 8, 1}}) {
    expect_as_reference(
        kRansChunkedEncode, {options.scale_bits, options.lanes, options.chunk_bytes}, items,
        [&](auto src, auto dst) { return rans_chunked_encode_reference(src, dst, options); }, "release");
  }
}

TEST(HuffmanEncode, DeepCodesAndItemsAboveTheLimit) {
  std::vector<Block> items;
  for (const size_t size : {700u, 6764u, 17710u}) items.push_back({ptxkit::testing::fibonacci_bytes(size), 20000});
  items.push_back({Bytes(kMaxLanedBytes + 1), 100});
  expect_as_reference(
      kHuffmanEncode, {}, items, [](auto src, auto dst) { return huffman_encode_reference(src, dst); }, "debug");
}

TEST(Lz77Decode, ABlockAbove16Mebibytes) {
  const ptxkit::testing::LargeLzBlock large((16 << 20) + 4099);
  const auto decoded = expect_as_reference(
      kLz77Decode, {}, {{large.block, static_cast<uint32_t>(large.raw.size())}},
      [](auto src, auto dst) { return lz77_decode_reference(src, dst); }, "release");
  ASSERT_EQ(decoded.size(), 1u);
  EXPECT_TRUE(decoded[0] == large.raw);
}

TEST(HuffmanDecode, MoreLongCodesThanItsTableHas) {
  const Bytes raw = ptxkit::testing::bytes_with_many_long_codes();
  Bytes stream(huffman_bound(raw.size()));
  stream.resize(huffman_encode_reference(raw, stream).size_bytes);
  for (const auto build : ptxkit::testing::kVariants) {
    const auto outputs = expect_as_reference(
        kHuffmanDecode, {}, {{stream, static_cast<uint32_t>(raw.size())}},
        [](auto src, auto dst) { return huffman_decode_reference(src, dst); }, build);
    ASSERT_EQ(outputs.size(), 1u);
    EXPECT_TRUE(outputs[0] == raw);
  }
}

TEST(FseEncode, OptionsOutOfRange) {
  for (const uint32_t bits : {0u, 4u, 13u}) {
    expect_as_reference(
        kFseEncode, {bits}, {{Bytes(100, 'a'), 1000}, {Bytes(kMaxLanedBytes + 1), 1000}},
        [&](auto src, auto dst) { return fse_encode_reference(src, dst, {bits}); }, "release");
  }
}

TEST(RansWarpEncode, OptionsOutOfRange) {
  for (const RansWarpOptions options :
       {RansWarpOptions{8, 14}, RansWarpOptions{13, 14}, RansWarpOptions{12, 7}, RansWarpOptions{12, 21}}) {
    expect_as_reference(
        kRansWarpEncode, {options.scale_bits, options.chunk_bits}, {{Bytes(100, 'a'), 1000}},
        [&](auto src, auto dst) { return rans_warp_encode_reference(src, dst, options); }, "release");
  }
}

// Each chunk has its own lane count, which may differ from the previous one.
TEST(RansChunkedDecode, ChunksWithDifferentLaneCounts) {
  for (const auto& chunks : ptxkit::testing::unequal_rans_chunks()) {
    // Four rooms with four different alignments.
    const std::vector<Block> items(4, {chunks.stream, static_cast<uint32_t>(chunks.raw.size() | 2)});
    for (const auto build : ptxkit::testing::kVariants) {
      const auto outputs = expect_as_reference(
          kRansChunkedDecode, {}, items, [](auto src, auto dst) { return rans_chunked_decode_reference(src, dst); },
          build);
      ASSERT_EQ(outputs.size(), items.size());
      for (const Bytes& output : outputs) EXPECT_TRUE(output == chunks.raw);
    }
  }
}

}  // namespace
}  // namespace ptxkit::kernels
