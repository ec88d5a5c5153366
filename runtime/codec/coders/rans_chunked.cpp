// rANS with a word stream for each lane. Four lanes are decoded at a time, with states and positions in registers. As
// long as every lane of the group has enough words left, symbols are decoded without bounds checks.
#include <algorithm>

#include "kernels/entropy/rans_chunked_reference.hpp"
#include "runtime/codec/coders/coders.hpp"
#include "runtime/codec/coders/memory.hpp"
#include "runtime/codec/coders/rans_symbol.hpp"
#include "runtime/codec/coders/unrolled.hpp"
#include "support/check.hpp"

namespace ptxkit::cpu {
namespace {

using kernels::kMaxRansLanes;
using kernels::kRansLow;
using kernels::RansChunk;
using kernels::StreamStatus;

constexpr uint32_t kGroup = 4;

struct alignas(8) Slot {
  uint16_t frequency, offset;
  uint8_t symbol;
};

struct Lane {
  uint32_t state;
  const uint8_t* next;
  const uint8_t* end;

  size_t words_left() const { return static_cast<size_t>(end - next) / 2; }
};

class ChunkDecoder {
 public:
  ChunkDecoder(const kernels::RansChunkedStream& stream, const uint8_t* src_end)
      : scale_bits_(stream.scale_bits), src_end_(src_end), slots_(uncleared<Slot>(size_t{1} << scale_bits_)) {
    Slot* slot = slots_.get();
    for (uint32_t s = 0; s < kernels::kSymbols; ++s) {
      const uint16_t f = stream.frequencies[s];
      for (uint16_t i = 0; i < f; ++i) *slot++ = {f, i, static_cast<uint8_t>(s)};
    }
  }

  bool decode(const RansChunk& chunk, uint8_t* to) const {
    std::array<Lane, kMaxRansLanes> lanes;
    const uint8_t* words = chunk.words;
    for (uint32_t l = 0; l < chunk.lanes; ++l) {
      const size_t count = load<uint32_t>(chunk.states + 4 * (chunk.lanes + l));
      lanes[l] = {load<uint32_t>(chunk.states + 4 * l), words, words + 2 * count};
      words = lanes[l].end;
      if (lanes[l].state < kRansLow) return false;
    }
    PTXKIT_CHECK(chunk.lanes != 0, "a chunk that was opened has lanes");
    const uint32_t rows = chunk.length / chunk.lanes;
    uint32_t lane = 0;
    for (; lane + kGroup <= chunk.lanes; lane += kGroup) {
      if (!decode_rows<kGroup>(&lanes[lane], to + lane, chunk.lanes, rows)) return false;
    }
    for (; lane < chunk.lanes; ++lane) {
      if (!decode_rows<1>(&lanes[lane], to + lane, chunk.lanes, rows)) return false;
    }
    for (uint32_t l = 0; l < chunk.length % chunk.lanes; ++l) {
      if (!decode_checked(lanes[l], to[size_t{rows} * chunk.lanes + l])) return false;
    }
    return std::all_of(lanes.begin(), lanes.begin() + chunk.lanes,
                       [](const Lane& l) { return l.state == kRansLow && l.next == l.end; });
  }

 private:
  // Decodes the next symbol of a lane. Returns whether the state needs another word.
  bool advance(uint32_t& x, uint8_t& symbol) const {
    const Slot& slot = slots_[x & ((1u << scale_bits_) - 1)];
    symbol = slot.symbol;
    x = slot.frequency * (x >> scale_bits_) + slot.offset;
    return x < kRansLow;
  }

  bool decode_checked(Lane& lane, uint8_t& symbol) const {
    if (!advance(lane.state, symbol)) return true;
    if (lane.next == lane.end) return false;
    lane.state = lane.state << 16 | load<uint16_t>(lane.next);
    lane.next += 2;
    return true;
  }

  // Decodes `rows` symbols of each of K lanes, `stride` bytes apart. The unchecked loop reads a word of each lane in
  // every turn, needed or not, so it stops two bytes before the end of the source.
  template <uint32_t K>
  bool decode_rows(Lane* lanes, uint8_t* to, uint32_t stride, size_t rows) const {
    while (rows != 0) {
      size_t turns = rows;
      for (uint32_t k = 0; k < K; ++k) turns = std::min(turns, lanes[k].words_left());
      if (lanes[K - 1].end == src_end_) turns = std::min(turns, std::max<size_t>(lanes[K - 1].words_left(), 1) - 1);
      if (turns == 0) {
        for (uint32_t k = 0; k < K; ++k) {
          if (!decode_checked(lanes[k], to[k])) return false;
        }
        to += stride;
        --rows;
        continue;
      }
      uint32_t states[K];
      const uint8_t* nexts[K];
      unrolled<K>([&](auto k) {
        states[k] = lanes[k].state;
        nexts[k] = lanes[k].next;
      });
      rows -= turns;
      for (; turns != 0; --turns, to += stride) {
        unrolled<K>([&](auto k) {
          uint32_t x = states[k];
          const bool needs = advance(x, to[k]);
          const uint32_t refilled = x << 16 | load<uint16_t>(nexts[k]);
          states[k] = x ^ ((x ^ refilled) & (0u - needs));  // branch-free: the outcome is unpredictable
          nexts[k] += 2 * size_t{needs};
        });
      }
      unrolled<K>([&](auto k) {
        lanes[k].state = states[k];
        lanes[k].next = nexts[k];
      });
    }
    return true;
  }

  uint32_t scale_bits_;
  const uint8_t* src_end_;
  std::unique_ptr<Slot[]> slots_;
};

// Encodes the chunks of one stream.
class ChunkEncoder {
 public:
  ChunkEncoder(const RansSymbols& symbols, uint32_t lanes, size_t chunk_bytes)
      : symbols_(symbols),
        lanes_(lanes),
        stride_((chunk_bytes + lanes - 1) / lanes + 1),
        room_(uncleared<uint16_t>(stride_ * lanes)) {}

  // Encodes a chunk and returns the bytes it takes; write() then writes it.
  size_t encode(Bytes chunk) {
    for (uint32_t lane = 0; lane < lanes_; ++lane) {
      states_[lane] = kRansLow;
      words_[lane] = end_of(lane);
    }
    const size_t rows = chunk.size() / lanes_;
    for (size_t lane = chunk.size() % lanes_; lane-- != 0;) {
      code_symbol(symbols_[chunk[rows * lanes_ + lane]], states_[lane], words_[lane]);
    }
    uint32_t lane = 0;
    for (; lane + kGroup <= lanes_; lane += kGroup) encode_rows<kGroup>(chunk, lane, rows);
    for (; lane < lanes_; ++lane) encode_rows<1>(chunk, lane, rows);
    size_t bytes = 1 + 8 * size_t{lanes_};
    for (uint32_t l = 0; l < lanes_; ++l) bytes += 2 * word_count(l);
    return bytes;
  }
  void write(uint8_t* to) const {
    *to++ = static_cast<uint8_t>(lanes_);
    for (uint32_t lane = 0; lane < lanes_; ++lane, to += 4) store(to, states_[lane]);
    for (uint32_t lane = 0; lane < lanes_; ++lane, to += 4) store(to, static_cast<uint32_t>(word_count(lane)));
    for (uint32_t lane = 0; lane < lanes_; ++lane) {
      std::memcpy(to, words_[lane], 2 * word_count(lane));
      to += 2 * word_count(lane);
    }
  }

 private:
  uint16_t* end_of(uint32_t lane) const { return room_.get() + stride_ * (lane + 1); }
  size_t word_count(uint32_t lane) const { return static_cast<size_t>(end_of(lane) - words_[lane]); }

  template <uint32_t K>
  void encode_rows(Bytes chunk, uint32_t lane, size_t rows) {
    uint32_t states[K];
    uint16_t* words[K];
    unrolled<K>([&](auto k) {
      states[k] = states_[lane + k];
      words[k] = words_[lane + k];
    });
    const uint8_t* from = chunk.data() + rows * lanes_ + lane;
    for (size_t row = 0; row < rows; ++row) {
      from -= lanes_;
      unrolled<K>([&](auto k) { code_symbol(symbols_[from[k]], states[k], words[k]); });
    }
    unrolled<K>([&](auto k) {
      states_[lane + k] = states[k];
      words_[lane + k] = words[k];
    });
  }

  const RansSymbols& symbols_;
  uint32_t lanes_;
  size_t stride_;  // words reserved for a lane: one more than it can have
  std::unique_ptr<uint16_t[]> room_;
  std::array<uint32_t, kMaxRansLanes> states_{};
  std::array<uint16_t*, kMaxRansLanes> words_{};  // where each lane's words begin; they end at end_of(lane)
};

}  // namespace

TransformOutcome rans_chunked_encode(Bytes src, MutableBytes dst, const kernels::RansChunkedOptions& options) {
  std::array<uint16_t, kernels::kSymbols> frequencies;
  const TransformOutcome begun = kernels::begin_rans_chunked(src, dst, options, frequencies);
  if (begun.status != StreamStatus::ok || src.empty()) return begun;
  const RansSymbols symbols = rans_symbols(frequencies, options.scale_bits);
  ChunkEncoder encoder(symbols, options.lanes, std::min<size_t>(options.chunk_bytes, src.size()));
  size_t at = begun.size_bytes, length_at = kernels::kRansLengthsAt;
  for (size_t from = 0; from < src.size(); from += options.chunk_bytes, length_at += 2) {
    const Bytes chunk = src.subspan(from, std::min<size_t>(options.chunk_bytes, src.size() - from));
    const size_t bytes = encoder.encode(chunk);
    if (dst.size() - at < bytes) return {StreamStatus::output_overrun, 0};
    store(dst.data() + length_at, static_cast<uint16_t>(chunk.size()));
    encoder.write(dst.data() + at);
    at += bytes;
  }
  return {StreamStatus::ok, static_cast<uint32_t>(at)};
}

TransformOutcome rans_chunked_decode(Bytes src, MutableBytes dst) {
  kernels::RansChunkedStream stream;
  const StreamStatus status = kernels::open_rans_chunked(src, dst.size(), stream);
  if (status != StreamStatus::ok || stream.raw_bytes == 0) return {status, 0};
  const ChunkDecoder decoder(stream, src.data() + src.size());
  uint8_t* to = dst.data();
  for (const RansChunk& chunk : stream.chunks) {
    if (!decoder.decode(chunk, to)) return {StreamStatus::corrupt, 0};
    to += chunk.length;
  }
  return {StreamStatus::ok, stream.raw_bytes};
}

}  // namespace ptxkit::cpu
