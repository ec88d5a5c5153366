#include "kernels/zstd/zstd_decode_reference.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "kernels/entropy/lane_format.hpp"
#include "kernels/zstd/zstd_decode_format.hpp"
#include "kernels/zstd/zstd_fse_reference.hpp"

namespace ptxkit::kernels {
namespace {

using Bytes = std::vector<uint8_t>;

struct Refusal {
  BatchStatus status;
  std::string_view reason;
};

void require(bool condition, std::string_view reason, BatchStatus status = BatchStatus::cannot_decompress) {
  if (!condition) throw Refusal{status, reason};
}

uint32_t log2_of(uint64_t value) { return static_cast<uint32_t>(std::bit_width(value)) - 1; }

// Bytes from the first to the last.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool is_at_end() const { return bytes_.empty(); }
  size_t left() const { return bytes_.size(); }
  std::span<const uint8_t> take(size_t count, std::string_view reason) {
    require(count <= bytes_.size(), reason);
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  uint64_t integer(uint32_t count, std::string_view reason) {
    uint64_t value = 0;
    const auto taken = take(count, reason);
    for (size_t i = count; i-- > 0;) value = value << 8 | taken[i];
    return value;
  }
  std::span<const uint8_t> rest() { return std::exchange(bytes_, {}); }

 private:
  std::span<const uint8_t> bytes_;
};

// Bits from the one below the last bit that is set down to the first (4.1). Those before the first are zeros.
class BackwardBits {
 public:
  explicit BackwardBits(std::span<const uint8_t> bytes) : bytes_(bytes) {
    require(!bytes.empty(), "a bit stream is empty");
    require(bytes.back() != 0, "a bit stream has no end mark");
    left_ = static_cast<int64_t>(8 * (bytes.size() - 1) + log2_of(bytes.back()));
  }

  uint32_t read(uint32_t count) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const int64_t at = --left_;
      value = value << 1 | (at < 0 ? 0u : bytes_[static_cast<size_t>(at / 8)] >> at % 8 & 1u);
    }
    return static_cast<uint32_t>(value);
  }
  int64_t left() const { return left_; }  // below 0: more was read than there is

 private:
  std::span<const uint8_t> bytes_;
  int64_t left_ = 0;
};

// The description of a table of at most 2^max_bits states and `symbols` symbols (4.1.1).
ZstdDistribution read_distribution(Reader& reader, uint32_t max_bits, uint32_t symbols) {
  Reader ahead = reader;
  const auto bytes = ahead.rest();
  size_t at = 0;
  const auto read = [&](uint32_t count) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < count; ++i, ++at)
      value |= (at / 8 < bytes.size() ? bytes[at / 8] >> at % 8 & 1u : 0u) << i;
    return value;
  };
  ZstdDistribution distribution{.bits = read(4) + kZstdMinTableBits, .frequencies = {}};
  require(distribution.bits <= max_bits, "a table has too many states");
  uint32_t left = (1u << distribution.bits) + 1;  // one more than what the symbols to come share
  while (left > 1) {
    require(distribution.frequencies.size() < symbols, "a table has too many symbols");
    const auto width = static_cast<uint32_t>(std::bit_width(left));
    const uint32_t half = 1u << (width - 1), short_count = 2 * half - 1 - left;
    uint32_t value = read(width - 1);
    if (value >= short_count) {
      value |= read(1) << (width - 1);
      if (value >= half) value -= short_count;
    }
    const int frequency = static_cast<int>(value) - 1;
    distribution.frequencies.push_back(frequency);
    left -= frequency < 0 ? 1 : value - 1;
    if (frequency != 0) continue;
    for (uint32_t zeros = 3; zeros == 3;) {
      zeros = read(2);
      distribution.frequencies.resize(distribution.frequencies.size() + zeros);
      require(distribution.frequencies.size() <= symbols, "a table has too many symbols");
    }
  }
  reader.take((at + 7) / 8, "a table's description is cut off");
  return distribution;
}

// The states of a decoder (4.1.1).
struct FseTable {
  struct State {
    uint32_t symbol, bits, base;  // the next state is base and the value of so many bits
  };
  uint32_t bits = 0;
  std::vector<State> states;
};

FseTable single_state(uint32_t symbol) { return {0, {{symbol, 0, 0}}}; }

FseTable table_of(const ZstdDistribution& distribution) {
  const uint32_t count = 1u << distribution.bits;
  FseTable table{distribution.bits, std::vector<FseTable::State>(count)};
  const auto& frequencies = distribution.frequencies;
  uint32_t end = count, place = 0;
  for (uint32_t s = 0; s < frequencies.size(); ++s) {
    if (frequencies[s] < 0) table.states[--end].symbol = s;
  }
  for (uint32_t s = 0; s < frequencies.size(); ++s) {
    for (int i = 0; i < frequencies[s]; ++i) {
      table.states[place].symbol = s;
      do place = (place + spread_step(count)) & (count - 1);
      while (place >= end);
    }
  }
  std::vector<uint32_t> next(frequencies.size());
  for (uint32_t s = 0; s < frequencies.size(); ++s)
    next[s] = frequencies[s] < 0 ? 1u : static_cast<uint32_t>(frequencies[s]);
  for (auto& state : table.states) {
    const uint32_t x = next[state.symbol]++;
    state.bits = table.bits - log2_of(x);
    state.base = (x << state.bits) - count;
  }
  return table;
}

// What a frame's blocks hand on.
struct Codes {
  struct Entry {
    uint8_t symbol, bits;
  };
  uint32_t bits = 0;
  std::vector<Entry> entries;  // 2^bits
};

// Two states that take turns (4.2.1.2). The bits end within the last state's change; the other one's symbol follows.
Bytes coded_weights(std::span<const uint8_t> bytes) {
  Reader reader(bytes);
  const FseTable table = table_of(read_distribution(reader, kZstdMaxWeightBits, kZstdMaxWeights + 1));
  BackwardBits bits(reader.rest());
  Bytes weights;
  std::array<uint32_t, 2> states{};
  for (auto& state : states) state = bits.read(table.bits);
  for (uint32_t turn = 0;; turn ^= 1) {
    require(weights.size() + 2 <= kZstdMaxWeights, "a tree has too many weights");
    const auto& state = table.states[states[turn]];
    weights.push_back(static_cast<uint8_t>(std::min<uint32_t>(state.symbol, 255)));
    states[turn] = state.base + bits.read(state.bits);
    if (bits.left() >= 0) continue;
    weights.push_back(static_cast<uint8_t>(std::min<uint32_t>(table.states[states[turn ^ 1]].symbol, 255)));
    return weights;
  }
}

// The description of a tree (4.2.1).
Codes read_codes(Reader& reader) {
  const auto first = static_cast<uint32_t>(reader.integer(1, "a tree's description is cut off"));
  Bytes weights;
  if (first > kZstdDirectWeightsBase) {
    const uint32_t count = first - kZstdDirectWeightsBase;
    const auto packed = reader.take((count + 1) / 2, "a tree's description is cut off");
    for (uint32_t i = 0; i < count; ++i) weights.push_back(i % 2 == 0 ? packed[i / 2] >> 4 : packed[i / 2] & 15);
  } else {
    weights = coded_weights(reader.take(first, "a tree's description is cut off"));
  }
  uint32_t sum = 0;
  for (const uint8_t weight : weights) {
    require(weight <= kZstdMaxCodeBits, "a code is longer than 11 bits");
    sum += 1u << weight >> 1;
  }
  require(sum != 0, "a tree has no weight");
  Codes codes{.bits = log2_of(sum) + 1, .entries = {}};
  require(codes.bits <= kZstdMaxCodeBits, "a code is longer than 11 bits");
  const uint32_t missing = (1u << codes.bits) - sum;
  require(std::has_single_bit(missing), "a tree's weights make no tree");
  weights.push_back(static_cast<uint8_t>(log2_of(missing) + 1));
  const auto longest = std::ranges::count(weights, 1);
  require(longest >= 2 && longest % 2 == 0, "a tree's weights make no tree");
  for (uint32_t weight = 1; weight <= codes.bits; ++weight) {
    for (size_t symbol = 0; symbol < weights.size(); ++symbol) {
      if (weights[symbol] != weight) continue;
      const Codes::Entry entry{static_cast<uint8_t>(symbol), static_cast<uint8_t>(codes.bits + 1 - weight)};
      codes.entries.insert(codes.entries.end(), size_t{1} << (weight - 1), entry);
    }
  }
  return codes;
}

void decode_stream(const Codes& codes, std::span<const uint8_t> stream, std::span<uint8_t> literals) {
  BackwardBits bits(stream);
  // The bits of a state that is as long as the longest code; each symbol shifts its code out.
  uint32_t state = bits.read(codes.bits);
  for (uint8_t& literal : literals) {
    const Codes::Entry entry = codes.entries[state];
    literal = entry.symbol;
    state = (state << entry.bits & ((1u << codes.bits) - 1)) | bits.read(entry.bits);
  }
  require(bits.left() == -static_cast<int64_t>(codes.bits), "a stream of literals does not end with its bits");
}

// A frame's state between its blocks.
struct Frame {
  uint64_t window_bytes = 0;
  uint32_t max_block_bytes = 0;
  std::optional<Codes> codes;
  std::array<std::optional<FseTable>, kZstdKinds> tables;
  std::array<uint32_t, kZstdRepeatOffsets> offsets = kZstdFirstOffsets;
};

struct Sequence {
  uint32_t literal_length, offset_value, match_length;
};

class Decoder {
 public:
  Decoder(std::span<const uint8_t> src, std::span<uint8_t> dst) : src_(src), dst_(dst) {}

  uint32_t decode() {
    do frame();
    while (!src_.is_at_end());
    return static_cast<uint32_t>(size_);
  }

 private:
  void frame() {
    const auto magic = static_cast<uint32_t>(src_.integer(4, "a frame is cut off"));
    if ((magic & ~kZstdSkippableMagicMask) == kZstdSkippableMagic) {
      src_.take(src_.integer(4, "a skippable frame is cut off"), "a skippable frame is cut off");
      return;
    }
    require(magic == kZstdMagic, "no frame begins here");
    const auto flags = static_cast<uint32_t>(src_.integer(1, "a frame's header is cut off"));
    const bool is_single = (flags & kZstdSingleSegmentFlag) != 0;
    const uint32_t size_format = flags >> 6, dictionary_format = flags & 3;
    const uint32_t size_bytes = size_format == 0 ? uint32_t{is_single} : 1u << size_format;
    Reader header(
        src_.take(uint32_t{!is_single} + (1u << dictionary_format >> 1) + size_bytes, "a frame's header is cut off"));
    require((flags & kZstdReservedFlag) == 0, "a frame's header has the reserved bit");
    frame_ = Frame();
    if (!is_single) {
      const auto window = static_cast<uint32_t>(header.integer(1, {}));
      const uint32_t log = (window >> 3) + kZstdMinWindowLog;
      require(log <= kZstdMaxWindowLog, "a frame's window is too large", BatchStatus::unsupported);
      frame_.window_bytes = (uint64_t{1} << log) + (uint64_t{1} << log >> 3) * (window & 7);
    }
    require(header.integer(1u << dictionary_format >> 1, {}) == 0, "a frame needs a dictionary",
            BatchStatus::unsupported);
    const uint64_t stated = header.integer(size_bytes, {}) + (size_format == 1 ? 256 : 0);
    const bool is_stated = size_bytes != 0;
    if (is_single) frame_.window_bytes = stated;
    frame_.max_block_bytes = static_cast<uint32_t>(std::min<uint64_t>(frame_.window_bytes, kZstdMaxBlockBytes));
    require(!is_stated || stated <= dst_.size() - size_, "a frame states more bytes than its room has",
            BatchStatus::output_too_small);
    begin_ = size_;
    while (!block()) {
    }
    require(!is_stated || size_ - begin_ == stated, "a frame does not have the bytes that it states");
    if ((flags & kZstdChecksumFlag) == 0) return;
    const auto checksum = static_cast<uint32_t>(src_.integer(kZstdChecksumBytes, "a frame's checksum is cut off"));
    require(checksum == static_cast<uint32_t>(XXH64(dst_.data() + begin_, size_ - begin_, 0)),
            "a frame's checksum is another", BatchStatus::bad_checksum);
  }

  // Decodes a block and returns whether it is the last of its frame.
  bool block() {
    const auto header = static_cast<uint32_t>(src_.integer(kZstdBlockHeaderBytes, "a block is cut off"));
    const uint32_t size = header >> 3;
    const auto type = static_cast<ZstdBlockType>(header >> 1 & 3);
    require(type != ZstdBlockType::reserved, "a block has the reserved type");
    require(size <= frame_.max_block_bytes, "a block is larger than its frame allows");
    const auto content = src_.take(type == ZstdBlockType::rle ? 1 : size, "a block is cut off");
    if (type == ZstdBlockType::compressed) {
      compressed(content);
    } else {
      const auto room = extend(size);
      if (type == ZstdBlockType::raw) {
        std::ranges::copy(content, room.begin());
      } else {
        std::ranges::fill(room, content[0]);
      }
    }
    return (header & 1) != 0;
  }

  // The next `count` bytes of the output.
  std::span<uint8_t> extend(uint64_t count) {
    require(count <= dst_.size() - size_, "a block has more bytes than its room", BatchStatus::output_too_small);
    size_ += count;
    return dst_.subspan(size_ - count, count);
  }

  // All of the block is read before a byte of it is written.
  void compressed(std::span<const uint8_t> content) {
    Reader reader(content);
    read_literals(reader);
    read_sequences(reader);
    size_t literal_count = 0, size = literals_.size();
    for (const Sequence& sequence : sequences_) {
      literal_count += sequence.literal_length;
      size += sequence.match_length;
    }
    require(literal_count <= literals_.size(), "sequences take more literals than there are");
    require(size <= frame_.max_block_bytes, "a block decodes to more than its frame allows");
    const auto room = extend(size);
    auto to = room.begin();
    std::span<const uint8_t> literals = literals_;
    for (const Sequence& sequence : sequences_) {
      to = std::ranges::copy(literals.first(sequence.literal_length), to).out;
      literals = literals.subspan(sequence.literal_length);
      const uint32_t offset = offset_of(sequence.offset_value, sequence.literal_length != 0);
      require(offset != 0, "an offset is 0");
      require(offset <= static_cast<uint64_t>(to - dst_.begin()) - begin_, "an offset lies before the frame");
      require(offset <= frame_.window_bytes, "an offset lies before the window");
      for (uint32_t i = 0; i < sequence.match_length; ++i, ++to) *to = *(to - offset);
    }
    std::ranges::copy(literals, to);
  }

  void read_literals(Reader& reader) {
    constexpr std::string_view kCutOff = "a literals section is cut off";
    const auto first = static_cast<uint32_t>(reader.integer(1, kCutOff));
    const auto type = static_cast<ZstdLiteralsType>(first & 3);
    const uint32_t format = first >> 2 & 3;
    const bool is_coded = type == ZstdLiteralsType::compressed || type == ZstdLiteralsType::treeless;
    if (!is_coded) {
      uint32_t size = first >> 3;
      if (format == 1) size = first >> 4 | static_cast<uint32_t>(reader.integer(1, kCutOff)) << 4;
      if (format == 3) size = first >> 4 | static_cast<uint32_t>(reader.integer(2, kCutOff)) << 4;
      require(size <= frame_.max_block_bytes, "a block has more literals than its frame allows");
      if (type == ZstdLiteralsType::raw) {
        const auto bytes = reader.take(size, kCutOff);
        literals_.assign(bytes.begin(), bytes.end());
      } else {
        literals_.assign(size, static_cast<uint8_t>(reader.integer(1, kCutOff)));
      }
      return;
    }
    const uint32_t width = format < 2 ? 10 : format == 2 ? 14 : 18;
    const uint64_t sizes = (first | reader.integer(width == 10 ? 2 : width == 14 ? 3 : 4, kCutOff) << 8) >> 4;
    const auto size = static_cast<uint32_t>(sizes & ((1u << width) - 1));
    require(size <= frame_.max_block_bytes, "a block has more literals than its frame allows");
    Reader section(reader.take(sizes >> width, kCutOff));
    if (type == ZstdLiteralsType::compressed) frame_.codes = read_codes(section);
    require(frame_.codes.has_value(), "a treeless section has no tree before it");
    literals_.resize(size);
    if (format == 0) return decode_stream(*frame_.codes, section.rest(), literals_);
    require(size >= kZstdMinFourStreamBytes, "four streams have too few literals");
    Reader jumps(section.take(kZstdJumpBytes, kCutOff));
    const uint32_t part = (size + kZstdStreams - 1) / kZstdStreams;
    for (uint32_t i = 0; i + 1 < kZstdStreams; ++i)
      decode_stream(*frame_.codes, section.take(jumps.integer(2, {}), kCutOff),
                    std::span(literals_).subspan(i * part, part));
    decode_stream(*frame_.codes, section.rest(), std::span(literals_).subspan((kZstdStreams - 1) * part));
  }

  void read_sequences(Reader& reader) {
    sequences_.clear();
    auto count = static_cast<uint32_t>(reader.integer(1, "a block has no sequences section"));
    if (count == 255) {
      count = static_cast<uint32_t>(reader.integer(2, "a sequences section is cut off")) + kZstdLongSequenceCount;
    } else if (count >= 128) {
      count = (count - 128) << 8 | static_cast<uint32_t>(reader.integer(1, "a sequences section is cut off"));
    }
    if (count == 0) return require(reader.is_at_end(), "bytes follow a section without sequences");
    const auto modes = static_cast<uint32_t>(reader.integer(1, "a sequences section is cut off"));
    require((modes & 3) == 0, "a sequences section has reserved bits");
    for (uint32_t kind = 0; kind < kZstdKinds; ++kind)
      read_table(reader, kind, static_cast<ZstdTableMode>(modes >> (6 - 2 * kind) & 3));
    BackwardBits bits(reader.rest());
    std::array<uint32_t, kZstdKinds> states{};
    const auto code = [&](ZstdKind kind) { return table(kind).states[states[static_cast<size_t>(kind)]].symbol; };
    for (uint32_t kind = 0; kind < kZstdKinds; ++kind) states[kind] = bits.read(frame_.tables[kind]->bits);
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t offset_code = code(ZstdKind::offset);
      const uint32_t offset_value = (1u << offset_code) + bits.read(offset_code);
      const auto match = zstd_match_length_code(code(ZstdKind::match_length));
      const uint32_t match_length = match.base + bits.read(match.bits);
      const auto literal = zstd_literal_length_code(code(ZstdKind::literal_length));
      const uint32_t literal_length = literal.base + bits.read(literal.bits);
      if (i + 1 < count) {
        for (const auto kind : {ZstdKind::literal_length, ZstdKind::match_length, ZstdKind::offset}) {
          uint32_t& state = states[static_cast<size_t>(kind)];
          const auto& current = table(kind).states[state];
          state = current.base + bits.read(current.bits);
        }
      }
      sequences_.push_back({literal_length, offset_value, match_length});
    }
    require(bits.left() == 0, "a sequences section does not end with its bits");
  }

  const FseTable& table(ZstdKind kind) const { return *frame_.tables[static_cast<size_t>(kind)]; }

  void read_table(Reader& reader, uint32_t kind, ZstdTableMode mode) {
    auto& table = frame_.tables[kind];
    switch (mode) {
      case ZstdTableMode::predefined:
        table = table_of(zstd_predefined(static_cast<ZstdKind>(kind)));
        return;
      case ZstdTableMode::rle: {
        const auto symbol = static_cast<uint32_t>(reader.integer(1, "a sequences section is cut off"));
        require(symbol < kZstdCodes[kind], "a table's only symbol is none");
        table = single_state(symbol);
        return;
      }
      case ZstdTableMode::own:
        table = table_of(read_distribution(reader, kZstdKindLimits[kind].max_table_bits, kZstdCodes[kind]));
        return;
      case ZstdTableMode::repeat:
        require(table.has_value(), "a table is repeated that no block had");
    }
  }

  // The offset that a value codes (3.1.1.5).
  uint32_t offset_of(uint32_t value, bool has_literals) {
    auto& last = frame_.offsets;
    if (value > kZstdRepeatOffsets) {
      last = {value - kZstdRepeatOffsets, last[0], last[1]};
      return last[0];
    }
    const uint32_t index = value - uint32_t{has_literals};
    const uint32_t offset = index == 3 ? last[0] - 1 : last[index];
    if (index > 1) last[2] = last[1];
    if (index > 0) last[1] = last[0];
    last[0] = offset;
    return offset;
  }

  Reader src_;
  std::span<uint8_t> dst_;
  size_t size_ = 0;   // of the output
  size_t begin_ = 0;  // of the frame in it
  Frame frame_;
  // Of the block.
  Bytes literals_;
  std::vector<Sequence> sequences_;
};

}  // namespace

ZstdDecodeOutcome zstd_decode_reference(std::span<const uint8_t> src, std::span<uint8_t> dst) {
  try {
    return {BatchStatus::ok, Decoder(src, dst).decode(), {}};
  } catch (const Refusal& refusal) {
    return {refusal.status, 0, refusal.reason};
  }
}

}  // namespace ptxkit::kernels
