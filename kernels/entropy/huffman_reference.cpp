// Canonical Huffman codes: among codes of one length a lower symbol has a lower code, and a shorter code is lower than
// the prefixes of longer ones. The decoder looks up kTableBits bits at once and continues bit by bit if the code is
// longer.
#include "kernels/entropy/huffman_reference.hpp"

#include <algorithm>
#include <vector>

namespace ptxkit::kernels {
namespace {

constexpr uint32_t kTableBits = 11;
constexpr uint32_t kWholeCode = 1u << kMaxCodeBits;

using LengthCounts = std::array<uint32_t, kMaxCodeBits + 1>;

// The number of codes of each length, at most `max_bits`, for `weights` in ascending order.
LengthCounts limited_lengths(const std::vector<uint32_t>& weights, uint32_t max_bits) {
  const size_t leaves = weights.size();
  std::vector<uint32_t> pairs;  // weights of pairs, which are created in ascending order
  std::vector<size_t> parent_of_leaf(leaves), parent_of_pair(leaves);
  size_t leaf = 0, pair = 0;
  const auto take_lightest = [&] {
    const bool takes_leaf = leaf < leaves && (pair == pairs.size() || weights[leaf] <= pairs[pair]);
    (takes_leaf ? parent_of_leaf[leaf] : parent_of_pair[pair]) = pairs.size();
    return takes_leaf ? weights[leaf++] : pairs[pair++];
  };
  for (size_t i = 0; i + 1 < leaves; ++i) {
    const uint32_t first = take_lightest();
    const uint32_t both = first + take_lightest();
    pairs.push_back(both);
  }
  std::vector<uint32_t> depth(pairs.size());  // the last pair is the root
  for (size_t i = pairs.size() - 1; i-- != 0;) depth[i] = depth[parent_of_pair[i]] + 1;
  LengthCounts counts{};
  const uint32_t whole = 1u << max_bits;
  uint32_t size = 0;  // the size of the code, in units of its longest code
  for (size_t i = 0; i < leaves; ++i) {
    const uint32_t length = std::min(depth[parent_of_leaf[i]] + 1, max_bits);
    ++counts[length];
    size += whole >> length;
  }
  while (size > whole) {
    uint32_t length = max_bits - 1;
    while (counts[length] == 0) --length;
    --counts[length];
    ++counts[length + 1];
    size -= whole >> (length + 1);
  }
  for (; size < whole; ++size) {
    --counts[max_bits];
    ++counts[max_bits - 1];
  }
  return counts;
}

// First code and number of codes of each length, and the symbols in the order of their codes.
struct Canonical {
  LengthCounts count{}, first{}, rank{};
  std::array<uint8_t, kSymbols> symbols{};

  explicit Canonical(const std::array<uint8_t, kSymbols>& lengths) {
    for (const uint8_t length : lengths) ++count[length];
    count[0] = 0;
    for (uint32_t length = 1; length <= kMaxCodeBits; ++length) {
      first[length] = (first[length - 1] + count[length - 1]) << 1;
      rank[length] = rank[length - 1] + count[length - 1];
    }
    LengthCounts next = rank;
    for (uint32_t s = 0; s < kSymbols; ++s) {
      if (lengths[s] != 0) symbols[next[lengths[s]]++] = static_cast<uint8_t>(s);
    }
  }
  // Whether every string of bits begins with exactly one code, or there is one symbol with a code of one bit.
  bool is_complete() const {
    uint32_t size = 0;
    for (uint32_t length = 1; length <= kMaxCodeBits; ++length) size += count[length] * (kWholeCode >> length);
    return size == kWholeCode || (size == kWholeCode / 2 && count[1] == 1);
  }
  // The length and symbol of the code with which kMaxCodeBits bits begin; length 0 if there is none.
  std::pair<uint32_t, uint8_t> front(uint32_t bits) const {
    for (uint32_t length = 1; length <= kMaxCodeBits; ++length) {
      const uint32_t code = bits >> (kMaxCodeBits - length);
      if (code - first[length] < count[length]) return {length, symbols[rank[length] + code - first[length]]};
    }
    return {0, 0};
  }
};

struct Coder {
  const std::array<uint8_t, kSymbols>& lengths;
  std::array<uint16_t, kSymbols> codes = canonical_codes(lengths);

  void begin() {}
  template <class Emit>
  void symbol(uint8_t s, const Emit& emit) {
    emit(uint32_t{codes[s]}, lengths[s]);
  }
  template <class Emit>
  void end(const Emit&) {}
};

}  // namespace

std::vector<uint8_t> code_lengths_of(std::span<const uint32_t> counts, uint32_t max_bits) {
  std::vector<uint8_t> lengths(counts.size());
  std::vector<uint16_t> order;
  for (uint32_t s = 0; s < counts.size(); ++s) {
    if (counts[s] != 0) order.push_back(static_cast<uint16_t>(s));
  }
  if (order.size() < 2) {
    for (const uint16_t s : order) lengths[s] = 1;
    return lengths;
  }
  std::stable_sort(order.begin(), order.end(), [&](uint16_t a, uint16_t b) { return counts[a] < counts[b]; });
  std::vector<uint32_t> weights;
  for (const uint16_t s : order) weights.push_back(counts[s]);
  const LengthCounts count_of_length = limited_lengths(weights, max_bits);
  auto next = order.begin();
  for (uint32_t length = kMaxCodeBits; length != 0; --length) {
    for (uint32_t i = 0; i < count_of_length[length]; ++i) lengths[*next++] = static_cast<uint8_t>(length);
  }
  return lengths;
}

std::array<uint8_t, kSymbols> code_lengths(const std::array<uint32_t, kSymbols>& counts, uint32_t max_bits) {
  std::array<uint8_t, kSymbols> lengths{};
  std::ranges::copy(code_lengths_of(counts, max_bits), lengths.begin());
  return lengths;
}

std::array<uint16_t, kSymbols> canonical_codes(const std::array<uint8_t, kSymbols>& lengths) {
  std::array<uint16_t, kSymbols> codes{};
  LengthCounts next = Canonical(lengths).first;
  for (uint32_t s = 0; s < kSymbols; ++s) {
    if (lengths[s] != 0) codes[s] = static_cast<uint16_t>(next[lengths[s]]++);
  }
  return codes;
}

TransformOutcome begin_huffman(std::span<const uint8_t> src, std::span<uint8_t> dst,
                               std::array<uint8_t, kSymbols>& lengths) {
  if (std::max(src.size(), dst.size()) > kMaxTransformBytes || src.size() > kMaxLanedBytes) {
    return {StreamStatus::item_too_large, 0};
  }
  if (dst.size() < kLanedHeaderBytes) return {StreamStatus::output_overrun, 0};
  write_u32(dst.data(), static_cast<uint32_t>(src.size()));
  if (src.empty()) return {StreamStatus::ok, kLanedHeaderBytes};
  if (dst.size() < kLanedHeaderBytes + kCodeLengthsBytes) return {StreamStatus::output_overrun, 0};
  lengths = code_lengths(count_bytes(src));
  for (uint32_t i = 0; i < kCodeLengthsBytes; ++i) {
    dst[kLanedHeaderBytes + i] = static_cast<uint8_t>(lengths[size_t{2} * i] | lengths[size_t{2} * i + 1] << 4);
  }
  return {StreamStatus::ok, kLanedHeaderBytes + kCodeLengthsBytes};
}

StreamStatus open_huffman(std::span<const uint8_t> src, size_t room_bytes, HuffmanStream& stream) {
  if (std::max(src.size(), room_bytes) > kMaxTransformBytes) return StreamStatus::item_too_large;
  if (src.size() < kLanedHeaderBytes) return StreamStatus::input_overrun;
  stream.raw_bytes = read_u32(src.data());
  if (stream.raw_bytes > room_bytes) return StreamStatus::output_overrun;
  if (stream.raw_bytes == 0) return src.size() == kLanedHeaderBytes ? StreamStatus::ok : StreamStatus::corrupt;
  constexpr size_t kSizesAt = kLanedHeaderBytes + kCodeLengthsBytes;
  if (src.size() < kSizesAt) return StreamStatus::input_overrun;
  for (uint32_t s = 0; s < kSymbols; ++s) stream.lengths[s] = src[kLanedHeaderBytes + s / 2] >> 4 * (s % 2) & 15;
  if (!Canonical(stream.lengths).is_complete()) return StreamStatus::bad_table;
  return open_lanes(src, kSizesAt, stream.lanes);
}

TransformOutcome huffman_encode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst) {
  std::array<uint8_t, kSymbols> lengths{};
  const TransformOutcome begun = begin_huffman(src, dst, lengths);
  if (begun.status != StreamStatus::ok || src.empty()) return begun;
  Coder coder{lengths};
  return write_lanes(src, dst, begun.size_bytes, coder);
}

TransformOutcome huffman_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst) {
  HuffmanStream stream;
  const StreamStatus status = open_huffman(src, dst.size(), stream);
  if (status != StreamStatus::ok || stream.raw_bytes == 0) return {status, 0};
  const Canonical canonical(stream.lengths);
  std::array<std::pair<uint8_t, uint8_t>, 1u << kTableBits> table;  // length and symbol; length 0: the code is longer
  for (uint32_t i = 0; i < table.size(); ++i) {
    const auto [length, symbol] = canonical.front(i << (kMaxCodeBits - kTableBits));
    table[i] = {static_cast<uint8_t>(length <= kTableBits ? length : 0), symbol};
  }
  auto lanes = readers_of(stream.lanes);
  for (size_t i = 0; i < stream.raw_bytes; ++i) {
    LaneReader& lane = lanes[i % kBitLanes];
    const uint64_t bits = lane.peek();
    auto [length, symbol] = table[bits >> (64 - kTableBits)];
    if (length == 0) {
      const auto found = canonical.front(static_cast<uint32_t>(bits >> (64 - kMaxCodeBits)));
      if (found.first == 0) return {StreamStatus::corrupt, 0};
      length = static_cast<uint8_t>(found.first);
      symbol = found.second;
    }
    lane.skip(length);
    dst[i] = symbol;
  }
  for (const LaneReader& lane : lanes) {
    if (!lane.is_at_end()) return {StreamStatus::corrupt, 0};
  }
  return {StreamStatus::ok, stream.raw_bytes};
}

}  // namespace ptxkit::kernels
