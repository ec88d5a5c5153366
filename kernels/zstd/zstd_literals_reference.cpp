#include "kernels/zstd/zstd_literals_reference.hpp"

#include <algorithm>
#include <array>

#include "kernels/entropy/huffman_reference.hpp"
#include "kernels/zstd/zstd_bits_reference.hpp"
#include "kernels/zstd/zstd_fse_reference.hpp"

namespace ptxkit::kernels {
namespace {

using Bytes = std::vector<uint8_t>;
using Lengths = std::array<uint8_t, kSymbols>;

void append(Bytes& to, const Bytes& bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

// The header of literals that are not compressed: the type, the format of the size, and the size.
Bytes plain_header(ZstdLiteralsType type, uint32_t size) {
  const auto kind = static_cast<uint32_t>(type);
  ZstdBits bits;
  if (size < 32) {
    bits.append(kind | size << 3, 8);
  } else if (size < 4096) {
    bits.append(kind | 1 << 2 | size << 4, 16);
  } else {
    bits.append(kind | 3 << 2 | size << 4, 24);
  }
  return std::move(bits).padded();
}

// The same of compressed ones.
Bytes coded_header(uint32_t size, uint32_t coded_size) {
  const uint32_t format = size < kZstdSingleStreamBytes ? 0 : size < 1u << 14 ? 2 : 3;
  const uint32_t width = format == 0 ? 10 : format == 2 ? 14 : 18;
  ZstdBits bits;
  bits.append(static_cast<uint32_t>(ZstdLiteralsType::compressed) | format << 2, 4);
  bits.append(size, width);
  bits.append(coded_size, width);
  return std::move(bits).padded();
}

// The weights of the symbols before the last one that occurs, whose weight follows from theirs.
Bytes weights_of(const Lengths& lengths) {
  const uint32_t longest = *std::max_element(lengths.begin(), lengths.end());
  size_t last = kSymbols - 1;
  while (lengths[last] == 0) --last;
  Bytes weights;
  for (size_t s = 0; s < last; ++s) {
    weights.push_back(lengths[s] == 0 ? uint8_t{0} : static_cast<uint8_t>(longest + 1 - lengths[s]));
  }
  return weights;
}

// The weights coded by FSE in two interleaved streams; empty if that is impossible.
Bytes weights_by_fse(const Bytes& weights) {
  std::vector<uint32_t> counts(*std::max_element(weights.begin(), weights.end()) + 1u, 0);
  for (const uint8_t weight : weights) ++counts[weight];
  const auto distinct = static_cast<uint32_t>(counts.size()) - static_cast<uint32_t>(std::ranges::count(counts, 0u));
  if (weights.size() < 2 || distinct < 2) return {};
  const auto total = static_cast<uint32_t>(weights.size());
  const auto distribution = zstd_distribution(counts, zstd_table_bits(total, distinct, kZstdMaxWeightBits));
  Bytes coded = zstd_describe(distribution);
  ZstdFseEncoder encoders[2] = {ZstdFseEncoder(distribution), ZstdFseEncoder(distribution)};
  ZstdBits bits;
  for (size_t i = weights.size(); i-- != 0;) {
    if (i + 2 >= weights.size()) {
      encoders[i % 2].begin(weights[i]);
    } else {
      const auto field = encoders[i % 2].code(weights[i]);
      bits.append(field.value, field.bits);
    }
  }
  for (const size_t i : {1, 0}) bits.append(encoders[i].end().value, encoders[i].end().bits);
  append(coded, std::move(bits).marked());  // 255 weights of at most log2(12) bits: below 128 bytes
  return coded;
}

// The description of the codes (4.2.1); empty if there is none.
Bytes describe(const Lengths& lengths) {
  const Bytes weights = weights_of(lengths);
  const Bytes coded = weights_by_fse(weights);
  const bool may_pack = weights.size() <= kZstdMaxDirectWeights;
  Bytes description;
  if (may_pack && (coded.empty() || (weights.size() + 1) / 2 <= coded.size())) {
    description.push_back(static_cast<uint8_t>(127 + weights.size()));
    for (size_t i = 0; i < weights.size(); i += 2) {
      const uint32_t second = i + 1 < weights.size() ? weights[i + 1] : 0;
      description.push_back(static_cast<uint8_t>(weights[i] << 4 | second));
    }
  } else if (!coded.empty()) {
    description.push_back(static_cast<uint8_t>(coded.size()));
    append(description, coded);
  }
  return description;
}

// The longest codes are the lowest; of one length a lower symbol has a lower code.
std::array<uint16_t, kSymbols> codes_of(const Lengths& lengths) {
  std::array<uint16_t, kSymbols> codes{};
  uint32_t next = 0;
  for (uint32_t length = kZstdMaxCodeBits; length != 0; --length, next >>= 1) {
    for (uint32_t s = 0; s < kSymbols; ++s) {
      if (lengths[s] == length) codes[s] = static_cast<uint16_t>(next++);
    }
  }
  return codes;
}

Bytes section_of(std::span<const uint8_t> literals) {
  const auto size = static_cast<uint32_t>(literals.size());
  const auto counts = count_bytes(literals);
  if (size != 0 && counts[literals[0]] == size) {
    Bytes section = plain_header(ZstdLiteralsType::rle, size);
    section.push_back(literals[0]);
    return section;
  }
  Bytes raw = plain_header(ZstdLiteralsType::raw, size);
  raw.insert(raw.end(), literals.begin(), literals.end());
  if (size == 0) return raw;

  const Lengths lengths = code_lengths(counts, kZstdMaxCodeBits);
  const auto codes = codes_of(lengths);
  Bytes content = describe(lengths);
  if (content.empty()) return raw;
  const uint32_t streams = size < kZstdSingleStreamBytes ? 1 : kZstdStreams;
  const uint32_t part = (size + streams - 1) / streams;
  Bytes jumps, coded;
  for (uint32_t stream = 0; stream < streams; ++stream) {
    const auto own = literals.subspan(stream * part, std::min(part, size - stream * part));
    ZstdBits bits;
    for (size_t i = own.size(); i-- != 0;) bits.append(codes[own[i]], lengths[own[i]]);
    const Bytes bytes = std::move(bits).marked();
    if (stream + 1 < streams) {
      jumps.push_back(static_cast<uint8_t>(bytes.size()));
      jumps.push_back(static_cast<uint8_t>(bytes.size() >> 8));
    }
    append(coded, bytes);
  }
  append(content, jumps);
  append(content, coded);
  Bytes section = coded_header(size, static_cast<uint32_t>(content.size()));
  append(section, content);
  return section.size() < raw.size() ? section : raw;
}

}  // namespace

TransformOutcome zstd_literals_reference(std::span<const uint8_t> src, std::span<uint8_t> dst) {
  if (src.size() > kZstdMaxLiterals || dst.size() > kMaxTransformBytes) return {StreamStatus::item_too_large, 0};
  return zstd_store(section_of(src), dst);
}

}  // namespace ptxkit::kernels
