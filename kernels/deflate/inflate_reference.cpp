#include "kernels/deflate/inflate_reference.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/deflate/checksums_reference.hpp"

namespace ptxkit::kernels {
namespace {

struct Refusal {
  BatchStatus status;
  std::string_view reason;
};

void require(bool condition, std::string_view reason, BatchStatus status = BatchStatus::cannot_decompress) {
  if (!condition) throw Refusal{status, reason};
}

// Bits from the lowest of the first byte on.
class BitReader {
 public:
  explicit BitReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint32_t read(uint32_t count, std::string_view reason) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < count; ++i, ++at_) {
      require(at_ / 8 < bytes_.size(), reason);
      value |= (bytes_[at_ / 8] >> at_ % 8 & 1u) << i;
    }
    return value;
  }
  // Whole bytes, behind the bits up to the next one.
  std::span<const uint8_t> take(size_t count, std::string_view reason) {
    const size_t begin = byte();
    require(count <= bytes_.size() - begin, reason);
    at_ = (begin + count) * 8;
    return bytes_.subspan(begin, count);
  }
  uint32_t integer(uint32_t count, std::string_view reason) {
    take(0, reason);
    return read(8 * count, reason);
  }
  size_t byte() const { return (at_ + 7) / 8; }
  std::span<const uint8_t> rest() const { return bytes_.subspan(byte()); }
  std::span<const uint8_t> since(size_t begin) const { return bytes_.subspan(begin, byte() - begin); }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

// A canonical code (3.2.2).
class Code {
 public:
  // By the length of each symbol's code, 0 if there is none. A code with all of its strings is valid. If
  // `may_be_partial` so are no codes, and a single one of one bit; a symbol that is read must have a code.
  Code(std::span<const uint8_t> lengths, bool may_be_partial, std::string_view reason) {
    for (const uint8_t length : lengths) ++counts_[length];
    counts_[0] = 0;
    int32_t left = 1;
    for (uint32_t length = 1; length <= kDeflateMaxCodeBits; ++length) {
      left = 2 * left - static_cast<int32_t>(counts_[length]);
      require(left >= 0, reason);
    }
    const auto used = static_cast<uint32_t>(lengths.size() - static_cast<size_t>(std::ranges::count(lengths, 0)));
    require(left == 0 || (may_be_partial && (used == 0 || (used == 1 && counts_[1] == 1))), reason);
    for (uint32_t length = 1; length <= kDeflateMaxCodeBits; ++length) {
      for (uint32_t symbol = 0; symbol < lengths.size(); ++symbol) {
        if (lengths[symbol] == length) symbols_.push_back(symbol);
      }
    }
  }

  uint32_t read(BitReader& bits, std::string_view reason) const {
    uint32_t code = 0, first = 0, rank = 0;  // the first code of the length, and how many are shorter
    for (uint32_t length = 1; length <= kDeflateMaxCodeBits; ++length) {
      code = code << 1 | bits.read(1, reason);
      if (code - first < counts_[length]) return symbols_[rank + code - first];
      first = (first + counts_[length]) << 1;
      rank += counts_[length];
    }
    throw Refusal{BatchStatus::cannot_decompress, "bits are no code"};
  }

 private:
  std::array<uint32_t, kDeflateMaxCodeBits + 1> counts_{};
  std::vector<uint32_t> symbols_;  // by their codes
};

class Inflater {
 public:
  Inflater(std::span<const uint8_t> src, std::span<uint8_t> dst) : bits_(src), dst_(dst) {}

  uint32_t decode(DeflateFraming framing) {
    switch (framing) {
      case DeflateFraming::raw:
        stream();
        break;
      case DeflateFraming::zlib:
        zlib();
        break;
      case DeflateFraming::gzip:
      case DeflateFraming::bgzf:
        do gzip_member();
        while (!std::ranges::all_of(bits_.rest(), [](uint8_t byte) { return byte == 0; }));
        return static_cast<uint32_t>(size_);
    }
    require(bits_.rest().empty(), "bytes follow the stream");
    return static_cast<uint32_t>(size_);
  }

 private:
  void zlib() {
    constexpr std::string_view kCutOff = "a zlib header is cut off";
    const uint32_t method = bits_.integer(1, kCutOff), flags = bits_.integer(1, kCutOff);
    require((method << 8 | flags) % kZlibHeaderFactor == 0, "no zlib stream begins here");
    require((method & 15) == kDeflateMethod, "a method is not Deflate", BatchStatus::unsupported);
    require(method >> 4 <= kZlibMaxWindow, "a zlib header has a window above 32 KiB");
    require((flags & kZlibDictionaryFlag) == 0, "a zlib stream needs a dictionary", BatchStatus::unsupported);
    stream();
    uint32_t checksum = 0;
    for (uint32_t i = 0; i < kZlibTrailerBytes; ++i)
      checksum = checksum << 8 | bits_.integer(1, "a zlib stream's checksum is cut off");
    require(checksum == adler32_reference(dst_.first(size_)), "a zlib stream's checksum is another",
            BatchStatus::bad_checksum);
  }

  void gzip_member() {
    constexpr std::string_view kCutOff = "a member's header is cut off";
    const size_t begin = bits_.byte();
    require(bits_.integer(2, kCutOff) == kGzipMagic, "no gzip member begins here");
    require(bits_.integer(1, kCutOff) == kDeflateMethod, "a method is not Deflate", BatchStatus::unsupported);
    const uint32_t flags = bits_.integer(1, kCutOff);
    require((flags & kGzipReservedFlags) == 0, "a member's header has reserved flags", BatchStatus::unsupported);
    bits_.take(kGzipHeaderBytes - 4, kCutOff);
    if ((flags & kGzipExtraFlag) != 0) bits_.take(bits_.integer(2, kCutOff), kCutOff);
    for (const uint32_t text : {kGzipNameFlag, kGzipCommentFlag}) {
      while ((flags & text) != 0 && bits_.integer(1, kCutOff) != 0) {
      }
    }
    if ((flags & kGzipHeaderCrcFlag) != 0) {
      const uint32_t crc = crc32_reference(bits_.since(begin)) & 0xFFFF;
      require(bits_.integer(2, kCutOff) == crc, "a member's header has another checksum", BatchStatus::bad_checksum);
    }
    stream();
    const auto content = dst_.subspan(begin_, size_ - begin_);
    const uint32_t crc = bits_.integer(4, "a member's checksum is cut off");
    const uint32_t size = bits_.integer(4, "a member's checksum is cut off");
    require(crc == crc32_reference(content), "a member's checksum is another", BatchStatus::bad_checksum);
    require(size == static_cast<uint32_t>(content.size()), "a member does not have the bytes that it states");
  }

  void stream() {
    begin_ = size_;
    bool is_last = false;
    while (!is_last) {
      is_last = bits_.read(1, "a block's header is cut off") != 0;
      switch (static_cast<DeflateBlockType>(bits_.read(2, "a block's header is cut off"))) {
        case DeflateBlockType::stored:
          stored();
          break;
        case DeflateBlockType::fixed:
          fixed();
          break;
        case DeflateBlockType::dynamic:
          dynamic();
          break;
        case DeflateBlockType::reserved:
          throw Refusal{BatchStatus::cannot_decompress, "a block has the reserved type"};
      }
    }
  }

  void stored() {
    const uint32_t length = bits_.integer(2, "a stored block is cut off");
    const uint32_t complement = bits_.integer(2, "a stored block is cut off");
    require(length == (complement ^ 0xFFFF), "a stored block's length is not confirmed");
    const auto content = bits_.take(length, "a stored block is cut off");
    std::ranges::copy(content, extend(length).begin());
  }

  void fixed() {
    std::array<uint8_t, kDeflateFixedLiteralCodes> literals{};
    for (uint32_t symbol = 0; symbol < literals.size(); ++symbol)
      literals[symbol] = static_cast<uint8_t>(deflate_fixed_literal_bits(symbol));
    std::array<uint8_t, kDeflateFixedDistanceCodes> distances{};
    distances.fill(kDeflateFixedDistanceBits);
    content(Code(literals, false, {}), Code(distances, false, {}));
  }

  void dynamic() {
    constexpr std::string_view kCutOff = "a dynamic block's header is cut off";
    const uint32_t literal_count = kDeflateMinLiteralCount + bits_.read(kDeflateLiteralCountBits, kCutOff);
    const uint32_t distance_count = kDeflateMinDistanceCount + bits_.read(kDeflateDistanceCountBits, kCutOff);
    const uint32_t length_count = kDeflateMinLengthCount + bits_.read(kDeflateLengthCountBits, kCutOff);
    require(literal_count <= kDeflateLiteralCodes && distance_count <= kDeflateDistanceCodes,
            "a block has too many codes");
    std::array<uint8_t, kDeflateLengthSymbols> length_lengths{};
    for (uint32_t i = 0; i < length_count; ++i)
      length_lengths[kDeflateLengthOrder[i]] = static_cast<uint8_t>(bits_.read(kDeflateLengthSymbolBits, kCutOff));
    const Code length_code(length_lengths, false, "the codes of a block's code lengths are no code");
    std::vector<uint8_t> lengths;
    while (lengths.size() < literal_count + distance_count) {
      const uint32_t symbol = length_code.read(bits_, kCutOff);
      if (symbol < kDeflateRepeatLength) {
        lengths.push_back(static_cast<uint8_t>(symbol));
        continue;
      }
      const DeflateCode repeat = deflate_repeat_code(symbol);
      const uint32_t count = repeat.base + bits_.read(repeat.bits, kCutOff);
      require(symbol != kDeflateRepeatLength || !lengths.empty(), "a code length is repeated that is none");
      require(count <= literal_count + distance_count - lengths.size(), "code lengths are repeated too often");
      lengths.insert(lengths.end(), count, symbol == kDeflateRepeatLength ? lengths.back() : uint8_t{0});
    }
    require(lengths[kDeflateEndOfBlock] != 0, "a block's end has no code");
    const std::span<const uint8_t> all = lengths;
    const Code literals(all.first(literal_count), true, "a block's literals and lengths have no code");
    content(literals, Code(all.subspan(literal_count), true, "a block's distances have no code"));
  }

  // The symbols of a block up to its end.
  void content(const Code& literals, const Code& distances) {
    constexpr std::string_view kCutOff = "a block is cut off";
    while (true) {
      const uint32_t symbol = literals.read(bits_, kCutOff);
      if (symbol == kDeflateEndOfBlock) return;
      if (symbol < kDeflateEndOfBlock) {
        extend(1)[0] = static_cast<uint8_t>(symbol);
        continue;
      }
      require(symbol < kDeflateLiteralCodes, "a length is none");
      const DeflateCode length_code = deflate_length_code(symbol - kDeflateFirstLength);
      const uint32_t length = length_code.base + bits_.read(length_code.bits, kCutOff);
      const uint32_t distance_symbol = distances.read(bits_, kCutOff);
      require(distance_symbol < kDeflateDistanceCodes, "a distance is none");
      const DeflateCode distance_code = deflate_distance_code(distance_symbol);
      const uint32_t distance = distance_code.base + bits_.read(distance_code.bits, kCutOff);
      require(distance <= size_ - begin_, "a distance lies before the stream");
      const auto room = extend(length);
      const uint8_t* from = room.data() - distance;
      for (uint8_t& byte : room) byte = *from++;
    }
  }

  // The next `count` bytes of the output.
  std::span<uint8_t> extend(size_t count) {
    require(count <= dst_.size() - size_, "the content has more bytes than its room", BatchStatus::output_too_small);
    size_ += count;
    return dst_.subspan(size_ - count, count);
  }

  BitReader bits_;
  std::span<uint8_t> dst_;
  size_t size_ = 0;   // of the output
  size_t begin_ = 0;  // of the stream in it
};

}  // namespace

InflateOutcome inflate_reference(std::span<const uint8_t> src, std::span<uint8_t> dst, DeflateFraming framing) {
  try {
    return {BatchStatus::ok, Inflater(src, dst).decode(framing), {}};
  } catch (const Refusal& refusal) {
    return {refusal.status, 0, refusal.reason};
  }
}

}  // namespace ptxkit::kernels
