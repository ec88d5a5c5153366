// Encoders and decoders on a GPU: the bytes and statuses of their references, for valid and for damaged streams.
#include <algorithm>

#include <gtest/gtest.h>

#include "fkr_tests/cases/transforms.hpp"
#include "fkr_tests/device/device.hpp"
#include "kernels/images.hpp"

namespace ptxkit::kernels {
namespace {

using ptxkit::testing::Bytes;
using ptxkit::testing::TransformPair;
using ptxkit::testing::TransformReference;

struct Item {
  Bytes bytes;
  uint32_t capacity;
};

constexpr uint8_t kPattern = 0xa5;

template <class T>
driver::DeviceMemory uploaded(const std::vector<T>& values, const driver::ContextPointer& context,
                              const driver::Stream& stream) {
  auto memory = driver::DeviceMemory::allocate(context, std::max<size_t>(values.size() * sizeof(T), 1)).value();
  const auto sent = memory.upload({reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)}, stream);
  EXPECT_TRUE(sent.has_value()) << sent.error().message();
  return memory;
}

// Runs the kernel over all items at once and compares with the reference. Rooms are three bytes apart, and the bytes
// between them must not change.
void expect_as_reference(std::string_view kernel, const std::vector<uint32_t>& options, const std::vector<Item>& items,
                         const TransformReference& reference) {
  const driver::ContextPointer context = *ptxkit::testing::device();
  const KernelImage* const image = find_kernel_image(kernel, context->info().major, context->info().minor);
  ASSERT_NE(image, nullptr) << kernel;
  auto loaded = driver::Kernel::load(context, *image);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message();
  Bytes src;
  std::vector<uint64_t> src_offsets, dst_offsets;
  std::vector<uint32_t> src_sizes, capacities;
  uint64_t dst_bytes = 3;
  for (const Item& item : items) {
    src_offsets.push_back(src.size());
    src_sizes.push_back(static_cast<uint32_t>(item.bytes.size()));
    src.insert(src.end(), item.bytes.begin(), item.bytes.end());
    dst_offsets.push_back(dst_bytes);
    capacities.push_back(item.capacity);
    dst_bytes += item.capacity + 3;
  }
  Bytes room(dst_bytes, kPattern);
  std::vector<uint32_t> sizes(items.size()), statuses(items.size());
  const auto stream = driver::Stream::create(context).value();
  const auto src_memory = uploaded(src, context, stream), dst_memory = uploaded(room, context, stream);
  const auto src_offsets_memory = uploaded(src_offsets, context, stream);
  const auto dst_offsets_memory = uploaded(dst_offsets, context, stream);
  const auto src_sizes_memory = uploaded(src_sizes, context, stream);
  const auto capacities_memory = uploaded(capacities, context, stream);
  const auto sizes_memory = uploaded(sizes, context, stream), statuses_memory = uploaded(statuses, context, stream);
  using driver::LaunchArgument;
  std::vector<LaunchArgument> arguments = {
      LaunchArgument::of(src_memory.as<uint8_t>()),           LaunchArgument::of(src_offsets_memory.as<uint64_t>()),
      LaunchArgument::of(src_sizes_memory.as<uint32_t>()),    LaunchArgument::of(dst_memory.as<uint8_t>()),
      LaunchArgument::of(dst_offsets_memory.as<uint64_t>()),  LaunchArgument::of(capacities_memory.as<uint32_t>()),
      LaunchArgument::of(sizes_memory.as<uint32_t>()),        LaunchArgument::of(statuses_memory.as<uint32_t>()),
      LaunchArgument::of(static_cast<uint32_t>(items.size()))};
  for (const uint32_t option : options) arguments.push_back(LaunchArgument::of(option));
  const auto launched = loaded->launch(stream, static_cast<uint32_t>(items.size()), image->block_threads, arguments);
  ASSERT_TRUE(launched.has_value()) << launched.error().message();
  const auto bytes_of = [](std::vector<uint32_t>& words) {
    return std::span(reinterpret_cast<uint8_t*>(words.data()), words.size() * 4);
  };
  ASSERT_TRUE(dst_memory.download(room, stream));
  ASSERT_TRUE(sizes_memory.download(bytes_of(sizes), stream));
  ASSERT_TRUE(statuses_memory.download(bytes_of(statuses), stream));
  const auto waited = stream.wait();
  ASSERT_TRUE(waited.has_value()) << kernel << ": " << waited.error().message();

  std::vector<bool> owned(room.size());
  for (size_t i = 0; i < items.size(); ++i) {
    Bytes expected(items[i].capacity);
    const auto outcome = reference(items[i].bytes, expected);
    EXPECT_EQ(status_text(static_cast<StreamStatus>(statuses[i])), status_text(outcome.status)) << kernel << ", " << i;
    EXPECT_EQ(sizes[i], outcome.size_bytes) << kernel << ", item " << i;
    const auto begin = room.begin() + static_cast<ptrdiff_t>(dst_offsets[i]);
    EXPECT_TRUE(std::equal(expected.begin(), expected.begin() + outcome.size_bytes, begin)) << kernel << ", item " << i;
    std::fill_n(owned.begin() + static_cast<ptrdiff_t>(dst_offsets[i]), capacities[i], true);
  }
  for (size_t at = 0; at < room.size(); ++at) {
    ASSERT_TRUE(owned[at] || room[at] == kPattern) << kernel << " wrote outside the rooms";
  }
}

class DeviceTransforms : public ::testing::TestWithParam<TransformPair> {
 protected:
  void SetUp() override { PTXKIT_REQUIRE_DEVICE(); }
};

TEST_P(DeviceTransforms, BytesOfTheReference) {
  const TransformPair& pair = GetParam();
  std::vector<Item> raws, streams;
  for (const size_t longest : {40u, 3001u, 65536u}) {
    for (const Bytes& raw : ptxkit::testing::transform_inputs(longest)) {
      raws.push_back({raw, static_cast<uint32_t>(pair.bound(raw.size()))});
      streams.push_back({ptxkit::testing::coded(pair, raw), static_cast<uint32_t>(raw.size())});
      raws.push_back({raw, static_cast<uint32_t>(streams.back().bytes.size() - 1)});
    }
  }
  if (!pair.encoder.empty()) expect_as_reference(pair.encoder, pair.encoder_options, raws, pair.encode);
  expect_as_reference(pair.decoder, pair.decoder_options, streams, pair.decode);
}

TEST_P(DeviceTransforms, EveryCorpusFile) {
  PTXKIT_REQUIRE_CORPUS();
  const TransformPair& pair = GetParam();
  std::vector<Item> raws, streams;
  for (const auto& path : ptxkit::testing::corpus_files()) {
    const Bytes file = ptxkit::testing::read_prefix(path, 256 << 10);
    for (size_t at = 0; at < file.size(); at += kTransformItemBytes) {
      const auto begin = file.begin() + static_cast<ptrdiff_t>(at);
      const Bytes raw(begin, begin + static_cast<ptrdiff_t>(std::min<size_t>(kTransformItemBytes, file.size() - at)));
      raws.push_back({raw, static_cast<uint32_t>(pair.bound(raw.size()))});
      streams.push_back({ptxkit::testing::coded(pair, raw), static_cast<uint32_t>(raw.size())});
    }
  }
  if (!pair.encoder.empty()) expect_as_reference(pair.encoder, pair.encoder_options, raws, pair.encode);
  expect_as_reference(pair.decoder, pair.decoder_options, streams, pair.decode);
}

TEST_P(DeviceTransforms, DamagedStreams) {
  const TransformPair& pair = GetParam();
  std::mt19937 random(1);
  std::vector<Item> items;
  for (const Bytes& raw : ptxkit::testing::transform_inputs(2000)) {
    const Bytes good = ptxkit::testing::coded(pair, raw);
    for (int i = 0; i < 50; ++i) {
      items.push_back({good, 2200});
      ptxkit::testing::damage(items.back().bytes, random);
    }
  }
  expect_as_reference(pair.decoder, pair.decoder_options, items, pair.decode);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceTransforms, ::testing::ValuesIn(ptxkit::testing::transform_pairs()),
                         [](const auto& test) { return test.param.name(); });

TEST(DeviceTransformCases, StreamsThatAreJustRightOrJustNot) {
  PTXKIT_REQUIRE_DEVICE();
  const auto pairs = ptxkit::testing::transform_pairs();
  for (const auto& test : ptxkit::testing::decoder_cases()) {
    SCOPED_TRACE(test.label);
    const auto pair =
        std::find_if(pairs.begin(), pairs.end(), [&](const auto& p) { return p.decoder == test.decoder; });
    expect_as_reference(pair->decoder, pair->decoder_options, {{test.stream, ptxkit::testing::kCaseRoom}},
                        pair->decode);
  }
}

// A block above 16 MiB and one above 64 MiB in one launch.
TEST(DeviceTransformCases, LargeLzBlocks) {
  PTXKIT_REQUIRE_DEVICE();
  std::vector<Item> items;
  for (const uint32_t size : {(24u << 20) + 5, (64u << 20) + 4099}) {
    const ptxkit::testing::LargeLzBlock large(size);
    items.push_back({large.block, size});
    items.push_back({large.block, size - 1});  // without room for the last byte
  }
  expect_as_reference(kLz77Decode, {}, items, [](auto src, auto dst) { return lz77_decode_reference(src, dst); });
}

TEST(DeviceTransformCases, MoreLongHuffmanCodesThanTheTableHas) {
  PTXKIT_REQUIRE_DEVICE();
  const Bytes raw = ptxkit::testing::bytes_with_many_long_codes();
  Bytes stream(huffman_bound(raw.size()));
  stream.resize(huffman_encode_reference(raw, stream).size_bytes);
  expect_as_reference(kHuffmanDecode, {}, {{stream, static_cast<uint32_t>(raw.size())}},
                      [](auto src, auto dst) { return huffman_decode_reference(src, dst); });
}

TEST(DeviceTransformCases, RansChunksOfUnequalLanes) {
  PTXKIT_REQUIRE_DEVICE();
  for (const auto& chunks : ptxkit::testing::unequal_rans_chunks()) {
    // Four rooms with four different alignments.
    const std::vector<Item> items(4, {chunks.stream, static_cast<uint32_t>(chunks.raw.size() | 2)});
    expect_as_reference(kRansChunkedDecode, {}, items,
                        [](auto src, auto dst) { return rans_chunked_decode_reference(src, dst); });
  }
}

}  // namespace
}  // namespace ptxkit::kernels
