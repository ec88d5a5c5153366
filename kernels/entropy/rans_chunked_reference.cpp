// rANS with a word stream for each lane. The decoder advances all lanes of a chunk for each row of symbols. Their
// states are independent, so several multiplications overlap.
#include "kernels/entropy/rans_chunked_reference.hpp"

#include <algorithm>

#include "kernels/entropy/little_endian.hpp"

namespace ptxkit::kernels {
namespace {

struct Table {
  std::array<uint16_t, kSymbols> frequencies{};
  std::array<uint32_t, kSymbols + 1> starts{};
  void add_up() {
    for (uint32_t s = 0; s < kSymbols; ++s) starts[s + 1] = starts[s] + frequencies[s];
  }
};

// Reads the chunk at `at` of the stream and advances `at` past it.
StreamStatus read_chunk(std::span<const uint8_t> src, uint32_t length, size_t& at, RansChunk& chunk) {
  if (at >= src.size()) return StreamStatus::input_overrun;
  chunk = {length, src[at], src.data() + at + 1, nullptr};
  if (chunk.lanes == 0 || chunk.lanes > kMaxRansLanes) return StreamStatus::bad_lanes;
  const size_t header_bytes = 1 + 8 * size_t{chunk.lanes};
  if (src.size() - at < header_bytes) return StreamStatus::input_overrun;
  chunk.words = chunk.states + 8 * size_t{chunk.lanes};
  size_t words = 0;
  for (uint32_t lane = 0; lane < chunk.lanes; ++lane) {
    const uint32_t count = read_u32(chunk.states + 4 * (chunk.lanes + lane));
    if (count > symbols_of_lane(length, lane, chunk.lanes)) return StreamStatus::bad_lanes;
    words += count;
  }
  at += header_bytes;
  if ((src.size() - at) / 2 < words) return StreamStatus::input_overrun;
  at += 2 * words;
  return StreamStatus::ok;
}

class ChunkDecoder {
 public:
  ChunkDecoder(const Table& table, uint32_t scale_bits) : scale_bits_(scale_bits), slots_(size_t{1} << scale_bits) {
    for (uint32_t s = 0; s < kSymbols; ++s) {
      for (uint32_t slot = table.starts[s]; slot < table.starts[s + 1]; ++slot) {
        slots_[slot] = {static_cast<uint16_t>(table.frequencies[s]), static_cast<uint16_t>(slot - table.starts[s]),
                        static_cast<uint8_t>(s)};
      }
    }
  }

  bool decode(const RansChunk& chunk, uint8_t* to) const {
    std::array<Lane, kMaxRansLanes> lanes;
    const uint8_t* words = chunk.words;
    bool good = true;
    for (uint32_t lane = 0; lane < chunk.lanes; ++lane) {
      const uint32_t count = read_u32(chunk.states + 4 * (chunk.lanes + lane));
      lanes[lane] = {read_u32(chunk.states + 4 * lane), words, words + 2 * size_t{count}};
      words = lanes[lane].end;
      good &= lanes[lane].state >= kRansLow;
    }
    uint32_t done = 0;
    for (; good && chunk.length - done >= chunk.lanes; done += chunk.lanes) {
      for (uint32_t lane = 0; lane < chunk.lanes; ++lane) good &= step(lanes[lane], to[done + lane]);
    }
    for (uint32_t lane = 0; good && done + lane < chunk.length; ++lane) good &= step(lanes[lane], to[done + lane]);
    for (uint32_t lane = 0; lane < chunk.lanes; ++lane) {
      good = good && lanes[lane].state == kRansLow && lanes[lane].next == lanes[lane].end;
    }
    return good;
  }

 private:
  struct Slot {
    uint16_t frequency, offset;
    uint8_t symbol;
  };
  struct Lane {
    uint32_t state;
    const uint8_t* next;
    const uint8_t* end;
  };

  // Decodes a symbol. False if the lane needs a word but has none left.
  bool step(Lane& lane, uint8_t& symbol) const {
    const Slot slot = slots_[lane.state & ((1u << scale_bits_) - 1)];
    symbol = slot.symbol;
    lane.state = slot.frequency * (lane.state >> scale_bits_) + slot.offset;
    if (lane.state >= kRansLow) return true;
    if (lane.next == lane.end) return false;
    lane.state = lane.state << 16 | read_u16(lane.next);
    lane.next += 2;
    return true;
  }

  uint32_t scale_bits_;
  std::vector<Slot> slots_;
};

// Codes a chunk backwards. The words of each lane are produced last first.
struct ChunkEncoder {
  std::array<uint32_t, kMaxRansLanes> states;
  std::array<std::vector<uint16_t>, kMaxRansLanes> words;

  void encode(std::span<const uint8_t> chunk, const Table& table, const RansChunkedOptions& options) {
    states.fill(kRansLow);
    for (auto& lane : words) lane.clear();
    for (size_t i = chunk.size(); i-- != 0;) {
      const uint32_t frequency = table.frequencies[chunk[i]], start = table.starts[chunk[i]];
      uint32_t& state = states[i % options.lanes];
      if (state >> (32 - options.scale_bits) >= frequency) {
        words[i % options.lanes].push_back(static_cast<uint16_t>(state));
        state >>= 16;
      }
      state = ((state / frequency) << options.scale_bits) + state % frequency + start;
    }
  }
  size_t size_bytes(uint32_t lanes) const {
    size_t bytes = 1 + 8 * size_t{lanes};
    for (uint32_t lane = 0; lane < lanes; ++lane) bytes += 2 * words[lane].size();
    return bytes;
  }
  void write(uint8_t* to, uint32_t lanes) const {
    *to++ = static_cast<uint8_t>(lanes);
    for (uint32_t lane = 0; lane < lanes; ++lane, to += 4) write_u32(to, states[lane]);
    for (uint32_t lane = 0; lane < lanes; ++lane, to += 4) write_u32(to, static_cast<uint32_t>(words[lane].size()));
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      for (auto word = words[lane].rbegin(); word != words[lane].rend(); ++word, to += 2) write_u16(to, *word);
    }
  }
};

}  // namespace

TransformOutcome begin_rans_chunked(std::span<const uint8_t> src, std::span<uint8_t> dst,
                                    const RansChunkedOptions& options, std::array<uint16_t, kSymbols>& frequencies) {
  if (std::max(src.size(), dst.size()) > kMaxTransformBytes) return {StreamStatus::item_too_large, 0};
  if (options.scale_bits < kMinScaleBits || options.scale_bits > kMaxScaleBits || options.lanes == 0 ||
      options.lanes > kMaxRansLanes || options.chunk_bytes == 0 || options.chunk_bytes > kMaxRansChunkBytes) {
    return {StreamStatus::bad_option, 0};
  }
  const auto raw_bytes = static_cast<uint32_t>(src.size());
  const uint32_t chunk_count = (raw_bytes + options.chunk_bytes - 1) / options.chunk_bytes;
  if (chunk_count > kMaxRansChunks) return {StreamStatus::bad_option, 0};
  const uint32_t chunks_at = kRansLengthsAt + 2 * chunk_count;
  if (dst.size() < chunks_at) return {StreamStatus::output_overrun, 0};
  frequencies = normalise_frequencies(count_bytes(src), options.scale_bits);
  dst[0] = static_cast<uint8_t>(options.scale_bits);
  for (uint32_t s = 0; s < kSymbols; ++s) write_u16(dst.data() + kRansTableAt + 2 * s, frequencies[s]);
  write_u16(dst.data() + kRansChunkCountAt, chunk_count);
  return {StreamStatus::ok, chunks_at};
}

StreamStatus open_rans_chunked(std::span<const uint8_t> src, size_t room_bytes, RansChunkedStream& stream) {
  if (std::max(src.size(), room_bytes) > kMaxTransformBytes) return StreamStatus::item_too_large;
  if (src.size() < kRansLengthsAt) return StreamStatus::input_overrun;
  stream.scale_bits = src[0];
  const uint32_t chunk_count = read_u16(src.data() + kRansChunkCountAt);
  if (stream.scale_bits < kMinScaleBits || stream.scale_bits > kMaxScaleBits) return StreamStatus::bad_table;
  uint32_t sum = 0;
  for (uint32_t s = 0; s < kSymbols; ++s) {
    sum += stream.frequencies[s] = static_cast<uint16_t>(read_u16(src.data() + kRansTableAt + 2 * s));
  }
  if (sum != (chunk_count == 0 ? 0 : 1u << stream.scale_bits)) return StreamStatus::bad_table;
  if (src.size() - kRansLengthsAt < 2 * size_t{chunk_count}) return StreamStatus::input_overrun;

  stream.raw_bytes = 0;
  stream.chunks.resize(chunk_count);
  size_t at = kRansLengthsAt + 2 * size_t{chunk_count};
  for (uint32_t c = 0; c < chunk_count; ++c) {
    const uint32_t length = read_u16(src.data() + kRansLengthsAt + 2 * size_t{c});
    const StreamStatus status = read_chunk(src, length, at, stream.chunks[c]);
    if (status != StreamStatus::ok) return status;
    stream.raw_bytes += length;
    if (stream.raw_bytes > room_bytes) return StreamStatus::output_overrun;
  }
  return at == src.size() ? StreamStatus::ok : StreamStatus::corrupt;
}

TransformOutcome rans_chunked_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst,
                                               const RansChunkedOptions& options) {
  Table table;
  const TransformOutcome begun = begin_rans_chunked(src, dst, options, table.frequencies);
  if (begun.status != StreamStatus::ok) return begun;
  table.add_up();
  ChunkEncoder encoder;
  size_t at = begun.size_bytes, length_at = kRansLengthsAt;
  for (size_t from = 0; from < src.size(); from += options.chunk_bytes, length_at += 2) {
    const auto chunk = src.subspan(from, std::min<size_t>(options.chunk_bytes, src.size() - from));
    encoder.encode(chunk, table, options);
    const size_t chunk_size = encoder.size_bytes(options.lanes);
    if (dst.size() - at < chunk_size) return {StreamStatus::output_overrun, 0};
    write_u16(dst.data() + length_at, static_cast<uint32_t>(chunk.size()));
    encoder.write(dst.data() + at, options.lanes);
    at += chunk_size;
  }
  return {StreamStatus::ok, static_cast<uint32_t>(at)};
}

TransformOutcome rans_chunked_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst) {
  RansChunkedStream stream;
  if (const auto status = open_rans_chunked(src, dst.size(), stream); status != StreamStatus::ok) return {status, 0};
  Table table{.frequencies = stream.frequencies};
  table.add_up();
  const ChunkDecoder decoder(table, stream.scale_bits);
  uint8_t* to = dst.data();
  for (const RansChunk& chunk : stream.chunks) {
    if (!decoder.decode(chunk, to)) return {StreamStatus::corrupt, 0};
    to += chunk.length;
  }
  return {StreamStatus::ok, stream.raw_bytes};
}

}  // namespace ptxkit::kernels
