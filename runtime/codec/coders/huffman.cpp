// Huffman on four lanes at a time, one symbol of each in turn. The first table is indexed by 11 bits; longer codes
// continue in a second table. On CPUs with AVX-512, huffman_avx512.cpp decodes instead.
#include "kernels/entropy/huffman_reference.hpp"
#include "runtime/codec/coders/bit_lanes.hpp"
#include "runtime/codec/coders/coders.hpp"
#include "runtime/codec/coders/features.hpp"
#include "runtime/codec/coders/huffman_avx512.hpp"
#include "runtime/codec/coders/unrolled.hpp"

namespace ptxkit::cpu {
namespace {

using kernels::kBitLanes;
using kernels::kMaxCodeBits;
using kernels::kSymbols;
using kernels::StreamStatus;

constexpr uint32_t kTableBits = 11;
constexpr uint32_t kFurtherBits = kMaxCodeBits - kTableBits;
constexpr size_t kTurnSymbols = kWindowBits / kTableBits;  // symbols decoded from one window

// An entry has the length of a code in its low byte and the symbol in its high byte. Length 0 marks longer codes: the
// high byte is then the index of their second-level table, after the first table.
class Table {
 public:
  explicit Table(const std::array<uint8_t, kSymbols>& lengths) {
    const auto codes = kernels::canonical_codes(lengths);
    std::fill_n(entries_.begin(), size_t{1} << kTableBits, uint16_t{0});
    for (uint32_t s = 0; s < kSymbols; ++s) {
      const uint32_t length = lengths[s];
      if (length != 0 && length <= kTableBits) fill(codes[s] << (kTableBits - length), kTableBits - length, s, length);
    }
    uint32_t parts = 0, last_prefix = ~0u;
    for (uint32_t length = kTableBits + 1; length <= kMaxCodeBits; ++length) {  // in the order of the codes
      for (uint32_t s = 0; s < kSymbols; ++s) {
        if (lengths[s] != length) continue;
        const uint32_t prefix = codes[s] >> (length - kTableBits);
        if (prefix != last_prefix) entries_[prefix] = static_cast<uint16_t>(parts++ << 8);
        last_prefix = prefix;
        const uint32_t low = codes[s] & ((1u << (length - kTableBits)) - 1);
        fill(part(parts - 1) + (low << (kMaxCodeBits - length)), kMaxCodeBits - length, s, length);
      }
    }
  }

  uint32_t at(uint64_t window) const { return entries_[window >> (64 - kTableBits)]; }
  uint32_t further(uint32_t entry, uint64_t window) const {
    return entries_[part(entry >> 8) + (window >> (64 - kMaxCodeBits) & ((1u << kFurtherBits) - 1))];
  }

 private:
  static constexpr uint32_t part(uint32_t i) { return (1u << kTableBits) + (i << kFurtherBits); }

  void fill(uint32_t from, uint32_t free_bits, uint32_t s, uint32_t length) {
    std::fill_n(&entries_[from], size_t{1} << free_bits, static_cast<uint16_t>(s << 8 | length));
  }

  // A second-level table has two codes at least, which bounds their number.
  std::array<uint16_t, (1u << kTableBits) + (kSymbols / 2 << kFurtherBits)> entries_;
};

constexpr uint32_t kBitsMask = 63;  // of an entry: the bits that a shift uses

// The number of bits shifted out of a window whose bit 0 was set.
inline size_t used_bits(uint64_t window) { return static_cast<size_t>(__builtin_ctzll(window)); }

// Decodes up to `rows` symbols of each of kLaneGroup lanes, row by row at `to`. Returns the number of rows done: fewer
// if a window might reach past the source.
//
// Bit 0 of a window, which no code reaches, is set, so the position of the lowest set bit tells how many bits were
// used.
size_t decode_group(const Table& table, Bytes src, BitLane* lanes, uint8_t* to, size_t rows) {
  const size_t safe = safe_places(src);
  const uint8_t* const from = src.data();
  size_t done = 0;
  size_t places[kLaneGroup];
  unrolled<kLaneGroup>([&](auto k) { places[k] = lanes[k].place; });
  for (;;) {
    size_t turns = (rows - done) / kTurnSymbols;
    unrolled<kLaneGroup>([&](auto k) {
      turns = std::min(turns, places[k] < safe ? (safe - places[k]) / (kTurnSymbols * kMaxCodeBits) : 0);
    });
    if (turns == 0) break;
    for (; turns != 0; --turns, done += kTurnSymbols) {
      uint64_t windows[kLaneGroup];
      unrolled<kLaneGroup>([&](auto k) { windows[k] = window_at(from, places[k]) | 1; });
      uint8_t* const row = to + done * kBitLanes;
      unrolled<kTurnSymbols>([&](auto i) {
        unrolled<kLaneGroup>([&](auto k) {
          uint32_t entry = table.at(windows[k]);
          if ((entry & kBitsMask) == 0) [[unlikely]] {  // a long code: reload the window so that it starts with it
            places[k] += used_bits(windows[k]);
            windows[k] = window_at(from, places[k]) | 1;
            entry = table.further(entry, windows[k]);
          }
          windows[k] <<= entry & kBitsMask;
          row[i * kBitLanes + k] = static_cast<uint8_t>(entry >> 8);
        });
      });
      unrolled<kLaneGroup>([&](auto k) { places[k] += used_bits(windows[k]); });
    }
  }
  unrolled<kLaneGroup>([&](auto k) { lanes[k].place = places[k]; });
  return done;
}

// Appends bits. At most 57 bits may be held between flushes.
struct ForwardBits {
  uint8_t* to;
  uint64_t buffer = 0;
  uint32_t held = 0;

  void add(uint32_t code) {  // code bits in the low half, their number in the high half
    buffer = buffer << (code >> 16) | (code & 0xFFFF);
    held += code >> 16;
  }
  void flush() {  // held must not be 0
    store_big_endian(to, buffer << (64 - held));
    to += held / 8;
    held &= 7;
  }
};
constexpr size_t kTurnCodes = 57 / kMaxCodeBits;  // codes added between flushes

using Codes = std::array<uint32_t, kSymbols>;

void encode_group(const Codes& codes, const uint8_t* from, ForwardBits* lanes, size_t rows) {
  ForwardBits group[kLaneGroup];
  unrolled<kLaneGroup>([&](auto k) { group[k] = lanes[k]; });
  for (; rows >= kTurnCodes; rows -= kTurnCodes) {
    unrolled<kTurnCodes>(
        [&](auto row) { unrolled<kLaneGroup>([&](auto k) { group[k].add(codes[from[row * kBitLanes + k]]); }); });
    from += kTurnCodes * kBitLanes;
    unrolled<kLaneGroup>([&](auto k) { group[k].flush(); });
  }
  for (; rows != 0; --rows, from += kBitLanes) {
    unrolled<kLaneGroup>([&](auto k) {
      group[k].add(codes[from[k]]);
      group[k].flush();
    });
  }
  unrolled<kLaneGroup>([&](auto k) { lanes[k] = group[k]; });
}

}  // namespace

TransformOutcome huffman_encode(Bytes src, MutableBytes dst) {
  std::array<uint8_t, kSymbols> lengths;
  const TransformOutcome begun = kernels::begin_huffman(src, dst, lengths);
  if (begun.status != StreamStatus::ok || src.empty()) return begun;
  Codes codes;
  const auto canonical = kernels::canonical_codes(lengths);
  for (uint32_t s = 0; s < kSymbols; ++s) codes[s] = canonical[s] | uint32_t{lengths[s]} << 16;

  const size_t rows = src.size() / kBitLanes;
  const size_t stride = ((rows + 1) * kMaxCodeBits + 7) / 8 + 8;
  const auto room = uncleared<uint8_t>(stride * kBitLanes);
  std::array<ForwardBits, kBitLanes> lanes;
  for (uint32_t lane = 0; lane < kBitLanes; ++lane) lanes[lane] = {room.get() + stride * lane};
  for (uint32_t lane = 0; lane < kBitLanes; lane += kLaneGroup) {
    encode_group(codes, src.data() + lane, &lanes[lane], rows);
  }
  std::array<size_t, kBitLanes> sizes;
  for (uint32_t lane = 0; lane < kBitLanes; ++lane) {
    ForwardBits& bits = lanes[lane];
    if (lane < src.size() % kBitLanes) bits.add(codes[src[rows * kBitLanes + lane]]);
    if (bits.held != 0) bits.flush();
    sizes[lane] = static_cast<size_t>(bits.to - room.get()) - stride * lane + (bits.held != 0 ? 1 : 0);
  }
  return write_bit_lanes(dst, begun.size_bytes, sizes, [&](uint32_t lane, uint8_t* to, size_t size) {
    std::memcpy(to, room.get() + stride * lane, size);
  });
}

TransformOutcome huffman_decode(Bytes src, MutableBytes dst) {
  kernels::HuffmanStream stream;
  const StreamStatus status = kernels::open_huffman(src, dst.size(), stream);
  if (status != StreamStatus::ok || stream.raw_bytes == 0) return {status, 0};
  const auto longest = *std::max_element(stream.lengths.begin(), stream.lengths.end());
  if (longest == 1 && std::count(stream.lengths.begin(), stream.lengths.end(), 1) == 1) {
    return kernels::huffman_decode_reference(src, dst);  // a single symbol has the only incomplete code
  }
#if defined(__x86_64__)
  if (vectors >= Vectors::avx512) {
    const bool good = huffman_decode_avx512(stream, src, dst);
    return {good ? StreamStatus::ok : StreamStatus::corrupt, good ? stream.raw_bytes : 0};
  }
#endif
  const Table table(stream.lengths);
  const size_t rows = stream.raw_bytes / kBitLanes;
  for (uint32_t first = 0; first < kBitLanes; first += kLaneGroup) {
    std::array<BitLane, kLaneGroup> lanes;
    for (uint32_t k = 0; k < kLaneGroup; ++k) lanes[k] = BitLane(src, stream.lanes[first + k]);
    const size_t done = decode_group(table, src, lanes.data(), dst.data() + first, rows);
    for (uint32_t k = 0; k < kLaneGroup; ++k) {
      for (size_t i = done * kBitLanes + first + k; i < stream.raw_bytes; i += kBitLanes) {
        const uint64_t window = lanes[k].careful_window(src);
        uint32_t entry = table.at(window);
        if ((entry & 0xFF) == 0) entry = table.further(entry, window);
        dst[i] = static_cast<uint8_t>(entry >> 8);
        lanes[k].place += entry & 0xFF;
      }
      if (!lanes[k].is_at_end()) return {StreamStatus::corrupt, 0};
    }
  }
  return {StreamStatus::ok, stream.raw_bytes};
}

}  // namespace ptxkit::cpu
