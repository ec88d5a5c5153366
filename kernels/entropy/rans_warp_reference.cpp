// rANS with 32 states and one word stream for each chunk: in every row of 32 symbols the lanes that need a word take
// the next ones in the order of the lanes.
#include "kernels/entropy/rans_warp_reference.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/entropy/little_endian.hpp"

namespace ptxkit::kernels {
namespace {

struct Slot {
  uint16_t frequency, offset;
  uint8_t symbol;
};

// Codes a chunk backwards. Words are produced last first.
void encode_chunk(std::span<const uint8_t> chunk, uint32_t scale_bits,
                  const std::array<uint16_t, kSymbols>& frequencies, const std::array<uint32_t, kSymbols>& starts,
                  std::array<uint32_t, kRansWarpLanes>& states, std::vector<uint16_t>& words) {
  states.fill(kRansLow);
  words.clear();
  for (size_t i = chunk.size(); i-- != 0;) {
    const uint32_t frequency = frequencies[chunk[i]];
    uint32_t& state = states[i % kRansWarpLanes];
    if (state >> (32 - scale_bits) >= frequency) {
      words.push_back(static_cast<uint16_t>(state));
      state >>= 16;
    }
    state = ((state / frequency) << scale_bits) + state % frequency + starts[chunk[i]];
  }
}

bool decode_chunk(const uint8_t* from, uint32_t word_count, const std::vector<Slot>& slots, uint32_t scale_bits,
                  std::span<uint8_t> to) {
  std::array<uint32_t, kRansWarpLanes> states;
  bool good = true;
  for (uint32_t lane = 0; lane < kRansWarpLanes; ++lane) {
    states[lane] = read_u32(from + size_t{4} * lane);
    good &= states[lane] >= kRansLow;
  }
  const uint8_t* word = from + kRansWarpStatesBytes;
  const uint8_t* const end = word + size_t{2} * word_count;
  const uint32_t mask = (1u << scale_bits) - 1;
  for (size_t row = 0; good && row < to.size(); row += kRansWarpLanes) {
    const size_t count = std::min<size_t>(kRansWarpLanes, to.size() - row);
    for (size_t lane = 0; lane < count; ++lane) {
      const Slot slot = slots[states[lane] & mask];
      to[row + lane] = slot.symbol;
      states[lane] = slot.frequency * (states[lane] >> scale_bits) + slot.offset;
      if (states[lane] >= kRansLow) continue;
      if (word == end) return false;
      states[lane] = states[lane] << 16 | read_u16(word);
      word += 2;
    }
  }
  for (const uint32_t state : states) good &= state == kRansLow;
  return good && word == end;
}

}  // namespace

TransformOutcome begin_rans_warp(std::span<const uint8_t> src, std::span<uint8_t> dst, const RansWarpOptions& options,
                                 RansWarpHead& head) {
  if (std::max(src.size(), dst.size()) > kMaxTransformBytes) return {StreamStatus::item_too_large, 0};
  if (options.scale_bits < kMinScaleBits || options.scale_bits > kMaxWarpScaleBits ||
      options.chunk_bits < kMinChunkBits || options.chunk_bits > kMaxChunkBits) {
    return {StreamStatus::bad_option, 0};
  }
  if (dst.size() < kRansWarpHeaderBytes) return {StreamStatus::output_overrun, 0};
  write_u32(dst.data(), static_cast<uint32_t>(src.size()));
  dst[4] = static_cast<uint8_t>(options.scale_bits);
  dst[5] = static_cast<uint8_t>(options.chunk_bits);
  if (src.empty()) return {StreamStatus::ok, kRansWarpHeaderBytes};

  head.frequencies = normalise_frequencies(count_bytes(src), options.scale_bits);
  const size_t chunk_count = ((src.size() - 1) >> options.chunk_bits) + 1;
  head.counts_at = kRansWarpHeaderBytes + table_bytes(head.frequencies);
  const size_t chunks_at = head.counts_at + 4 * chunk_count;
  if (dst.size() < chunks_at) return {StreamStatus::output_overrun, 0};
  write_table(head.frequencies, dst.data() + kRansWarpHeaderBytes);
  return {StreamStatus::ok, static_cast<uint32_t>(chunks_at)};
}

StreamStatus open_rans_warp(std::span<const uint8_t> src, size_t room_bytes, RansWarpStream& stream) {
  if (std::max(src.size(), room_bytes) > kMaxTransformBytes) return StreamStatus::item_too_large;
  if (src.size() < kRansWarpHeaderBytes) return StreamStatus::input_overrun;
  stream.raw_bytes = read_u32(src.data());
  stream.scale_bits = src[4];
  const uint32_t chunk_bits = src[5];
  if (stream.scale_bits < kMinScaleBits || stream.scale_bits > kMaxWarpScaleBits || chunk_bits < kMinChunkBits ||
      chunk_bits > kMaxChunkBits) {
    return StreamStatus::bad_table;
  }
  if (stream.raw_bytes > room_bytes) return StreamStatus::output_overrun;
  if (stream.raw_bytes == 0) return src.size() == kRansWarpHeaderBytes ? StreamStatus::ok : StreamStatus::corrupt;

  switch (read_table(src.subspan(kRansWarpHeaderBytes), 1u << stream.scale_bits, stream.frequencies)) {
    case TableRead::good:
      break;
    case TableRead::cut_off:
      return StreamStatus::input_overrun;
    case TableRead::bad:
      return StreamStatus::bad_table;
  }
  stream.chunk_bytes = size_t{1} << chunk_bits;
  const size_t chunk_count = (stream.raw_bytes + stream.chunk_bytes - 1) / stream.chunk_bytes;
  const size_t counts_at = kRansWarpHeaderBytes + table_bytes(stream.frequencies);
  if ((src.size() - counts_at) / 4 < chunk_count) return StreamStatus::input_overrun;
  size_t at = counts_at + 4 * chunk_count;
  stream.counts = src.data() + counts_at;
  stream.chunks = src.data() + at;
  for (size_t c = 0; c < chunk_count; ++c) {
    const uint32_t words = read_u32(stream.counts + 4 * c);
    if (words > stream.chunk_bytes) return StreamStatus::bad_lanes;
    if (src.size() - at < kRansWarpStatesBytes + 2 * size_t{words}) return StreamStatus::input_overrun;
    at += kRansWarpStatesBytes + 2 * size_t{words};
  }
  return at == src.size() ? StreamStatus::ok : StreamStatus::corrupt;
}

TransformOutcome rans_warp_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst,
                                            const RansWarpOptions& options) {
  RansWarpHead head;
  const TransformOutcome begun = begin_rans_warp(src, dst, options, head);
  if (begun.status != StreamStatus::ok || src.empty()) return begun;
  std::array<uint32_t, kSymbols> starts{};
  for (uint32_t s = 1; s < kSymbols; ++s) starts[s] = starts[s - 1] + head.frequencies[s - 1];

  std::array<uint32_t, kRansWarpLanes> states;
  std::vector<uint16_t> words;
  const size_t chunk_bytes = size_t{1} << options.chunk_bits;
  size_t at = begun.size_bytes, count_at = head.counts_at;
  for (size_t from = 0; from < src.size(); from += chunk_bytes, count_at += 4) {
    const auto chunk = src.subspan(from, std::min(chunk_bytes, src.size() - from));
    encode_chunk(chunk, options.scale_bits, head.frequencies, starts, states, words);
    if (dst.size() - at < kRansWarpStatesBytes + 2 * words.size()) return {StreamStatus::output_overrun, 0};
    write_u32(dst.data() + count_at, static_cast<uint32_t>(words.size()));
    for (const uint32_t state : states) {
      write_u32(dst.data() + at, state);
      at += 4;
    }
    for (auto word = words.rbegin(); word != words.rend(); ++word, at += 2) write_u16(dst.data() + at, *word);
  }
  return {StreamStatus::ok, static_cast<uint32_t>(at)};
}

TransformOutcome rans_warp_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst) {
  RansWarpStream stream;
  if (const auto status = open_rans_warp(src, dst.size(), stream); status != StreamStatus::ok) return {status, 0};
  std::vector<Slot> slots;
  slots.reserve(size_t{1} << stream.scale_bits);
  if (stream.raw_bytes != 0) {
    for (uint32_t s = 0; s < kSymbols; ++s) {
      const uint16_t frequency = stream.frequencies[s];
      for (uint16_t i = 0; i < frequency; ++i) slots.push_back({frequency, i, static_cast<uint8_t>(s)});
    }
  }
  const uint8_t *count = stream.counts, *chunk = stream.chunks;
  for (size_t from = 0; from < stream.raw_bytes; from += stream.chunk_bytes, count += 4) {
    const uint32_t words = read_u32(count);
    const auto to = dst.subspan(from, std::min(stream.chunk_bytes, stream.raw_bytes - from));
    if (!decode_chunk(chunk, words, slots, stream.scale_bits, to)) return {StreamStatus::corrupt, 0};
    chunk += kRansWarpStatesBytes + 2 * size_t{words};
  }
  return {StreamStatus::ok, stream.raw_bytes};
}

}  // namespace ptxkit::kernels
