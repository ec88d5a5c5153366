// rANS with 32 states and one word stream a chunk: in every row of 32 symbols the lanes that need a word take the next
// ones in order of their numbers.
#include "kernels/entropy/rans_warp_reference.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/entropy/little_endian.hpp"

namespace ptxkit::kernels {
namespace {

constexpr size_t kStatesBytes = 4 * kRansWarpLanes;

struct Slot {
  uint16_t frequency, offset;
  uint8_t symbol;
};

// Codes a chunk backwards; words come out last first.
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
  const uint8_t* word = from + kStatesBytes;
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

TransformOutcome rans_warp_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst,
                                            const RansWarpOptions& options) {
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

  const auto frequencies = normalise_frequencies(count_bytes(src), options.scale_bits);
  const size_t chunk_bytes = size_t{1} << options.chunk_bits;
  const size_t chunk_count = (src.size() + chunk_bytes - 1) / chunk_bytes;
  const size_t counts_at = kRansWarpHeaderBytes + table_bytes(frequencies);
  size_t at = counts_at + 4 * chunk_count;
  if (dst.size() < at) return {StreamStatus::output_overrun, 0};
  write_table(frequencies, dst.data() + kRansWarpHeaderBytes);
  std::array<uint32_t, kSymbols> starts{};
  for (uint32_t s = 1; s < kSymbols; ++s) starts[s] = starts[s - 1] + frequencies[s - 1];

  std::array<uint32_t, kRansWarpLanes> states;
  std::vector<uint16_t> words;
  for (size_t c = 0; c < chunk_count; ++c) {
    const auto chunk = src.subspan(c * chunk_bytes, std::min(chunk_bytes, src.size() - c * chunk_bytes));
    encode_chunk(chunk, options.scale_bits, frequencies, starts, states, words);
    if (dst.size() - at < kStatesBytes + 2 * words.size()) return {StreamStatus::output_overrun, 0};
    write_u32(dst.data() + counts_at + 4 * c, static_cast<uint32_t>(words.size()));
    for (const uint32_t state : states) {
      write_u32(dst.data() + at, state);
      at += 4;
    }
    for (auto word = words.rbegin(); word != words.rend(); ++word, at += 2) write_u16(dst.data() + at, *word);
  }
  return {StreamStatus::ok, static_cast<uint32_t>(at)};
}

TransformOutcome rans_warp_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst) {
  if (std::max(src.size(), dst.size()) > kMaxTransformBytes) return {StreamStatus::item_too_large, 0};
  if (src.size() < kRansWarpHeaderBytes) return {StreamStatus::input_overrun, 0};
  const uint32_t raw_bytes = read_u32(src.data()), scale_bits = src[4], chunk_bits = src[5];
  if (scale_bits < kMinScaleBits || scale_bits > kMaxWarpScaleBits || chunk_bits < kMinChunkBits ||
      chunk_bits > kMaxChunkBits) {
    return {StreamStatus::bad_table, 0};
  }
  if (raw_bytes > dst.size()) return {StreamStatus::output_overrun, 0};
  if (raw_bytes == 0) return {src.size() == kRansWarpHeaderBytes ? StreamStatus::ok : StreamStatus::corrupt, 0};

  std::array<uint16_t, kSymbols> frequencies;
  switch (read_table(src.subspan(kRansWarpHeaderBytes), 1u << scale_bits, frequencies)) {
    case TableRead::good:
      break;
    case TableRead::cut_off:
      return {StreamStatus::input_overrun, 0};
    case TableRead::bad:
      return {StreamStatus::bad_table, 0};
  }
  const size_t chunk_bytes = size_t{1} << chunk_bits;
  const size_t chunk_count = (raw_bytes + chunk_bytes - 1) / chunk_bytes;
  const size_t counts_at = kRansWarpHeaderBytes + table_bytes(frequencies);
  if ((src.size() - counts_at) / 4 < chunk_count) return {StreamStatus::input_overrun, 0};
  size_t at = counts_at + 4 * chunk_count;
  for (size_t c = 0; c < chunk_count; ++c) {
    const uint32_t words = read_u32(src.data() + counts_at + 4 * c);
    if (words > chunk_bytes) return {StreamStatus::bad_lanes, 0};
    if (src.size() - at < kStatesBytes + 2 * size_t{words}) return {StreamStatus::input_overrun, 0};
    at += kStatesBytes + 2 * size_t{words};
  }
  if (at != src.size()) return {StreamStatus::corrupt, 0};

  std::vector<Slot> slots;
  slots.reserve(size_t{1} << scale_bits);
  for (uint32_t s = 0; s < kSymbols; ++s) {
    for (uint16_t i = 0; i < frequencies[s]; ++i) slots.push_back({frequencies[s], i, static_cast<uint8_t>(s)});
  }
  at = counts_at + 4 * chunk_count;
  for (size_t c = 0; c < chunk_count; ++c) {
    const uint32_t words = read_u32(src.data() + counts_at + 4 * c);
    const auto to = dst.subspan(c * chunk_bytes, std::min<size_t>(chunk_bytes, raw_bytes - c * chunk_bytes));
    if (!decode_chunk(src.data() + at, words, slots, scale_bits, to)) return {StreamStatus::corrupt, 0};
    at += kStatesBytes + 2 * size_t{words};
  }
  return {StreamStatus::ok, raw_bytes};
}

}  // namespace ptxkit::kernels
