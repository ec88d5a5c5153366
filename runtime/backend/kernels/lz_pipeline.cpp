#include <algorithm>
#include <array>

#include "kernels/entropy/lane_format.hpp"
#include "kernels/entropy/rans_format.hpp"
#include "kernels/lz77/abi.hpp"
#include "runtime/backend/kernels/block_pipeline.hpp"
#include "runtime/backend/kernels/kernel_call.hpp"
#include "runtime/codec/coded_stream.hpp"

namespace ptxkit::codec {
namespace {

using format::PtzCodec;
using kernels::StreamStatus;

constexpr std::size_t kStreams = kernels::kLzStreams;

static_assert(1u << format::kPtzMaxBlockBits <= kernels::kLzDecodeMaxBytes);

constexpr std::size_t round_up(std::size_t bytes) { return (bytes + 15) / 16 * 16; }
constexpr std::uint32_t parts_of(std::size_t bytes, std::uint32_t part_bytes) {
  return static_cast<std::uint32_t>((bytes + part_bytes - 1) / part_bytes);
}

// What every block of an encoding has room for.
struct Strides {
  std::size_t largest_bytes;  // raw

  std::size_t raw() const { return round_up(largest_bytes); }
  std::size_t lz() const { return round_up(kernels::lz_block_bound(largest_bytes)); }
};

// Regions of an encoding, in the order of the arrangement.
enum EncodeRegion : std::size_t {
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
std::vector<Region> encode_regions(std::size_t count, Strides strides) {
  const std::size_t raw_bytes = count * strides.raw(), match_bytes = raw_bytes * sizeof(kernels::LzMatch);
  const std::size_t streams = count * kStreams;
  return {{"raw", raw_bytes},
          {"matches", match_bytes, nullptr, true},
          {"resolved matches", match_bytes, nullptr, true},
          {"block sizes", 4 * count},
          {"counts", count * 16 * parts_of(strides.raw(), kernels::kLzSegmentBytes), nullptr, true},
          {"lz blocks", count * strides.lz(), nullptr, true},
          {"coded streams", count * strides.lz(), nullptr, true},
          {"stream offsets", 8 * streams, nullptr, true},
          {"stream sizes", 4 * streams},
          {"coded sizes", 4 * streams},
          {"statuses", 4 * streams}};
}

enum DecodeRegion : std::size_t {
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

// What a decoding takes: of its blocks, and of those of their streams that are coded.
struct DecodeSizes {
  std::size_t blocks = 0, coded_streams = 0, coded_bytes = 0, lz_bytes = 0, raw_bytes = 0;
};
std::vector<Region> decode_regions(const DecodeSizes& of) {
  const std::size_t stream_offsets = 8 * of.coded_streams, stream_words = 4 * of.coded_streams;
  const std::size_t offsets = 8 * of.blocks, words = 4 * of.blocks;
  return {{"coded streams", of.coded_bytes},
          {"coded offsets", stream_offsets},
          {"coded sizes", stream_words},
          {"lz blocks", of.lz_bytes},
          {"stream offsets", stream_offsets},
          {"stream rooms", stream_words},
          {"stream sizes", stream_words},
          {"stream statuses", stream_words},
          {"lz offsets", offsets},
          {"lz sizes", words},
          {"raw", of.raw_bytes},
          {"raw offsets", offsets},
          {"raw rooms", words},
          {"raw sizes", words},
          {"raw statuses", words}};
}

// A coded block, taken apart, and where its parts lie in the regions of its group.
struct CodedBlock {
  struct Stream {
    Bytes content;
    std::size_t size = 0;
    bool is_coded = false;
  };
  std::size_t index;  // in its group
  std::array<Stream, kStreams> streams = {};
  std::size_t lz_bytes = kernels::kLzBlockHeaderBytes;
  std::size_t first_coded_stream = 0, coded_at = 0, lz_at = 0, raw_at = 0;
};

// False where the headers contradict each other, so that there is nothing to decode.
bool take_apart(const BlockToDecode& block, CodedBlock& apart) {
  std::size_t at = kernels::kLzBlockHeaderBytes;
  if (block.coded.size() < at) return false;
  const auto sizes = lz_stream_sizes(block.coded.data());
  for (std::size_t i = 0; i < kStreams; ++i) {
    CodedBlock::Stream& stream = apart.streams[i];
    stream.size = sizes[i];
    if (!find_stream(block.coded, at, stream.size, stream.content, stream.is_coded)) return false;
    apart.lz_bytes += stream.size;
  }
  // A literal is a byte and a match at least four, and every flag word has a token: more makes no block of this length.
  return at == block.coded.size() && apart.lz_bytes <= kernels::lz_block_bound(block.raw.size());
}

struct EntropyKernels {
  std::string_view encoder, decoder;
  std::uint32_t decoder_threads;
  std::vector<std::uint32_t> encoder_options;
};

EntropyKernels kernels_of(PtzCodec codec) {
  switch (codec) {
    case PtzCodec::lzf:
      return {kernels::kFseEncode, kernels::kFseDecode, 32, {kernels::FseOptions{}.accuracy_bits}};
    case PtzCodec::deflate_like:
      return {kernels::kHuffmanEncode, kernels::kHuffmanDecode, 32, {}};
    default: {
      const kernels::RansWarpOptions options;
      return {kernels::kRansWarpEncode,
              kernels::kRansWarpDecode,
              32 * kernels::kRansDecodeWarps,
              {options.scale_bits, options.chunk_bits}};
    }
  }
}

// What the kernels said of a stream: where it lies, and how long its coded form is, if that is shorter.
struct EncodedStream {
  std::size_t at, size;
  kernels::TransformOutcome outcome;
  bool shrinks() const { return outcome.status == StreamStatus::ok && outcome.size_bytes < size; }
  std::size_t stored_bytes() const { return shrinks() ? outcome.size_bytes : size; }
};

class LzPipeline final : public BlockPipeline {
 public:
  LzPipeline(Machine& machine, Executor& executor, PtzCodec codec)
      : machine_(machine),
        executor_(executor),
        coder_(kernels_of(codec)),
        apart_(machine.queue_count()),
        fetched_(machine.queue_count()) {}

  std::size_t encoded_at_once(std::size_t block_bytes) const override {
    return at_once(block_bytes, encode_regions(1, {block_bytes}));
  }
  std::size_t decoded_at_once(std::size_t block_bytes) const override {
    return at_once(block_bytes,
                   decode_regions({1, kStreams, block_bytes, round_up(kernels::lz_block_bound(block_bytes)),
                                   round_up(block_bytes)}));
  }
  Steps<BlockToEncode> encoding() override {
    return {[this](unsigned queue, auto blocks) { return begin_encoding(queue, blocks); },
            [this](unsigned queue, auto blocks) { return fetch_coded(queue, blocks); },
            [this](unsigned queue, auto blocks) { return collect_coded(queue, blocks); }};
  }
  Steps<BlockToDecode> decoding() override {
    return {[this](unsigned queue, auto blocks) { return begin_decoding(queue, blocks); },
            [this](unsigned queue, auto blocks) { return collect_raw(queue, blocks); }};
  }

 private:
  Result<void> begin_encoding(unsigned queue, std::span<const BlockToEncode> blocks);
  Result<void> fetch_coded(unsigned queue, std::span<BlockToEncode> blocks);
  Result<void> collect_coded(unsigned queue, std::span<BlockToEncode> blocks);
  Result<void> begin_decoding(unsigned queue, std::span<const BlockToDecode> blocks);
  Result<void> collect_raw(unsigned queue, std::span<BlockToDecode> blocks);

  // What one launch should carry, or a queue can hold, where a block takes these regions.
  std::size_t at_once(std::size_t block_bytes, std::span<const Region> of_one) const {
    const std::size_t wanted = machine_.slice_bytes() / std::max<std::size_t>(block_bytes, 1);
    return std::max<std::size_t>(1, std::min(wanted, machine_.queue_memory_bytes() / memory_bytes_of(of_one)));
  }
  static Strides strides_of(std::span<const BlockToEncode> blocks) {
    std::size_t largest = 0;
    for (const BlockToEncode& block : blocks) largest = std::max(largest, block.raw.size());
    return {largest};
  }
  template <class T>
  T* array(unsigned queue, std::size_t region) {
    return host_array<T>(machine_, queue, region);
  }
  std::array<EncodedStream, kStreams> encoded_streams(unsigned queue, std::size_t block, Strides strides);
  void lay_out(unsigned queue, std::span<const BlockToDecode> blocks);

  Machine& machine_;
  Executor& executor_;
  EntropyKernels coder_;
  std::vector<std::vector<CodedBlock>> apart_;  // what each queue decodes
  struct FetchedStreams {
    Fetched streams;
    std::vector<std::size_t> begins;  // of each block's
  };
  std::vector<FetchedStreams> fetched_;  // what each queue has encoded
};

// Match finder, demux and entropy coder one after another as one submission: the demux leaves where its streams are for
// the coder, and only what tells of the results comes back.
Result<void> LzPipeline::begin_encoding(unsigned queue, std::span<const BlockToEncode> blocks) {
  using namespace kernels;
  const Strides strides = strides_of(blocks);
  const auto count = static_cast<std::uint32_t>(blocks.size()), streams = count * std::uint32_t{kLzStreams};
  if (auto arranged = arrange_blocks(machine_, queue, encode_regions(count, strides)); !arranged) return arranged;
  const MutableBytes all_raw = machine_.host(queue, kRaw);
  executor_.for_each(count, [&](std::size_t i, unsigned) {
    const MutableBytes room = all_raw.subspan(i * strides.raw(), strides.raw());
    std::fill(std::copy(blocks[i].raw.begin(), blocks[i].raw.end(), room.begin()), room.end(), std::uint8_t{0});
    array<std::uint32_t>(queue, kBlockSizes)[i] = static_cast<std::uint32_t>(blocks[i].raw.size());
  });
  const std::uint32_t positions = count * parts_of(strides.raw(), kLzBlockThreads),
                      segments = count * parts_of(strides.raw(), kLzSegmentBytes);
  const CallArgument item_bytes = number(static_cast<std::uint32_t>(strides.raw()));
  const CallArgument lz_stride_16 = number(static_cast<std::uint32_t>(strides.lz() / kStrideUnitBytes));
  const std::vector<CallArgument> finding = {buffer(kRaw), buffer(kBlockSizes), buffer(kMatches), item_bytes};
  const KernelCall calls[] = {
      {kLz77Link, count * kLzLinkBlocks, 32, {}, finding, {}},
      {kLz77Hash, positions, kLzBlockThreads, {}, finding, {}},
      {kLz77Lazy,
       positions,
       kLzBlockThreads,
       {},
       {buffer(kMatches), buffer(kResolved), buffer(kBlockSizes), item_bytes},
       {}},
      {kDemuxCount, segments, 32, {}, {buffer(kResolved), buffer(kBlockSizes), buffer(kCounts), item_bytes}, {}},
      {kDemuxScatter,
       segments,
       32,
       {},
       {buffer(kRaw), buffer(kBlockSizes), buffer(kResolved), buffer(kCounts), buffer(kLz), buffer(kStreamAt),
        buffer(kStreamSizes), item_bytes, lz_stride_16},
       {}},
      // Coded streams go where the streams lie in the LZ blocks: one that grows is stored raw and needs no more room.
      transform_call(coder_.encoder, streams, 32,
                     {kLz, kStreamAt, kStreamSizes, kCoded, kStreamAt, kStreamSizes, kCodedSizes, kStatuses},
                     coder_.encoder_options)};
  for (const KernelCall& call : calls) {
    if (auto ready = machine_.prepare(call.kernel); !ready) return ready;
  }
  for (const std::size_t region : {kRaw, kBlockSizes}) {
    if (auto copied = machine_.upload(queue, region); !copied) return copied;
  }
  if (auto begun = machine_.begin_chain(queue); !begun) return begun;
  for (const KernelCall& call : calls) {
    if (auto launched = launch(machine_, queue, call); !launched) return launched;
  }
  if (auto ended = machine_.end_chain(queue); !ended) return ended;
  for (const std::size_t region : {kStreamSizes, kCodedSizes, kStatuses}) {
    if (auto copied = machine_.download(queue, region); !copied) return copied;
  }
  return {};
}

std::array<EncodedStream, kStreams> LzPipeline::encoded_streams(unsigned queue, std::size_t block, Strides strides) {
  std::array<EncodedStream, kStreams> streams;
  std::size_t at = block * strides.lz() + kernels::kLzBlockHeaderBytes, index = block * kStreams;
  for (EncodedStream& stream : streams) {
    stream.at = at;
    stream.size = array<std::uint32_t>(queue, kStreamSizes)[index];
    stream.outcome = {static_cast<StreamStatus>(array<std::uint32_t>(queue, kStatuses)[index]),
                      array<std::uint32_t>(queue, kCodedSizes)[index]};
    at += stream.size;
    ++index;
  }
  return streams;
}

// Asks for as much as will be stored, and for nothing of a block that does not shrink.
Result<void> LzPipeline::fetch_coded(unsigned queue, std::span<BlockToEncode> blocks) {
  const Strides strides = strides_of(blocks);
  auto& [fetched, begins] = fetched_[queue] = {};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto streams = encoded_streams(queue, i, strides);
    if (streams.back().at + streams.back().size > (i + 1) * strides.lz()) {
      return fail("demux reported more bytes than its block can have", machine_.description(),
                  "use --backend cpu, and report this as a bug");
    }
    std::size_t stored = kernels::kLzBlockHeaderBytes;
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
  const Strides strides = strides_of(blocks);
  const auto& [fetched, begins] = fetched_[queue];
  executor_.for_each(blocks.size(), [&](std::size_t i, unsigned) {
    BlockToEncode& block = blocks[i];
    if (block.coded.empty()) return;
    block.coded.clear();
    const auto streams = encoded_streams(queue, i, strides);
    for (const std::size_t count : {block.raw.size(), streams[1].size, streams[2].size, streams[0].size / 4}) {
      append_u32(block.coded, static_cast<std::uint32_t>(count));
    }
    Bytes left = fetched.bytes().subspan(begins[i]);
    for (const EncodedStream& stream : streams) {
      append_stored(block.coded, left.first(stream.stored_bytes()), stream.shrinks());
      left = left.subspan(stream.stored_bytes());
    }
  });
  fetched_[queue] = {};
  return {};
}

Result<void> LzPipeline::begin_decoding(unsigned queue, std::span<const BlockToDecode> blocks) {
  std::vector<CodedBlock>& apart = apart_[queue];
  apart.clear();
  DecodeSizes sizes;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
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
  if (auto arranged = arrange_blocks(machine_, queue, decode_regions(sizes)); !arranged) return arranged;
  lay_out(queue, blocks);

  std::vector<KernelCall> calls;
  if (sizes.coded_streams != 0) {
    calls.push_back(transform_call(coder_.decoder, static_cast<std::uint32_t>(sizes.coded_streams),
                                   coder_.decoder_threads,
                                   {kFromCoded, kFromAt, kFromSizes, kToLz, kToAt, kToRooms, kToSizes, kToStatuses}));
    calls.back().uploads = {kFromCoded, kFromAt, kFromSizes, kToAt, kToRooms};
    calls.back().downloads = {kToSizes, kToStatuses};
  }
  calls.push_back(transform_call(kernels::kLz77Decode, static_cast<std::uint32_t>(sizes.blocks), 32,
                                 {kToLz, kLzAt, kLzSizes, kToRaw, kRawAt, kRawRooms, kRawSizes, kRawStatuses}));
  calls.back().uploads = {kToLz, kLzAt, kLzSizes, kRawAt, kRawRooms};
  calls.back().downloads = {kRawSizes, kRawStatuses};
  return run(machine_, queue, calls).and_then([&] {
    const driver::Rows all{0, sizes.raw_bytes, sizes.raw_bytes, 1};
    return machine_.download_rows(queue, kToRaw, {&all, 1});
  });
}

// What a decoding begins with, into the host sides of its regions: streams that are stored raw go to their places in
// the LZ blocks here, the others by the kernel.
void LzPipeline::lay_out(unsigned queue, std::span<const BlockToDecode> blocks) {
  const MutableBytes coded_streams = machine_.host(queue, kFromCoded), lz_blocks = machine_.host(queue, kToLz);
  executor_.for_each(apart_[queue].size(), [&](std::size_t i, unsigned) {
    const CodedBlock& block = apart_[queue][i];
    const BlockToDecode& of = blocks[block.index];
    const auto lz = lz_blocks.subspan(block.lz_at, block.lz_bytes);
    std::copy_n(of.coded.begin(), kernels::kLzBlockHeaderBytes, lz.begin());
    std::size_t to = kernels::kLzBlockHeaderBytes, from = block.coded_at, coded = block.first_coded_stream;
    for (const CodedBlock::Stream& stream : block.streams) {
      const MutableBytes room = stream.is_coded ? coded_streams.subspan(from) : lz.subspan(to);
      std::copy(stream.content.begin(), stream.content.end(), room.begin());
      if (stream.is_coded) {
        array<std::uint64_t>(queue, kFromAt)[coded] = from;
        array<std::uint32_t>(queue, kFromSizes)[coded] = static_cast<std::uint32_t>(stream.content.size());
        array<std::uint64_t>(queue, kToAt)[coded] = block.lz_at + to;
        array<std::uint32_t>(queue, kToRooms)[coded] = static_cast<std::uint32_t>(stream.size);
        from += stream.content.size();
        ++coded;
      }
      to += stream.size;
    }
    array<std::uint64_t>(queue, kLzAt)[i] = block.lz_at;
    array<std::uint32_t>(queue, kLzSizes)[i] = static_cast<std::uint32_t>(block.lz_bytes);
    array<std::uint64_t>(queue, kRawAt)[i] = block.raw_at;
    array<std::uint32_t>(queue, kRawRooms)[i] = static_cast<std::uint32_t>(of.raw.size());
  });
}

Result<void> LzPipeline::collect_raw(unsigned queue, std::span<BlockToDecode> blocks) {
  const auto is_ok = [&](std::size_t statuses, std::size_t sizes, std::size_t i, std::size_t expected_size) {
    return array<std::uint32_t>(queue, statuses)[i] == static_cast<std::uint32_t>(StreamStatus::ok) &&
           array<std::uint32_t>(queue, sizes)[i] == expected_size;
  };
  const Bytes all_raw = apart_[queue].empty() ? Bytes() : Bytes(machine_.host(queue, kToRaw));
  executor_.for_each(apart_[queue].size(), [&](std::size_t i, unsigned) {
    const CodedBlock& block = apart_[queue][i];
    BlockToDecode& to = blocks[block.index];
    to.good = is_ok(kRawStatuses, kRawSizes, i, to.raw.size());
    std::size_t coded = block.first_coded_stream;
    for (const CodedBlock::Stream& stream : block.streams) {
      if (stream.is_coded) to.good = is_ok(kToStatuses, kToSizes, coded++, stream.size) && to.good;
    }
    const Bytes raw = all_raw.subspan(block.raw_at, to.raw.size());
    if (to.good) std::copy(raw.begin(), raw.end(), to.raw.begin());
  });
  return {};
}

}  // namespace

std::unique_ptr<BlockPipeline> make_lz_pipeline(Machine& machine, Executor& executor, PtzCodec codec) {
  return std::make_unique<LzPipeline>(machine, executor, codec);
}

}  // namespace ptxkit::codec
