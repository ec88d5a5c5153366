// FSE on four lanes at a time. The decoder takes four symbols of each lane from a window of 57 bits. The encoder looks
// up two numbers for each symbol, which give the number of bits and the next state without a search.
#include <bit>

#include "kernels/entropy/fse_reference.hpp"
#include "runtime/codec/coders/bit_lanes.hpp"
#include "runtime/codec/coders/coders.hpp"
#include "runtime/codec/coders/unrolled.hpp"

namespace ptxkit::cpu {
namespace {

using kernels::kBitLanes;
using kernels::kMaxAccuracyBits;
using kernels::StreamStatus;

constexpr size_t kTurnSymbols = kWindowBits / kMaxAccuracyBits;  // symbols decoded from one window

struct Place {
  uint16_t base;
  uint8_t bits, symbol;
};
using Places = std::array<Place, 1u << kMaxAccuracyBits>;

void fill(Places& places, const kernels::FseTable& table) {
  const auto symbols = kernels::spread_symbols(table);
  auto next = table.frequencies;
  for (size_t place = 0; place < symbols.size(); ++place) {
    const uint32_t x = next[symbols[place]]++;
    const uint32_t bits = table.accuracy_bits + 1 - static_cast<uint32_t>(std::bit_width(x));
    places[place] = {static_cast<uint16_t>((x << bits) - symbols.size()), static_cast<uint8_t>(bits), symbols[place]};
  }
}

struct Lane : BitLane {
  uint64_t state = 0;
};

// Returns the symbol of `state` and computes the next state with bits from the window.
inline uint8_t advance(const Places& places, uint64_t& state, uint64_t& window, size_t& place) {
  const Place entry = places[state];
  state = entry.base + (window >> 1 >> (63 - entry.bits));
  window <<= entry.bits;
  place += entry.bits;
  return entry.symbol;
}

// Decodes up to `rows` symbols of each of kLaneGroup lanes, row by row at `to`. Returns the number of rows done: fewer
// if a window might reach past the source.
size_t decode_group(const Places& places, Bytes src, Lane* lanes, uint8_t* to, size_t rows) {
  const size_t safe = safe_places(src);
  const uint8_t* const from = src.data();
  size_t done = 0;
  for (;;) {
    size_t turns = (rows - done) / kTurnSymbols;
    for (uint32_t k = 0; k < kLaneGroup; ++k) turns = std::min(turns, windows_before(lanes[k].place, safe));
    if (turns == 0) return done;
    uint64_t states[kLaneGroup];
    size_t at[kLaneGroup];
    unrolled<kLaneGroup>([&](auto k) {
      states[k] = lanes[k].state;
      at[k] = lanes[k].place;
    });
    for (; turns != 0; --turns, done += kTurnSymbols) {
      uint64_t windows[kLaneGroup];
      unrolled<kLaneGroup>([&](auto k) { windows[k] = window_at(from, at[k]); });
      uint8_t* const first = to + done * kBitLanes;
      unrolled<kTurnSymbols>([&](auto row) {
        unrolled<kLaneGroup>(
            [&](auto k) { first[row * kBitLanes + k] = advance(places, states[k], windows[k], at[k]); });
      });
    }
    unrolled<kLaneGroup>([&](auto k) {
      lanes[k].state = states[k];
      lanes[k].place = at[k];
    });
  }
}

// What the encoder needs for a symbol. The high half of state + `bits` is the number of bits that the state emits; the
// rest of the state plus `next` is the index of the next state.
struct Symbol {
  uint32_t bits = 0;
  int32_t next = 0;
};

struct EncoderTable {
  explicit EncoderTable(const kernels::FseTable& table) {
    std::array<uint32_t, kernels::kSymbols> at;
    uint32_t start = 0;
    for (uint32_t s = 0; s < kernels::kSymbols; ++s) {
      const uint32_t f = table.frequencies[s];
      at[s] = start;
      if (f != 0) {
        // States of at least f << most emit `most` bits, the others one less.
        const uint32_t most = table.accuracy_bits + 1 - static_cast<uint32_t>(std::bit_width(f));
        symbols[s] = {(most << 16) - (f << most), static_cast<int32_t>(start) - static_cast<int32_t>(f)};
      }
      start += f;
    }
    const auto spread = kernels::spread_symbols(table);
    for (size_t place = 0; place < spread.size(); ++place) {
      nexts[at[spread[place]]++] = static_cast<uint16_t>(spread.size() + place);
    }
  }

  std::array<Symbol, kernels::kSymbols> symbols;
  std::array<uint16_t, 1u << kMaxAccuracyBits> nexts{};
};

// Writes bits from the end of a buffer towards its start. At most 57 bits may be held between flushes.
struct BackwardBits {
  uint8_t* to;
  uint64_t buffer = 0;
  uint32_t held = 0;

  void add(uint32_t field, uint32_t count) {
    buffer |= uint64_t{field} << held;
    held += count;
  }
  void flush() {
    store_big_endian(to - 8, buffer);
    to -= held / 8;
    buffer >>= held & ~7u;
    held &= 7;
  }
};

struct LaneEncoder {
  BackwardBits bits;
  uint32_t state;

  void code(const EncoderTable& table, uint8_t s) {
    const Symbol symbol = table.symbols[s];
    const uint32_t count = (state + symbol.bits) >> 16;
    bits.add(state & ((1u << count) - 1), count);
    state = table.nexts[(state >> count) + static_cast<uint32_t>(symbol.next)];  // modulo 2^32: `next` may be negative
  }
};

// Encodes `rows` symbols of each of kLaneGroup lanes, the last row first.
void encode_group(const EncoderTable& table, const uint8_t* from, LaneEncoder* lanes, size_t rows) {
  LaneEncoder group[kLaneGroup];
  unrolled<kLaneGroup>([&](auto k) { group[k] = lanes[k]; });
  from += rows * kBitLanes;
  for (; rows >= kTurnSymbols; rows -= kTurnSymbols) {
    unrolled<kTurnSymbols>([&](auto) {
      from -= kBitLanes;
      unrolled<kLaneGroup>([&](auto k) { group[k].code(table, from[k]); });
    });
    unrolled<kLaneGroup>([&](auto k) { group[k].bits.flush(); });
  }
  for (; rows != 0; --rows) {
    from -= kBitLanes;
    unrolled<kLaneGroup>([&](auto k) {
      group[k].code(table, from[k]);
      group[k].bits.flush();
    });
  }
  unrolled<kLaneGroup>([&](auto k) { lanes[k] = group[k]; });
}

// Copies the `bit_count` bits before `end` to `to`, aligned to its first bit. Eight zero bytes must follow `end`.
void copy_bits(const uint8_t* end, size_t bit_count, uint8_t* to) {
  size_t bytes = (bit_count + 7) / 8;
  const uint8_t* from = end - bytes;
  const size_t skipped = 8 * bytes - bit_count;
  for (; bytes >= 8; bytes -= 7, from += 7, to += 7) store_big_endian(to, window_at(from, skipped));
  for (; bytes != 0; --bytes, ++from) *to++ = static_cast<uint8_t>(window_at(from, skipped) >> 56);
}

}  // namespace

TransformOutcome fse_encode(Bytes src, MutableBytes dst, const kernels::FseOptions& options) {
  kernels::FseTable kept;
  const TransformOutcome begun = kernels::begin_fse(src, dst, options, kept);
  if (begun.status != StreamStatus::ok || src.empty()) return begun;
  const EncoderTable table(kept);
  // A lane's bits end eight bytes before the end of its buffer. A flush writes up to eight bytes before the position of
  // the first bits.
  const size_t rows = src.size() / kBitLanes;
  const size_t stride = ((rows + 2) * kMaxAccuracyBits + 7) / 8 + 16;
  const auto room = uncleared<uint8_t>(stride * kBitLanes);
  std::array<LaneEncoder, kBitLanes> lanes;
  std::array<uint8_t*, kBitLanes> ends;
  for (uint32_t lane = 0; lane < kBitLanes; ++lane) {
    ends[lane] = room.get() + stride * (lane + 1) - 8;
    store(ends[lane], uint64_t{0});
    lanes[lane] = {{ends[lane]}, 1u << kept.accuracy_bits};
    if (lane < src.size() % kBitLanes) lanes[lane].code(table, src[rows * kBitLanes + lane]);
    lanes[lane].bits.flush();
  }
  for (uint32_t lane = 0; lane < kBitLanes; lane += kLaneGroup) {
    encode_group(table, src.data() + lane, &lanes[lane], rows);
  }
  std::array<size_t, kBitLanes> sizes, bit_counts;
  for (uint32_t lane = 0; lane < kBitLanes; ++lane) {
    BackwardBits& bits = lanes[lane].bits;
    bits.add(lanes[lane].state - (1u << kept.accuracy_bits), kept.accuracy_bits);
    bits.flush();
    store_big_endian(bits.to - 8, bits.buffer);
    bit_counts[lane] = 8 * static_cast<size_t>(ends[lane] - bits.to) + bits.held;
    sizes[lane] = (bit_counts[lane] + 7) / 8;
  }
  return write_bit_lanes(dst, begun.size_bytes, sizes,
                         [&](uint32_t lane, uint8_t* to, size_t) { copy_bits(ends[lane], bit_counts[lane], to); });
}

TransformOutcome fse_decode(Bytes src, MutableBytes dst) {
  kernels::FseStream stream;
  const StreamStatus status = kernels::open_fse(src, dst.size(), stream);
  if (status != StreamStatus::ok || stream.raw_bytes == 0) return {status, 0};
  Places places;
  fill(places, stream.table);
  std::array<Lane, kBitLanes> lanes;
  for (uint32_t lane = 0; lane < kBitLanes; ++lane) {
    Lane& l = lanes[lane] = {{src, stream.lanes[lane]}};
    l.state = l.careful_window(src) >> (64 - stream.table.accuracy_bits);
    l.place += stream.table.accuracy_bits;
  }
  const size_t rows = stream.raw_bytes / kBitLanes;
  for (uint32_t first = 0; first < kBitLanes; first += kLaneGroup) {
    const size_t done = decode_group(places, src, &lanes[first], dst.data() + first, rows);
    for (uint32_t lane = first; lane < first + kLaneGroup; ++lane) {
      for (size_t i = done * kBitLanes + lane; i < stream.raw_bytes; i += kBitLanes) {
        uint64_t window = lanes[lane].careful_window(src);
        dst[i] = advance(places, lanes[lane].state, window, lanes[lane].place);
      }
      if (lanes[lane].state != 0 || !lanes[lane].is_at_end()) return {StreamStatus::corrupt, 0};
    }
  }
  return {StreamStatus::ok, stream.raw_bytes};
}

}  // namespace ptxkit::cpu
