// Kernels as PTX over generated inputs, on the emulator with every check: the results of their scalar references, no
// fault, and no byte written outside. Sizes, contents, options, rooms and damage are drawn; a counterexample is shrunk
// and printed, with the RC_PARAMS that draw it again.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "fkr_tests/cases/bwt_cases.hpp"
#include "fkr_tests/cases/corpus.hpp"
#include "fkr_tests/cases/lz77_cases.hpp"
#include "fkr_tests/cases/transforms.hpp"
#include "fkr_tests/emulated/kernel_harness.hpp"
#include "kernels/abi.hpp"
#include "kernels/bwt/abi.hpp"
#include "kernels/bwt/zero_runs_reference.hpp"
#include "kernels/entropy/rans_chunked_reference.hpp"
#include "kernels/entropy/rans_format.hpp"
#include "kernels/images.hpp"
#include "kernels/lz4/lz4_compress_reference.hpp"
#include "kernels/lz4/lz4_decompress_reference.hpp"
#include "kernels/lz4/lz4_format.hpp"
#include "kernels/lz77/abi.hpp"
#include "kernels/lz77/lz77_reference.hpp"

namespace ptxkit::kernels {

using ptxkit::testing::Block;
using ptxkit::testing::Bytes;
using ptxkit::testing::kernel_image;

// A part of an item. Items are drawn as parts, so that shrinking removes parts and shortens them.
struct Part {
  enum Kind : uint8_t { run, copy, noise, ramp, zeros } kind;
  uint16_t length, value;  // value: the byte, the distance, the seed, the step
};
struct Item {
  std::vector<Part> parts;
  size_t most_bytes;

  Bytes bytes() const {
    Bytes all;
    for (const Part& part : parts) {
      uint32_t state = part.value;
      for (uint16_t i = 0; i < part.length && all.size() < most_bytes; ++i) {
        state = state * 1664525 + 1013904223;
        const size_t distance = 1 + part.value % std::max<size_t>(1, all.size());
        const uint8_t bytes[] = {static_cast<uint8_t>(part.value),
                                 all.empty() ? uint8_t{0} : all[all.size() - std::min(distance, all.size())],
                                 static_cast<uint8_t>(state >> 24), static_cast<uint8_t>(i * part.value), 0};
        all.push_back(bytes[part.kind]);
      }
    }
    return all;
  }
};
std::ostream& operator<<(std::ostream& out, const Item& item) {
  constexpr const char* kNames[] = {"run of ", "copy from ", "noise ", "ramp by ", "zeros "};
  out << item.bytes().size() << " bytes:";
  for (const Part& part : item.parts) out << " " << kNames[part.kind] << part.value << " x " << part.length << ";";
  return out;
}

namespace {

// The default of 100 cases of each property would take minutes. What the caller's RC_PARAMS says comes later and holds.
int ask_for_few_cases() {
  const char* given = std::getenv("RC_PARAMS");
  return ::setenv("RC_PARAMS", (std::string("max_success=40 max_size=60 ") + (given ? given : "")).c_str(), 1);
}
const int kFewCases = ask_for_few_cases();

rc::Gen<Item> any_item(size_t most_bytes) {
  const auto part = rc::gen::map(
      rc::gen::tuple(rc::gen::inRange<int>(0, 5),
                     rc::gen::weightedOneOf<uint16_t>({{3, rc::gen::inRange<uint16_t>(0, 40)},
                                                       {2, rc::gen::inRange<uint16_t>(0, 700)},
                                                       {1, rc::gen::just(static_cast<uint16_t>(most_bytes))}}),
                     rc::gen::arbitrary<uint16_t>()),
      [](const std::tuple<int, uint16_t, uint16_t>& drawn) {
        return Part{static_cast<Part::Kind>(std::get<0>(drawn)), std::get<1>(drawn), std::get<2>(drawn)};
      });
  return rc::gen::map(rc::gen::container<std::vector<Part>>(part),
                      [most_bytes](std::vector<Part> parts) { return Item{std::move(parts), most_bytes}; });
}

// One to five items: CTAs that are full, and others.
std::vector<Item> some_items(size_t most_bytes) {
  return *rc::gen::resize(
      5, rc::gen::nonEmpty(rc::gen::container<std::vector<Item>>(rc::gen::resize(30, any_item(most_bytes)))));
}
std::vector<Bytes> bytes_of(const std::vector<Item>& items) {
  std::vector<Bytes> all;
  for (const Item& item : items) all.push_back(item.bytes());
  return all;
}

// A changed, removed or inserted byte, or a cut end, up to three times.
Bytes damaged(Bytes stream) {
  std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
  if (!stream.empty()) ptxkit::testing::damage(stream, random);
  return stream;
}

void expect_outputs(const ptxkit::testing::Ran& ran, size_t count,
                    const std::function<std::pair<uint32_t, Bytes>(size_t)>& reference) {
  RC_ASSERT(ran.report == std::string());
  RC_ASSERT(!ran.touched_outside);
  RC_ASSERT(!ran.claims_too_much);
  for (size_t i = 0; i < count; ++i) {
    const auto [code, bytes] = reference(i);
    RC_ASSERT(ran.codes[i] == code);
    RC_ASSERT(ran.outputs[i] == bytes);
  }
}

// --- LZ4 ---

void lz4_compress_as_reference(std::string_view ptx, const Lz4CompressVariant& variant, size_t most_bytes) {
  const auto items = bytes_of(some_items(most_bytes));
  const auto ran = ptxkit::testing::emulate_compress(ptx, variant, items);
  expect_outputs(ran, items.size(), [&](size_t i) {
    Bytes expected(items[i].size());
    const auto item = lz4_compress_reference(items[i], expected, variant);
    expected.resize(item.size_bytes);
    return std::pair(static_cast<uint32_t>(item.flag), expected);
  });
}

bool check_compressor(const Lz4CompressVariant& variant, size_t most_bytes) {
  return rc::check([&] { lz4_compress_as_reference(kernel_image(variant.name).ptx, variant, most_bytes); });
}

TEST(KernelProperties, Lz4CompressPage) { EXPECT_TRUE(check_compressor(kPageVariant, kMaxPageBytes)); }
TEST(KernelProperties, Lz4CompressChunk) { EXPECT_TRUE(check_compressor(kChunkVariant, 9000)); }
TEST(KernelProperties, Lz4CompressHigh) { EXPECT_TRUE(check_compressor(kHighVariant, 9000)); }

// Without the barriers of warps, lanes race.
TEST(KernelProperties, APlantedFaultIsFoundAndShrunk) {
  std::string ptx(kernel_image(kLz4CompressPage).ptx);
  size_t planted = 0;
  for (size_t at = ptx.find("bar.warp.sync"); at != ptx.npos; at = ptx.find("bar.warp.sync", at), ++planted)
    ptx.erase(at, ptx.find(';', at) + 1 - at);
  ASSERT_GT(planted, 0u);
  const auto result = rc::detail::checkTestable([&] { lz4_compress_as_reference(ptx, kPageVariant, kMaxPageBytes); });
  rc::detail::FailureResult failure;
  ASSERT_TRUE(result.match(failure));
  ASSERT_EQ(failure.counterExample.size(), 1u);
  const std::string& shrunk = failure.counterExample[0].second;
  std::cout << "shrunk to " << shrunk << "\n";
  EXPECT_EQ(std::ranges::count(shrunk, ':'), 1) << "one item is enough: " << shrunk;
  EXPECT_LE(std::ranges::count(shrunk, ';'), 2) << shrunk;
  EXPECT_NE(failure.description.find("race"), std::string::npos) << failure.description;
}

TEST(KernelProperties, Lz4Decompress) {
  EXPECT_TRUE(rc::check([] {
    std::vector<Block> blocks;
    for (const Bytes& raw : bytes_of(some_items(4000))) {
      Bytes block(raw.size());
      block.resize(lz4_compress_reference(raw, block, kPageVariant).size_bytes);
      if (*rc::gen::arbitrary<bool>()) block = damaged(std::move(block));
      const auto room = *rc::gen::element<size_t>(raw.size(), raw.size() / 2, raw.size() + 7, 0);
      blocks.push_back({block, static_cast<uint32_t>(room)});
    }
    const auto ran = ptxkit::testing::emulate_decompress(kernel_image(kLz4Decompress).ptx, blocks);
    expect_outputs(ran, blocks.size(), [&](size_t i) {
      Bytes expected(blocks[i].capacity);
      const auto item = lz4_decompress_reference(blocks[i].bytes, expected);
      expected.resize(item.size_bytes);
      return std::pair(static_cast<uint32_t>(item.status), expected);
    });
  }));
}

// --- the transforms ---

void transform_as_reference(std::string_view kernel, const std::vector<uint32_t>& options,
                            const std::vector<Block>& items, const ptxkit::testing::TransformReference& reference) {
  const KernelImage& image = kernel_image(kernel);
  const LaunchShape shape{.block_threads = image.block_threads, .items_per_block = 1};
  const auto ran = ptxkit::testing::emulate_items(image.ptx, kernel, shape, options, items);
  expect_outputs(ran, items.size(), [&](size_t i) {
    Bytes expected(items[i].capacity);
    const auto outcome = reference(items[i].bytes, expected);
    expected.resize(outcome.size_bytes);
    return std::pair(static_cast<uint32_t>(outcome.status), expected);
  });
}

// Encodes drawn items into rooms that suffice or do not, and decodes their streams, of which some are damaged.
void encoder_and_decoder_as_reference(const ptxkit::testing::TransformPair& pair) {
  std::vector<Block> raws, streams;
  for (const Bytes& raw : bytes_of(some_items(5000))) {
    const Bytes stream = ptxkit::testing::coded(pair, raw);
    const auto room = *rc::gen::element<size_t>(pair.bound(raw.size()), stream.size(), stream.size() / 2);
    raws.push_back({raw, static_cast<uint32_t>(room)});
    const auto raw_room = static_cast<uint32_t>(*rc::gen::element<size_t>(raw.size(), raw.size() / 2, raw.size() + 3));
    streams.push_back({*rc::gen::arbitrary<bool>() ? damaged(stream) : stream, raw_room});
  }
  if (!pair.encoder.empty()) transform_as_reference(pair.encoder, pair.encoder_options, raws, pair.encode);
  transform_as_reference(pair.decoder, pair.decoder_options, streams, pair.decode);
}

// One of the pairs whose label begins so.
bool check_pairs(std::string_view label) {
  std::vector<ptxkit::testing::TransformPair> pairs;
  for (auto& pair : ptxkit::testing::transform_pairs()) {
    if (pair.label.starts_with(label)) pairs.push_back(std::move(pair));
  }
  return rc::check([&] { encoder_and_decoder_as_reference(pairs[*rc::gen::inRange<size_t>(0, pairs.size())]); });
}

TEST(KernelProperties, RansWarp) { EXPECT_TRUE(check_pairs("rans_warp")); }
TEST(KernelProperties, Huffman) { EXPECT_TRUE(check_pairs("huffman")); }
TEST(KernelProperties, Fse) { EXPECT_TRUE(check_pairs("fse")); }
TEST(KernelProperties, Lz77Decode) { EXPECT_TRUE(check_pairs("lz77")); }

TEST(KernelProperties, RansChunkedOfAnyOptions) {
  EXPECT_TRUE(rc::check([] {
    const RansChunkedOptions options{.scale_bits = *rc::gen::inRange(kMinScaleBits, kMaxScaleBits + 1),
                                     .lanes = *rc::gen::inRange(1u, kMaxRansLanes + 1),
                                     .chunk_bytes = *rc::gen::inRange(1u, 5000u)};
    encoder_and_decoder_as_reference(
        {.label = "rans_chunked",
         .encoder = kRansChunkedEncode,
         .decoder = kRansChunkedDecode,
         .encoder_options = {options.scale_bits, options.lanes, options.chunk_bytes},
         .decoder_options = {},
         .encode = [=](auto src, auto dst) { return rans_chunked_encode_reference(src, dst, options); },
         .decode = [](auto src, auto dst) { return rans_chunked_decode_reference(src, dst); },
         .bound = [=](size_t size) { return rans_chunked_bound(size, options); }});
  }));
}

// --- LZ77 and BWT ---

TEST(KernelProperties, Lz77FindersAndDemux) {
  EXPECT_TRUE(rc::check([] {
    const Bytes raw = (*rc::gen::resize(30, any_item(300))).bytes();  // the emulator takes long for links
    if (raw.empty()) return;
    ptxkit::testing::Lz77OnDevice device(ptxkit::testing::emulator_launch("release"), raw);
    const Bytes links = device.link(), hash = device.find(kLz77Hash, links, 1);
    const auto matches = [](const Bytes& bytes) { return ptxkit::testing::matches_of(bytes); };
    RC_ASSERT(matches(hash) == lz77_hash_reference(raw));
    RC_ASSERT(matches(device.find(kLz77Batch, links, kLzBatchPositions)) == lz77_batch_reference(raw));
    RC_ASSERT(matches(device.topk(links)) == lz77_topk_reference(raw));
    RC_ASSERT(matches(device.table()) == lz77_table_reference(raw));
    const Bytes lazy = device.lazy(hash);
    RC_ASSERT(matches(lazy) == lz77_lazy_reference(lz77_hash_reference(raw)));
    const Bytes block = demux_reference(raw, matches(lazy));
    RC_ASSERT(device.demux(lazy, block.size()) == block);
  }));
}

void bwt_kernel_as_reference(const ptxkit::testing::BwtKernel& kernel, const std::vector<Bytes>& items,
                             uint32_t item_bytes, uint32_t room_bytes) {
  const auto run = ptxkit::testing::run_bwt_kernel(ptxkit::testing::emulator_launch("release"), kernel, items,
                                                   item_bytes, room_bytes);
  RC_ASSERT(run.sizes.size() == items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    Bytes expected(run.rooms[i].size());
    const auto outcome = kernel.reference(items[i], expected);
    expected.resize(outcome.size_bytes);
    RC_ASSERT(run.statuses[i] == static_cast<uint32_t>(outcome.status));
    RC_ASSERT(run.sizes[i] == outcome.size_bytes);
    RC_ASSERT(run.result(i) == expected);
  }
}

TEST(KernelProperties, BwtSortsAndInverse) {
  EXPECT_TRUE(rc::check([] {
    const auto raws = bytes_of(some_items(1500));
    const uint32_t longest = ptxkit::testing::longest_of(raws);
    const auto sorts = ptxkit::testing::bwt_sorts();
    bwt_kernel_as_reference(sorts[*rc::gen::inRange<size_t>(0, sorts.size())], raws, longest, bwt_block_bytes(longest));
    std::vector<Bytes> blocks;
    for (const Bytes& raw : raws) {
      blocks.push_back(ptxkit::testing::bwt_block(raw));
      if (*rc::gen::arbitrary<bool>()) blocks.back() = damaged(std::move(blocks.back()));
    }
    bwt_kernel_as_reference(ptxkit::testing::bwt_inverse(), blocks, longest, longest);
  }));
}

TEST(KernelProperties, MoveToFrontAndZeroRuns) {
  EXPECT_TRUE(rc::check([] {
    const auto raws = bytes_of(some_items(3000));
    const uint32_t longest = ptxkit::testing::longest_of(raws);
    bwt_kernel_as_reference(ptxkit::testing::mtf_encode(), raws, 0, longest);
    bwt_kernel_as_reference(ptxkit::testing::mtf_decode(), raws, 0, longest);
    bwt_kernel_as_reference(ptxkit::testing::zero_runs_encode(), raws, 0,
                            static_cast<uint32_t>(zero_runs_bound(longest)));
    bwt_kernel_as_reference(ptxkit::testing::zero_runs_decode(), raws, 0, longest);
  }));
}

}  // namespace
}  // namespace ptxkit::kernels
