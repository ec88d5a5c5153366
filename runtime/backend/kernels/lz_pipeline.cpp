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

// Regions of an encoding and of a decoding, in the order of the arrangement. The streams have one entry each in what
// goes from kStreamAt on.
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
  kToLz,
  kFromAt,
  kFromSizes,
  kToAt,
  kToRooms,
  kToSizes,
  kToStatuses,
  kToRaw,
  kLzAt,
  kLzSize,
  kRawAt,
  kRawRoom,
  kRawSize,
  kRawStatus
};

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
  LzPipeline(Machine& machine, PtzCodec codec)
      : machine_(machine), coder_(kernels_of(codec)), is_submitted_(machine.queue_count()) {}

  std::size_t blocks_at_once(std::size_t) const override { return 1; }
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
  Result<bool> submit_decoding(unsigned queue, const BlockToDecode& block);

  Machine& machine_;
  EntropyKernels coder_;
  std::vector<char> is_submitted_;  // of each queue: there is something to decode
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
  const Region regions[] = {{"raw", (raw.size() + 15) / 16 * 16},
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
  const auto submitted = submit_decoding(queue, blocks[0]);
  is_submitted_[queue] = submitted && *submitted;
  return submitted ? Result<void>() : tl::unexpected(submitted.error());
}

// False where the block's headers contradict each other, so that there is nothing to decode.
Result<bool> LzPipeline::submit_decoding(unsigned queue, const BlockToDecode& block) {
  using namespace kernels;
  if (block.coded.size() < kLzBlockHeaderBytes) return false;
  // Streams that are stored raw are put in their places here, the others by the kernel.
  std::vector<std::uint8_t> lz(block.coded.begin(), block.coded.begin() + kLzBlockHeaderBytes);
  struct Stream {
    std::size_t from, stored, to, size;
  };
  std::vector<Stream> streams;
  std::size_t at = kLzBlockHeaderBytes;
  for (const std::size_t size : lz_stream_sizes(block.coded.data())) {
    if (size > 4 * block.raw.size()) return false;
    const std::size_t to = lz.size();
    lz.resize(to + size);
    const auto note = [&](Bytes content, MutableBytes) {
      streams.push_back({static_cast<std::size_t>(content.data() - block.coded.data()), content.size(), to, size});
      return TransformOutcome{StreamStatus::ok, static_cast<std::uint32_t>(size)};
    };
    if (!take_stream(block.coded, at, MutableBytes(lz).last(size), note)) return false;
  }
  if (at != block.coded.size()) return false;

  const Region regions[] = {{"coded block", block.coded.size()},
                            {"lz block", lz.size()},
                            {"coded offsets", 8 * kStreams},
                            {"coded sizes", 4 * kStreams},
                            {"stream offsets", 8 * kStreams},
                            {"stream rooms", 4 * kStreams},
                            {"stream sizes", 4 * kStreams},
                            {"stream statuses", 4 * kStreams},
                            {"raw", block.raw.size()},
                            {"lz offset", 8},
                            {"lz size", 4},
                            {"raw offset", 8},
                            {"raw room", 4},
                            {"raw size", 4},
                            {"raw status", 4}};
  if (auto arranged = arrange_blocks(machine_, queue, regions); !arranged) return tl::unexpected(arranged.error());
  std::copy(block.coded.begin(), block.coded.end(), machine_.host(queue, kFromCoded).begin());
  std::copy(lz.begin(), lz.end(), machine_.host(queue, kToLz).begin());
  for (std::size_t i = 0; i < kStreams; ++i) {
    const Stream stream = i < streams.size() ? streams[i] : Stream{0, 0, 0, 0};
    array<std::uint64_t>(queue, kFromAt)[i] = stream.from;
    array<std::uint32_t>(queue, kFromSizes)[i] = static_cast<std::uint32_t>(stream.stored);
    array<std::uint64_t>(queue, kToAt)[i] = stream.to;
    array<std::uint32_t>(queue, kToRooms)[i] = static_cast<std::uint32_t>(stream.size);
    // What stands there where no kernel writes it: a stream that was stored raw is good.
    array<std::uint32_t>(queue, kToSizes)[i] = static_cast<std::uint32_t>(stream.size);
    array<std::uint32_t>(queue, kToStatuses)[i] = static_cast<std::uint32_t>(StreamStatus::ok);
  }
  *array<std::uint64_t>(queue, kLzAt) = 0;
  *array<std::uint32_t>(queue, kLzSize) = static_cast<std::uint32_t>(lz.size());
  *array<std::uint64_t>(queue, kRawAt) = 0;
  *array<std::uint32_t>(queue, kRawRoom) = static_cast<std::uint32_t>(block.raw.size());

  std::vector<std::size_t> uploads = {kToLz, kLzAt, kLzSize, kRawAt, kRawRoom};
  if (!streams.empty()) {
    const auto count = static_cast<std::uint32_t>(streams.size());
    KernelCall call = transform_call(coder_.decoder, count, coder_.decoder_threads,
                                     {kFromCoded, kFromAt, kFromSizes, kToLz, kToAt, kToRooms, kToSizes, kToStatuses});
    call.uploads = {kFromCoded, kToLz, kFromAt, kFromSizes, kToAt, kToRooms, kToSizes, kToStatuses};
    call.downloads = {kToSizes, kToStatuses};
    if (auto done = run(machine_, queue, call); !done) return tl::unexpected(done.error());
    uploads.erase(uploads.begin());  // the kernel has put streams there
  }
  KernelCall call =
      transform_call(kLz77Decode, 1, 32, {kToLz, kLzAt, kLzSize, kToRaw, kRawAt, kRawRoom, kRawSize, kRawStatus});
  call.uploads = uploads;
  call.downloads = {kToRaw, kRawSize, kRawStatus};
  if (auto done = run(machine_, queue, call); !done) return tl::unexpected(done.error());
  return true;
}

Result<void> LzPipeline::collect_raw(unsigned queue, std::span<BlockToDecode> blocks) {
  if (!is_submitted_[queue]) return {};
  BlockToDecode& block = blocks[0];
  bool good = *array<std::uint32_t>(queue, kRawStatus) == static_cast<std::uint32_t>(StreamStatus::ok) &&
              *array<std::uint32_t>(queue, kRawSize) == block.raw.size();
  for (std::size_t i = 0; i < kStreams; ++i) {
    good = good && array<std::uint32_t>(queue, kToStatuses)[i] == static_cast<std::uint32_t>(StreamStatus::ok) &&
           array<std::uint32_t>(queue, kToSizes)[i] == array<std::uint32_t>(queue, kToRooms)[i];
  }
  block.good = good;
  const MutableBytes raw = machine_.host(queue, kToRaw);
  if (good) std::copy(raw.begin(), raw.end(), block.raw.begin());
  return {};
}

}  // namespace

std::unique_ptr<BlockPipeline> make_lz_pipeline(Machine& machine, PtzCodec codec) {
  return std::make_unique<LzPipeline>(machine, codec);
}

}  // namespace ptxkit::codec
