#include "kernels/zstd/zstd_sequences_reference.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "kernels/entropy/little_endian.hpp"
#include "kernels/zstd/zstd_bits_reference.hpp"
#include "kernels/zstd/zstd_fse_reference.hpp"

namespace ptxkit::kernels {
namespace {

using Bytes = std::vector<uint8_t>;

// A code, and the value whose low bits follow it.
struct Coded {
  uint32_t code, value, extra_bits;
};

uint32_t log2(uint32_t value) { return static_cast<uint32_t>(std::bit_width(value)) - 1; }

Coded code_literal_length(uint32_t length) {
  if (length < 16) return {length, length, 0};
  if (length < 24) return {16 + (length - 16) / 2, length, 1};
  if (length < 32) return {20 + (length - 24) / 4, length, 2};
  if (length < 48) return {22 + (length - 32) / 8, length, 3};
  if (length < 64) return {24, length, 4};
  return {log2(length) + 19, length, log2(length)};
}

Coded code_match_length(uint32_t length) {
  const uint32_t value = length - kZstdMinMatch;
  if (value < 32) return {value, value, 0};
  if (value < 40) return {32 + (value - 32) / 2, value, 1};
  if (value < 48) return {36 + (value - 40) / 4, value, 2};
  if (value < 64) return {38 + (value - 48) / 8, value, 3};
  if (value < 96) return {40 + (value - 64) / 16, value, 4};
  if (value < 128) return {42, value, 5};
  return {log2(value) + 36, value, log2(value)};
}

// How the codes of one kind are written.
struct Table {
  ZstdTableMode mode;
  Bytes description;
  std::optional<ZstdFseEncoder> encoder;  // none for a single symbol
};

Table choose_table(ZstdKind kind, const std::vector<std::array<Coded, kZstdKinds>>& sequences) {
  const auto at = static_cast<size_t>(kind);
  const auto total = static_cast<uint32_t>(sequences.size());
  std::vector<uint32_t> counts;
  for (const auto& sequence : sequences) {
    counts.resize(std::max<size_t>(counts.size(), sequence[at].code + 1), 0);
    ++counts[sequence[at].code];
  }
  const auto cost_of = [&](const ZstdDistribution& distribution) {
    uint32_t cost = 0;
    for (size_t s = 0; s < counts.size(); ++s) {
      if (counts[s] != 0) cost += counts[s] * zstd_symbol_cost(distribution.frequencies[s], distribution.bits);
    }
    return cost;
  };
  const auto predefined = zstd_predefined(kind);
  const uint32_t predefined_cost = cost_of(predefined);
  if (counts.back() == total) {
    if (predefined_cost <= 8 << 8) return {ZstdTableMode::predefined, {}, ZstdFseEncoder(predefined)};
    return {ZstdTableMode::rle, {static_cast<uint8_t>(counts.size() - 1)}, {}};
  }
  const auto distinct = static_cast<uint32_t>(counts.size()) - static_cast<uint32_t>(std::ranges::count(counts, 0u));
  const auto own = zstd_distribution(counts, zstd_table_bits(total, distinct, kZstdKindLimits[at].max_table_bits));
  Bytes description = zstd_describe(own);
  const uint32_t own_cost = cost_of(own) + (static_cast<uint32_t>(description.size()) << 11);
  if (predefined_cost <= own_cost) return {ZstdTableMode::predefined, {}, ZstdFseEncoder(predefined)};
  return {ZstdTableMode::own, std::move(description), ZstdFseEncoder(own)};
}

Bytes section_of(std::span<const ZstdSequence> sequences) {
  const auto total = static_cast<uint32_t>(sequences.size());
  Bytes section;
  const auto put = [&](uint32_t byte) { section.push_back(static_cast<uint8_t>(byte)); };
  if (total < 128) {
    put(total);
  } else {
    static_assert(kZstdMaxSequences < 0x7F00);  // more need three bytes
    put((total >> 8) + 128);
    put(total);
  }
  if (total == 0) return section;

  std::vector<std::array<Coded, kZstdKinds>> coded;
  for (const auto& sequence : sequences) {
    const uint32_t offset_code = log2(sequence.offset_value);
    coded.push_back({code_literal_length(sequence.literal_count),
                     {offset_code, sequence.offset_value, offset_code},
                     code_match_length(sequence.match_length)});
  }
  std::array<Table, kZstdKinds> tables;
  uint32_t modes = 0;
  for (size_t kind = 0; kind < kZstdKinds; ++kind) {
    tables[kind] = choose_table(static_cast<ZstdKind>(kind), coded);
    modes |= static_cast<uint32_t>(tables[kind].mode) << (6 - 2 * kind);
  }
  put(modes);
  for (const Table& table : tables) section.insert(section.end(), table.description.begin(), table.description.end());

  // A decoder reads backwards. For a sequence it takes the extra bits of offset, match length and literal length, then
  // those that lead to the next states of literal length, match length and offset.
  constexpr size_t kOfStates[] = {1, 2, 0}, kOfExtraBits[] = {0, 2, 1}, kOfEnd[] = {2, 1, 0};
  ZstdBits bits;
  for (size_t i = coded.size(); i-- != 0;) {
    for (const size_t kind : kOfStates) {
      auto& encoder = tables[kind].encoder;
      if (!encoder) continue;
      if (i + 1 == coded.size()) {
        encoder->begin(coded[i][kind].code);
      } else {
        const auto field = encoder->code(coded[i][kind].code);
        bits.append(field.value, field.bits);
      }
    }
    for (const size_t kind : kOfExtraBits) bits.append(coded[i][kind].value, coded[i][kind].extra_bits);
  }
  for (const size_t kind : kOfEnd) {
    if (const auto& encoder = tables[kind].encoder) bits.append(encoder->end().value, encoder->end().bits);
  }
  const Bytes stream = std::move(bits).marked();
  section.insert(section.end(), stream.begin(), stream.end());
  return section;
}

}  // namespace

std::vector<uint8_t> zstd_pack(std::span<const ZstdSequence> sequences) {
  std::vector<uint8_t> packed(sequences.size() * kZstdSequenceBytes);
  uint8_t* next = packed.data();
  for (const ZstdSequence& sequence : sequences) {
    write_u16(next, sequence.literal_count);
    write_u16(next + 2, sequence.match_length);
    write_u32(next + 4, sequence.offset_value);
    next += kZstdSequenceBytes;
  }
  return packed;
}

TransformOutcome zstd_sequences_reference(std::span<const uint8_t> src, std::span<uint8_t> dst) {
  if (src.size() > size_t{kZstdMaxSequences} * kZstdSequenceBytes || dst.size() > kMaxTransformBytes) {
    return {StreamStatus::item_too_large, 0};
  }
  if (src.size() % kZstdSequenceBytes != 0) return {StreamStatus::input_overrun, 0};
  std::vector<ZstdSequence> sequences;
  for (size_t at = 0; at < src.size(); at += kZstdSequenceBytes) {
    const uint8_t* const packed = src.data() + at;
    sequences.push_back({read_u16(packed), read_u16(packed + 2), read_u32(packed + 4)});
    const ZstdSequence& sequence = sequences.back();
    if (sequence.match_length < kZstdMinMatch || sequence.offset_value - 1 >= kZstdMaxOffsetValue) {
      return {StreamStatus::corrupt, 0};
    }
  }
  return zstd_store(section_of(sequences), dst);
}

}  // namespace ptxkit::kernels
