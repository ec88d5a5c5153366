// Streams of Deflate for decoders: those of libdeflate and zlib with many parameters, some made by hand, and damaged
// ones; raw, in zlib and in gzip.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <libdeflate.h>
#include <zlib.h>

#include "fkr_tests/cases/corpus.hpp"
#include "kernels/abi.hpp"
#include "kernels/deflate/deflate_format.hpp"

namespace ptxkit::testing {

using kernels::DeflateFraming;

// --- of libraries ---

inline Bytes libdeflate_item(const Bytes& raw, int level, DeflateFraming framing = DeflateFraming::raw) {
  libdeflate_compressor* const compressor = libdeflate_alloc_compressor(level);
  Bytes item(libdeflate_gzip_compress_bound(compressor, raw.size()));
  const auto call = framing == DeflateFraming::raw    ? libdeflate_deflate_compress
                    : framing == DeflateFraming::zlib ? libdeflate_zlib_compress
                                                      : libdeflate_gzip_compress;
  item.resize(call(compressor, raw.data(), raw.size(), item.data(), item.size()));
  libdeflate_free_compressor(compressor);
  if (item.empty()) throw std::runtime_error("libdeflate");
  return item;
}

// What zlib is told beside the level.
struct ZlibOptions {
  DeflateFraming framing = DeflateFraming::raw;
  int strategy = Z_DEFAULT_STRATEGY;
  int memory_level = 8;    // 1: blocks of at most 127 symbols
  size_t flush_bytes = 0;  // a block ends after so many bytes; 0: where zlib wants
  int flush = Z_SYNC_FLUSH;
};

inline Bytes zlib_item(const Bytes& raw, int level, const ZlibOptions& options = {}) {
  z_stream stream{};
  const int window = options.framing == DeflateFraming::raw ? -15 : options.framing == DeflateFraming::zlib ? 15 : 31;
  if (deflateInit2(&stream, level, Z_DEFLATED, window, options.memory_level, options.strategy) != Z_OK)
    throw std::runtime_error("deflateInit2");
  Bytes item(deflateBound(&stream, raw.size()) + raw.size() / 2 + 1000);
  stream.next_out = item.data();
  stream.avail_out = static_cast<uInt>(item.size());
  const size_t step = options.flush_bytes == 0 ? std::max<size_t>(raw.size(), 1) : options.flush_bytes;
  for (size_t at = 0;; at += step) {
    const size_t end = std::min(raw.size(), at + step);
    stream.next_in = const_cast<Bytef*>(raw.data() + at);
    stream.avail_in = static_cast<uInt>(end - at);
    const bool is_last = end == raw.size();
    if (deflate(&stream, is_last ? Z_FINISH : options.flush) != (is_last ? Z_STREAM_END : Z_OK))
      throw std::runtime_error("deflate");
    if (is_last) break;
  }
  item.resize(stream.total_out);
  deflateEnd(&stream);
  return item;
}

// Contents that give blocks of every kind.
inline std::vector<Bytes> deflate_contents(size_t longest) {
  Bytes skewed = random_bytes(longest / 2, 5);
  for (auto& byte : skewed) byte = byte < 240 ? byte % 5 : byte % 64;
  return {{},
          {7},
          Bytes(20, 'x'),
          matchable_bytes(100, 1),
          matchable_bytes(1000, 2),
          Bytes(longest, 'y'),
          matchable_bytes(longest, 3),
          mixed_content(longest),
          fibonacci_bytes(longest / 3),
          skewed};
}

// --- by hand ---

class DeflateWriter {
 public:
  // The lowest bits of `value`, the lowest first.
  DeflateWriter& bits(uint32_t value, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i, ++size_) {
      if (size_ % 8 == 0) bytes_.push_back(0);
      bytes_.back() = static_cast<uint8_t>(bytes_.back() | (value >> i & 1u) << size_ % 8);
    }
    return *this;
  }
  DeflateWriter& head(kernels::DeflateBlockType type, bool is_last) {
    return bits(is_last, 1).bits(static_cast<uint32_t>(type), 2);
  }
  DeflateWriter& stored(const Bytes& content, bool is_last) {
    head(kernels::DeflateBlockType::stored, is_last).align();
    const auto size = static_cast<uint32_t>(content.size());
    return bits(size, 16).bits(~size, 16).whole(content);
  }
  DeflateWriter& fixed(bool is_last) {
    head(kernels::DeflateBlockType::fixed, is_last);
    literals_.clear();
    for (uint32_t i = 0; i < kernels::kDeflateFixedLiteralCodes; ++i)
      literals_.push_back(static_cast<uint8_t>(kernels::deflate_fixed_literal_bits(i)));
    distances_.assign(kernels::kDeflateFixedDistanceCodes, 5);
    return *this;
  }
  // The header of a block with codes of these lengths, each of which stands in four bits.
  DeflateWriter& dynamic(const Bytes& literals, const Bytes& distances, bool is_last) {
    Bytes lengths(kernels::kDeflateLengthSymbols);
    std::fill_n(lengths.begin(), 16, uint8_t{4});
    counts(static_cast<uint32_t>(literals.size()), static_cast<uint32_t>(distances.size()), lengths, is_last);
    for (const Bytes* part : {&literals, &distances}) {
      for (const uint8_t length : *part) code(lengths, length);
    }
    literals_ = literals;
    distances_ = distances;
    return *this;
  }
  // The header up to the code lengths; length codes of `lengths`.
  DeflateWriter& counts(uint32_t literal_count, uint32_t distance_count, const Bytes& lengths, bool is_last) {
    head(kernels::DeflateBlockType::dynamic, is_last).bits(literal_count - 257, 5).bits(distance_count - 1, 5);
    bits(kernels::kDeflateLengthSymbols - 4, 4);
    for (const uint8_t symbol : kernels::kDeflateLengthOrder) bits(lengths[symbol], 3);
    return *this;
  }
  // The code of a symbol, its first bit first.
  DeflateWriter& code(const Bytes& lengths, uint32_t symbol) {
    uint32_t code = 0;
    for (uint32_t length = 1; length <= lengths[symbol]; ++length) {
      code <<= 1;
      for (uint32_t i = 0; i < lengths.size(); ++i) {
        if (lengths[i] == length && (length < lengths[symbol] || i < symbol)) ++code;
      }
    }
    for (uint32_t bit = lengths[symbol]; bit-- > 0;) bits(code >> bit, 1);
    return *this;
  }
  DeflateWriter& literal(uint32_t symbol) { return code(literals_, symbol); }
  DeflateWriter& literals(const Bytes& content) {
    for (const uint8_t byte : content) literal(byte);
    return *this;
  }
  DeflateWriter& length(uint32_t length) {
    const uint32_t symbol = kernels::deflate_code_of_length(length);
    const auto of = kernels::deflate_length_code(symbol);
    return literal(kernels::kDeflateFirstLength + symbol).bits(length - of.base, of.bits);
  }
  DeflateWriter& distance(uint32_t distance) {
    const uint32_t symbol = kernels::deflate_code_of_distance(distance);
    const auto of = kernels::deflate_distance_code(symbol);
    return code(distances_, symbol).bits(distance - of.base, of.bits);
  }
  DeflateWriter& match(uint32_t length_bytes, uint32_t distance_bytes) {
    return length(length_bytes).distance(distance_bytes);
  }
  DeflateWriter& end() { return literal(kernels::kDeflateEndOfBlock); }
  DeflateWriter& align() {
    size_ = (size_ + 7) / 8 * 8;
    return *this;
  }
  DeflateWriter& whole(const Bytes& content) {
    bytes_.insert(bytes_.end(), content.begin(), content.end());
    size_ = bytes_.size() * 8;
    return *this;
  }
  DeflateWriter& integer(uint32_t value, uint32_t bytes) { return align().bits(value, 8 * bytes); }

  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
  size_t size_ = 0;  // in bits
  Bytes literals_, distances_;
};

struct GzipHeader {
  uint32_t flags = 0;  // the fields follow from them
  uint32_t method = 8;
  bool has_wrong_crc = false;
};

inline Bytes gzip_of(const Bytes& stream, const Bytes& raw, const GzipHeader& header = {}) {
  DeflateWriter writer;
  writer.whole({0x1F, 0x8B, static_cast<uint8_t>(header.method), static_cast<uint8_t>(header.flags), 1, 2, 3, 4, 0, 3});
  if ((header.flags & kernels::kGzipExtraFlag) != 0) writer.integer(5, 2).whole({'a', 0, 1, 0, 'x'});
  if ((header.flags & kernels::kGzipNameFlag) != 0) writer.whole(Bytes(70, 'n')).whole({0});
  if ((header.flags & kernels::kGzipCommentFlag) != 0) writer.whole({'c', 'o', 0});
  const auto crc_of = [](const Bytes& bytes) {
    return static_cast<uint32_t>(crc32(0, bytes.data(), static_cast<uInt>(bytes.size())));
  };
  if ((header.flags & kernels::kGzipHeaderCrcFlag) != 0)
    writer.integer(crc_of(writer.bytes()) + uint32_t{header.has_wrong_crc}, 2);
  return writer.whole(stream).integer(crc_of(raw), 4).integer(static_cast<uint32_t>(raw.size()), 4).bytes();
}

inline Bytes zlib_of(const Bytes& stream, const Bytes& raw) {
  DeflateWriter writer;
  writer.whole({0x78, 0x9C}).whole(stream);
  const auto sum = static_cast<uint32_t>(adler32(1, raw.data(), static_cast<uInt>(raw.size())));
  for (int shift = 24; shift >= 0; shift -= 8) writer.integer(sum >> shift & 0xFF, 1);
  return writer.bytes();
}

struct DeflateCase {
  std::string name;
  DeflateFraming framing = DeflateFraming::raw;
  Bytes item;
  size_t room = 0;
  kernels::BatchStatus status = kernels::BatchStatus::ok;
  std::string_view reason = {};  // of the reference
  Bytes raw = {};                // what it decodes to
};

// Adds the bytes of a match.
inline void add_match(Bytes& raw, size_t length, size_t distance) {
  for (size_t i = 0; i < length; ++i) raw.push_back(raw[raw.size() - distance]);
}

inline std::vector<DeflateCase> deflate_cases_by_hand() {
  using namespace kernels;
  using Type = DeflateBlockType;
  std::vector<DeflateCase> cases;
  const auto good = [&](std::string name, const Bytes& item, Bytes raw, DeflateFraming framing = DeflateFraming::raw) {
    const size_t room = raw.size();
    cases.push_back({std::move(name), framing, item, room, BatchStatus::ok, {}, std::move(raw)});
  };
  const auto bad = [&](std::string_view reason, const Bytes& item, DeflateFraming framing = DeflateFraming::raw,
                       BatchStatus status = BatchStatus::cannot_decompress, size_t room = 3000) {
    cases.push_back({std::string(reason), framing, item, room, status, reason, {}});
  };
  const auto text = [](std::string_view characters) { return Bytes(characters.begin(), characters.end()); };
  const auto cut = [](Bytes item, size_t bytes = 1) {
    item.resize(item.size() - bytes);
    return item;
  };
  const auto with = [](Bytes item, size_t at, uint8_t value) {
    item[at] = value;
    return item;
  };
  const auto then = [](Bytes item, const Bytes& more) {
    item.insert(item.end(), more.begin(), more.end());
    return item;
  };
  const Bytes abc = text("abc"), random = random_bytes(70'000, 9);
  const auto part = [&](size_t size) { return Bytes(random.begin(), random.begin() + static_cast<ptrdiff_t>(size)); };
  const auto writer = [] { return DeflateWriter(); };

  // Blocks.
  for (const size_t size : {0u, 1u, 31u, 32u, 33u, 1001u, 65'535u})
    good("a stored block of " + std::to_string(size), writer().stored(part(size), true).bytes(), part(size));
  good(
      "stored blocks at odd places",
      writer().fixed(false).literals(abc).end().stored(part(77), false).stored({}, false).stored(part(3), true).bytes(),
      then(then(abc, part(77)), part(3)));
  good("an empty fixed block", writer().fixed(true).end().bytes(), {});
  good("empty blocks of every kind",
       writer().fixed(false).end().stored({}, false).fixed(false).end().fixed(true).literals(abc).end().bytes(), abc);
  good("every literal in fixed codes", writer().fixed(true).literals(ramp_bytes(256)).end().bytes(), ramp_bytes(256));
  good("the unused bits are set",
       then(cut(writer().fixed(true).literals(abc).end().bytes()),
            {static_cast<uint8_t>(writer().fixed(true).literals(abc).end().bytes().back() | 0xC0)}),
       abc);
  {
    Bytes raw = part(40'000);
    DeflateWriter far;
    far.stored(raw, false).fixed(true);
    for (const uint32_t distance : {32'768u, 32'767u, 24'577u, 24'576u, 1u, 258u}) {
      for (const uint32_t length : {3u, 10u, 11u, 257u, 258u}) {
        far.match(length, distance);
        add_match(raw, length, distance);
      }
    }
    good("far matches", far.end().bytes(), raw);
  }
  {
    Bytes raw = part(600);
    DeflateWriter all;
    all.stored(raw, false).fixed(true);
    for (uint32_t length = 3; length <= 258; ++length) {
      all.match(length, length * 7 % 600 + 1);
      add_match(raw, length, length * 7 % 600 + 1);
    }
    good("every length", all.end().bytes(), raw);
  }
  {
    Bytes raw = {'z'};
    DeflateWriter runs;
    runs.fixed(true).literal('z');
    for (int i = 0; i < 400; ++i) {
      runs.match(258, 1);
      add_match(raw, 258, 1);
    }
    good("a long run", runs.end().bytes(), raw);
  }
  // Codes of a block by its lengths: literals a and b, the end, the length 3, and what is given.
  const auto literal_lengths = [](const std::vector<std::pair<uint32_t, uint8_t>>& of, size_t count = 258) {
    Bytes lengths(count);
    for (const auto& [symbol, length] : of) lengths[symbol] = length;
    return lengths;
  };
  const Bytes four = literal_lengths({{'a', 2}, {'b', 2}, {256, 2}, {257, 2}});
  const auto four_then = [&](const Bytes& distances) {
    return writer().dynamic(four, distances, true).literals({'a', 'b'});
  };
  good("one distance code", four_then({1}).match(3, 1).end().bytes(), text("abbbb"));
  good("one distance code that is not the first", four_then({0, 1}).match(3, 2).end().bytes(), text("ababa"));
  good("no distance code", four_then({0}).end().bytes(), text("ab"));
  good("the end alone", writer().dynamic(literal_lengths({{256, 1}}, 257), {0}, true).end().bytes(), {});
  good("two distance codes", four_then({1, 1}).match(3, 1).match(3, 2).end().bytes(), text("abbbbbbb"));
  {
    // Codes of every length up to the longest: of A to N, of Z and the end, and of distances.
    Bytes letters(257), distances(15);
    for (uint8_t i = 0; i < 14; ++i) letters['A' + i] = distances[i] = static_cast<uint8_t>(i + 1);
    letters['Z'] = letters[256] = 15;
    distances[14] = 14;
    Bytes raw;
    for (int i = 0; i < 30; ++i) raw = then(raw, text("AAANBZCMDELKJIHGFNZ"));
    good("long codes", writer().dynamic(letters, {0}, true).literals(raw).end().bytes(), raw);
    DeflateWriter matches;
    matches.dynamic(literal_lengths({{'a', 1}, {'b', 2}, {257, 3}, {256, 4}, {285, 4}}, 286), distances, true);
    matches.literals({'a', 'b'});
    raw = text("ab");
    for (int i = 0; i < 12; ++i) {
      for (const uint32_t distance : {1u, 2u, 3u, 4u, 6u, 8u, 12u, 16u, 24u, 32u, 48u, 64u, 96u, 100u, 150u}) {
        if (distance > raw.size()) continue;
        const uint32_t length = distance == 24 ? 258 : 3;
        matches.match(length, distance);
        add_match(raw, length, distance);
      }
    }
    good("long codes of distances", matches.end().bytes(), raw);
  }
  {
    // Lengths that are repeated, of zeros and of others, from the literals into the distances.
    Bytes lengths(kDeflateLengthSymbols);
    for (const auto& [symbol, length] :
         std::vector<std::pair<uint32_t, uint8_t>>{{0, 2}, {2, 2}, {16, 3}, {17, 3}, {18, 2}})
      lengths[symbol] = length;
    const auto header = [&](uint32_t distance_count) { return writer().counts(258, distance_count, lengths, true); };
    // 97 zeros, 2 for a and b, 157 zeros, 2 for the end and the length 3, which two distances repeat.
    const auto up_to_end = [&](DeflateWriter head) {
      head.code(lengths, 18).bits(97 - 11, 7).code(lengths, 2).code(lengths, 2);
      return head.code(lengths, 18).bits(138 - 11, 7).code(lengths, 18).bits(19 - 11, 7).code(lengths, 2);
    };
    good("lengths that go on in the distances",
         up_to_end(header(4))
             .code(lengths, 16)
             .bits(2, 2)
             .bits(0, 2)
             .bits(0, 1)
             .bits(1, 1)
             .bits(1, 1)
             .bits(0, 1)
             .bytes(),
         text("ab"));
    bad("code lengths are repeated too often", up_to_end(header(4)).code(lengths, 16).bits(3, 2).bytes());
    bad("code lengths are repeated too often",
        header(4).code(lengths, 18).bits(127, 7).code(lengths, 18).bits(127, 7).bytes());
    bad("code lengths are repeated too often",
        up_to_end(header(4)).code(lengths, 2).code(lengths, 17).bits(7, 3).bytes());
    bad("a code length is repeated that is none", header(2)
                                                      .code(lengths, 16)
                                                      .bits(0, 2)
                                                      .code(lengths, 18)
                                                      .bits(94 - 11, 7)
                                                      .code(lengths, 2)
                                                      .code(lengths, 2)
                                                      .code(lengths, 18)
                                                      .bits(138 - 11, 7)
                                                      .code(lengths, 18)
                                                      .bits(19 - 11, 7)
                                                      .code(lengths, 2)
                                                      .code(lengths, 2)
                                                      .code(lengths, 0)
                                                      .code(lengths, 0)
                                                      .bits(1, 2)
                                                      .bytes());
    DeflateWriter longest;  // a repeat goes far over the most lengths that there may be
    longest.counts(286, 30, lengths, true).code(lengths, 2).code(lengths, 2).code(lengths, 2);
    for (int i = 0; i < 52; ++i) longest.code(lengths, 16).bits(3, 2);
    bad("code lengths are repeated too often", longest.code(lengths, 16).bits(3, 2).whole(Bytes(9)).bytes());
    bad("a dynamic block's header is cut off", up_to_end(header(4)).bytes());
    bad("a block's end has no code",
        header(4).code(lengths, 18).bits(127, 7).code(lengths, 18).bits(113, 7).whole(Bytes(9)).bytes());
  }

  // Streams that are wrong.
  bad("a block's header is cut off", {});
  bad("a block's header is cut off", writer().stored(abc, false).bytes());
  bad("a block has the reserved type", {7});
  bad("a block has the reserved type", writer().stored(abc, false).head(Type::reserved, true).bytes());
  bad("a stored block is cut off", cut(writer().stored(abc, true).bytes()));
  bad("a stored block is cut off", cut(writer().stored({}, true).bytes()));
  bad("a stored block is cut off", {1});
  bad("a stored block's length is not confirmed", with(writer().stored(abc, true).bytes(), 3, 0xFE));
  bad("a dynamic block's header is cut off", {5});
  bad("a dynamic block's header is cut off", cut(writer().counts(257, 1, Bytes(19, 4), true).bytes(), 2));
  const auto padded = [](Bytes bytes, size_t size) {
    bytes.resize(size);
    return bytes;
  };
  bad("a block has too many codes", writer().dynamic(padded(four, 287), {1}, true).literal('a').end().bytes());
  bad("a block has too many codes", writer().dynamic(four, padded({1}, 31), true).literal('a').end().bytes());
  const auto of_lengths = [&](const std::vector<std::pair<uint32_t, uint8_t>>& of) {
    Bytes lengths(kDeflateLengthSymbols);
    for (const auto& [symbol, length] : of) lengths[symbol] = length;
    return writer().counts(257, 1, lengths, true).whole(Bytes(100)).bytes();
  };
  bad("the codes of a block's code lengths are no code", of_lengths({}));
  bad("the codes of a block's code lengths are no code", of_lengths({{0, 1}}));
  bad("the codes of a block's code lengths are no code", of_lengths({{0, 1}, {1, 2}}));
  bad("the codes of a block's code lengths are no code", of_lengths({{0, 1}, {1, 1}, {18, 7}}));
  bad("a block's end has no code",
      writer().dynamic(literal_lengths({{'a', 1}, {'b', 1}}), {0}, true).literals(Bytes(50, 'a')).bytes(),
      DeflateFraming::raw, BatchStatus::cannot_decompress, 10);
  const auto of_literals = [&](const std::vector<std::pair<uint32_t, uint8_t>>& of) {
    return writer().dynamic(literal_lengths(of), {1}, true).end().bytes();
  };
  bad("a block's literals and lengths have no code", of_literals({{256, 2}}));
  bad("a block's literals and lengths have no code", of_literals({{256, 1}, {'a', 2}}));
  bad("a block's literals and lengths have no code", of_literals({{256, 1}, {'a', 1}, {'b', 15}}));
  bad("a block's distances have no code", four_then({2}).end().bytes());
  bad("a block's distances have no code", four_then({1, 2}).end().bytes());
  bad("a block's distances have no code", four_then({1, 1, 1}).end().bytes());
  bad("a block is cut off", cut(writer().fixed(true).literals(abc).end().bytes()));
  bad("a block is cut off", writer().fixed(true).literals(abc).length(3).bytes());
  bad("a block is cut off", cut(writer().fixed(true).literals(abc).match(100, 3).bytes(), 2));
  bad("a length is none", writer().fixed(true).literal(286).bytes());
  bad("a length is none", writer().fixed(true).literals(abc).literal(287).end().bytes());
  bad("a distance is none", writer().fixed(true).literals(abc).length(3).bits(0xF, 5).end().bytes());  // 30
  bad("a distance is none", writer().fixed(true).literals(abc).length(3).bits(0x1F, 5).end().bytes());
  bad("a distance lies before the stream", writer().fixed(true).literals(abc).match(3, 4).end().bytes());
  bad("a distance lies before the stream", writer().fixed(true).match(3, 1).end().bytes());
  bad("a distance lies before the stream", writer().stored(part(2000), false).fixed(true).match(9, 2001).end().bytes());
  bad("bits are no code", four_then({1}).length(3).bits(1, 1).whole(Bytes(9)).bytes());
  bad("bits are no code", four_then({0}).length(3).bits(0, 1).whole(Bytes(9)).bytes());
  bad("bits are no code",
      writer().dynamic(literal_lengths({{256, 1}}, 257), {0}, true).bits(1, 1).whole(Bytes(9)).bytes());
  bad("bytes follow the stream", then(writer().fixed(true).end().bytes(), {0}));
  const auto too_small = [&](const Bytes& item, size_t room, DeflateFraming framing = DeflateFraming::raw) {
    bad("the content has more bytes than its room", item, framing, BatchStatus::output_too_small, room);
  };
  for (const size_t room : {0u, 1u, 2u}) too_small(writer().fixed(true).literals(abc).end().bytes(), room);
  for (const size_t room : {3u, 4u, 9u})
    too_small(writer().fixed(true).literals(abc).match(7, 3).literal(286).end().bytes(), room);
  too_small(writer().stored(part(100), true).bytes(), 99);
  // Both are wrong: what comes first counts, and a symbol's distance before its room.
  bad("a distance lies before the stream", writer().fixed(true).literals(abc).match(7, 4).end().bytes(),
      DeflateFraming::raw, BatchStatus::cannot_decompress, 4);
  bad("a stored block is cut off", cut(writer().stored(part(100), true).bytes()), DeflateFraming::raw,
      BatchStatus::cannot_decompress, 9);

  // zlib.
  const Bytes stream = writer().fixed(true).literals(abc).match(9, 2).end().bytes(), raw = text("abcbcbcbcbcb");
  const Bytes in_zlib = zlib_of(stream, raw), in_gzip = gzip_of(stream, raw);
  const auto zlib = DeflateFraming::zlib, gzip = DeflateFraming::gzip;
  good("zlib", in_zlib, raw, zlib);
  good("zlib without bytes", zlib_of(writer().fixed(true).end().bytes(), {}), {}, zlib);
  good("zlib with a small window", with(with(in_zlib, 0, 0x18), 1, 0x19), raw, zlib);
  good("a long zlib stream",
       zlib_of(writer().stored(part(65'000), false).stored(part(9'001), true).bytes(), then(part(65'000), part(9'001))),
       then(part(65'000), part(9'001)), zlib);
  {
    const Bytes high(20'000, 0xFF);
    good("zlib of the highest bytes", zlib_of(writer().stored(high, true).bytes(), high), high, zlib);
  }
  bad("a zlib header is cut off", {}, zlib);
  bad("a zlib header is cut off", {0x78}, zlib);
  bad("no zlib stream begins here", with(in_zlib, 1, 0x9D), zlib);
  bad("no zlib stream begins here", in_gzip, zlib);
  bad("a method is not Deflate", with(with(in_zlib, 0, 0x77), 1, 0x09), zlib, BatchStatus::unsupported);
  bad("a zlib header has a window above 32 KiB", with(with(in_zlib, 0, 0x88), 1, 0x1C), zlib);
  bad("a zlib stream needs a dictionary", with(in_zlib, 1, 0xBB), zlib, BatchStatus::unsupported);
  bad("a zlib stream's checksum is cut off", cut(in_zlib), zlib);
  bad("a zlib stream's checksum is cut off", cut(in_zlib, 4), zlib);
  bad("a zlib stream's checksum is another", with(in_zlib, in_zlib.size() - 1, 0), zlib, BatchStatus::bad_checksum);
  bad("a zlib stream's checksum is another", with(in_zlib, in_zlib.size() - 4, 9), zlib, BatchStatus::bad_checksum);
  bad("bytes follow the stream", then(in_zlib, {0}), zlib);
  too_small(in_zlib, raw.size() - 1, zlib);

  // gzip.
  good("gzip", in_gzip, raw, gzip);
  for (uint32_t flags = 1; flags < 32; ++flags)
    good("gzip with flags " + std::to_string(flags), gzip_of(stream, raw, {.flags = flags}), raw, gzip);
  good("gzip members, and zeros", then(then(then(in_gzip, gzip_of(stream, raw, {.flags = 31})), in_gzip), Bytes(500)),
       then(then(raw, raw), raw), gzip);
  good("an empty member of BGZF", Bytes(kBgzfEnd.begin(), kBgzfEnd.end()), {}, gzip);
  good("members of BGZF", then(libdeflate_item(random, 6, gzip), Bytes(kBgzfEnd.begin(), kBgzfEnd.end())), random,
       DeflateFraming::bgzf);
  for (const size_t size : {1u, 3u, 4u, 5u, 127u, 128u, 129u, 131u, 132u, 4'095u, 4'096u, 4'097u, 60'001u})
    good("gzip of " + std::to_string(size), gzip_of(writer().stored(part(size), true).bytes(), part(size)), part(size),
         gzip);
  bad("no gzip member begins here", in_zlib, gzip);
  bad("no gzip member begins here", then(in_gzip, {0, 0, 1}), gzip);
  bad("no gzip member begins here", then(in_gzip, in_zlib), gzip);
  bad("a member's header is cut off", {}, gzip);
  bad("a member's header is cut off", Bytes(in_gzip.begin(), in_gzip.begin() + 9), gzip);
  bad("a member's header is cut off", then(in_gzip, {0x1F}), gzip);
  const Bytes with_fields = gzip_of({}, {}, {.flags = 30});
  for (const size_t bytes : {8u, 9u, 10u, 11u, 13u, 14u, 83u, 86u, 90u})
    bad(bytes == 8 ? "a block's header is cut off" : "a member's header is cut off", cut(with_fields, bytes), gzip);
  bad("a method is not Deflate", gzip_of(stream, raw, {.method = 7}), gzip, BatchStatus::unsupported);
  bad("a member's header has reserved flags", gzip_of(stream, raw, {.flags = 32}), gzip, BatchStatus::unsupported);
  bad("a member's header has reserved flags", gzip_of(stream, raw, {.flags = 128}), gzip, BatchStatus::unsupported);
  bad("a member's header has another checksum", gzip_of(stream, raw, {.flags = 18, .has_wrong_crc = true}), gzip,
      BatchStatus::bad_checksum);
  for (const size_t bytes : {1u, 4u, 5u, 8u}) bad("a member's checksum is cut off", cut(in_gzip, bytes), gzip);
  bad("a member's checksum is another", with(in_gzip, in_gzip.size() - 8, 0), gzip, BatchStatus::bad_checksum);
  bad("a member's checksum is another", then(in_gzip, gzip_of(stream, text("abcbcbcbcbcc"))), gzip,
      BatchStatus::bad_checksum);
  bad("a member does not have the bytes that it states", with(in_gzip, in_gzip.size() - 4, 13), gzip);
  bad("a distance lies before the stream", then(in_gzip, gzip_of(writer().fixed(true).match(3, 1).end().bytes(), {})),
      gzip);
  too_small(then(in_gzip, in_gzip), 2 * raw.size() - 1, gzip);
  return cases;
}

// --- damage ---

struct DeflateItemCase {
  std::string name;
  DeflateFraming framing;
  Bytes item, raw;
};

// Small items, mostly raw: a checksum would find most damage at once.
inline std::vector<DeflateItemCase> deflate_items_to_damage(size_t size = 6000) {
  std::vector<DeflateItemCase> items;
  for (const Bytes& raw : {matchable_bytes(size, 1), fibonacci_bytes(size), mixed_content(300), Bytes(size, 'r')}) {
    const std::string name = std::to_string(raw.size()) + " bytes";
    for (const int level : {1, 6, 12})
      items.push_back(
          {name + ", level " + std::to_string(level), DeflateFraming::raw, libdeflate_item(raw, level), raw});
    items.push_back({name + ", fixed", DeflateFraming::raw, zlib_item(raw, 6, {.strategy = Z_FIXED}), raw});
    items.push_back({name + ", small blocks", DeflateFraming::raw, zlib_item(raw, 9, {.memory_level = 1}), raw});
    items.push_back({name + ", flushed", DeflateFraming::raw, zlib_item(raw, 5, {.flush_bytes = 700}), raw});
    items.push_back({name + ", zlib", DeflateFraming::zlib, libdeflate_item(raw, 6, DeflateFraming::zlib), raw});
    items.push_back({name + ", gzip", DeflateFraming::gzip, gzip_of(libdeflate_item(raw, 9), raw, {.flags = 30}), raw});
  }
  for (const DeflateCase& by_hand : deflate_cases_by_hand()) {
    if (by_hand.status == kernels::BatchStatus::ok && by_hand.raw.size() <= 3000)
      items.push_back({by_hand.name, by_hand.framing, by_hand.item, by_hand.raw});
  }
  return items;
}

// The item with bits, bytes or its end changed, mostly near its start, where the headers are.
inline Bytes damaged_deflate(Bytes item, std::mt19937& random) {
  const auto times = static_cast<uint32_t>(1 + random() % 4 / 3);
  for (uint32_t i = 0; i < times && !item.empty(); ++i) {
    const size_t area = random() % 2 == 0 ? std::min<size_t>(item.size(), 60) : item.size();
    const size_t at = random() % area;
    switch (random() % 8) {
      case 0:
        item.resize(random() % item.size());
        break;
      case 1:
        item[at] = static_cast<uint8_t>(random());
        break;
      case 2:
        item[at] = random() % 2 == 0 ? 0 : 255;
        break;
      case 3:
        item.insert(item.begin() + static_cast<ptrdiff_t>(at), static_cast<uint8_t>(random()));
        break;
      default:
        item[at] = static_cast<uint8_t>(item[at] ^ 1u << random() % 8);
    }
  }
  return item;
}

}  // namespace ptxkit::testing
