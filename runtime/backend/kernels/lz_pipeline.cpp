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

// Regions of an encoding, in the order of the arrangement. The streams have one entry each in what goes from kStreamAt
// on.
enum EncodeRegion : std::size_t {
  kRaw,
  kMatches,
  kResolved,
  kCounts,
  kLz,
  kCoded,
  kStreamAt,
  kStreamSizes,
  kCodedSizes,
  kStatuses
};
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

constexpr std::size_t round_up(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

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
};

class LzPipeline final : public BlockPipeline {
 public:
  LzPipeline(Machine& machine, Executor& executor, PtzCodec codec)
      : machine_(machine), executor_(executor), coder_(kernels_of(codec)), apart_(machine.queue_count()) {}

  std::size_t encoded_at_once(std::size_t) const override { return 1; }
  // What one launch should carry, or a queue can hold.
  std::size_t decoded_at_once(std::size_t block_bytes) const override {
    const auto regions = decode_regions(
        {1, kStreams, block_bytes, round_up(kernels::lz_block_bound(block_bytes)), round_up(block_bytes)});
    const std::size_t fitting = machine_.queue_memory_bytes() / memory_bytes_of(regions);
    const std::size_t wanted = machine_.slice_bytes() / std::max<std::size_t>(block_bytes, 1);
    return std::max<std::size_t>(1, std::min(fitting, wanted));
  }
  Result<void> begin_encoding(unsigned queue, std::span<const BlockToEncode> blocks) override;
  Result<void> fetch_coded(unsigned queue, std::span<BlockToEncode> blocks) override;
  Result<void> collect_coded(unsigned queue, std::span<BlockToEncode> blocks) override;
  Result<void> begin_decoding(unsigned queue, std::span<const BlockToDecode> blocks) override;
  Result<void> collect_raw(unsigned queue, std::span<BlockToDecode> blocks) override;

 private:
  template <class T>
  T* array(unsigned queue, std::size_t region) {
    return host_array<T>(machine_, queue, region);
  }
  std::vector<EncodedStream> encoded_streams(unsigned queue);
  void lay_out(unsigned queue, std::span<const BlockToDecode> blocks);

  Machine& machine_;
  Executor& executor_;
  EntropyKernels coder_;
  std::vector<std::vector<CodedBlock>> apart_;  // what each queue decodes
};

// Match finder, demux and entropy coder one after another as one submission: the demux leaves where its streams are for
// the coder, and only what tells of the results comes back.
Result<void> LzPipeline::begin_encoding(unsigned queue, std::span<const BlockToEncode> blocks) {
  using namespace kernels;
  const Bytes raw = blocks[0].raw;
  const auto size = static_cast<std::uint32_t>(raw.size());
  const std::uint32_t segments = (size + kLzSegmentBytes - 1) / kLzSegmentBytes;
  const std::uint32_t position_blocks = (size + kLzBlockThreads - 1) / kLzBlockThreads;
  const std::size_t lz_bytes = lz_block_bound(size), match_bytes = size * sizeof(LzMatch);
  const Region regions[] = {{"raw", round_up(raw.size())},
                            {"matches", match_bytes, nullptr, true},
                            {"resolved matches", match_bytes, nullptr, true},
                            {"counts", std::size_t{16} * segments, nullptr, true},
                            {"lz block", lz_bytes},
                            {"coded streams", lz_bytes},
                            {"stream offsets", 8 * kStreams, nullptr, true},
                            {"stream sizes", 4 * kStreams},
                            {"coded sizes", 4 * kStreams},
                            {"statuses", 4 * kStreams}};
  if (auto arranged = arrange_blocks(machine_, queue, regions); !arranged) return arranged;
  const MutableBytes host = machine_.host(queue, kRaw);
  std::copy(raw.begin(), raw.end(), host.begin());
  std::fill(host.begin() + static_cast<std::ptrdiff_t>(raw.size()), host.end(), std::uint8_t{0});
  const KernelCall calls[] = {
      {kLz77Link, kLzLinkBlocks, 32, {}, {buffer(kRaw), number(size), buffer(kMatches)}, {}},
      {kLz77Hash, position_blocks, kLzBlockThreads, {}, {buffer(kRaw), number(size), buffer(kMatches)}, {}},
      {kLz77Lazy, position_blocks, kLzBlockThreads, {}, {buffer(kMatches), buffer(kResolved), number(size)}, {}},
      {kDemuxCount, segments, 32, {}, {buffer(kResolved), number(size), buffer(kCounts)}, {}},
      {kDemuxScatter,
       segments,
       32,
       {},
       {buffer(kRaw), number(size), buffer(kResolved), buffer(kCounts), buffer(kLz), buffer(kStreamAt),
        buffer(kStreamSizes)},
       {}},
      // Coded streams go where the streams lie in the LZ block: one that grows is stored raw and needs no more room.
      transform_call(coder_.encoder, kStreams, 32,
                     {kLz, kStreamAt, kStreamSizes, kCoded, kStreamAt, kStreamSizes, kCodedSizes, kStatuses},
                     coder_.encoder_options)};
  for (const KernelCall& call : calls) {
    if (auto ready = machine_.prepare(call.kernel); !ready) return ready;
  }
  if (auto copied = machine_.upload(queue, kRaw); !copied) return copied;
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

std::vector<EncodedStream> LzPipeline::encoded_streams(unsigned queue) {
  std::vector<EncodedStream> streams;
  std::size_t at = kernels::kLzBlockHeaderBytes;
  for (std::size_t i = 0; i < kStreams; ++i) {
    const std::size_t size = array<std::uint32_t>(queue, kStreamSizes)[i];
    streams.push_back({at,
                       size,
                       {static_cast<StreamStatus>(array<std::uint32_t>(queue, kStatuses)[i]),
                        array<std::uint32_t>(queue, kCodedSizes)[i]}});
    at += size;
  }
  return streams;
}

// Asks for as much as will be stored, and for nothing of a block that does not shrink.
Result<void> LzPipeline::fetch_coded(unsigned queue, std::span<BlockToEncode> blocks) {
  BlockToEncode& block = blocks[0];
  std::vector<driver::Rows> coded, plain;
  std::size_t end = 0, stored = kernels::kLzBlockHeaderBytes;
  for (const EncodedStream& stream : encoded_streams(queue)) {
    const std::size_t bytes = stream.shrinks() ? stream.outcome.size_bytes : stream.size;
    (stream.shrinks() ? coded : plain).push_back({stream.at, bytes, bytes, 1});
    end = stream.at + stream.size;
    stored += 4 + bytes;
  }
  if (end > machine_.host(queue, kLz).size()) {
    return fail("demux reported more bytes than its block can have", machine_.description(),
                "use --backend cpu, and report this as a bug");
  }
  block.coded.resize(stored < block.raw.size() ? stored : 0);
  if (block.coded.empty()) return {};
  return machine_.download_rows(queue, kCoded, coded).and_then([&] {
    return machine_.download_rows(queue, kLz, plain);
  });
}

Result<void> LzPipeline::collect_coded(unsigned queue, std::span<BlockToEncode> blocks) {
  BlockToEncode& block = blocks[0];
  if (block.coded.empty()) return {};
  block.coded.clear();
  const Bytes lz = machine_.host(queue, kLz), coded = machine_.host(queue, kCoded);
  const auto streams = encoded_streams(queue);
  for (const std::size_t count : {block.raw.size(), streams[1].size, streams[2].size, streams[0].size / 4}) {
    append_u32(block.coded, static_cast<std::uint32_t>(count));
  }
  for (const EncodedStream& stream : streams) {
    append_stream(block.coded, lz.subspan(stream.at, stream.size), [&](Bytes, MutableBytes room) {
      if (stream.shrinks()) std::copy_n(&coded[stream.at], stream.outcome.size_bytes, room.begin());
      return stream.outcome;
    });
  }
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
