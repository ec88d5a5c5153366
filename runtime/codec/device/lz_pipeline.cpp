#include <algorithm>
#include <array>

#include "kernels/entropy/lane_format.hpp"
#include "kernels/entropy/rans_format.hpp"
#include "kernels/lz77/abi.hpp"
#include "runtime/codec/blocks/coded_stream.hpp"
#include "runtime/codec/device/block_pipeline.hpp"
#include "runtime/codec/device/declared_costs.hpp"
#include "runtime/codec/device/lz_calls.hpp"
#include "support/check.hpp"

namespace ptxkit::codec {
namespace {

using format::PtzCoding;
using kernels::StreamStatus;

constexpr size_t kStreams = kernels::kLzStreams;

static_assert(1u << format::kPtzMaxBlockBits <= kernels::kLzDecodeMaxBytes);

constexpr size_t round_up(size_t bytes) { return (bytes + 15) / 16 * 16; }

// The room reserved for each block of an encoding.
struct Strides {
  size_t raw, lz;
};

// Regions of an encoding, in the order in which they are arranged.
enum EncodeRegion : size_t {
  kRaw,
  kMatches,
  kResolved,
  kBlockSizes,
  kCounts,
  kLz,
  kCoded,
  kStreamAt,
  kStreamSizes,
  kCodedSizes,
  kStatuses
};
constexpr RegionName kEncodeRegions[] = {{"raw"},
                                         {"matches", true},
                                         {"resolved matches", true},
                                         {"block sizes"},
                                         {"counts", true},
                                         {"lz blocks", true},
                                         {"coded streams", true},
                                         {"stream offsets", true},
                                         {"stream sizes"},
                                         {"coded sizes"},
                                         {"statuses"}};

enum DecodeRegion : size_t {
  kFromCoded,
  kFromAt,
  kFromSizes,
  kToLz,
  kToAt,
  kToRooms,
  kToSizes,
  kToStatuses,
  kLzAt,
  kLzSizes,
  kToRaw,
  kRawAt,
  kRawRooms,
  kRawSizes,
  kRawStatuses
};
constexpr RegionName kDecodeRegions[] = {{"coded streams"},  {"coded offsets"}, {"coded sizes"},  {"lz blocks"},
                                         {"stream offsets"}, {"stream rooms"},  {"stream sizes"}, {"stream statuses"},
                                         {"lz offsets"},     {"lz sizes"},      {"raw"},          {"raw offsets"},
                                         {"raw rooms"},      {"raw sizes"},     {"raw statuses"}};

// Totals of a group to decode: of its blocks, and of those of their streams that are coded.
struct DecodeSizes {
  size_t blocks = 0, coded_streams = 0, coded_bytes = 0, lz_bytes = 0, raw_bytes = 0;
};

// A parsed coded block, and the offsets of its parts in the regions of its group.
struct CodedBlock {
  struct Stream {
    Bytes content;
    size_t size = 0;
    bool is_coded = false;
  };
  size_t index;  // in its group
  std::array<Stream, kStreams> streams = {};
  size_t lz_bytes = kernels::kLzBlockHeaderBytes;
  size_t first_coded_stream = 0, coded_at = 0, lz_at = 0, raw_at = 0;
};

// Parses a coded block. False if its headers contradict each other: there is nothing to decode.
bool take_apart(const BlockToDecode& block, CodedBlock& apart) {
  size_t at = kernels::kLzBlockHeaderBytes;
  if (block.coded.size() < at) return false;
  const auto sizes = lz_stream_sizes(block.coded.data());
  for (size_t i = 0; i < kStreams; ++i) {
    CodedBlock::Stream& stream = apart.streams[i];
    stream.size = sizes[i];
    if (!find_stream(block.coded, at, stream.size, stream.content, stream.is_coded)) return false;
    apart.lz_bytes += stream.size;
  }
  // A literal is one raw byte, a match at least four, and every flag word has a token; larger streams cannot belong to
  // a block of this length.
  return at == block.coded.size() && apart.lz_bytes <= kernels::lz_block_bound(block.raw.size());
}

struct EntropyKernels {
  std::string_view encoder, decoder;
  uint32_t decoder_threads;
  std::vector<uint32_t> encoder_options;
};

EntropyKernels kernels_of(const PtzCoding& codec) {
  switch (format::row_of(codec).coder) {
    case format::PtzCoder::rans: {
      if (codec.chunked) {
        const kernels::RansChunkedOptions options = chunked_options(*codec.chunked);
        return {kernels::kRansChunkedEncode,
                kernels::kRansChunkedDecode,
                32 * kernels::kRansDecodeWarps,
                {options.scale_bits, options.lanes, options.chunk_bytes}};
      }
      const kernels::RansWarpOptions options;
      return {kernels::kRansWarpEncode,
              kernels::kRansWarpDecode,
              32 * kernels::kRansDecodeWarps,
              {options.scale_bits, options.chunk_bits}};
    }
    case format::PtzCoder::fse:
      return {kernels::kFseEncode, kernels::kFseDecode, 32, {kernels::FseOptions{}.accuracy_bits}};
    case format::PtzCoder::huffman:
      return {kernels::kHuffmanEncode, kernels::kHuffmanDecode, 32, {}};
  }
  PTXKIT_CHECK(false, "a row of codecs.def has another coder");
}

// What the kernels reported for a stream: its offset, its raw size, and the outcome of coding it.
struct EncodedStream {
  size_t at, size;
  kernels::TransformOutcome outcome;
  bool shrinks() const { return outcome.status == StreamStatus::ok && outcome.size_bytes < size; }
  size_t stored_bytes() const { return shrinks() ? outcome.size_bytes : size; }
};

class LzPipeline final : public BlockPipeline {
 public:
  LzPipeline(Machine& machine, Executor& executor, const PtzCoding& codec)
      : machine_(machine),
        executor_(executor),
        coder_(kernels_of(codec)),
        apart_(machine.queue_count()),
        groups_(machine.queue_count()) {}

  Result<LaunchPlan> encoding_plan(uint32_t block_count, size_t block_bytes, MatchSearch search) override {
    return strides_of(block_bytes).and_then([&](const Strides& strides) {
      return costs_.plan(kEncodeRegions, encode_calls(search, block_count, strides));
    });
  }
  Result<LaunchPlan> decoding_plan(uint32_t block_count, size_t block_bytes) override {
    return strides_of(block_bytes).and_then([&](const Strides& strides) {
      return costs_.plan(kDecodeRegions, decode_calls({block_count, block_count * kStreams, block_count * block_bytes,
                                                       block_count * strides.lz, block_count * strides.raw}));
    });
  }
  size_t encoded_at_once(size_t block_bytes) override {
    return blocks_at_once(machine_, block_bytes, encoding_plan(1, block_bytes, MatchSearch::chains));
  }
  size_t decoded_at_once(size_t block_bytes) override {
    return blocks_at_once(machine_, block_bytes, decoding_plan(1, block_bytes));
  }
  Steps<BlockToEncode> encoding(MatchSearch search) override {
    return {[this, search](unsigned queue, auto blocks) { return begin_encoding(queue, blocks, search); },
            [this](unsigned queue, auto blocks) { return fetch_coded(queue, blocks); },
            [this](unsigned queue, auto blocks) { return collect_coded(queue, blocks); }};
  }
  Steps<BlockToDecode> decoding() override {
    return {[this](unsigned queue, auto blocks) { return begin_decoding(queue, blocks); },
            [this](unsigned queue, auto blocks) { return collect_raw(queue, blocks); }};
  }

 private:
  Result<void> begin_encoding(unsigned queue, std::span<const BlockToEncode> blocks, MatchSearch search);
  Result<void> fetch_coded(unsigned queue, std::span<BlockToEncode> blocks);
  Result<void> collect_coded(unsigned queue, std::span<BlockToEncode> blocks);
  Result<void> begin_decoding(unsigned queue, std::span<const BlockToDecode> blocks);
  Result<void> collect_raw(unsigned queue, std::span<BlockToDecode> blocks);

  Result<Strides> strides_of(size_t largest_bytes) {
    const size_t raw = round_up(largest_bytes);
    return costs_.bytes(kernels::kDemuxScatter, "dst", {raw}).transform([&](size_t lz) { return Strides{raw, lz}; });
  }
  std::vector<KernelCall> encode_calls(MatchSearch search, uint32_t count, const Strides& strides) const;
  std::vector<KernelCall> decode_calls(const DecodeSizes& sizes) const;
  template <class T>
  T* array(unsigned queue, size_t region) {
    return host_array<T>(machine_, queue, region);
  }
  std::array<EncodedStream, kStreams> encoded_streams(unsigned queue, size_t block);
  void lay_out(unsigned queue, std::span<const BlockToDecode> blocks);

  Machine& machine_;
  Executor& executor_;
  DeclaredCosts costs_{machine_};
  EntropyKernels coder_;
  std::vector<std::vector<CodedBlock>> apart_;  // the blocks that each queue decodes
  struct EncodedGroup {
    Strides strides = {};
    Fetched streams = {};
    std::vector<size_t> begins = {};  // for each block: its first byte in `streams`
  };
  std::vector<EncodedGroup> groups_;  // the blocks that each queue encodes
};

std::vector<KernelCall> LzPipeline::encode_calls(MatchSearch search, uint32_t count, const Strides& strides) const {
  std::vector<KernelCall> calls =
      lz_block_calls(search, {kRaw, kBlockSizes, kMatches, kResolved, kCounts, kLz, kStreamAt, kStreamSizes}, count,
                     strides.raw, strides.lz);
  // Coded streams use the offsets of the streams in the LZ blocks: a stream that would grow is stored raw, so it needs
  // no more room.
  calls.push_back(transform_call(
      coder_.encoder, {count * strides.lz, count * kStreams}, 32,
      {kLz, kStreamAt, kStreamSizes, kCoded, kStreamAt, kStreamSizes, kCodedSizes, kStatuses}, coder_.encoder_options));
  return calls;
}

// Submits match finder, demultiplexer and entropy coder as one chain. The demultiplexer writes the stream offsets for
// the coder on the device; only sizes and statuses come back.
Result<void> LzPipeline::begin_encoding(unsigned queue, std::span<const BlockToEncode> blocks, MatchSearch search) {
  const auto found = strides_of(largest_raw_bytes(blocks));
  if (!found) return tl::unexpected(found.error());
  const Strides& strides = *found;
  groups_[queue] = {strides};
  const auto count = static_cast<uint32_t>(blocks.size());
  const auto plan = costs_.plan(kEncodeRegions, encode_calls(search, count, strides));
  if (!plan) return tl::unexpected(plan.error());
  if (auto arranged = arrange_blocks(machine_, queue, plan->regions); !arranged) return arranged;
  const MutableBytes all_raw = machine_.host(queue, kRaw);
  executor_.for_each(count, [&](size_t i, unsigned) {
    const MutableBytes room = all_raw.subspan(i * strides.raw, strides.raw);
    std::fill(std::copy(blocks[i].raw.begin(), blocks[i].raw.end(), room.begin()), room.end(), uint8_t{0});
    array<uint32_t>(queue, kBlockSizes)[i] = static_cast<uint32_t>(blocks[i].raw.size());
  });
  for (const KernelCall& call : plan->calls) {
    if (auto ready = machine_.prepare(call.kernel); !ready) return ready;
  }
  for (const size_t region : {kRaw, kBlockSizes}) {
    if (auto copied = machine_.upload(queue, region); !copied) return copied;
  }
  if (auto begun = machine_.begin_chain(queue); !begun) return begun;
  for (const KernelCall& call : plan->calls) {
    if (auto launched = launch(machine_, queue, call); !launched) return launched;
  }
  if (auto ended = machine_.end_chain(queue); !ended) return ended;
  for (const size_t region : {kStreamSizes, kCodedSizes, kStatuses}) {
    if (auto copied = machine_.download(queue, region); !copied) return copied;
  }
  return {};
}

std::array<EncodedStream, kStreams> LzPipeline::encoded_streams(unsigned queue, size_t block) {
  std::array<EncodedStream, kStreams> streams;
  size_t at = block * groups_[queue].strides.lz + kernels::kLzBlockHeaderBytes, index = block * kStreams;
  for (EncodedStream& stream : streams) {
    stream.at = at;
    stream.size = array<uint32_t>(queue, kStreamSizes)[index];
    stream.outcome = {static_cast<StreamStatus>(array<uint32_t>(queue, kStatuses)[index]),
                      array<uint32_t>(queue, kCodedSizes)[index]};
    at += stream.size;
    ++index;
  }
  return streams;
}

// Downloads only the bytes that will be stored, and nothing of a block that does not shrink.
Result<void> LzPipeline::fetch_coded(unsigned queue, std::span<BlockToEncode> blocks) {
  auto& [strides, fetched, begins] = groups_[queue];
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto streams = encoded_streams(queue, i);
    if (streams.back().at + streams.back().size > (i + 1) * strides.lz) {
      return fail("demux reported more bytes than its block can have", machine_.description(),
                  "use --backend cpu, and report this as a bug");
    }
    size_t stored = kernels::kLzBlockHeaderBytes;
    for (const EncodedStream& stream : streams) stored += 4 + stream.stored_bytes();
    begins.push_back(fetched.size_bytes());
    blocks[i].coded.resize(stored < blocks[i].raw.size() ? stored : 0);
    if (blocks[i].coded.empty()) continue;
    for (const EncodedStream& stream : streams) {
      fetched.add(stream.shrinks() ? kCoded : kLz, stream.at, stream.stored_bytes());
    }
  }
  return fetched.download(machine_, queue);
}

Result<void> LzPipeline::collect_coded(unsigned queue, std::span<BlockToEncode> blocks) {
  const auto& [strides, fetched, begins] = groups_[queue];
  executor_.for_each(blocks.size(), [&](size_t i, unsigned) {
    BlockToEncode& block = blocks[i];
    if (block.coded.empty()) return;
    block.coded.clear();
    const auto streams = encoded_streams(queue, i);
    for (const size_t count : {block.raw.size(), streams[1].size, streams[2].size, streams[0].size / 4}) {
      append_u32(block.coded, static_cast<uint32_t>(count));
    }
    Bytes left = fetched.bytes().subspan(begins[i]);
    for (const EncodedStream& stream : streams) {
      append_stored(block.coded, left.first(stream.stored_bytes()), stream.shrinks());
      left = left.subspan(stream.stored_bytes());
    }
  });
  groups_[queue] = {};
  return {};
}

std::vector<KernelCall> LzPipeline::decode_calls(const DecodeSizes& sizes) const {
  std::vector<KernelCall> calls;
  if (sizes.coded_streams != 0) {
    calls.push_back(transform_call(coder_.decoder, {sizes.lz_bytes, sizes.coded_streams, sizes.coded_bytes},
                                   coder_.decoder_threads,
                                   {kFromCoded, kFromAt, kFromSizes, kToLz, kToAt, kToRooms, kToSizes, kToStatuses}));
    calls.back().uploads = {kFromCoded, kFromAt, kFromSizes, kToAt, kToRooms};
    calls.back().downloads = {kToSizes, kToStatuses};
  }
  calls.push_back(transform_call(kernels::kLz77Decode, {sizes.raw_bytes, sizes.blocks, sizes.lz_bytes}, 32,
                                 {kToLz, kLzAt, kLzSizes, kToRaw, kRawAt, kRawRooms, kRawSizes, kRawStatuses}));
  calls.back().uploads = {kToLz, kLzAt, kLzSizes, kRawAt, kRawRooms};
  calls.back().downloads = {kRawSizes, kRawStatuses};
  return calls;
}

Result<void> LzPipeline::begin_decoding(unsigned queue, std::span<const BlockToDecode> blocks) {
  std::vector<CodedBlock>& apart = apart_[queue];
  apart.clear();
  DecodeSizes sizes;
  for (size_t i = 0; i < blocks.size(); ++i) {
    CodedBlock block{i};
    if (!take_apart(blocks[i], block)) continue;
    block.first_coded_stream = sizes.coded_streams;
    block.coded_at = sizes.coded_bytes;
    block.lz_at = sizes.lz_bytes;
    block.raw_at = sizes.raw_bytes;
    for (const auto& stream : block.streams) {
      if (!stream.is_coded) continue;
      sizes.coded_bytes += stream.content.size();
      ++sizes.coded_streams;
    }
    sizes.lz_bytes += round_up(block.lz_bytes);
    sizes.raw_bytes += round_up(blocks[i].raw.size());
    ++sizes.blocks;
    apart.push_back(block);
  }
  if (apart.empty()) return {};
  const auto plan = costs_.plan(kDecodeRegions, decode_calls(sizes));
  if (!plan) return tl::unexpected(plan.error());
  if (auto arranged = arrange_blocks(machine_, queue, plan->regions); !arranged) return arranged;
  lay_out(queue, blocks);
  return run(machine_, queue, plan->calls).and_then([&] {
    const driver::Rows all{0, sizes.raw_bytes, sizes.raw_bytes, 1};
    return machine_.download_rows(queue, kToRaw, {&all, 1});
  });
}

// Fills the host sides of the regions of a decoding. Raw streams are copied to their places in the LZ blocks here; the
// kernel decodes the others into theirs.
void LzPipeline::lay_out(unsigned queue, std::span<const BlockToDecode> blocks) {
  const MutableBytes coded_streams = machine_.host(queue, kFromCoded), lz_blocks = machine_.host(queue, kToLz);
  executor_.for_each(apart_[queue].size(), [&](size_t i, unsigned) {
    const CodedBlock& block = apart_[queue][i];
    const BlockToDecode& of = blocks[block.index];
    const auto lz = lz_blocks.subspan(block.lz_at, block.lz_bytes);
    std::copy_n(of.coded.begin(), kernels::kLzBlockHeaderBytes, lz.begin());
    size_t to = kernels::kLzBlockHeaderBytes, from = block.coded_at, coded = block.first_coded_stream;
    for (const CodedBlock::Stream& stream : block.streams) {
      const MutableBytes room = stream.is_coded ? coded_streams.subspan(from) : lz.subspan(to);
      std::copy(stream.content.begin(), stream.content.end(), room.begin());
      if (stream.is_coded) {
        array<uint64_t>(queue, kFromAt)[coded] = from;
        array<uint32_t>(queue, kFromSizes)[coded] = static_cast<uint32_t>(stream.content.size());
        array<uint64_t>(queue, kToAt)[coded] = block.lz_at + to;
        array<uint32_t>(queue, kToRooms)[coded] = static_cast<uint32_t>(stream.size);
        from += stream.content.size();
        ++coded;
      }
      to += stream.size;
    }
    array<uint64_t>(queue, kLzAt)[i] = block.lz_at;
    array<uint32_t>(queue, kLzSizes)[i] = static_cast<uint32_t>(block.lz_bytes);
    array<uint64_t>(queue, kRawAt)[i] = block.raw_at;
    array<uint32_t>(queue, kRawRooms)[i] = static_cast<uint32_t>(of.raw.size());
  });
}

Result<void> LzPipeline::collect_raw(unsigned queue, std::span<BlockToDecode> blocks) {
  const auto is_ok = [&](size_t statuses, size_t sizes, size_t i, size_t expected_size) {
    return array<uint32_t>(queue, statuses)[i] == static_cast<uint32_t>(StreamStatus::ok) &&
           array<uint32_t>(queue, sizes)[i] == expected_size;
  };
  const Bytes all_raw = apart_[queue].empty() ? Bytes() : Bytes(machine_.host(queue, kToRaw));
  executor_.for_each(apart_[queue].size(), [&](size_t i, unsigned) {
    const CodedBlock& block = apart_[queue][i];
    BlockToDecode& to = blocks[block.index];
    to.good = is_ok(kRawStatuses, kRawSizes, i, to.raw.size());
    size_t coded = block.first_coded_stream;
    for (const CodedBlock::Stream& stream : block.streams) {
      if (stream.is_coded) to.good = is_ok(kToStatuses, kToSizes, coded++, stream.size) && to.good;
    }
    const Bytes raw = all_raw.subspan(block.raw_at, to.raw.size());
    if (to.good) std::copy(raw.begin(), raw.end(), to.raw.begin());
  });
  return {};
}

}  // namespace

std::unique_ptr<BlockPipeline> make_lz_pipeline(Machine& machine, Executor& executor, const PtzCoding& codec) {
  return std::make_unique<LzPipeline>(machine, executor, codec);
}

}  // namespace ptxkit::codec
