#include "fkr_tests/cases/every_kernel.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <gtest/gtest.h>

#include "fkr_tests/cases/bwt_cases.hpp"
#include "fkr_tests/cases/kernel_image.hpp"
#include "fkr_tests/cases/transforms.hpp"
#include "fkr_tests/cases/typed_arrays.hpp"
#include "kernels/abi.hpp"
#include "kernels/bwt/abi.hpp"
#include "kernels/bwt/bwt_reference.hpp"
#include "kernels/deflate/deflate_encode_format.hpp"
#include "kernels/deflate/deflate_reference.hpp"
#include "kernels/deflate/inflate_format.hpp"
#include "kernels/images.hpp"
#include "kernels/lz4/lz4_batch_reference.hpp"
#include "kernels/lz4/lz4_compress_reference.hpp"
#include "kernels/lz4/lz4_format.hpp"
#include "kernels/lz77/abi.hpp"
#include "kernels/lz77/lz77_reference.hpp"
#include "kernels/pages/zero_page_reference.hpp"
#include "kernels/transform_abi.hpp"
#include "kernels/typed/typed_format.hpp"
#include "kernels/zstd/zstd_choose_reference.hpp"
#include "kernels/zstd/zstd_decode_format.hpp"
#include "kernels/zstd/zstd_format.hpp"
#include "kernels/zstd/zstd_literals_reference.hpp"
#include "kernels/zstd/zstd_reference.hpp"
#include "kernels/zstd/zstd_sequences_reference.hpp"

namespace ptxkit::testing {

using namespace kernels;

namespace {

KernelArgument words(std::vector<uint32_t> values) { return KernelArgument::input(bytes_of(values)); }
KernelArgument double_words(std::vector<uint64_t> values) { return KernelArgument::input(bytes_of(values)); }

constexpr size_t kAsDeclared = 0;
KernelArgument room() { return KernelArgument::output(kAsDeclared); }

// Items of one size, `item_bytes` of input and of output.
std::vector<KernelArgument> items(std::vector<Bytes> sources, uint32_t item_bytes, std::vector<uint32_t> options) {
  Bytes src;
  std::vector<uint64_t> src_offsets, dst_offsets;
  std::vector<uint32_t> src_sizes;
  for (const Bytes& source : sources) {
    src_offsets.push_back(src.size());
    src_sizes.push_back(static_cast<uint32_t>(source.size()));
    dst_offsets.push_back(dst_offsets.size() * item_bytes);
    src.insert(src.end(), source.begin(), source.end());
  }
  std::vector<KernelArgument> arguments = {KernelArgument::input(src),
                                           double_words(src_offsets),
                                           words(src_sizes),
                                           room(),
                                           double_words(dst_offsets),
                                           words(std::vector<uint32_t>(sources.size(), item_bytes)),
                                           room(),
                                           room(),
                                           KernelArgument::number(static_cast<uint32_t>(sources.size()))};
  for (const uint32_t option : options) arguments.push_back(KernelArgument::number(option));
  return arguments;
}

Bytes lz4_input(const EveryKernel& every, size_t size) {
  return every.is_compressible() ? matchable_bytes(size, 1) : random_bytes(size, 1);
}

std::set<std::string_view> lz4_by_content(const EveryKernel& every) {
  return every.is_compressible() ? std::set<std::string_view>{"dst"} : std::set<std::string_view>{};
}

// Input that does not shrink is stored.
void expect_lz4(const EveryKernel& every, const EveryKernel::Buffers& found, const Bytes& raw) {
  EXPECT_EQ(found.at("flags"), every.is_compressible() ? Bytes({0, 0}) : Bytes({1, 1}));
  if (!every.is_compressible()) {
    EXPECT_TRUE(found.at("dst") == raw);
  }
}

void zero_page(EveryKernel& every) {
  Bytes pages(2 * kMaxPageBytes);
  pages.back() = 1;
  const auto found = every.run(kZeroPage, 1, {pages.size(), 2},
                               {KernelArgument::input(pages), words({kMaxPageBytes, kMaxPageBytes}), room(),
                                KernelArgument::number(kMaxPageBytes / kStrideUnitBytes), KernelArgument::number(2)});
  EXPECT_EQ(found.at("flags"), Bytes({2, 0}));
}

void copy_items(EveryKernel& every) {
  const Bytes pages = matchable_bytes(2 * kMaxPageBytes, 1);
  const auto found = every.run(kCopyItems, 1, {pages.size(), 2},
                               {KernelArgument::input(pages), double_words({0, kMaxPageBytes}),
                                words({kMaxPageBytes, kMaxPageBytes}), room(), KernelArgument::number(2)});
  EXPECT_TRUE(found.at("dst") == pages);
}

void lz4_compressors(EveryKernel& every) {
  for (const auto& [kernel, size] :
       {std::pair(kLz4CompressPage, kMaxPageBytes), std::pair(kLz4CompressChunk, kMaxChunkBytes),
        std::pair(kLz4CompressHigh, kMaxChunkBytes)}) {
    const Bytes raw = lz4_input(every, 2 * size);
    const LaunchShape& shape = kernel == kLz4CompressPage ? kLz4CompressPageShape : kLz4CompressChunkShape;
    const auto stride = KernelArgument::number(size / kStrideUnitBytes);
    const auto found = every.run(kernel, shape.grid_blocks(2), {raw.size(), 2},
                                 {KernelArgument::input(raw), words({size, size}), room(), room(), room(), stride,
                                  stride, KernelArgument::number(2)},
                                 lz4_by_content(every));
    expect_lz4(every, found, raw);
  }
}

void lz4_in_two_kernels(EveryKernel& every) {
  const Bytes raw = lz4_input(every, 2 * kMaxPageBytes);
  const auto src = KernelArgument::input(raw), sizes = words({kMaxPageBytes, kMaxPageBytes});
  const auto stride = KernelArgument::number(kMaxPageBytes / kStrideUnitBytes), count = KernelArgument::number(2);
  const uint32_t grid = kLz4CompressPageShape.grid_blocks(2);
  const auto matched =
      every.run(kLz4MatchPage, grid, {raw.size(), 2}, {src, sizes, room(), room(), room(), stride, count}, {"matches"});
  EXPECT_EQ(matched.at("flags"), Bytes({0, 0}));
  const auto encoded = every.run(
      kLz4EncodePage, grid, {raw.size(), 2},
      {src, sizes, KernelArgument::input(matched.at("matches")), KernelArgument::input(matched.at("match_counts")),
       room(), room(), KernelArgument::input(matched.at("flags")), stride, stride, count},
      every.is_compressible() ? std::set<std::string_view>{"matches", "dst"} : std::set<std::string_view>{"matches"});
  expect_lz4(every, encoded, raw);
}

void lz4_decompressor(EveryKernel& every) {
  const Bytes page = matchable_bytes(kMaxPageBytes, 1);
  Bytes block(kMaxPageBytes);
  block.resize(lz4_compress_reference(page, block, kPageVariant).size_bytes);
  const auto found =
      every.run(kLz4Decompress, 1, {2 * kMaxPageBytes, 2, 2 * block.size()}, items({block, block}, kMaxPageBytes, {}));
  Bytes twice = page;
  twice.insert(twice.end(), page.begin(), page.end());
  EXPECT_TRUE(found.at("dst") == twice);
}

void lz4_batches(EveryKernel& every) {
  const Bytes page = matchable_bytes(kMaxPageBytes, 1);
  Bytes block(kMaxPageBytes);
  block.resize(lz4_compress_reference(page, block, kPageVariant).size_bytes);
  const auto found =
      every.run(kLz4BatchDecompress, 1, {2 * kMaxPageBytes, 2, 2 * block.size()},
                {KernelArgument::addresses({block, block}), double_words({block.size(), block.size()}),
                 KernelArgument::addresses({Bytes(kMaxPageBytes), Bytes(kMaxPageBytes)}),
                 double_words({kMaxPageBytes, kMaxPageBytes}), room(), room(),
                 KernelArgument::number(static_cast<uint32_t>(BatchFraming::raw)), KernelArgument::number(2)});
  Bytes twice = page;
  twice.insert(twice.end(), page.begin(), page.end());
  EXPECT_TRUE(found.at("outputs") == twice);
  const auto measured =
      every.run(kLz4BatchSizes, 1, {2 * kMaxPageBytes, 2, 2 * block.size()},
                {KernelArgument::addresses({block, block}), double_words({block.size(), block.size()}), room(), room(),
                 KernelArgument::number(static_cast<uint32_t>(BatchFraming::raw)), KernelArgument::number(2)});
  EXPECT_EQ(measured.at("output_bytes"), bytes_of(std::vector<uint64_t>{kMaxPageBytes, kMaxPageBytes}));
}

// Of items of one chunk, which need neither records nor slots, then of two items of two chunks.
void lz4_batch_compressors(EveryKernel& every) {
  const auto call = [&](std::string_view kernel, const LaunchShape& shape, const std::vector<Bytes>& raws,
                        const Bytes& records, const Bytes& slots, const std::set<std::string_view>& by_content) {
    const auto item_bytes = static_cast<uint32_t>(raws[0].size());
    const uint32_t chunks = std::max(1u, item_bytes / kMaxChunkBytes);
    const uint32_t grid =
        kernel == kLz4BatchPlan || kernel == kLz4BatchCompressPage ? shape.grid_blocks(2) : 2 * chunks;
    const std::vector<Bytes> rooms(2, Bytes(lz4_batch_bound(item_bytes)));
    return every.run(
        kernel, grid, {2 * item_bytes, 2},
        {KernelArgument::addresses(raws), double_words({item_bytes, item_bytes}), KernelArgument::addresses(rooms),
         room(), room(), records.empty() ? room() : KernelArgument::input(records),
         slots.empty() ? room() : KernelArgument::input(slots), KernelArgument::number(item_bytes),
         KernelArgument::number(chunks), KernelArgument::number(0), KernelArgument::number(2)},
        by_content);
  };
  const auto expect_block = [&](Bytes room, size_t size, const Bytes& raw) {
    room.resize(size);
    Bytes back(raw.size());
    EXPECT_EQ(lz4_batch_decompress_reference(room, back, BatchFraming::raw).size_bytes, raw.size());
    EXPECT_TRUE(back == raw);
  };
  const std::set<std::string_view> temporary = {"chunk_records", "slots"};
  for (const auto& [kernel, size] :
       {std::pair(kLz4BatchCompressPage, kMaxPageBytes), std::pair(kLz4BatchCompressChunk, kMaxChunkBytes)}) {
    const Bytes raw = lz4_input(every, size);
    const LaunchShape& shape = size == kMaxPageBytes ? kLz4CompressPageShape : kLz4CompressChunkShape;
    const auto found = call(kernel, shape, {raw, raw}, {}, {}, temporary);
    uint64_t coded_bytes = 0;
    std::memcpy(&coded_bytes, found.at("output_bytes").data(), sizeof coded_bytes);
    expect_block(found.at("outputs"), coded_bytes, raw);
  }
  const Bytes raw = matchable_bytes(2 * kMaxChunkBytes, 1);
  const auto encoded = call(kLz4BatchCompressChunk, kLz4CompressChunkShape, {raw, raw}, {}, {},
                            {"output_bytes", "statuses", "outputs", "slots", "chunk_records"});
  const auto planned = call(kLz4BatchPlan, kLz4BatchPlanShape, {raw, raw}, encoded.at("chunk_records"),
                            encoded.at("slots"), {"chunk_records", "slots"});
  const auto joined = call(kLz4BatchJoin, kLz4BatchJoinShape, {raw, raw}, planned.at("chunk_records"),
                           encoded.at("slots"), {"output_bytes", "statuses", "slots"});
  uint64_t coded_bytes = 0;
  std::memcpy(&coded_bytes, planned.at("output_bytes").data(), sizeof coded_bytes);
  expect_block(joined.at("outputs"), coded_bytes, raw);
}

// Two chunks of HDF5's filter with one block.
void lz4_framed_batches(EveryKernel& every) {
  const Bytes raw = matchable_bytes(kMaxChunkBytes, 1);
  Bytes block(kMaxChunkBytes);
  block.resize(lz4_compress_reference(raw, block, kChunkVariant).size_bytes);
  const auto coded = static_cast<uint32_t>(block.size());
  Bytes item = {0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0};
  for (int shift = 24; shift >= 0; shift -= 8) item.push_back(static_cast<uint8_t>(coded >> shift));
  item.insert(item.end(), block.begin(), block.end());
  const auto call = [&](std::string_view kernel, uint32_t grid, const KernelArgument& layouts,
                        const KernelArgument& blocks, const KernelArgument& block_raw_bytes,
                        const std::set<std::string_view>& by_content) {
    return every.run(
        kernel, grid, {2 * raw.size(), 2, 2 * item.size()},
        {KernelArgument::addresses({item, item}), double_words({item.size(), item.size()}),
         KernelArgument::addresses({Bytes(raw.size()), Bytes(raw.size())}), double_words({raw.size(), raw.size()}),
         room(), room(), layouts, blocks, block_raw_bytes, KernelArgument::number(1),
         KernelArgument::number(static_cast<uint32_t>(BatchFraming::hdf5)), KernelArgument::number(2)},
        by_content);
  };
  const auto indexed = call(kLz4BatchIndex, 1, room(), room(), room(),
                            {"outputs", "output_bytes", "statuses", "block_raw_bytes", "inputs"});
  const auto layouts = KernelArgument::input(indexed.at("layouts")),
             blocks = KernelArgument::input(indexed.at("blocks"));
  const auto decoded = call(kLz4BatchBlocks, 1, layouts, blocks, room(),
                            {"output_capacities", "output_bytes", "statuses", "input_bytes", "layouts"});
  Bytes twice = raw;
  twice.insert(twice.end(), raw.begin(), raw.end());
  EXPECT_TRUE(decoded.at("outputs") == twice);
  const auto finished = call(kLz4BatchFinish, 1, layouts, blocks, KernelArgument::input(decoded.at("block_raw_bytes")),
                             {"inputs", "outputs", "blocks"});
  EXPECT_EQ(finished.at("output_bytes"), bytes_of(std::vector<uint64_t>(2, raw.size())));
}

void transforms(EveryKernel& every) {
  const Bytes raw = matchable_bytes(kTransformItemBytes, 1);
  for (const auto& pair : transform_pairs()) {
    const Bytes stream = coded(pair, raw);
    if (!pair.encoder.empty() && !every.has_run(pair.encoder)) {
      ASSERT_LE(stream.size(), raw.size()) << pair.label;
      Bytes made = every.run(pair.encoder, 1, {raw.size()}, items({raw}, kTransformItemBytes, pair.encoder_options),
                             {"dst"})["dst"];
      made.resize(stream.size());
      EXPECT_TRUE(made == stream) << pair.label;
    }
    if (!every.has_run(pair.decoder)) {
      const auto found = every.run(pair.decoder, 1, {raw.size(), 1, stream.size()},
                                   items({stream}, kTransformItemBytes, pair.decoder_options), {"src"});
      EXPECT_TRUE(found.at("dst") == raw) << pair.label;
    }
  }
}

void match_finders_and_demux(EveryKernel& every) {
  const Bytes raw = matchable_bytes(2 * kLzSegmentBytes, 1);
  const auto size = static_cast<uint32_t>(raw.size());
  const auto src = KernelArgument::input(raw), sizes = words({size}), item_bytes = KernelArgument::number(size);
  const auto ctas = [&](uint32_t positions) { return size / positions; };
  const Bytes links = every.run(kLz77Link, kLzLinkBlocks, {size}, {src, sizes, room(), item_bytes}).at("matches");
  const auto linked = KernelArgument::input(links);
  const Bytes matches =
      every.run(kLz77Hash, ctas(kLzBlockThreads), {size}, {src, sizes, linked, item_bytes}).at("matches");
  const auto matched = KernelArgument::input(matches);
  const Bytes part = matchable_bytes(kLzTablePart, 1);
  every.run(kLz77Table, 1, {kLzTablePart},
            {KernelArgument::input(part), words({kLzTablePart}), room(), KernelArgument::number(kLzTablePart)});
  every.run(kLz77Batch, ctas(kLzBatchPositions * kLzBlockThreads), {size}, {src, sizes, linked, item_bytes});
  every.run(kLz77Lazy, ctas(kLzBlockThreads), {size}, {matched, room(), sizes, item_bytes});
  every.run(kLz77TopK, ctas(kLzBlockThreads), {size}, {src, sizes, linked, room(), item_bytes});
  every.run(kLz77PerPosition, ctas(kLzBlockThreads), {size},
            {src, sizes, room(), item_bytes, KernelArgument::number(40)});
  const Bytes counts =
      every.run(kDemuxCount, ctas(kLzSegmentBytes), {size}, {matched, sizes, room(), item_bytes}, {"matches"})
          .at("counts");
  every.run(kDemuxScatter, ctas(kLzSegmentBytes), {size},
            {src, sizes, matched, KernelArgument::input(counts), room(), room(), room(), item_bytes,
             KernelArgument::number(0)},
            {"src", "matches", "dst"});
}

void zstd_blocks(EveryKernel& every) {
  const Bytes raw = matchable_bytes(kZstdBlockBytes, 1);
  const LaunchSize size{raw.size()};
  const auto one = KernelArgument::number(1);
  const auto block = KernelArgument::addresses({raw}), block_bytes = words({kZstdBlockBytes});
  const std::set<std::string_view> lists = {"matches", "literals", "sequences"};
  every.run(kZstdMatchHigh, 1, size, {block, block_bytes, room(), room(), one}, lists);
  const auto matched = every.run(kZstdMatch, 1, size, {block, block_bytes, room(), room(), one}, lists);
  const auto chosen =
      every.run(kZstdChoose, 1, size,
                {block, block_bytes, KernelArgument::input(matched.at("matches")),
                 KernelArgument::input(matched.at("match_counts")), room(), room(), room(), room(), one},
                lists);
  const auto parts = zstd_choose_reference(raw, lz4_parse_reference(raw, kChunkVariant));
  const auto expect_section = [&](std::string_view kernel, Bytes src, const Bytes& expected_src,
                                  const TransformReference& reference) {
    src.resize(expected_src.size());
    EXPECT_TRUE(src == expected_src) << kernel;
    src.resize(src.size() / 8 * 8);
    Bytes section(src.size());
    section.resize(reference(src, section).size_bytes);
    Bytes made =
        every.run(kernel, 1, {src.size()}, items({src}, static_cast<uint32_t>(src.size()), {}), {"dst"}).at("dst");
    made.resize(section.size());
    EXPECT_TRUE(made == section) << kernel;
  };
  expect_section(kZstdLiterals, chosen.at("literals"), parts.literals, zstd_literals_reference);
  expect_section(kZstdSequences, chosen.at("sequences"), zstd_pack(parts.sequences), zstd_sequences_reference);
}

// Two items of one block.
void zstd_batches(EveryKernel& every) {
  const Bytes raw = matchable_bytes(kZstdBlockBytes, 1);
  const auto parts = zstd_choose_reference(raw, lz4_parse_reference(raw, kChunkVariant));
  const auto sections_of = [](const Bytes& src, const TransformReference& reference) {
    Bytes section(kZstdSectionBytes);
    const uint32_t size = reference(src, section).size_bytes;
    Bytes twice = section;
    twice.insert(twice.end(), section.begin(), section.end());
    return std::pair(twice, size);
  };
  const auto [literals, literal_bytes] = sections_of(parts.literals, zstd_literals_reference);
  const auto [sequences, sequence_bytes] = sections_of(zstd_pack(parts.sequences), zstd_sequences_reference);
  const Bytes frame = zstd_frame_reference(raw, kChunkVariant, false);
  const auto call = [&](std::string_view kernel, uint32_t grid, const KernelArgument& places,
                        std::set<std::string_view> by_content) {
    by_content.merge(std::set<std::string_view>{"statuses", "outputs", "inputs"});
    const std::vector<Bytes> rooms(2, Bytes(zstd_batch_bound(raw.size())));
    return every.run(kernel, grid, {2 * raw.size(), 2},
                     {KernelArgument::addresses({raw, raw}), double_words({raw.size(), raw.size()}),
                      KernelArgument::addresses(rooms), room(), room(), room(), room(), room(), room(), room(), room(),
                      KernelArgument::input(literals), words({literal_bytes, literal_bytes}),
                      KernelArgument::input(sequences), words({sequence_bytes, sequence_bytes}), places,
                      KernelArgument::number(kZstdBlockBytes), KernelArgument::number(1), KernelArgument::number(2)},
                     by_content);
  };
  const std::set<std::string_view> of_split = {"blocks",       "block_bytes",     "literal_offsets",
                                               "list_offsets", "section_offsets", "section_capacities"};
  std::set<std::string_view> others = {
      "literal_sections", "literal_section_bytes", "sequence_sections", "sequence_section_bytes",
      "places",           "output_bytes"};
  const auto split = call(kZstdBatchSplit, 1, room(), others);
  EXPECT_EQ(split.at("block_bytes"), bytes_of(std::vector<uint32_t>(2, kZstdBlockBytes)));
  others = of_split;
  others.insert({"literal_sections", "sequence_sections"});
  const auto planned = call(kZstdBatchPlan, 1, room(), others);
  EXPECT_EQ(planned.at("output_bytes"), bytes_of(std::vector<uint64_t>(2, frame.size())));
  others.insert("output_bytes");
  const auto joined = call(kZstdBatchJoin, 2, KernelArgument::input(planned.at("places")), others);
  const Bytes& room_bytes = joined.at("outputs");
  const size_t header = 9;  // zstd_batch_plan wrote it
  EXPECT_TRUE(std::equal(frame.begin() + header, frame.end(), room_bytes.begin() + header));
}

// Two frames of one block.
void zstd_decoders(EveryKernel& every) {
  const Bytes raw = matchable_bytes(kZstdBlockBytes, 1);
  const Bytes frame = zstd_frame_reference(raw, kChunkVariant, false);
  EveryKernel::Buffers found;
  const auto call = [&](std::string_view kernel, uint32_t grid, uint32_t blocks_per_item,
                        std::set<std::string_view> by_content) {
    by_content.merge(std::set<std::string_view>{"inputs", "outputs", "literals", "sequences"});
    const auto before = [&](const char* name) {
      return found.contains(name) ? KernelArgument::input(found.at(name)) : room();
    };
    const auto after = every.run(
        kernel, grid, {2 * raw.size(), 2, 2 * frame.size()},
        {KernelArgument::addresses({frame, frame}), double_words({frame.size(), frame.size()}),
         KernelArgument::addresses({Bytes(raw.size()), Bytes(raw.size())}), double_words({raw.size(), raw.size()}),
         room(), room(), before("literals"), before("sequences"), before("block_counts"), before("blocks"),
         before("literal_states"), before("block_states"), KernelArgument::number(kZstdBlockBytes),
         KernelArgument::number(blocks_per_item), KernelArgument::number(2)},
        by_content);
    Bytes twice = raw;
    twice.insert(twice.end(), raw.begin(), raw.end());
    const bool writes_output = kernel == kZstdBatchExecute || kernel == kZstdBatchDecompress;
    EXPECT_EQ(after.at("outputs") == twice, writes_output) << kernel;
    return after;
  };
  const auto keep = [&](const EveryKernel::Buffers& after, const std::set<std::string>& names) {
    for (const std::string& name : names) found[name] = after.at(name);
  };
  call(kZstdBatchDecompress, 2, 0, {"block_counts", "blocks", "literal_states", "block_states"});
  keep(call(kZstdBatchIndex, 1, 1, {"output_bytes", "statuses", "literal_states", "block_states"}),
       {"block_counts", "blocks"});
  EXPECT_EQ(found.at("block_counts"), bytes_of(std::vector<uint32_t>{1, 1}));
  const std::set<std::string_view> of_items = {"input_bytes", "output_capacities", "output_bytes", "statuses"};
  auto others = of_items;
  others.insert("block_states");
  keep(call(kZstdBatchReadLiterals, 2, 1, others), {"literals", "literal_states"});
  others = of_items;
  others.insert("literal_states");
  keep(call(kZstdBatchReadSequences, 1, 1, others), {"sequences", "block_states"});
  call(kZstdBatchExecute, 2, 1, {"blocks"});
}

// Two items; what does not shrink is stored.
void deflate_encoders(EveryKernel& every) {
  const Bytes raw = lz4_input(every, kMaxChunkBytes);
  const auto framing = DeflateFraming::gzip;
  const auto call = [&](std::string_view kernel, const KernelArgument& matches, const KernelArgument& match_counts,
                        const std::set<std::string_view>& by_content) {
    const std::vector<Bytes> rooms(2, Bytes(deflate_batch_bound(raw.size(), DeflateFraming::bgzf)));
    return every.run(kernel, 2, {2 * raw.size(), 2},
                     {KernelArgument::addresses({raw, raw}), double_words({raw.size(), raw.size()}),
                      KernelArgument::addresses(rooms), room(), room(), matches, match_counts, room(),
                      KernelArgument::number(kMaxChunkBytes), KernelArgument::number(static_cast<uint32_t>(framing)),
                      KernelArgument::number(2)},
                     by_content);
  };
  const std::set<std::string_view> of_encode = {"output_bytes", "statuses", "tokens", "outputs", "matches"};
  call(kDeflateMatchHigh, room(), room(), of_encode);
  const auto matched = call(kDeflateMatch, room(), room(), of_encode);
  const auto encoded = call(kDeflateEncode, KernelArgument::input(matched.at("matches")),
                            KernelArgument::input(matched.at("match_counts")), {"outputs", "matches", "tokens"});
  const Bytes stream = deflate_reference(raw, kChunkVariant, framing);
  EXPECT_EQ(encoded.at("output_bytes"), bytes_of(std::vector<uint64_t>(2, stream.size())));
  EXPECT_TRUE(std::equal(stream.begin(), stream.end(), encoded.at("outputs").begin()));
}

// Of one member: random bytes, which are copied whole, or weights.
void typed_arrays(EveryKernel& every) {
  const TypedLayout layout = every.is_compressible() ? TypedLayout::bfloat16 : TypedLayout::bytes;
  const size_t size = kTypedMember * size_t{typed_shape(layout).element_bytes};
  const Bytes raw = every.is_compressible() ? weight_bytes(size, layout, 1) : random_bytes(size, 1);
  const Bytes item = typed_coded(raw, layout);
  const std::set<std::string_view> temporary =
      every.is_compressible() ? std::set<std::string_view>{"slots", "coded_units"} : std::set<std::string_view>{};
  const uint64_t room_bytes = parse_kernel_cost(kernel_image(kTypedEncode).ptx)
                                  .value()
                                  .find_buffer("outputs[]")
                                  ->bytes.evaluate({size})
                                  .value();
  EXPECT_GE(room_bytes, typed_bound(size, layout));
  const auto encode = [&](std::string_view kernel, const KernelArgument& units, const KernelArgument& slots,
                          std::set<std::string_view> by_content) {
    by_content.insert(temporary.begin(), temporary.end());
    return every.run(
        kernel, 1, {size, 1},
        {KernelArgument::addresses({raw}), double_words({size}), KernelArgument::addresses({Bytes(room_bytes)}), room(),
         room(), units, slots, KernelArgument::number(static_cast<uint32_t>(size)), KernelArgument::number(1),
         KernelArgument::number(static_cast<uint32_t>(layout)), KernelArgument::number(1)},
        by_content);
  };
  const auto encoded = encode(kTypedEncode, room(), room(), {"output_bytes", "statuses"});
  const auto joined = encode(kTypedJoin, KernelArgument::input(encoded.at("coded_units")),
                             KernelArgument::input(encoded.at("slots")), {});
  EXPECT_EQ(joined.at("output_bytes"), bytes_of(std::vector<uint64_t>{item.size()}));
  for (const auto& [kernel, by_content] :
       {std::pair(kTypedBegin, std::set<std::string_view>{}),
        std::pair(kTypedDecode, std::set<std::string_view>{"output_bytes", "statuses"})}) {
    const auto decoded = every.run(
        kernel, 1, {size, 1, item.size()},
        {KernelArgument::addresses({item}), double_words({item.size()}), KernelArgument::addresses({Bytes(size)}),
         double_words({size}), room(), room(), KernelArgument::number(1), KernelArgument::number(1)},
        by_content);
    if (kernel == kTypedDecode) {
      EXPECT_TRUE(decoded.at("outputs") == raw);
    }
  }
}

void columns(EveryKernel& every) {
  const Bytes raw = matchable_bytes(kTransformItemBytes, 1);
  const Bytes places = every.run(kMtfEncode, 1, {raw.size()}, items({raw}, kTransformItemBytes, {})).at("dst");
  EXPECT_TRUE(every.run(kMtfDecode, 1, {raw.size()}, items({places}, kTransformItemBytes, {})).at("dst") == raw);
  const auto found = every.run(kZeroRunsEncode, 1, {raw.size()}, items({places}, kTransformItemBytes, {}), {"dst"});
  Bytes runs = found.at("dst");
  uint32_t run_bytes = 0;
  std::memcpy(&run_bytes, found.at("dst_sizes").data(), 4);
  runs.resize(run_bytes);
  EXPECT_TRUE(
      every.run(kZeroRunsDecode, 1, {raw.size(), 1, runs.size()}, items({runs}, kTransformItemBytes, {})).at("dst") ==
      places);
}

// The strides are whole units, so a few bytes after a BWT block are unused.
void block_sorts(EveryKernel& every) {
  const Bytes raw = matchable_bytes(kMaxBitonicBytes, 1);
  const auto size = static_cast<uint32_t>(raw.size());
  Bytes block(bwt_block_bytes(size));
  ASSERT_EQ(bwt_reference(raw, block).status, StreamStatus::ok);
  const auto stride_16 = KernelArgument::number(size / kStrideUnitBytes);
  for (const std::string_view sort : {kBwtRank, kBwtRadix, kBwtBitonic, kBwtInverse}) {
    const bool is_inverse = sort == kBwtInverse;
    const KernelCost cost = parse_kernel_cost(kernel_image(sort).ptx).value();
    const uint64_t room_bytes = cost.find_buffer(is_inverse ? "src" : "dst")->bytes.evaluate({size}).value();
    EXPECT_LE(block.size(), room_bytes);
    const auto block_stride_16 = KernelArgument::number(static_cast<uint32_t>(room_bytes / kStrideUnitBytes));
    std::vector<KernelArgument> arguments = {KernelArgument::input(is_inverse ? block : raw),
                                             words({is_inverse ? static_cast<uint32_t>(block.size()) : size}),
                                             room(),
                                             room(),
                                             room(),
                                             room(),
                                             is_inverse ? block_stride_16 : stride_16,
                                             is_inverse ? stride_16 : block_stride_16,
                                             KernelArgument::number(size)};
    if (sort == kBwtBitonic) {
      arguments.erase(arguments.begin() + 5);
      arguments.pop_back();
    }
    std::set<std::string_view> by_content = {is_inverse ? "src" : "dst"};
    if (sort == kBwtRank) by_content.insert("scratch");  // the length of its lists depends on the data
    Bytes made = every.run(sort, 1, {size}, arguments, by_content).at("dst");
    made.resize(is_inverse ? raw.size() : block.size());
    EXPECT_TRUE(made == (is_inverse ? raw : block)) << sort;
  }
}

// Two members of gzip.
void inflate(EveryKernel& every) {
  const Bytes raw = matchable_bytes(65536, 1), member = deflate_reference(raw, kHighVariant, DeflateFraming::gzip);
  const auto after = every.run(
      kInflateBatch, 2, {2 * raw.size(), 2, 2 * member.size()},
      {KernelArgument::addresses({member, member}), double_words({member.size(), member.size()}),
       KernelArgument::addresses({Bytes(raw.size()), Bytes(raw.size())}), double_words({raw.size(), raw.size()}),
       room(), room(), KernelArgument::number(static_cast<uint32_t>(DeflateFraming::gzip)), KernelArgument::number(2)},
      {"inputs", "outputs"});
  Bytes twice = raw;
  twice.insert(twice.end(), raw.begin(), raw.end());
  EXPECT_TRUE(after.at("outputs") == twice);
  EXPECT_EQ(after.at("statuses"), Bytes(8));
}

// One entry for the launches of a kernel, or of several that work on the same items.
constexpr void (*kLaunches[])(EveryKernel&) = {zero_page,
                                               copy_items,
                                               lz4_compressors,
                                               lz4_in_two_kernels,
                                               lz4_decompressor,
                                               lz4_batches,
                                               lz4_batch_compressors,
                                               lz4_framed_batches,
                                               transforms,
                                               match_finders_and_demux,
                                               zstd_blocks,
                                               zstd_batches,
                                               zstd_decoders,
                                               deflate_encoders,
                                               inflate,
                                               typed_arrays,
                                               columns,
                                               block_sorts};

}  // namespace

std::map<std::string, Bytes> named(const kernels::KernelImage& image, const std::vector<KernelArgument>& arguments,
                                   const std::vector<Bytes>& buffers) {
  std::map<std::string, Bytes> found;
  auto buffer = buffers.begin();
  for (size_t i = 0; i < arguments.size() && buffer != buffers.end(); ++i) {
    if (arguments[i].is_buffer) found[std::string(image.parameters[i].name)] = *buffer++;
  }
  return found;
}

EveryKernel::Buffers EveryKernel::run(std::string_view kernel, uint32_t grid, const LaunchSize& size,
                                      std::vector<KernelArgument> arguments,
                                      const std::set<std::string_view>& by_content) {
  SCOPED_TRACE(kernel);
  const KernelImage& image = kernel_image(kernel);
  const KernelCost cost = parse_kernel_cost(image.ptx).value();
  seen_.insert(std::string(kernel));
  std::map<std::string, uint64_t> declared;
  for (const CostBuffer& buffer : cost.buffers) declared[buffer.name] = buffer.bytes.evaluate(size).value();
  size_t buffer_count = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].is_buffer) continue;
    ++buffer_count;
    const std::string name(image.parameters[i].name);
    EXPECT_TRUE(declared.contains(name)) << name << " is not declared";
    EXPECT_LE(arguments[i].bytes.size(), declared[name]) << name;
    arguments[i].size_bytes = declared[name];
    if (!arguments[i].bytes.empty()) arguments[i].bytes.resize(declared[name]);
    const auto behind = declared.find(name + "[]");
    if (behind == declared.end()) continue;
    ++buffer_count;
    size_t bytes_behind = 0;
    for (const Bytes& pointee : arguments[i].pointees) bytes_behind += pointee.size();
    EXPECT_EQ(bytes_behind, behind->second) << behind->first;
  }
  EXPECT_EQ(buffer_count, declared.size()) << "something is declared that the kernel does not take";
  return launch(image, grid, size, arguments, by_content);
}

void EveryKernel::run_all() {
  for (const auto launches : kLaunches) launches(*this);
  for (const KernelImage& image : kernels::kernel_images()) {
    EXPECT_TRUE(has_run(image.name)) << image.name << " was not run";
  }
}

}  // namespace ptxkit::testing
