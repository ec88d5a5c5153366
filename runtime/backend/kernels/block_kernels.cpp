#include "runtime/backend/kernels/block_kernels.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "kernels/entropy/lane_format.hpp"
#include "kernels/entropy/rans_format.hpp"
#include "kernels/lz77/abi.hpp"
#include "runtime/codec/coded_stream.hpp"

namespace ptxkit::codec {
namespace {

using driver::LaunchArgument;
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

std::array<std::size_t, kStreams> stream_sizes(const std::uint8_t* lz_header) {
  const std::size_t literals = read_u32(lz_header + 4), matches = read_u32(lz_header + 8),
                    words = read_u32(lz_header + 12);
  return {4 * words, literals, matches, matches, matches};
}

// A region's host side as an array of T; staging memory is at least 16-byte aligned.
template <class T>
T* array(MutableBytes bytes) {
  return reinterpret_cast<T*>(bytes.data());
}

}  // namespace

// A launch with what goes up before and comes down after it. An argument is a region or a number.
struct BlockKernels::Call {
  std::string_view kernel;
  std::uint32_t grid_blocks, block_threads;
  std::vector<std::size_t> uploads, downloads;
  std::vector<std::size_t> regions_before;
  std::vector<std::uint32_t> numbers_between;
  std::vector<std::size_t> regions_after;
  std::vector<std::uint32_t> numbers_after;
};

Result<void> BlockKernels::arrange(unsigned queue, std::span<const Region> regions) {
  std::size_t needed = 0;
  for (const Region& region : regions) needed += region.size_bytes + 256;
  if (needed > machine_->queue_memory_bytes()) {
    return fail(fmt::format("a block needs {} bytes of device memory, a queue may take {}", needed,
                            machine_->queue_memory_bytes()),
                description(), "use --backend cpu");
  }
  return machine_->arrange(queue, regions);
}

Result<void> BlockKernels::run(unsigned queue, const Call& call) {
  if (auto ready = machine_->prepare(call.kernel); !ready) return ready;
  for (const std::size_t region : call.uploads) {
    if (auto copied = machine_->upload(queue, region); !copied) return copied;
  }
  if (auto launched = launch(queue, call); !launched) return launched;
  for (const std::size_t region : call.downloads) {
    if (auto copied = machine_->download(queue, region); !copied) return copied;
  }
  return {};
}

Result<void> BlockKernels::launch(unsigned queue, const Call& call) {
  std::vector<LaunchArgument> arguments;
  const auto add_region = [&](std::size_t r) {
    arguments.push_back(LaunchArgument::of_address(machine_->address(queue, r)));
  };
  for (const std::size_t region : call.regions_before) add_region(region);
  for (const std::uint32_t number : call.numbers_between) arguments.push_back(LaunchArgument::of(number));
  for (const std::size_t region : call.regions_after) add_region(region);
  for (const std::uint32_t number : call.numbers_after) arguments.push_back(LaunchArgument::of(number));
  return machine_->launch(queue, call.kernel, call.grid_blocks, call.block_threads, arguments);
}

Result<void> BlockKernels::encode(PtzCodec codec, std::span<BlockToEncode> blocks) {
  Result<void> outcome;
  for (std::size_t begin = 0; outcome && begin < blocks.size(); begin += machine_->queue_count()) {
    const auto group = blocks.subspan(begin, std::min<std::size_t>(machine_->queue_count(), blocks.size() - begin));
    const auto each = [&](auto step) {
      for (unsigned queue = 0; outcome && queue < group.size(); ++queue) outcome = step(queue);
    };
    each([&](unsigned queue) { return submit_encoding(queue, codec, group[queue].raw); });
    each([&](unsigned queue) {
      return machine_->wait(queue).and_then([&] { return fetch_coded(queue, group[queue]); });
    });
    each([&](unsigned queue) {
      return machine_->wait(queue).and_then([&] { return collect_coded(queue, group[queue]); });
    });
    // After an error nothing may be under way any more; the error to report is the first.
    for (unsigned queue = 0; !outcome && queue < group.size(); ++queue) (void)machine_->wait(queue);
  }
  return outcome;
}

// Match finder, demux and entropy coder one after another as one submission: the demux leaves where its streams are for
// the coder, and only what tells of the results comes back.
Result<void> BlockKernels::submit_encoding(unsigned queue, PtzCodec codec, Bytes raw) {
  using namespace kernels;
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
  if (auto arranged = arrange(queue, regions); !arranged) return arranged;
  const MutableBytes host = machine_->host(queue, kRaw);
  std::copy(raw.begin(), raw.end(), host.begin());
  std::fill(host.begin() + static_cast<std::ptrdiff_t>(raw.size()), host.end(), std::uint8_t{0});
  const EntropyKernels coder = kernels_of(codec);
  std::vector<std::uint32_t> numbers = {kStreams};
  numbers.insert(numbers.end(), coder.encoder_options.begin(), coder.encoder_options.end());
  const Call calls[] = {
      {kLz77Link, kLzLinkBlocks, 32, {}, {}, {kRaw}, {size}, {kMatches}, {}},
      {kLz77Hash, position_blocks, kLzBlockThreads, {}, {}, {kRaw}, {size}, {kMatches}, {}},
      {kLz77Lazy, position_blocks, kLzBlockThreads, {}, {}, {kMatches, kResolved}, {size}, {}, {}},
      {kDemuxCount, segments, 32, {}, {}, {kResolved}, {size}, {kCounts}, {}},
      {kDemuxScatter, segments, 32, {}, {}, {kRaw}, {size}, {kResolved, kCounts, kLz, kStreamAt, kStreamSizes}, {}},
      // Coded streams go where the streams lie in the LZ block: one that grows is stored raw and needs no more room.
      {coder.encoder,
       kStreams,
       32,
       {},
       {},
       {kLz, kStreamAt, kStreamSizes, kCoded, kStreamAt, kStreamSizes, kCodedSizes, kStatuses},
       numbers,
       {},
       {}}};
  for (const Call& call : calls) {
    if (auto ready = machine_->prepare(call.kernel); !ready) return ready;
  }
  if (auto copied = machine_->upload(queue, kRaw); !copied) return copied;
  if (auto begun = machine_->begin_chain(queue); !begun) return begun;
  for (const Call& call : calls) {
    if (auto launched = launch(queue, call); !launched) return launched;
  }
  if (auto ended = machine_->end_chain(queue); !ended) return ended;
  for (const std::size_t region : {kStreamSizes, kCodedSizes, kStatuses}) {
    if (auto copied = machine_->download(queue, region); !copied) return copied;
  }
  return {};
}

// What the kernels said of the stream `i`: where it lies, and how long its coded form is, if that is shorter.
struct BlockKernels::EncodedStream {
  std::size_t at, size;
  kernels::TransformOutcome outcome;
  bool shrinks() const { return outcome.status == StreamStatus::ok && outcome.size_bytes < size; }
};

std::vector<BlockKernels::EncodedStream> BlockKernels::encoded_streams(unsigned queue) {
  std::vector<EncodedStream> streams;
  std::size_t at = kernels::kLzBlockHeaderBytes;
  for (std::size_t i = 0; i < kStreams; ++i) {
    const std::size_t size = array<std::uint32_t>(machine_->host(queue, kStreamSizes))[i];
    streams.push_back({at,
                       size,
                       {static_cast<StreamStatus>(array<std::uint32_t>(machine_->host(queue, kStatuses))[i]),
                        array<std::uint32_t>(machine_->host(queue, kCodedSizes))[i]}});
    at += size;
  }
  return streams;
}

// Asks for as much as will be stored, and for nothing of a block that does not shrink.
Result<void> BlockKernels::fetch_coded(unsigned queue, BlockToEncode& block) {
  std::vector<driver::Rows> coded, plain;
  std::size_t end = 0, stored = kernels::kLzBlockHeaderBytes;
  for (const EncodedStream& stream : encoded_streams(queue)) {
    const std::size_t bytes = stream.shrinks() ? stream.outcome.size_bytes : stream.size;
    (stream.shrinks() ? coded : plain).push_back({stream.at, bytes, bytes, 1});
    end = stream.at + stream.size;
    stored += 4 + bytes;
  }
  if (end > machine_->host(queue, kLz).size()) {
    return fail("demux reported more bytes than its block can have", description(),
                "use --backend cpu, and report this as a bug");
  }
  block.coded.resize(stored < block.raw.size() ? stored : 0);
  if (block.coded.empty()) return {};
  return machine_->download_rows(queue, kCoded, coded).and_then([&] {
    return machine_->download_rows(queue, kLz, plain);
  });
}

Result<void> BlockKernels::collect_coded(unsigned queue, BlockToEncode& block) {
  if (block.coded.empty()) return {};
  block.coded.clear();
  const Bytes lz = machine_->host(queue, kLz), coded = machine_->host(queue, kCoded);
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

Result<void> BlockKernels::decode(PtzCodec codec, std::span<BlockToDecode> blocks) {
  Result<void> outcome;
  for (std::size_t begin = 0; outcome && begin < blocks.size(); begin += machine_->queue_count()) {
    const auto group = blocks.subspan(begin, std::min<std::size_t>(machine_->queue_count(), blocks.size() - begin));
    std::vector<bool> submitted(group.size());
    for (unsigned queue = 0; outcome && queue < group.size(); ++queue) {
      auto done = submit_decoding(queue, codec, group[queue]);
      submitted[queue] = done && *done;
      if (!done) outcome = tl::unexpected(done.error());
    }
    for (unsigned queue = 0; queue < group.size(); ++queue) {
      if (auto waited = machine_->wait(queue); outcome) outcome = waited;
      if (outcome && submitted[queue]) outcome = collect_raw(queue, group[queue]);
    }
  }
  return outcome;
}

// False where the block's headers contradict each other, so that there is nothing to decode.
Result<bool> BlockKernels::submit_decoding(unsigned queue, PtzCodec codec, const BlockToDecode& block) {
  using namespace kernels;
  if (block.coded.size() < kLzBlockHeaderBytes) return false;
  // Streams that are stored raw are put in their places here, the others by the kernel.
  std::vector<std::uint8_t> lz(block.coded.begin(), block.coded.begin() + kLzBlockHeaderBytes);
  struct Stream {
    std::size_t from, stored, to, size;
  };
  std::vector<Stream> streams;
  std::size_t at = kLzBlockHeaderBytes;
  for (const std::size_t size : stream_sizes(block.coded.data())) {
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
  if (auto arranged = arrange(queue, regions); !arranged) return tl::unexpected(arranged.error());
  std::copy(block.coded.begin(), block.coded.end(), machine_->host(queue, kFromCoded).begin());
  std::copy(lz.begin(), lz.end(), machine_->host(queue, kToLz).begin());
  for (std::size_t i = 0; i < kStreams; ++i) {
    const Stream stream = i < streams.size() ? streams[i] : Stream{0, 0, 0, 0};
    array<std::uint64_t>(machine_->host(queue, kFromAt))[i] = stream.from;
    array<std::uint32_t>(machine_->host(queue, kFromSizes))[i] = static_cast<std::uint32_t>(stream.stored);
    array<std::uint64_t>(machine_->host(queue, kToAt))[i] = stream.to;
    array<std::uint32_t>(machine_->host(queue, kToRooms))[i] = static_cast<std::uint32_t>(stream.size);
    // What stands there where no kernel writes it: a stream that was stored raw is good.
    array<std::uint32_t>(machine_->host(queue, kToSizes))[i] = static_cast<std::uint32_t>(stream.size);
    array<std::uint32_t>(machine_->host(queue, kToStatuses))[i] = static_cast<std::uint32_t>(StreamStatus::ok);
  }
  *array<std::uint64_t>(machine_->host(queue, kLzAt)) = 0;
  *array<std::uint32_t>(machine_->host(queue, kLzSize)) = static_cast<std::uint32_t>(lz.size());
  *array<std::uint64_t>(machine_->host(queue, kRawAt)) = 0;
  *array<std::uint32_t>(machine_->host(queue, kRawRoom)) = static_cast<std::uint32_t>(block.raw.size());

  std::vector<std::size_t> uploads = {kToLz, kLzAt, kLzSize, kRawAt, kRawRoom};
  if (!streams.empty()) {
    const EntropyKernels coder = kernels_of(codec);
    const auto count = static_cast<std::uint32_t>(streams.size());
    const auto done = run(queue, {coder.decoder,
                                  count,
                                  coder.decoder_threads,
                                  {kFromCoded, kToLz, kFromAt, kFromSizes, kToAt, kToRooms, kToSizes, kToStatuses},
                                  {kToSizes, kToStatuses},
                                  {kFromCoded, kFromAt, kFromSizes, kToLz, kToAt, kToRooms, kToSizes, kToStatuses},
                                  {count},
                                  {},
                                  {}});
    if (!done) return tl::unexpected(done.error());
    uploads.erase(uploads.begin());  // the kernel has put streams there
  }
  const auto done = run(queue, {kLz77Decode,
                                1,
                                32,
                                uploads,
                                {kToRaw, kRawSize, kRawStatus},
                                {kToLz, kLzAt, kLzSize, kToRaw, kRawAt, kRawRoom, kRawSize, kRawStatus},
                                {1},
                                {},
                                {}});
  if (!done) return tl::unexpected(done.error());
  return true;
}

Result<void> BlockKernels::collect_raw(unsigned queue, BlockToDecode& block) {
  bool good =
      *array<std::uint32_t>(machine_->host(queue, kRawStatus)) == static_cast<std::uint32_t>(StreamStatus::ok) &&
      *array<std::uint32_t>(machine_->host(queue, kRawSize)) == block.raw.size();
  for (std::size_t i = 0; i < kStreams; ++i) {
    good =
        good &&
        array<std::uint32_t>(machine_->host(queue, kToStatuses))[i] == static_cast<std::uint32_t>(StreamStatus::ok) &&
        array<std::uint32_t>(machine_->host(queue, kToSizes))[i] ==
            array<std::uint32_t>(machine_->host(queue, kToRooms))[i];
  }
  block.good = good;
  const MutableBytes raw = machine_->host(queue, kToRaw);
  if (good) std::copy(raw.begin(), raw.end(), block.raw.begin());
  return {};
}

}  // namespace ptxkit::codec
