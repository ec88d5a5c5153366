#include "kernels/deflate/deflate_block_reference.hpp"

#include <algorithm>
#include <utility>

#include "kernels/deflate/deflate_encode_format.hpp"
#include "kernels/entropy/huffman_reference.hpp"

namespace ptxkit::kernels {
namespace {

// Bits from the lowest of the first byte on.
class Bits {
 public:
  // Appends the `count` low bits of `value`, at most 32.
  void append(uint32_t value, uint32_t count) {
    held_ |= uint64_t{value} << held_count_;
    for (held_count_ += count; held_count_ >= 8; held_count_ -= 8, held_ >>= 8)
      bytes_.push_back(static_cast<uint8_t>(held_));
  }
  void pad() { append(0, (8 - held_count_) % 8); }
  void append_bytes(std::span<const uint8_t> bytes) {
    pad();
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  std::vector<uint8_t> padded() && {
    pad();
    return std::move(bytes_);
  }

 private:
  std::vector<uint8_t> bytes_;
  uint64_t held_ = 0;  // fewer than 8 bits between calls
  uint32_t held_count_ = 0;
};

// A code: the length of each symbol's, and its bits in the order in which they are written.
struct Code {
  std::vector<uint8_t> lengths;
  std::vector<uint16_t> codes;

  explicit Code(std::vector<uint8_t> of_lengths) : lengths(std::move(of_lengths)), codes(lengths.size()) {
    uint32_t next = 0;
    for (uint32_t length = 1; length <= kDeflateMaxCodeBits; ++length, next <<= 1) {
      for (size_t s = 0; s < lengths.size(); ++s) {
        if (lengths[s] != length) continue;
        uint32_t reversed = 0;
        for (uint32_t bit = 0; bit < length; ++bit) reversed |= (next >> bit & 1) << (length - 1 - bit);
        codes[s] = static_cast<uint16_t>(reversed);
        ++next;
      }
    }
  }
  void append(Bits& bits, uint32_t symbol) const { bits.append(codes[symbol], lengths[symbol]); }
};

uint64_t bits_of(std::span<const uint32_t> counts, std::span<const uint8_t> lengths) {
  uint64_t bits = 0;
  for (size_t s = 0; s < counts.size(); ++s) bits += uint64_t{counts[s]} * lengths[s];
  return bits;
}

// Without the zeros at the end, but at least `least` of them.
std::span<const uint8_t> trimmed(std::span<const uint8_t> lengths, size_t least) {
  while (lengths.size() > least && lengths.back() == 0) lengths = lengths.first(lengths.size() - 1);
  return lengths;
}

struct Match {
  uint32_t length_code, distance_code;
  uint32_t length_extra, distance_extra;  // what stands behind the codes
};
Match match_of(uint32_t token) {
  const uint32_t length = (token & (kDeflateMatchToken - 1)) + kDeflateMinMatch;
  const uint32_t distance = (token >> kDeflateTokenDistanceShift) + 1;
  const uint32_t length_code = deflate_code_of_length(length), distance_code = deflate_code_of_distance(distance);
  return {length_code, distance_code, length - deflate_length_code(length_code).base,
          distance - deflate_distance_code(distance_code).base};
}

struct Counts {
  std::array<uint32_t, kDeflateLiteralCodes> literals{};
  std::array<uint32_t, kDeflateDistanceCodes> distances{};
  uint64_t extra_bits = 0;

  explicit Counts(std::span<const uint32_t> tokens) {
    for (const uint32_t token : tokens) {
      if (token < kDeflateMatchToken) {
        ++literals[token];
        continue;
      }
      const Match match = match_of(token);
      ++literals[kDeflateFirstLength + match.length_code];
      ++distances[match.distance_code];
      extra_bits += deflate_length_code(match.length_code).bits + deflate_distance_code(match.distance_code).bits;
    }
    literals[kDeflateEndOfBlock] = 1;
  }
};

// What a dynamic block has before its tokens.
class Header {
 public:
  Header(std::span<const uint8_t> literal_lengths, std::span<const uint8_t> distance_lengths)
      : literals_(trimmed(literal_lengths, kDeflateMinLiteralCount)),
        distances_(trimmed(distance_lengths, kDeflateMinDistanceCount)),
        length_counts_(kDeflateLengthSymbols) {
    std::vector<uint8_t> lengths(literals_.begin(), literals_.end());
    lengths.insert(lengths.end(), distances_.begin(), distances_.end());
    fields_ = deflate_length_fields(lengths);
    for (const DeflateLengthField field : fields_) ++length_counts_[field.symbol];
    code_ = Code(code_lengths_of(length_counts_, kDeflateMaxLengthSymbolBits));
    for (const uint8_t symbol : kDeflateLengthOrder) ordered_.push_back(code_.lengths[symbol]);
    ordered_ = {ordered_.begin(), ordered_.begin() + trimmed(ordered_, kDeflateMinLengthCount).size()};
  }

  uint64_t bits() const {
    uint64_t bits = kDeflateDynamicHeaderBits + kDeflateLengthSymbolBits * ordered_.size();
    for (const DeflateLengthField field : fields_) bits += code_.lengths[field.symbol] + extra_bits(field.symbol);
    return bits;
  }
  void append_to(Bits& to) const {
    to.append(static_cast<uint32_t>(literals_.size()) - kDeflateMinLiteralCount, kDeflateLiteralCountBits);
    to.append(static_cast<uint32_t>(distances_.size()) - kDeflateMinDistanceCount, kDeflateDistanceCountBits);
    to.append(static_cast<uint32_t>(ordered_.size()) - kDeflateMinLengthCount, kDeflateLengthCountBits);
    for (const uint8_t length : ordered_) to.append(length, kDeflateLengthSymbolBits);
    for (const DeflateLengthField field : fields_) {
      code_.append(to, field.symbol);
      to.append(field.extra, extra_bits(field.symbol));
    }
  }

 private:
  static uint32_t extra_bits(uint8_t symbol) {
    return symbol < kDeflateRepeatLength ? 0 : deflate_repeat_code(symbol).bits;
  }

  std::span<const uint8_t> literals_, distances_;
  std::vector<DeflateLengthField> fields_;
  std::vector<uint32_t> length_counts_;
  Code code_{{}};
  std::vector<uint8_t> ordered_;  // the lengths of its codes, in the order of the format
};

void append_header(Bits& bits, DeflateBlockType type, bool is_last) {
  bits.append(uint32_t{is_last} | static_cast<uint32_t>(type) << 1, kDeflateBlockHeaderBits);
}

std::vector<uint8_t> stored(std::span<const uint8_t> src) {
  Bits bits;
  for (size_t at = 0; at == 0 || at < src.size(); at += kDeflateMaxStoredBytes) {
    const auto part = src.subspan(at, std::min<size_t>(src.size() - at, kDeflateMaxStoredBytes));
    const auto size = static_cast<uint32_t>(part.size());
    append_header(bits, DeflateBlockType::stored, at + size == src.size());
    bits.pad();
    bits.append(size | ~size << 16, 32);
    bits.append_bytes(part);
  }
  return std::move(bits).padded();
}

void append_tokens(Bits& bits, std::span<const uint32_t> tokens, const Code& literals, const Code& distances) {
  for (const uint32_t token : tokens) {
    if (token < kDeflateMatchToken) {
      literals.append(bits, token);
      continue;
    }
    const Match match = match_of(token);
    literals.append(bits, kDeflateFirstLength + match.length_code);
    bits.append(match.length_extra, deflate_length_code(match.length_code).bits);
    distances.append(bits, match.distance_code);
    bits.append(match.distance_extra, deflate_distance_code(match.distance_code).bits);
  }
  literals.append(bits, kDeflateEndOfBlock);
}

}  // namespace

std::vector<DeflateLengthField> deflate_length_fields(std::span<const uint8_t> lengths) {
  std::vector<DeflateLengthField> fields;
  for (size_t at = 0; at < lengths.size();) {
    const uint8_t length = lengths[at];
    size_t run = 1;
    while (at + run < lengths.size() && lengths[at + run] == length) ++run;
    at += run;
    const auto repeat = [&](uint32_t symbol, size_t most) {
      const size_t count = std::min(run, most);
      fields.push_back({static_cast<uint8_t>(symbol), static_cast<uint8_t>(count - deflate_repeat_code(symbol).base)});
      run -= count;
    };
    if (length == 0) {
      while (run >= deflate_repeat_code(kDeflateLongZeros).base) repeat(kDeflateLongZeros, 138);
      if (run >= deflate_repeat_code(kDeflateShortZeros).base) repeat(kDeflateShortZeros, 10);
    } else {
      fields.push_back({length, 0});
      --run;
      while (run >= deflate_repeat_code(kDeflateRepeatLength).base) repeat(kDeflateRepeatLength, 6);
    }
    fields.insert(fields.end(), run, {length, 0});
  }
  return fields;
}

std::vector<uint8_t> deflate_block_reference(std::span<const uint8_t> src, std::span<const uint32_t> tokens) {
  const Counts counts(tokens);
  std::vector<uint8_t> fixed_literals, fixed_distances(kDeflateFixedDistanceCodes, kDeflateFixedDistanceBits);
  for (uint32_t s = 0; s < kDeflateFixedLiteralCodes; ++s)
    fixed_literals.push_back(static_cast<uint8_t>(deflate_fixed_literal_bits(s)));
  const auto own_literals = code_lengths_of(counts.literals, kDeflateMaxCodeBits);
  const auto own_distances = code_lengths_of(counts.distances, kDeflateMaxCodeBits);
  const Header header(own_literals, own_distances);
  const auto content_bits = [&](std::span<const uint8_t> literals, std::span<const uint8_t> distances) {
    return kDeflateBlockHeaderBits + bits_of(counts.literals, literals) + bits_of(counts.distances, distances) +
           counts.extra_bits;
  };
  const uint64_t fixed_bits = content_bits(fixed_literals, fixed_distances);
  const uint64_t own_bits = content_bits(own_literals, own_distances) + header.bits();
  if (8 * deflate_stored_bytes(src.size()) <= std::min(fixed_bits, own_bits)) return stored(src);
  Bits bits;
  if (fixed_bits <= own_bits) {
    append_header(bits, DeflateBlockType::fixed, true);
    append_tokens(bits, tokens, Code(fixed_literals), Code(fixed_distances));
  } else {
    append_header(bits, DeflateBlockType::dynamic, true);
    header.append_to(bits);
    append_tokens(bits, tokens, Code(own_literals), Code(own_distances));
  }
  return std::move(bits).padded();
}

}  // namespace ptxkit::kernels
